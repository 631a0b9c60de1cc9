//! The budgets of `docs/performance.md`, each beside its peer, measured in one run on this machine.
//!
//! `cargo bench --bench budgets` prints a table and exits with 1 when a budget is missed. It needs the rig
//! (`scripts/rig`) for the paired builds.

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use stuckproof::clock::{Anchor, Mono};
use stuckproof::digest::Hex;
use stuckproof::procfs::Stat;
use stuckproof::resources::{Tree, until_next};
use stuckproof::wire::Control;

const STUCKPROOF: &str = env!("CARGO_BIN_EXE_stuckproof");

/// One line of the table.
struct Line {
    what: &'static str,
    budget: String,
    ours: String,
    peer: String,
    held: bool,
}

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return; // a test runner asks for tests; this has none
    }
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let measurements = [callback, paired_build, start_up, signal_to_word, digest, sampling];
    let lines: Vec<Line> = measurements.into_iter().flat_map(|measure| measure(scratch.path())).collect();
    println!("\n{:<34} {:<34} {:<42} peer", "what", "budget", "measured");
    for line in &lines {
        let mark = if line.held { "held  " } else { "MISSED" };
        println!("{:<34} {:<34} {:<42} {}  {mark}", line.what, line.budget, line.ours, line.peer);
    }
    // An exit drops nothing.
    drop(scratch);
    if lines.iter().any(|line| !line.held) {
        std::process::exit(1);
    }
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

fn sort(values: &mut [f64]) {
    values.sort_by(f64::total_cmp);
}

/// One callback, recorded, beside a Python monitor that locks and repaints.
fn callback(scratch: &Path) -> Vec<Line> {
    let folder = scratch.join("callback");
    std::fs::create_dir(&folder).unwrap();
    let (library, program) = (folder.join("libtensorrt_rtx.so.1"), folder.join("callback"));
    let mut compile = Command::new("g++");
    compile.args(["-std=c++17", "-O2", "-fPIC", "-shared", "cpp/tests/fake_builder.cpp", "-o"]).arg(&library);
    run(&mut compile);
    let mut compile = Command::new("g++");
    compile.args(["-std=c++17", "-O2", "-fno-exceptions", "-pthread", "cpp/benches/callback.cpp"]);
    compile.args(
        ["recorder", "elf", "library", "vtable", "monitor", "logger", "facts", "builder"]
            .map(|name| format!("cpp/{name}.cpp")),
    );
    compile.arg(&library).arg(format!("-Wl,-rpath,{}", folder.display())).arg("-o").arg(&program);
    run(&mut compile);
    let wire = folder.join("wire");
    std::fs::create_dir(&wire).unwrap();
    Control::create(&wire, Anchor::now()).unwrap();
    let ours = json(&run(Command::new(program).arg("500000").env("STUCKPROOF_WIRE", &wire)));
    let peer = json(&run(Command::new("python3").args(["benches/peer_monitor.py", "50000"])));
    let number = |from: &Value, key: &str| from[key].as_f64().unwrap();
    let (median, peer_median) = (number(&ours, "median") - number(&ours, "timer"), number(&peer, "median"));
    let line = |what, budget: &str, ours: String, peer: String, held| Line {
        what,
        budget: budget.to_owned(),
        ours,
        peer,
        held,
    };
    vec![
        line(
            "callback, median",
            "<= 100 ns",
            format!("{median:.0} ns (timer's {:.0} ns taken off)", number(&ours, "timer")),
            format!("{:.1} us", peer_median / 1e3),
            median <= 100.0,
        ),
        line(
            "callback, p99.9",
            "<= 1 us",
            format!("{:.0} ns (worst {:.0} us)", number(&ours, "p999"), number(&ours, "worst") / 1e3),
            format!("{:.1} us", number(&peer, "p999") / 1e3),
            number(&ours, "p999") <= 1000.0,
        ),
        line(
            "callback, cheaper than the peer",
            ">= 200 x",
            format!("{:.0} x", peer_median / median),
            String::from("1 x"),
            peer_median / median >= 200.0,
        ),
    ]
}

fn rig(what: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(".rig").join(what);
    assert!(path.exists(), "{} is missing: run scripts/rig", path.display());
    path
}

