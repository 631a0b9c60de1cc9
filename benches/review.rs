//! The budget of reviews, beside what `sha256sum` and a JSON parser need for the same files, measured in one run.
//!
//! `cargo bench --bench review` makes 10,000 sealed bundles of 100 events, prints a table and exits with 1 when a budget is
//! missed. A number behind `--` makes another count of bundles.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use stuckproof::baseline::{self, BASELINE, Baseline};
use stuckproof::clock::{Anchor, Mono};
use stuckproof::event::{
    BuildFacts, CommandExited, CommandStarted, Event, EventKind, InputDigested, InputIdentified, InputKind,
    JobEnded, JobStarted, LogWriter, Tensor,
};
use stuckproof::evidence::{self, document};
use stuckproof::mask::Secrets;
use stuckproof::observe::Tracker;
use stuckproof::pack::pack;
use stuckproof::review::{Policy, find, review};
use stuckproof::seal::seal;
use stuckproof::verdict::judge;
use stuckproof::wire::{Body, LibraryFacts, Method, ProcessKey, Record};

/// Bundles of the large review; the small one has a tenth.
const BUNDLES: usize = 10_000;
/// Lines of each log.
const EVENTS: usize = 100;
/// The argument by which this program becomes its own child, so that its memory is that of a review and of nothing else.
const CHILD: &str = "--review";
const BUDGET: f64 = 1_000.0;
const COMMAND: u32 = 4_001;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [first, folder, count] if first == CHILD => return child(Path::new(folder), count),
        _ if arguments.iter().any(|argument| argument == "--test") => return, // a test runner asks for tests; this has none
        _ => {}
    }
    let count = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(BUNDLES);
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let (folders, archives) = (scratch.path().join("folders"), scratch.path().join("archives"));
    make(&folders, &archives, count);
    println!("{:<34} {:<34} {:<52} peer", "what", "budget", "measured");
    let peer = peer(&folders, count);
    let packed_peer = packed_peer(&archives, count);
    let held = [
        measure("review of folders", &folders, count, &peer),
        measure("review of packed bundles", &archives, count, &packed_peer),
    ];
    // An exit drops nothing.
    drop(scratch);
    if held.contains(&false) {
        std::process::exit(1);
    }
}

fn measure(what: &str, folder: &Path, count: usize, peer: &str) -> bool {
    let small = review_in_child(folder, count / 10);
    let large = review_in_child(folder, count);
    let rate = count as f64 / large.wall.as_secs_f64();
    let line = |what: &str, budget: &str, measured: &str, peer: &str, held: bool| {
        println!("{what:<34} {budget:<34} {measured:<52} {peer}  {}", if held { "held" } else { "MISSED" });
        held
    };
    // On a busy machine the time of a core says more than that of the clock.
    let each = large.core.as_secs_f64() * 1e3 / count as f64;
    let measured = format!("{rate:.0} bundles/s, {each:.2} ms of a core each");
    let fast = line(what, ">= 1,000 bundles/s", &measured, peer, rate >= BUDGET);
    let mebi = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let measured = format!(
        "{:.1} and {:.1} MiB at the peak, the result as JSON {:.1} MiB",
        mebi(small.peak),
        mebi(large.peak),
        mebi(large.result)
    );
    // Strings in memory take more than their characters do in a file.
    let flat = large.peak <= small.peak + 2 * large.result + (1 << 20);
    line(&format!("memory, {} and {count}", count / 10), "flat, but for the result", &measured, "-", flat)
        && fast
}

/// What a review took.
struct Took {
    wall: Duration,
    /// Of all cores together.
    core: Duration,
    /// The most memory that it had, bytes.
    peak: u64,
    /// The length of its result as JSON.
    result: u64,
}

fn review_in_child(folder: &Path, count: usize) -> Took {
    let own = std::env::current_exe().expect("this program has a path");
    let output = Command::new(own).arg(CHILD).arg(folder).arg(count.to_string()).output();
    let output = output.expect("this program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let numbers: Vec<u64> = String::from_utf8_lossy(&output.stdout)
        .split_whitespace()
        .map(|number| number.parse().expect("a number"))
        .collect();
    let [took, core, peak, result] = numbers[..] else { panic!("four numbers") };
    Took { wall: Duration::from_micros(took), core: Duration::from_micros(core), peak, result }
}

fn child(folder: &Path, count: &str) {
    let begun = Instant::now();
    let mut bundles = find(&[folder.to_owned()]).expect("there are bundles");
    bundles.truncate(count.parse().expect("a number"));
    let review =
        review(&bundles, &Policy::default(), None, &[], chrono::Utc::now()).expect("they can be reviewed");
    let took = begun.elapsed();
    let core = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let core = Duration::new(core.tv_sec as u64, core.tv_nsec as u32);
    let peak = peak_memory();
    assert!(review.passed(), "{:#?}", review.bundles.iter().find(|bundle| !bundle.passed()));
    let result = serde_json::to_vec(&review).expect("plain data").len();
    println!("{} {} {peak} {result}", took.as_micros(), core.as_micros());
}

/// The most memory that this process has ever held, bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is in kilobytes");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Does the work of each number below `count` on all processors.
fn on_all(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..processors() {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    work(number);
                }
            });
        }
    });
}

