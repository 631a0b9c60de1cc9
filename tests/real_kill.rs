//! SIGKILL in the middle of a real build: no callback is lost that had returned, and nothing is called what it is not.

mod common;

use common::bundle::Bundle;
use common::job::{Job, Place, start, watch_end};
use common::tree::Tree;
use common::witness::{Call, notes, wait_for_long_step};
use common::{model, script, wait_for};
use rustix::process::{Pid, Signal, kill_process};

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
fn a_killed_runner_leaves_a_finished_bundle_and_every_record() {
    let (job, pid, stamps) = in_the_step();
    let command_end = watch_end(pid);
    let path = job.place().bundle();
    job.signal(Signal::KILL);
    command_end.join().expect("the keeper stops the build");
    wait_for("the keeper to finish the bundle", || Bundle::is_finished(&path).then_some(()));
    let bundle = Bundle::load_whoever_finished(&path);
    let request = &bundle.evidence["requests"][0];
    assert_eq!((request["source"].as_str(), request["via"].as_str()), (Some("service"), Some("runner lost")));
    // A step that ends within the keeper's grace answers; one that does not is ended by the keeper's signal.
    match bundle.evidence["state"].as_str() {
        Some("cancelled") => bundle.assert_state("cancelled", Some("service")),
        _ => bundle.assert_state("failed", Some("runner_lost")),
    }
    let (recorded, told) = (Tree::of(&bundle, 1).calls, told(&stamps));
    assert!(told.len() > 12, "the build had told of itself");
    assert_eq!(recorded[..told.len()], told, "nothing that was told is lost");
}
