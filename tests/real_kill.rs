//! SIGKILL in the middle of a real build: no callback is lost that had returned, and nothing is called what it is not.

mod common;

use common::bundle::Bundle;
use common::job::{Job, Place, start, stuckproof, watch_end};
use common::tree::Tree;
use common::witness::{Call, notes, wait_for_long_step};
use common::{model, script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use stuckproof::wire::{Body, Reader, Unread};

/// A build in its long step, the process of the command, and where the user's monitor writes.
fn in_the_step() -> (Job, u32, String) {
    let place = Place::new();
    let (engine, stamps) = (place.file("engine"), place.file("stamps"));
    let job = start(place, &[], &script("user_monitor.py", &[&model("slow"), &engine, &stamps]));
    wait_for_long_step(&stamps);
    let pid = job.wait_for_event("commandStarted")["pid"].as_u64().expect("a pid");
    (job, u32::try_from(pid).expect("a pid"), stamps)
}

fn told(stamps: &str) -> Vec<Call> {
    notes(stamps).into_iter().map(|note| note.call).filter(Call::is_callback).collect()
}

#[test]
fn a_killed_builder_loses_nothing_that_it_told() {
    let (job, pid, stamps) = in_the_step();
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    kill_process(pid, Signal::KILL).expect("the command lives");
    let ended = job.end();
    assert_eq!(ended.code(), 128 + 9);
    let bundle = ended.bundle();
    bundle.assert_state("failed", Some("killed_by_host"));
    assert!(bundle.build()["engine"].is_null(), "its return was not seen");
    let tree = Tree::of(&bundle, 1);
    assert_eq!(tree.calls, told(&stamps));
    let aborted: Vec<_> = bundle.of_kind("phaseAborted").filter_map(|e| e["name"].as_str()).collect();
    let innermost_first = [
        "Determining refit engines",
        "Computing profile costs",
        "Building engine from subgraph",
        "Building engine",
    ];
    assert_eq!(aborted, innermost_first);
}

#[test]
fn a_killed_runner_leaves_a_true_bundle_and_every_record() {
    let (job, pid, stamps) = in_the_step();
    let command_end = watch_end(pid);
    let bundle = job.place().bundle();
    job.signal(Signal::KILL);
    command_end.join().expect("the build ends by itself");

    let evidence: Value =
        serde_json::from_slice(&std::fs::read(bundle.join("evidence.json")).expect("it is there"))
            .expect("provisional evidence is JSON");
    assert_eq!((&evidence["finished"], evidence["state"].as_str()), (&Value::Bool(false), Some("running")));
    assert!(Bundle::lines_so_far(&bundle, &["\"jobEnded\""]).is_empty());
    let shown = stuckproof().arg("show").arg(&bundle).output().expect("stuckproof starts");
    assert!(shown.status.success(), "{shown:?}");

    let mut records = Vec::new();
    let unread = Reader::new(&bundle.join("wire")).finish(&mut records).expect("the wire can be read");
    assert_eq!(unread, Unread::default());
    let recorded: Vec<Call> = records.into_iter().filter_map(|record| callback(record.body)).collect();
    assert_eq!(recorded, told(&stamps));
    assert!(
        matches!(recorded.last(), Some(Call::Finish(name)) if name == "Building engine"),
        "the build went on"
    );
}

/// A record of a callback, as the user's monitor would have put it.
fn callback(body: Body) -> Option<Call> {
    match body {
        Body::PhaseStart { name, parent, steps } => {
            Some(Call::Start(name.to_string(), parent.map(|p| p.to_string()), steps.into()))
        }
        Body::Step { name, step, .. } => Some(Call::Step(name.to_string(), step.into())),
        Body::PhaseFinish { name } => Some(Call::Finish(name.to_string())),
        _ => None,
    }
}
