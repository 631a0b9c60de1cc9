//! The labelled set.

use crate::acting;
use crate::common::bundle::Bundle;
use crate::common::job::{Ended, Job, Place};
use crate::common::wait_for;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// What is true of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Truth {
    /// It hangs and uses nothing.
    Hangs,
    /// It is silent and at work.
    Works,
    /// It calls back.
    Advances,
}

/// One labelled build.
#[derive(Debug, Clone, Copy)]
struct Case {
    act: &'static str,
    place: &'static str,
    model: &'static str,
    truth: Truth,
    /// Whether an earlier build of the same kind is known.
    warm: bool,
}

/// Acts that hang.
const HANGS: [&str; 14] = [
    "sleep",
    "lock_twice",
    "two_locks",
    "wait_for_event",
    "empty_queue",
    "join_sleeper",
    "open_pipe",
    "read_pipe",
    "accept",
    "file_lock",
    "wait_for_child",
    "wait_for_stopped_child",
    "stop",
    "poll_lazily",
];
/// Acts that work.
const WORKS: [&str; 8] =
    ["spin", "hash_in_thread", "busy_child", "short_children", "read_disk", "write_disk", "duty", "hash_for"];
/// Places at which they do so.
const PLACES: [&str; 4] = ["start", "step", "finish", "first"];

fn case(act: &'static str, place: &'static str, truth: Truth) -> Case {
    Case { act, place, model: "small", truth, warm: false }
}

/// A few of each kind.
fn short() -> Vec<Case> {
    let long = Case { model: "slow", ..case("nothing", "first", Truth::Works) };
    vec![
        case("two_locks", "step", Truth::Hangs),
        case("stop", "finish", Truth::Hangs),
        case("poll_lazily", "start", Truth::Hangs),
        Case { warm: true, ..case("read_pipe", "step", Truth::Hangs) },
        case("spin", "step", Truth::Works),
        case("short_children", "start", Truth::Works),
        case("pace", "first", Truth::Advances),
        long,
    ]
}

/// All of them.
fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for (at, act) in HANGS.into_iter().enumerate() {
        cases.push(case(act, PLACES[at % 4], Truth::Hangs));
        cases.push(Case { warm: true, ..case(act, PLACES[(at + 1) % 4], Truth::Hangs) });
        cases.push(Case { model: "medium", ..case(act, PLACES[(at + 2) % 4], Truth::Hangs) });
    }
    for (at, act) in WORKS.into_iter().enumerate() {
        cases.push(case(act, PLACES[at % 4], Truth::Works));
        cases.push(Case { warm: true, ..case(act, PLACES[(at + 1) % 4], Truth::Works) });
    }
    for model in ["slow", "long"] {
        cases.push(Case { model, ..case("nothing", "first", Truth::Works) });
        cases.push(Case { model, warm: true, ..case("nothing", "first", Truth::Works) });
    }
    for model in ["small", "medium", "320n", "ch_PP-OCRv4_det_infer"] {
        cases.push(Case { model, ..case("nothing", "first", Truth::Advances) });
    }
    cases.push(case("pace", "first", Truth::Advances));
    cases.push(Case { warm: true, ..case("pace", "first", Truth::Advances) });
    cases
}

/// What came out of one build.
struct Outcome {
    /// The gravest verdict on record.
    verdict: String,
    /// From the beginning of the hang to the verdict of a stall.
    found_after: Option<Duration>,
    /// The threshold that was in force.
    threshold: Duration,
    /// Its files, as long as it is not known whether the verdict is right.
    place: Place,
}

impl Case {
    fn command(&self, place: &Place, act: &str, seconds: u64) -> Vec<String> {
        acting(place, self.model, act, self.place, seconds)
    }

    /// Runs it under a detector with this threshold.
    fn run(&self, stall_after: u64) -> Outcome {
        let place = Place::new();
        let (history, threshold) = (place.file("history"), format!("{stall_after}s"));
        if self.warm {
            let taught = Place::new();
            let mut run = taught.run(&["--history", &history], &self.command(&taught, "nothing", 0));
            run.env("STUCKPROOF_HISTORY", "none");
            assert_eq!(Job::start(taught, run).end().code(), 0, "the build that teaches");
        }
        let options =
            ["--stall-after", &threshold, "--history", &history, "--grace", "1s", "--kill-after", "1s"];
        // What works does so for several times the threshold.
        let run = place.run(&options, &self.command(&place, self.act, 4 * stall_after));
        let job = Job::start(place, run);
        if self.truth == Truth::Hangs {
            let bundle = job.place().bundle();
            wait_for(&format!("a stall: {self:?}"), || {
                Bundle::lines_so_far(&bundle, &["\"verdict\":\"stalled\""]).pop()
            });
            job.signal(Signal::TERM);
        }
        Self::outcome(job.end())
    }