fn make(folders: &Path, archives: &Path, count: usize) {
    std::fs::create_dir_all(folders).expect("a folder");
    std::fs::create_dir_all(archives).expect("a folder");
    let begun = Instant::now();
    let template = surroundings(folders);
    on_all(count, |number| {
        let job = format!("job-{number:05}");
        let bundle = folders.join(&job);
        std::fs::create_dir(&bundle).expect("a folder");
        write(&bundle, &job, &template);
        pack(&bundle, Some(&archives.join(format!("{job}.tar.zst")))).expect("it can be packed");
    });
    let took = begun.elapsed().as_secs_f64();
    println!("{count} bundles made, sealed and packed in {took:.0} s");
}

/// The baseline of this machine, recorded once.
fn surroundings(scratch: &Path) -> Baseline {
    let secrets = Arc::new(Secrets::default());
    baseline::begin(scratch, &header("template"), &secrets)
        .expect("threads")
        .finish()
        .expect("the folder can be written");
    let baseline = baseline::load(scratch).expect("it was recorded");
    std::fs::remove_file(scratch.join(BASELINE)).expect("it is there");
    baseline
}

/// A sealed bundle of a build that succeeded.
fn write(bundle: &Path, job: &str, template: &Baseline) {
    let header = header(job);
    let mut log = LogWriter::create(&bundle.join(evidence::EVENTS), &header).expect("a new log");
    let mut events = vec![Event { at: Mono(0), kind: EventKind::JobStarted(header) }];
    let mut tracker = Tracker::new();
    let mut told = vec![
        event(EventKind::CommandStarted(CommandStarted { pid: COMMAND }), 1),
        event(EventKind::InputIdentified(input()), 1),
        event(
            EventKind::InputDigested(InputDigested { input: 1, sha256: Some("a5".repeat(32)), reason: None }),
            1,
        ),
    ];
    for (place, body) in records().enumerate() {
        let record = Record {
            process: ProcessKey { pid: COMMAND, registered: Mono(1) },
            at: at(2 + place as u64),
            build: 1,
            tid: COMMAND,
            body,
        };
        tracker.ingest(&record, &mut told);
    }
    told.push(event(
        EventKind::CommandExited(CommandExited {
            code: Some(0),
            signal: None,
            core_dumped: false,
            core_file: None,
            oom_kills: Some(0),
        }),
        1_000,
    ));
    events.extend(told);
    let end = judge(&events);
    events.push(event(
        EventKind::JobEnded(JobEnded {
            state: end.state,
            cause: end.cause,
            observed: end.observed,
            exit_code: 0,
        }),
        1_001,
    ));
    assert_eq!(events.len(), EVENTS);
    events[1..].iter().for_each(|event| log.append(event).expect("the log can be written"));
    log.flush().expect("the log can be written");
    let own = Baseline { job: job.to_owned(), t_ns: at(0).0, ..template.clone() };
    std::fs::write(bundle.join(BASELINE), document(&own)).expect("the bundle can be written");
    let derived = evidence::write(bundle).expect("the bundle can be derived");
    seal(&derived, None).expect("the bundle can be sealed");
}

fn input() -> InputIdentified {
    InputIdentified {
        input: 1,
        kind: InputKind::Argument,
        path: "model.onnx".to_owned(),
        of: None,
        bytes: Some(5),
        modified_ns: Some(1_800_000_000_000_000_000),
        inode: Some(12),
        build_id: None,
        reason: None,
    }
}

fn at(ms: u64) -> Mono {
    Mono(1_000_000_000 + ms * 1_000_000)
}

fn event(kind: EventKind, ms: u64) -> Event {
    Event { at: at(ms), kind }
}

