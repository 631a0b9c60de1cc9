//! The log's budgets, beside a plain writer made of `serde_json` and `sha2`, measured in one run on this machine.
//!
//! `cargo bench --bench log` prints a table and exits with 1 when a budget is missed.

use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stuckproof::clock::{Anchor, Mono};
use stuckproof::event::{
    BuildReturned, BuildStarted, Event, EventKind, JobStarted, LogWriter, PhaseFinished, PhaseStarted,
    StepCompleted,
};
use stuckproof::evidence;
use stuckproof::observe::Tracker;
use stuckproof::wire::{Body, Method, ProcessKey, Record};

/// Records of the short and of the long log.
const SHORT: u64 = 1_000_000;
const LONG: u64 = 3_000_000;
/// Runs of each measurement; the best counts, since other programs share the caches.
const RUNS: usize = 5;
/// Records that are converted at a time, as the runner does.
const BATCH: usize = 4_096;
const MEMORY_BUDGET: u64 = 64 << 20;

fn main() {
    if std::env::args().any(|argument| argument == "--test") {
        return; // a test runner asks for tests; this has none
    }
    let scratch = tempfile::tempdir().expect("a scratch folder");
    println!("{:<34} {:<34} {:<46} peer", "what", "budget", "measured");
    let held = [conversion(scratch.path()), bundle(scratch.path())];
    // An exit drops nothing.
    drop(scratch);
    if held.contains(&false) {
        std::process::exit(1);
    }
}

fn line(what: &str, budget: &str, measured: &str, peer: &str, held: bool) -> bool {
    println!("{what:<34} {budget:<34} {measured:<46} {peer}  {}", if held { "held" } else { "MISSED" });
    held
}

/// Records into a log with its chain.
fn conversion(scratch: &Path) -> bool {
    let path = scratch.join(evidence::EVENTS);
    let (short, _) = best(|| ours(&path, SHORT));
    let after_short = peak_memory();
    let (long, bytes) = best(|| ours(&path, LONG));
    let after_long = peak_memory();
    let (peer, _) = best(|| plain(&path, SHORT));
    let rate = |records: u64, took: Duration| records as f64 / took.as_secs_f64();
    let (measured, theirs) = (rate(SHORT, short).min(rate(LONG, long)), rate(SHORT, peer));
    let megabytes = bytes as f64 / 1e6 / long.as_secs_f64();
    let speed = line(
        "records into events.jsonl",
        ">= 1,000,000 events/s on one core",
        &format!("{:.2} M events/s ({megabytes:.0} MB/s)", measured / 1e6),
        &format!("{:.2} M events/s, serde_json and sha2", theirs / 1e6),
        measured >= 1e6,
    );
    let mebi = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let (short, long) = (mebi(after_short), mebi(after_long));
    let memory = line(
        "memory, 1 M and 3 M events",
        "<= 64 MiB, constant",
        &format!("{short:.1} and {long:.1} MiB at the peak"),
        "-",
        after_long <= MEMORY_BUDGET && after_long <= after_short + (1 << 20),
    );
    speed && memory
}

/// The log of a build of 5,000 events into the other files of its bundle.
fn bundle(scratch: &Path) -> bool {
    let path = scratch.join(evidence::EVENTS);
    ours(&path, 5_000);
    let mut took: Vec<Duration> = (0..40)
        .map(|_| {
            let begun = Instant::now();
            evidence::write(scratch).expect("the bundle can be written");
            begun.elapsed()
        })
        .collect();
    took.sort_unstable();
    let p95 = took[took.len() * 95 / 100];
    let measured = format!("{:.1} ms at p95, syncs included", p95.as_secs_f64() * 1e3);
    line("bundle of 5,000 events derived", "<= 100 ms p95", &measured, "-", p95 <= Duration::from_millis(100))
}

fn best(mut run: impl FnMut() -> (Duration, u64)) -> (Duration, u64) {
    (0..RUNS).map(|_| run()).min().expect("there are runs")
}

/// Our conversion: time spent in it, and the bytes that it wrote.
fn ours(path: &Path, count: u64) -> (Duration, u64) {
    let _ = std::fs::remove_file(path);
    let mut log = LogWriter::create(path, &header()).expect("a new log");
    let mut tracker = Tracker::new();
    let mut events = Vec::new();
    let spent = batches(count, |records| {
        for record in records {
            tracker.ingest(record, &mut events);
        }
        for event in events.drain(..) {
            log.append(&event).expect("the log can be written");
        }
    });
    let rest = spent_on(|| log.flush().expect("the log can be written"));
    (spent + rest, size(path))
}

