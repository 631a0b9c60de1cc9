//! One request stops every build of the job, in whichever thread or process it is.

mod common;

use common::bundle::Bundle;
use common::job::{Place, start};
use common::{NO_SIGNALS, model, script, wait_for};
use rustix::process::Signal;

/// Interrupts a job when both of its builds are in their long step.
fn assert_both_are_cancelled(wrapped: &[String]) {
    let job = start(Place::new(), &NO_SIGNALS, wrapped);
    let bundle = job.place().bundle();
    wait_for("both long steps", || {
        let begun = ["\"phaseStarted\"", "\"Determining refit engines\""];
        (Bundle::lines_so_far(&bundle, &begun).len() == 2).then_some(())
    });
    job.signal(Signal::TERM);
    let ended = job.end();
    assert_ne!(ended.code(), 0);
    let bundle = ended.bundle();
    bundle.assert_state("cancelled", Some("service"));
    assert_eq!(bundle.builds().len(), 2);
    for build in bundle.builds() {
        assert_eq!((build["state"].as_str(), build["engine"].as_bool()), (Some("cancelled"), Some(false)));
        assert!(build["requestToAckMs"].is_f64(), "each build answered on its own: {build:#}");
    }
    assert_eq!(bundle.of_kind("cancelAcknowledged").count(), 2);
    let branch = bundle.evidence["requests"][0]["openBranch"].as_array().expect("a list");
    let open = |build: u64| branch.iter().filter(|phase| phase["build"] == build).count();
    assert_eq!((open(1), open(2)), (4, 4), "the request keeps the open branch of both");
}

#[test]
fn two_builds_in_two_threads() {
    assert_both_are_cancelled(&script("two_builders.py", &[&model("slow"), &model("slow")]));
}

#[test]
fn two_builds_in_two_processes() {
    assert_both_are_cancelled(&script("processes.py", &["fork", &model("slow"), &model("slow")]));
}