/// What a builder reports of a build: short phases of a few steps under one root.
fn records() -> impl Iterator<Item = Body> {
    const PHASES: i32 = 14;
    let [root, leaf] = ["Building engine", "Timing tactics"].map(Arc::<str>::from);
    let tensor =
        |name: &str, shape: &str| Tensor { name: name.to_owned(), data_type: 0, shape: shape.to_owned() };
    let opening = [
        Body::Library(LibraryFacts {
            flavour: "tensorrt-rtx".to_owned(),
            version: "1.7.1.116".to_owned(),
            path: "/opt/rtx/libtensorrt_rtx.so.1".to_owned(),
            python: false,
            messages_unobserved: String::new(),
            proven: "library".to_owned(),
            simulated: false,
        }),
        Body::BuildStart { method: Method::SerializedNetwork, chained: false },
        Body::BuildFacts(Box::new(BuildFacts {
            config: [("flags", 64), ("optimizationLevel", 3)].map(|(k, v)| (k.to_owned(), v)).into(),
            compute_capabilities: vec![89],
            network_flags: 1,
            layers: 2,
            layer_kinds: [("0".to_owned(), 1), ("1".to_owned(), 1)].into(),
            inputs: vec![tensor("x", "-1x3x8")],
            outputs: vec![tensor("y", "-1x8")],
            ..BuildFacts::default()
        })),
        Body::PhaseStart { name: Arc::clone(&root), parent: None, steps: 15 },
    ];
    let parent = Arc::clone(&root);
    let phases = (0..PHASES).flat_map(move |round| {
        let step = |name: &Arc<str>, step| Body::Step { name: Arc::clone(name), step, answered: 0 };
        [
            Body::PhaseStart { name: Arc::clone(&leaf), parent: Some(Arc::clone(&parent)), steps: 3 },
            step(&leaf, 0),
            step(&leaf, 1),
            step(&leaf, 2),
            Body::PhaseFinish { name: Arc::clone(&leaf) },
            step(&parent, round),
        ]
    });
    let rest = [15, 16, 17, 18].map(|step| Body::Step { name: Arc::clone(&root), step, answered: 0 });
    let closing = [
        Body::PhaseFinish { name: root },
        Body::BuildReturn { engine: true, bytes: Some(1_234_567), messages: [0, 0, 2, 30, 400] },
    ];
    opening.into_iter().chain(phases).chain(rest).chain(closing)
}

fn header(job: &str) -> JobStarted {
    let anchor = Anchor { mono: Mono(1_000_000_000), wall_ns: 1_800_000_000_000_000_000 };
    JobStarted {
        format: 1,
        job: job.to_owned(),
        stuckproof: env!("CARGO_PKG_VERSION").to_owned(),
        argv: ["trtexec", "--onnx=model.onnx", "--saveEngine=model.engine"].map(str::to_owned).to_vec(),
        cwd: "/home/ci/project".to_owned(),
        host: "runner-7".to_owned(),
        runner_pid: 4_000,
        ci_host: None,
        host_profile: Box::default(),
        anchor_mono_ns: anchor.mono.0,
        anchor_wall_ns: anchor.wall_ns,
        grace_ms: Some(60_000),
        kill_after_ms: 10_000,
        deadline_ms: None,
        deadline_from: None,
        phase_limit_ms: None,
        attempt: None,
        warnings: Vec::new(),
        environment_changes: Vec::new(),
        bundle: "/home/ci/project/evidence/one".to_owned(),
        wire: "wire, in the bundle".to_owned(),
        streams: "separate".to_owned(),
    }
}

fn time(act: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    act();
    begun.elapsed()
}

/// The hashing and the parsing alone, on as many processors.
fn peer(folders: &Path, count: usize) -> String {
    let script = format!("find . -type f -print0 | xargs -0 -n 500 -P {} sha256sum >/dev/null", processors());
    let hashing = time(|| shell(folders, &script));
    let bundles = find(&[folders.to_owned()]).expect("there are bundles");
    let parsing = time(|| on_all(count, |number| parse(&bundles[number])));
    let rate = |took: Duration| count as f64 / took.as_secs_f64();
    format!(
        "sha256sum {:.0}/s, serde_json {:.0}/s, one after the other {:.0}/s",
        rate(hashing),
        rate(parsing),
        rate(hashing + parsing)
    )
}

fn packed_peer(archives: &Path, count: usize) -> String {
    let script = format!(
        "find . -type f -print0 | xargs -0 -n 500 -P {} zstd -dcq | sha256sum >/dev/null",
        processors()
    );
    let took = time(|| shell(archives, &script));
    format!("zstd and sha256sum {:.0}/s", count as f64 / took.as_secs_f64())
}

fn shell(folder: &Path, script: &str) {
    let status = Command::new("bash").args(["-ceu", "-o", "pipefail", script]).current_dir(folder).status();
    assert!(status.expect("a shell starts").success(), "{script}");
}

/// Parses every line of the log and every JSON file.
fn parse(bundle: &Path) {
    let log = std::fs::File::open(bundle.join(evidence::EVENTS)).expect("a log");
    for line in BufReader::new(log).lines() {
        let line: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        assert!(line.is_object());
    }
    for name in [BASELINE, "manifest.json", evidence::EVIDENCE, evidence::PHASES, evidence::SUMMARY] {
        let bytes = std::fs::read(bundle.join(name)).expect("a file");
        let _: Value = serde_json::from_slice(&bytes).expect("JSON");
    }
}
