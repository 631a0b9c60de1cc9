//! A stop that is asked for inside a real step of about twelve seconds: from every source, and measured by a clock
//! outside: the user's own monitor in the builder's process, and this test's own stamps of what it did and saw.

mod common;

use common::bundle::Bundle;
use common::job::{Ended, Job, Place, stuckproof, watch_end};
use common::noise::{Listener, Noise};
use common::tree::Tree;
use common::witness::{Call, Note, moment, notes, wait_for_long_step};
use common::{NO_SIGNALS, model, now_ns, script, wait_for};
use rustix::process::Signal;
use serde_json::Value;
use std::process::Stdio;
use std::time::Duration;

/// What may lie between the evidence and the outside clock, milliseconds.
const TOLERANCE_MS: f64 = 5.0;
/// How soon a request must be on disk, milliseconds.
const ON_DISK_MS: f64 = 50.0;

/// What the outside clock saw, nanoseconds.
struct Outside {
    /// The request was made after the first and before the second.
    asked: (u64, u64),
    /// The request was seen in the log.
    on_disk: u64,
    /// The command's process ended.
    command_exited: u64,
    notes: Vec<Note>,
    noise: Noise,
    ended: Ended,
}

/// A build whose long step has begun half a second ago.
struct InsideTheStep {
    job: Job,
    stamps: String,
    command_exit: std::thread::JoinHandle<u64>,
    listener: Listener,
}