    fn outcome(ended: Ended) -> Outcome {
        // On a crowded machine the baseline may come after the first phase, which is not what this is about.
        let bundle = Bundle::load_whoever_finished(&ended.place.bundle());
        let judged: Vec<&Value> = bundle.of_kind("silenceJudged").collect();
        let order = ["advancing", "slow_expected", "slow_unexplained", "stalled"];
        let grave = |event: &&Value| order.iter().position(|verdict| event["verdict"] == *verdict);
        let gravest = judged
            .iter()
            .max_by_key(|event| grave(event))
            .map_or("advancing", |event| event["verdict"].as_str().expect("a verdict is a word"));
        let stalled = judged.iter().find(|event| event["verdict"] == "stalled");
        let began = std::fs::read_to_string(ended.place.file("stamp")).ok().and_then(|ns| ns.parse().ok());
        let found = stalled.and_then(|event| event["t"].as_u64()?.checked_sub(began?));
        let threshold = judged.last().and_then(|event| event["thresholdNs"].as_u64());
        Outcome {
            verdict: gravest.to_owned(),
            found_after: found.map(Duration::from_nanos),
            threshold: Duration::from_nanos(threshold.unwrap_or(0)),
            place: ended.place,
        }
    }

    /// Whether the verdict is right; the reason where it is not.
    fn fault(&self, outcome: &Outcome) -> Option<String> {
        let late = Duration::from_secs(10);
        match (self.truth, outcome.found_after) {
            (Truth::Hangs, Some(after)) if after < outcome.threshold.mul_f64(0.9) => {
                Some(format!("{self:?} was called stalled {after:?} after it began"))
            }
            (Truth::Hangs, Some(after)) if after > outcome.threshold + late => {
                Some(format!("{self:?} was found after {after:?}"))
            }
            (Truth::Hangs, None) => Some(format!("{self:?} was never found")),
            (Truth::Works | Truth::Advances, Some(_)) => Some(format!("{self:?} was called stalled")),
            _ => (self.truth != Truth::Hangs && outcome.verdict == "stalled")
                .then(|| format!("{self:?} was called stalled")),
        }
    }
}

/// What is wrong with an outcome, if anything. The samples and the log of a wrong one are kept, so that its cause can be
/// found.
fn kept(case: &Case, outcome: &Outcome) -> Option<String> {
    let fault = case.fault(outcome)?;
    let temperature = if case.warm { "warm" } else { "cold" };
    let name = format!("{}-{}-{}-{temperature}", case.act, case.place, case.model);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("labelled").join(name);
    std::fs::create_dir_all(&folder).expect("the build folder can be written");
    for file in ["events.jsonl", "resources.jsonl"] {
        let from = outcome.place.bundle().join(file);
        std::fs::copy(&from, folder.join(file)).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
    }
    Some(format!("{fault}; its samples are in {}", folder.display()))
}

/// Runs cases, so many at once.
fn run_all(cases: Vec<Case>, stall_after: u64, at_once: usize) {
    let total = cases.len();
    let (queue, results) = (Mutex::new(cases), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(case) = { queue.lock().expect("no panic").pop() } {
                    let outcome = case.run(stall_after);
                    results.lock().expect("no panic").push((case, outcome));
                }
            });
        }
    });
    let results = results.into_inner().expect("no panic");
    assert_eq!(results.len(), total, "every case has an outcome");
    report(&results);
    let faults: Vec<String> = results.iter().filter_map(|(case, outcome)| kept(case, outcome)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// The table of confusion.
fn report(results: &[(Case, Outcome)]) {
    let mut table: BTreeMap<(Truth, bool), BTreeMap<&str, usize>> = BTreeMap::new();
    for (case, outcome) in results {
        *table.entry((case.truth, case.warm)).or_default().entry(&outcome.verdict).or_default() += 1;
    }
    for ((truth, warm), verdicts) in &table {
        println!("{truth:?} {}: {verdicts:?}", if *warm { "warm" } else { "cold" });
    }
    let late = |outcome: &Outcome| Some(outcome.found_after?.saturating_sub(outcome.threshold).as_secs_f64());
    let mut late: Vec<f64> = results.iter().filter_map(|(_, outcome)| late(outcome)).collect();
    late.sort_by(f64::total_cmp);
    println!(
        "{} runs; found after the threshold: median {:?} s, last {:?} s",
        results.len(),
        late.get(late.len() / 2),
        late.last()
    );
}

#[test]
fn builds_that_hang_are_told_from_builds_that_work() {
    let all_of_them = std::env::var_os("STUCKPROOF_RUNS").is_some();
    let (cases, stall_after) = if all_of_them { (all(), 5) } else { (short(), 2) };
    run_all(cases, stall_after, 3);
}
