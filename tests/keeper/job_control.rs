//! SIGTSTP and SIGCONT: the command stands still with its runner, and so do the clocks.

use crate::rig::{Place, finish, wait_until};
use crate::watch::{look, send};
use std::fs;
use std::time::{Duration, Instant};

const COUNTING: &str =
    "echo ready; i=0; while [ ! -e go ]; do i=$((i + 1)); echo $i > count; sleep 0.01; done; exit 4";

fn is_stopped(pid: u32) -> bool {
    look(pid).is_some_and(|p| p.state == "T")
}

fn command(place: &Place) -> u32 {
    u32::try_from(place.event("commandStarted")["pid"].as_u64().unwrap()).unwrap()
}

#[test]
fn the_command_stops_and_goes_on_with_its_runner() {
    let place = Place::new();
    let runner = place.started(&[], COUNTING);
    let command = command(&place);
    send(runner.id(), "TSTP");
    wait_until("the runner stands still", || is_stopped(runner.id()));
    // A shell that waits for a stopped child to begin cannot be stopped itself, and stands still as well.
    wait_until("the command stands still as well", || {
        look(command).is_some_and(|p| p.state == "T" || p.state == "D")
    });
    assert_eq!(place.event("jobPaused")["by"], "SIGTSTP");
    let counted = fs::read_to_string(place.path("count")).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(fs::read_to_string(place.path("count")).unwrap(), counted);
    send(runner.id(), "CONT");
    wait_until("the command goes on", || fs::read_to_string(place.path("count")).unwrap() != counted);
    fs::write(place.path("go"), "").unwrap();
    finish(runner).assert_code(4);
    let (paused, resumed) = (place.event("jobPaused"), place.event("jobResumed"));
    let span = resumed["t"].as_u64().unwrap() - paused["t"].as_u64().unwrap();
    assert_eq!(resumed["pausedNs"].as_u64(), Some(span));
    assert!(span >= 200_000_000, "{span}");
    assert_eq!(place.json("evidence.json")["pauses"].as_array().unwrap().len(), 1);
}

#[test]
fn the_deadline_waits_for_the_end_of_a_pause() {
    let place = Place::new();
    let runner = place.started(&["--deadline", "1500ms"], "echo ready; exec sleep 100");
    let start = Instant::now();
    send(runner.id(), "TSTP");
    wait_until("the runner stands still", || is_stopped(runner.id()));
    while start.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(50));
    }
    send(runner.id(), "CONT");
    finish(runner).assert_code(124);
    let at = |kind| place.event(kind)["t"].as_u64().unwrap();
    let paused = place.event("jobResumed")["pausedNs"].as_u64().unwrap();
    let waited = at("cancelRequested") - at("commandStarted");
    assert!(waited >= 1_490_000_000 + paused, "{waited} ns, {paused} of them paused");
}

#[test]
fn the_ladder_waits_for_the_end_of_a_pause() {
    let place = Place::new();
    let stubborn = "trap 'touch asked' TERM; echo ready; while :; do sleep 0.02; done";
    let runner = place.started(&["--kill-after", "1500ms"], stubborn);
    send(runner.id(), "TERM");
    wait_until("the command was asked", || place.path("asked").exists());
    send(runner.id(), "TSTP");
    wait_until("the runner stands still", || is_stopped(runner.id()));
    std::thread::sleep(Duration::from_secs(2));
    send(runner.id(), "CONT");
    finish(runner).assert_code(128 + 9);
    let rungs = place.events_of("ladderRung");
    let at = |rung: usize| rungs[rung]["t"].as_u64().unwrap();
    let paused = place.event("jobResumed")["pausedNs"].as_u64().unwrap();
    assert!(at(2) - at(1) >= 1_500_000_000 + paused);
}

#[test]
fn a_runner_that_is_let_go_on_at_once_does_not_stay_behind() {
    for _ in 0..5 {
        let place = Place::new();
        let runner = place.started(&[], COUNTING);
        let both = format!("kill -s TSTP {0}; kill -s CONT {0}", runner.id());
        std::process::Command::new("sh").args(["-c", &both]).status().unwrap();
        fs::write(place.path("go"), "").unwrap();
        // A second CONT is what a person would send to a job that seems to hang; it must not be needed.
        finish(runner).assert_code(4);
        assert_eq!(place.events_of("jobPaused").len(), place.events_of("jobResumed").len());
    }
}