/// Real builds in pairs in one process, observed and not, by the time that the build call itself took.
fn paired_build(scratch: &Path) -> Vec<Line> {
    const PAIRS: usize = 300;
    let wire = scratch.join("paired");
    std::fs::create_dir(&wire).unwrap();
    Control::create(&wire, Anchor::now()).unwrap();
    let library = rig("clients/libtensorrt_rtx.so.1").canonicalize().unwrap();
    let mut command = Command::new(compile_paired_build(scratch));
    command.arg(&library).arg(distance(&library).to_string()).arg(PAIRS.to_string());
    for change in stuckproof::attach::environment(&stuckproof::attach::unpack().unwrap(), &wire, "bench") {
        command.env(change.name, change.value);
    }
    let pairs: Vec<(f64, f64)> = run(&mut command)
        .lines()
        .map(|line| {
            let (with, without) = line.split_once(' ').expect("two numbers");
            (with.parse().expect("seconds"), without.parse().expect("seconds"))
        })
        .collect();
    let mut shares: Vec<f64> =
        pairs.iter().map(|(with, without)| (with - without) / without * 100.0).collect();
    sort(&mut shares);
    // The bound of the median by the ranks of the differences: a busy machine's outliers have no say in it.
    let rank = (PAIRS as f64 / 2.0 + 1.645 * (PAIRS as f64).sqrt() / 2.0).ceil() as usize;
    let bound = shares[rank];
    let mean = shares.iter().sum::<f64>() / PAIRS as f64;
    let plain = pairs.iter().map(|(_, without)| without).sum::<f64>() / PAIRS as f64;
    vec![Line {
        what: "real build, attached",
        budget: "95 % bound of the difference <= 1 %".to_owned(),
        ours: format!("{bound:+.2} % (median {:+.2} %, mean {mean:+.2} %)", percentile(&shares, 0.5)),
        peer: format!("{plain:.3} s without, {PAIRS} pairs"),
        held: bound <= 1.0,
    }]
}

fn compile_paired_build(scratch: &Path) -> PathBuf {
    let metadata = json(&run(Command::new("cargo").args(["metadata", "--format-version=1", "--locked"])));
    let packages = metadata["packages"].as_array().expect("packages");
    let carrier =
        packages.iter().find(|package| package["name"] == "trtx-sys").expect("the headers are locked");
    let manifest = Path::new(carrier["manifest_path"].as_str().expect("a path"));
    let headers = manifest.with_file_name("TensorRT-Headers");
    let program = scratch.join("paired_build");
    let mut compile = Command::new("g++");
    compile
        .args(["-std=c++17", "-O2", "-isystem"])
        .arg(&headers)
        .arg("-isystem")
        .arg(headers.join("TRT-RTX-1.7"));
    run(compile.arg("cpp/benches/paired_build.cpp").arg("-o").arg(&program).arg("-ldl"));
    program
}

/// How far the function that makes builders lies behind the one that tells the version.
fn distance(library: &Path) -> i64 {
    let symbols = run(Command::new("nm").args(["-D", "--defined-only"]).arg(library));
    let place = |name: &str| {
        let line = symbols.lines().find(|line| line.ends_with(&format!(" {name}"))).expect("it is exported");
        i64::from_str_radix(line.split(' ').next().expect("an address"), 16).expect("an address")
    };
    place("createInferBuilder_INTERNAL") - place("getInferLibVersion")
}

/// `stuckproof run -- true` beside `true`. The disk's syncs are measured too, and taken off.
fn start_up(scratch: &Path) -> Vec<Line> {
    const RUNS: usize = 60;
    let time = |command: &mut Command| {
        let start = Instant::now();
        let status =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert!(status.success());
        start.elapsed().as_secs_f64() * 1e3
    };
    let (mut ours, mut plain, mut syncs) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..RUNS {
        plain.push(time(&mut Command::new("true")));
        let bundle = scratch.join(format!("start-{i}"));
        ours.push(time(Command::new(STUCKPROOF).arg("run").arg("--bundle").arg(bundle).args(["--", "true"])));
        let file = std::fs::File::create(scratch.join("sync")).unwrap();
        std::io::Write::write_all(&mut &file, b"a line of a log\n").unwrap();
        let start = Instant::now();
        file.sync_data().unwrap();
        syncs.push(start.elapsed().as_secs_f64() * 1e3);
    }
    for values in [&mut ours, &mut plain, &mut syncs] {
        sort(values);
    }
    let (ours, plain, sync) = (percentile(&ours, 0.5), percentile(&plain, 0.5), percentile(&syncs, 0.5));
    vec![Line {
        what: "run -- true, median",
        budget: "<= 20 ms beyond true and the syncs".to_owned(),
        ours: format!("{ours:.1} ms (one sync here: {sync:.2} ms)"),
        peer: format!("{plain:.1} ms"),
        held: ours - plain <= 20.0 + 4.0 * sync,
    }]
}

/// From `kill(runner, SIGINT)` to the cancel word in the control page, as a builder's process sees it.
fn signal_to_word(scratch: &Path) -> Vec<Line> {
    const RUNS: usize = 200;
    let mut waits: Vec<f64> = (0..RUNS).map(|i| one_signal(&scratch.join(format!("signal-{i}")))).collect();
    sort(&mut waits);
    vec![Line {
        what: "SIGINT to the cancel word, p99",
        budget: "<= 1 ms".to_owned(),
        ours: format!("{:.3} ms (median {:.3} ms)", percentile(&waits, 0.99), percentile(&waits, 0.5)),
        peer: String::from("-"),
        held: percentile(&waits, 0.99) <= 1.0,
    }]
}

