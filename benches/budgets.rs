//! The budgets of `docs/performance.md`, each beside its peer, measured in one run on this machine.
//!
//! `cargo bench --bench budgets` prints a table and exits with 1 when a budget is missed. It needs the rig
//! (`scripts/rig`) for the paired builds.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use stuckproof::clock::{Anchor, Mono};
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
    let measurements = [callback, paired_build, start_up, signal_to_word];
    let lines: Vec<Line> = measurements.into_iter().flat_map(|measure| measure(scratch.path())).collect();
    println!("\n{:<34} {:<34} {:<42} peer", "what", "budget", "measured");
    for line in &lines {
        let mark = if line.held { "held  " } else { "MISSED" };
        println!("{:<34} {:<34} {:<42} {}  {mark}", line.what, line.budget, line.ours, line.peer);
    }
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

/// A real build with and without the attach library, alternating, by the time that the build call itself took.
fn paired_build(scratch: &Path) -> Vec<Line> {
    const PAIRS: usize = 30;
    let wire = scratch.join("paired");
    std::fs::create_dir(&wire).unwrap();
    Control::create(&wire, Anchor::now()).unwrap();
    let library = stuckproof::attach::unpack().unwrap();
    let build = |attached: bool| {
        let mut command = Command::new(rig("venv/bin/python"));
        command.arg("benches/timed_build.py").arg(rig("models/medium.onnx"));
        if attached {
            for change in stuckproof::attach::environment(&library, &wire, "bench") {
                command.env(change.name, change.value);
            }
        }
        run(&mut command).trim().parse::<f64>().expect("seconds")
    };
    build(true);
    let mut shares: Vec<f64> = Vec::new();
    let mut plain_total = 0.0;
    for pair in 0..PAIRS {
        // Which goes first alternates, so that a slow drift of the machine cancels out.
        let first = build(pair % 2 == 0);
        let second = build(pair % 2 != 0);
        let (with, without) = if pair % 2 == 0 { (first, second) } else { (second, first) };
        shares.push((with - without) / without * 100.0);
        plain_total += without;
    }
    sort(&mut shares);
    let mean = shares.iter().sum::<f64>() / PAIRS as f64;
    let spread = (shares.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (PAIRS - 1) as f64).sqrt();
    // Student's t, one-sided 95 %, 29 degrees of freedom.
    let bound = mean + 1.699 * spread / (PAIRS as f64).sqrt();
    vec![Line {
        what: "real build, attached",
        budget: "95 % bound of the difference <= 1 %".to_owned(),
        ours: format!("{bound:+.2} % (mean {mean:+.2} %, sd {spread:.2} %, {PAIRS} pairs)"),
        peer: format!("{:.3} s without", plain_total / PAIRS as f64),
        held: bound <= 1.0,
    }]
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