impl InsideTheStep {
    fn begin(options: &[&str]) -> Self {
        let place = Place::new();
        let stamps = place.file("stamps");
        let wrapped = script("user_monitor.py", &[&model("long"), &place.file("engine"), &stamps]);
        let mut run = place.run(&[&NO_SIGNALS, options].concat(), &wrapped);
        run.stdin(Stdio::piped());
        let job = Job::start(place, run);
        let pid = job.wait_for_event("commandStarted")["pid"].as_u64().expect("a pid");
        let command_exit = watch_end(u32::try_from(pid).expect("a pid"));
        let begun = wait_for_long_step(&stamps);
        let listener = Listener::start(&job.place().file("noise"));
        while now_ns() < begun + 500_000_000 {
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { job, stamps, command_exit, listener }
    }

    /// Asks, waits for the request on disk and for the end.
    fn ask(mut self, ask: impl FnOnce(&mut Job)) -> Outside {
        let before = now_ns();
        ask(&mut self.job);
        let after = now_ns();
        self.observe((before, after))
    }

    fn observe(self, asked: (u64, u64)) -> Outside {
        let log = self.job.place().bundle().join("events.jsonl");
        let on_disk = wait_for("the request on disk", || {
            let text = std::fs::read_to_string(&log).ok()?;
            let now = now_ns();
            text.contains("\"cancelRequested\"").then_some(now)
        });
        self.listener.leave_disk();
        assert_status_is_cancelling(&self.job);
        let ended = self.job.end();
        let command_exited = self.command_exit.join().expect("the watcher does not panic");
        let noise = self.listener.stop();
        Outside { asked, on_disk, command_exited, notes: notes(&self.stamps), noise, ended }
    }
}

fn assert_status_is_cancelling(job: &Job) {
    let status =
        stuckproof().arg("status").arg("--json").arg(job.place().bundle()).output().expect("it starts");
    let said: Value = serde_json::from_slice(&status.stdout).unwrap_or_else(|e| panic!("{e}: {status:?}"));
    assert_eq!(said["state"], "cancelling", "{said:#}");
}

/// Asserts that the evidence tells what the outside clock saw.
fn assert_agrees(outside: &Outside, source: &str, via: &str, code: i32) -> Bundle {
    let bundle = outside.ended.bundle();
    bundle.assert_state("cancelled", Some(source));
    assert_eq!(outside.ended.code(), code, "{}", outside.ended.stderr);
    let on_disk = ms(outside.asked.1, outside.on_disk);
    let noise = outside.noise.between(outside.asked.0, outside.on_disk);
    assert!(
        on_disk <= ON_DISK_MS + noise,
        "on disk only after {on_disk} ms, the machine's own noise is {noise} ms"
    );
    assert_request(&bundle, source, via);
    assert_intervals(&bundle, outside);
    assert_tree(&bundle, outside);
    bundle
}

/// The one request: from whom, which way, and what was open when it came.
fn assert_request(bundle: &Bundle, source: &str, via: &str) {
    let requests = bundle.evidence["requests"].as_array().expect("a list");
    assert_eq!(requests.len(), 1, "{requests:#?}");
    let request = &requests[0];
    assert_eq!((request["source"].as_str(), request["via"].as_str()), (Some(source), Some(via)));
    assert_eq!((&request["accepted"], request["outcome"].as_str()), (&Value::Bool(true), Some("delivered")));
    let branch: Vec<_> =
        request["openBranch"].as_array().expect("a list").iter().map(|p| p["name"].as_str()).collect();
    let expected = [
        "Building engine",
        "Building engine from subgraph",
        "Computing profile costs",
        "Determining refit engines",
    ];
    assert_eq!(branch, expected.map(Some));
    assert_eq!(bundle.summary["cancelSource"], source);
    assert_eq!(bundle.summary["cancelLatencyMs"], bundle.evidence["times"]["requestToAckMs"]);
}

fn assert_intervals(bundle: &Bundle, outside: &Outside) {
    let last_step = outside.notes.iter().rfind(|note| matches!(note.call, Call::Step(..))).expect("steps");
    let long_step = Call::Step("Determining refit engines".into(), 0);
    assert_eq!(last_step.call, long_step, "the step's end acknowledges");
    let acknowledged = last_step.ns;
    let returned = moment(&outside.notes, "returned");
    let requested = bundle.evidence["requests"][0]["tNs"].as_u64().expect("a time");
    assert_arrival(requested, outside);
    let waited = bundle.time("requestToAckMs");
    assert!(waited > 1000.0, "the wait for the step's end was real: {waited} ms");
    let noise = |from, to| outside.noise.between(from, to);
    let acknowledging = noise(acknowledged, acknowledged);
    assert_equals("requestToAckMs", waited, ms(requested, acknowledged), acknowledging);
    let returning = noise(acknowledged, returned);
    assert_equals("ackToReturnMs", bundle.time("ackToReturnMs"), ms(acknowledged, returned), returning);
    let (to_exit, leaving) = (ms(returned, outside.command_exited), noise(returned, outside.command_exited));
    assert_equals("returnToExitMs", bundle.time("returnToExitMs"), to_exit, leaving);
    let reason = &bundle.evidence["nulls"]["times.ackToCleanedMs"];
    assert!(reason.is_string(), "no artifact was declared: a reason says so");
}

/// The request is stamped when it was made, not when somebody found the time to look.
fn assert_arrival(requested: u64, outside: &Outside) {
    let late = ms(outside.asked.1, requested);
    let noise = outside.noise.between(outside.asked.0, outside.on_disk);
    assert!(requested >= outside.asked.0, "stamped before it was made");
    assert!(late <= TOLERANCE_MS + noise, "stamped {late} ms late, the machine's own noise is {noise} ms");
}

/// Every phase is closed by the builder itself, and the log holds what the user's monitor was told.
fn assert_tree(bundle: &Bundle, outside: &Outside) {
    let tree = Tree::of(bundle, 1);
    let told: Vec<_> = outside.notes.iter().map(|note| note.call.clone()).filter(Call::is_callback).collect();
    assert_eq!(tree.calls.len(), told.len());
    assert!(tree.calls == told, "the log and the user's monitor differ");
}

fn assert_equals(name: &str, value: f64, outside: f64, noise: f64) {
    let apart = (value - outside).abs();
    assert!(
        apart <= TOLERANCE_MS + noise,
        "{name} is {value} ms, the outside clock says {outside} ms, noise {noise} ms"
    );
}

fn ms(from: u64, to: u64) -> f64 {
    (to as f64 - from as f64) / 1e6
}

#[test]
fn by_sigint() {
    let outside = InsideTheStep::begin(&[]).ask(|job| job.signal(Signal::INT));
    let bundle = assert_agrees(&outside, "api", "SIGINT", 1);
    let request = &bundle.evidence["requests"][0];
    assert_eq!(request["pid"], std::process::id(), "the kernel told who sent the signal");
}

#[test]
fn by_sigterm() {
    let outside = InsideTheStep::begin(&[]).ask(|job| job.signal(Signal::TERM));
    assert_agrees(&outside, "service", "SIGTERM", 1);
}

#[test]
fn by_the_control_socket() {
    let inside = InsideTheStep::begin(&[]);
    let name = inside.job.wait_for_event("jobStarted")["job"].as_str().expect("a name").to_owned();
    let outside = inside.ask(|_| {
        let arguments = ["cancel", &name, "--source", "ide", "--reason", "the editor was closed"];
        let asked = stuckproof().args(arguments).output().expect("stuckproof starts");
        assert!(asked.status.success(), "{asked:?}");
    });
    let bundle = assert_agrees(&outside, "ide", "control socket", 1);
    assert_eq!(bundle.evidence["requests"][0]["reason"], "the editor was closed");
}

#[test]
fn by_the_cancel_file() {
    let place = Place::new();
    let file = place.file("stop");
    let outside = InsideTheStep::begin(&["--cancel-file", &file])
        .ask(|_| std::fs::write(&file, "").expect("the file can be made"));
    assert_agrees(&outside, "api", "cancel file", 1);
}

#[test]
fn by_stdin_closing() {
    let outside = InsideTheStep::begin(&["--cancel-on-stdin-close"]).ask(Job::close_stdin);
    assert_agrees(&outside, "api", "stdin closed", 1);
}

/// How long after its command's start a build is half a second into the long step, on this machine: nanoseconds.
fn way_into_the_step() -> u64 {
    let InsideTheStep { job, command_exit, listener, .. } = InsideTheStep::begin(&[]);
    let started = job.wait_for_event("commandStarted")["t"].as_u64().expect("a time");
    let way = now_ns() - started;
    job.signal(Signal::KILL);
    job.end_of_the_killed();
    command_exit.join().expect("the watcher does not panic");
    listener.stop();
    way
}

#[test]
fn by_the_deadline() {
    // Inside the step, and long before its end, on a fast machine and on a slow one.
    let deadline_ms = (way_into_the_step() + 1_500_000_000) / 1_000_000;
    let before = now_ns();
    let inside = InsideTheStep::begin(&["--deadline", &format!("{deadline_ms}ms")]);
    let started = inside.job.wait_for_event("commandStarted")["t"].as_u64().expect("a time");
    let seen = now_ns();
    assert!((before..seen).contains(&started));
    let due = started + deadline_ms * 1_000_000;
    while now_ns() < due {
        std::thread::sleep(Duration::from_millis(1));
    }
    let outside = inside.observe((due, due));
    assert_agrees(&outside, "service", "deadline", 124);
}
