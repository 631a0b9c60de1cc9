//! Children that do not want to end, and every way in which a job can be ended: they are gone within the ladder's time.

use crate::common::job::Place;
use crate::common::program;
use crate::scene::Target::{self, Keeper, Runner};
use crate::scene::{Scene, finished, wait_within};
use rustix::process::Signal;
use std::fs;
use std::time::Duration;

/// A ladder that does not take long.
const LADDER: [&str; 4] = ["--grace", "300ms", "--kill-after", "500ms"];

/// After so long a family that forks all the time stands still.
const BRED: Duration = Duration::from_millis(1_500);

/// How a job is ended.
#[derive(Debug, Clone, Copy)]
enum Way {
    Asked,
    Killed(Target),
    /// The command goes by itself, without success.
    Failed,
}

/// Runs a command with a hostile child and ends the job; whoever lives on is found by [`Scene::settle`].
fn assert_gone(kind: &str, way: Way) {
    let place = Place::new();
    let after = if matches!(way, Way::Failed) { "exit 3" } else { "wait; sleep 600" };
    let hostile = program("hostile");
    let script = format!("{hostile} {kind} & until grep -q ready {{}}; do sleep 0.01; done; {after}");
    let output = crate::common::text(place.bundle().join("stdout.log"));
    let wrapped = ["sh", "-c", &script.replace("{}", &output)].map(str::to_owned);
    let scene = Scene::start(place, &LADDER, &wrapped);
    wait_within(Duration::from_mins(1), "the child is ready", || {
        fs::read_to_string(&output).is_ok_and(|text| text.contains("ready"))
    });
    let cast = scene.cast();
    match way {
        Way::Asked => scene.job().signal(Signal::TERM),
        Way::Killed(target) => assert!(cast.kill(target), "{target:?} lives"),
        Way::Failed => {}
    }
    let place = scene.settle_and_look_again(&cast, BRED);
    let bundle = finished(&place.bundle());
    let cause = if matches!(way, Way::Killed(Runner)) { "runner_lost" } else { "command" };
    bundle.assert_state("failed", Some(cause));
}

fn assert_always_gone(kind: &str) {
    for way in [Way::Asked, Way::Killed(Runner), Way::Killed(Keeper), Way::Failed] {
        println!("{kind}, {way:?}");
        assert_gone(kind, way);
    }
}

#[test]
fn a_daemon_that_ignores_sigterm() {
    assert_always_gone("daemon");
}

#[test]
fn a_child_that_stops_itself() {
    assert_always_gone("stop");
}

#[test]
fn a_family_that_moves_on_all_the_time() {
    assert_always_gone("breed");
}
