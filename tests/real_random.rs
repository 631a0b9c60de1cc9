//! Real builds that are cancelled at random moments, by random ways, once or twice: whatever happens, the evidence is
//! whole and its state follows from it. `scripts/soak` says how often and from which seed.

mod common;

use common::bundle::Bundle;
use common::chance::{Chance, setting};
use common::job::{Ended, Job, Place, start, stuckproof};
use common::tree::Tree;
use common::{NO_SIGNALS, model, script};
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use std::time::Duration;

/// Asks in one of four ways. The job may be gone already.
fn ask(job: &Job, way: u64) {
    match way {
        0 | 1 => {
            let _ = kill_process(job.pid(), if way == 0 { Signal::INT } else { Signal::TERM });
        }
        2 => {
            let name = job.wait_for_event("jobStarted")["job"].as_str().expect("a name").to_owned();
            stuckproof().args(["cancel", &name]).output().expect("stuckproof starts");
        }
        _ => std::fs::write(job.place().file("stop"), "").expect("the file can be made"),
    }
}

fn round(chance: &mut Chance) -> Ended {
    let place = Place::new();
    let (engine, stop) = (place.file("engine"), place.file("stop"));
    let options = [&NO_SIGNALS[..], &["--cancel-file", &stop]].concat();
    let job = start(place, &options, &script("build_onnx.py", &[&model("medium"), &engine]));
    job.wait_for_event("commandStarted");
    std::thread::sleep(Duration::from_millis(chance.below(2500)));
    ask(&job, chance.below(4));
    if chance.below(2) == 0 {
        std::thread::sleep(Duration::from_millis(chance.below(300)));
        ask(&job, chance.below(4));
    }
    job.end()
}

/// What must hold whenever the requests came.
fn assert_honest(ended: &Ended) {
    let bundle = ended.bundle();
    if bundle.of_kind("ladderRung").any(|rung| rung["why"] == "no builder observed") {
        return assert_ended_before_any_builder(ended, &bundle);
    }
    let build = bundle.build();
    Tree::of(&bundle, 1);
    let acknowledged = bundle.of_kind("cancelAcknowledged").count();
    let expected = match (build["engine"].as_bool(), acknowledged) {
        (Some(true), _) => ("succeeded", 0),
        (Some(false), 1) => ("cancelled", 1),
        other => panic!("neither an engine nor one acknowledgement: {other:?} in {:#}", bundle.evidence),
    };
    assert_eq!((bundle.evidence["state"].as_str(), ended.code()), (Some(expected.0), expected.1));
    assert_requests(&bundle, if acknowledged == 1 { "delivered" } else { "too_late" });
}

/// A request that finds no builder has nobody who could answer it, so the command is ended by a signal at once.
fn assert_ended_before_any_builder(ended: &Ended, bundle: &Bundle) {
    assert_eq!(bundle.evidence["state"], "failed");
    assert_eq!(ended.code(), 128 + 15);
    assert!(bundle.builds().iter().all(|build| build["engine"].is_null()), "{:#}", bundle.evidence);
    assert_requests(bundle, "undelivered");
}

/// The first request sets the state, the others are recorded and change nothing.
fn assert_requests(bundle: &Bundle, first: &str) {
    let requests = bundle.evidence["requests"].as_array().expect("a list");
    let accepted: Vec<&Value> = requests.iter().filter(|r| r["accepted"] == true).collect();
    assert_eq!(accepted.len(), requests.len().min(1));
    assert_eq!(bundle.summary["cancelSource"], requests.first().map_or(Value::Null, |r| r["source"].clone()));
    for (index, request) in requests.iter().enumerate() {
        let outcome = if index == 0 { first } else { "recorded_only" };
        assert_eq!(request["outcome"], outcome, "{request:#}");
    }
}

#[test]
fn a_cancel_at_any_moment_is_told_honestly() {
    let seed = setting("STUCKPROOF_SOAK_SEED", 7);
    let mut chance = Chance(seed);
    for number in 1..=setting("STUCKPROOF_SOAK_ROUNDS", 4) {
        println!("round {number}, seed {seed}");
        assert_honest(&round(&mut chance));
    }
}