/// The plain conversion: the same events, written as one would at first.
fn plain(path: &Path, count: u64) -> (Duration, u64) {
    let mut file = BufWriter::new(File::create(path).expect("a new log"));
    let anchor = header().anchor();
    let mut tracker = Tracker::new();
    let mut events = Vec::new();
    let (mut seq, mut prev) = (0, "0".repeat(64));
    let spent = batches(count, |records| {
        for record in records {
            tracker.ingest(record, &mut events);
        }
        for event in events.drain(..) {
            seq += 1;
            let wall = anchor.rfc3339(event.at);
            let head = PlainLine {
                seq,
                prev: &prev,
                t: event.at.0,
                wall,
                cancel: "running",
                fields: fields(&event),
            };
            let line = serde_json::to_vec(&head).expect("plain fields");
            prev.clear();
            for byte in Sha256::digest(&line) {
                write!(prev, "{byte:02x}").expect("text can always be written to");
            }
            file.write_all(&line).and_then(|()| file.write_all(b"\n")).expect("the log can be written");
        }
    });
    let rest = spent_on(|| file.flush().expect("the log can be written"));
    (spent + rest, size(path))
}

#[derive(Serialize)]
struct PlainLine<'a> {
    seq: u64,
    prev: &'a str,
    t: u64,
    wall: String,
    cancel: &'static str,
    #[serde(flatten)]
    fields: PlainFields<'a>,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "camelCase")]
enum PlainFields<'a> {
    BuildStarted(&'a BuildStarted),
    PhaseStarted(&'a PhaseStarted),
    StepCompleted(&'a StepCompleted),
    PhaseFinished(&'a PhaseFinished),
    BuildReturned(&'a BuildReturned),
}

fn fields(event: &Event) -> PlainFields<'_> {
    match &event.kind {
        EventKind::BuildStarted(fields) => PlainFields::BuildStarted(fields),
        EventKind::PhaseStarted(fields) => PlainFields::PhaseStarted(fields),
        EventKind::StepCompleted(fields) => PlainFields::StepCompleted(fields),
        EventKind::PhaseFinished(fields) => PlainFields::PhaseFinished(fields),
        EventKind::BuildReturned(fields) => PlainFields::BuildReturned(fields),
        other => unreachable!("the stream has no {}", other.name()),
    }
}

/// Makes the records of one long build in batches and gives the time of a core that `convert` took, without their making.
fn batches(count: u64, mut convert: impl FnMut(&[Record])) -> Duration {
    let mut stream = stream();
    let mut spent = Duration::ZERO;
    let mut batch = Vec::with_capacity(BATCH);
    let mut left = count;
    while left > 0 {
        batch.clear();
        batch.extend(stream.by_ref().take(BATCH.min(left as usize)));
        left -= batch.len() as u64;
        spent += spent_on(|| convert(&batch));
    }
    spent
}

/// A build without end, shaped like real ones: short phases of a few steps under a parent that reports now and then.
fn stream() -> impl Iterator<Item = Record> {
    let names = ["Building engine", "Computing profile costs", "Timing tactics"].map(Arc::<str>::from);
    let [root, parent, leaf] = names;
    let process = ProcessKey { pid: 4_001, registered: Mono(1) };
    let start = |name: &Arc<str>, parent: Option<&Arc<str>>, steps| Body::PhaseStart {
        name: Arc::clone(name),
        parent: parent.cloned(),
        steps,
    };
    let step = |name: &Arc<str>, step| Body::Step { name: Arc::clone(name), step, answered: 0 };
    let opening = [
        Body::BuildStart { method: Method::SerializedNetwork, chained: false },
        start(&root, None, 6),
        start(&parent, Some(&root), 50_000),
    ];
    let rest = (0_i32..).flat_map(move |round| {
        [
            start(&leaf, Some(&parent), 4),
            step(&leaf, 0),
            step(&leaf, 1),
            step(&leaf, 2),
            step(&leaf, 3),
            step(&parent, round % 50_000),
            Body::PhaseFinish { name: Arc::clone(&leaf) },
        ]
    });
    let bodies = opening.into_iter().chain(rest);
    bodies.zip(0_u64..).map(move |(body, place)| Record {
        process,
        at: Mono(1_000_000_000 + place * 7_919),
        build: 1,
        tid: 4_002,
        body,
    })
}

fn header() -> JobStarted {
    let anchor = Anchor { mono: Mono(1_000_000_000), wall_ns: 1_800_000_000_000_000_000 };
    JobStarted {
        format: 1,
        job: "bench".to_owned(),
        stuckproof: env!("CARGO_PKG_VERSION").to_owned(),
        argv: vec!["bench".to_owned()],
        cwd: String::new(),
        host: String::new(),
        runner_pid: std::process::id(),
        ci_host: None,
        host_profile: Box::default(),
        anchor_mono_ns: anchor.mono.0,
        anchor_wall_ns: anchor.wall_ns,
        grace_ms: None,
        kill_after_ms: 10_000,
        deadline_ms: None,
        deadline_from: None,
        phase_limit_ms: None,
        attempt: None,
        warnings: Vec::new(),
        environment_changes: Vec::new(),
        bundle: String::new(),
        wire: String::new(),
        streams: "separate".to_owned(),
    }
}

/// What `act` has of a core: other programs that share the machine do not count.
fn spent_on(act: impl FnOnce()) -> Duration {
    let now = || {
        let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
    };
    let begun = now();
    act();
    now().saturating_sub(begun)
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).expect("the log is there").len()
}

/// The most memory that this process has ever held, bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is in kilobytes");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}