/// The digest of a large file, as inputs, artifacts and the seal take it, by processor time.
fn digest(scratch: &Path) -> Vec<Line> {
    const BYTES: usize = 512 << 20;
    let path = scratch.join("large");
    std::fs::write(&path, vec![0x5a; BYTES]).unwrap();
    let speed = |seconds: f64| BYTES as f64 / 1e9 / seconds;
    let used = || {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
    };
    let begin = used();
    let (ours, _) = Hex::of_all(std::fs::File::open(&path).unwrap()).unwrap();
    let own = speed(used() - begin);
    let peer = |command: &str| {
        let script = format!("TIMEFORMAT='%U %S'; {{ time {command} \"$0\"; }} 2>&1");
        let said = run(Command::new("bash").arg("-c").arg(script).arg(&path));
        assert!(said.contains(&ours.to_string()), "{command} agrees: {said}");
        let times = said.lines().last().expect("the times come last").split(' ');
        speed(times.map(|seconds| seconds.parse::<f64>().expect("seconds")).sum())
    };
    let (coreutils, openssl) = (peer("sha256sum"), peer("openssl dgst -sha256"));
    std::fs::remove_file(&path).unwrap();
    vec![Line {
        what: "SHA-256 of a file of 512 MiB",
        budget: ">= 1 GB/s of one core".to_owned(),
        ours: format!("{own:.2} GB/s"),
        peer: format!("sha256sum {coreutils:.2}, openssl {openssl:.2} GB/s"),
        held: own >= 1.0,
    }]
}

fn one_signal(bundle: &Path) -> f64 {
    let mut runner = Command::new(STUCKPROOF)
        .arg("run")
        .arg("--bundle")
        .arg(bundle)
        .args(["--grace", "0s", "--", "sleep", "60"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let page = bundle.join("wire/control");
    let log = bundle.join("events.jsonl");
    let started = || std::fs::read_to_string(&log).is_ok_and(|text| text.contains("\"commandStarted\""));
    while !started() {
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_millis(30));
    let file = std::fs::File::open(page).unwrap();
    let pid = rustix::process::Pid::from_raw(runner.id().cast_signed()).unwrap();
    let sent = Mono::now();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut word = [0; 8];
    loop {
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut word, 16).unwrap();
        if word != [0; 8] {
            break;
        }
        std::hint::spin_loop();
    }
    let wait = Mono::now().since(sent).as_secs_f64() * 1e3;
    runner.wait().unwrap();
    wait
}

/// One sample of what a job uses, for a builder with so many threads, beside one `ps` of all threads of the machine.
fn sampling(_: &Path) -> Vec<Line> {
    let counts = [
        (1, "a sample, 1 thread, median"),
        (50, "a sample, 50 threads, median"),
        (500, "a sample, 500 threads, median"),
    ];
    counts.into_iter().map(|(threads, what)| sampling_of(threads, what)).collect()
}

fn sampling_of(threads: usize, what: &'static str) -> Line {
    const LOOKS: usize = 40;
    let mut builder = sleeping(threads);
    let resident = resident_kib();
    let mut tree = Tree::below(std::process::id());
    let mut costs: Vec<f64> = (0..LOOKS).map(|_| look(&mut tree, threads)).collect();
    let grown = resident_kib().saturating_sub(resident);
    let peer = ps();
    builder.kill().unwrap();
    builder.wait().unwrap();
    sort(&mut costs);
    let cost = percentile(&costs, 0.5);
    let apart = until_next(Duration::from_secs_f64(cost));
    let share = cost / apart.as_secs_f64() * 100.0;
    Line {
        what,
        budget: "<= 0.5 % of a core".to_owned(),
        ours: format!("{:.2} ms each {:.1} s: {share:.2} % ({grown} KiB)", cost * 1e3, apart.as_secs_f64()),
        peer: format!("{:.1} ms: ps -eLo", peer * 1e3),
        held: share <= 0.5,
    }
}

/// Processor time of one look with everything that it can find out, seconds.
fn look(tree: &mut Tree, threads: usize) -> f64 {
    let before = own_cpu();
    let (sample, _) = tree.look(true);
    let cost = own_cpu() - before;
    assert_eq!(sample.threads, threads as u64, "{sample:?}");
    cost
}

/// A program with so many threads that sleep.
fn sleeping(threads: usize) -> std::process::Child {
    let script = format!(
        "import threading, time\n\
         for _ in range({}): threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n\
         print(flush=True)\n\
         time.sleep(1000)",
        threads - 1
    );
    let mut python = Command::new("python3");
    let mut child = python.args(["-S", "-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = [0];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).unwrap();
    child
}

/// Processor time of one `ps` of every thread, seconds.
fn ps() -> f64 {
    const RUNS: u32 = 20;
    let ticks = || Stat::parse(&std::fs::read_to_string("/proc/self/stat").unwrap()).unwrap().reaped_ticks;
    let before = ticks();
    for _ in 0..RUNS {
        run(Command::new("ps").args(["-eLo", "pid,stat,time"]));
    }
    let per_second = rustix::param::clock_ticks_per_second();
    (ticks() - before) as f64 / per_second as f64 / f64::from(RUNS)
}

fn own_cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
