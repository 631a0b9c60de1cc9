//! Every way to ask for a stop.

use crate::rig::{Place, end_of, finish, signal, wait_until};
use std::fs;
use std::process::{Command, Stdio};

/// A command that ends at the first SIGTERM and says so.
const POLITE: &str = "trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.02; done";

/// The accepted request, checked against the way it came.
fn accepted(place: &Place, source: &str, via: &str) -> serde_json::Value {
    let requests = place.events_of("cancelRequested");
    let first = requests.first().unwrap().clone();
    assert_eq!((&first["request"], &first["accepted"]), (&1.into(), &true.into()));
    assert_eq!((first["source"].as_str(), first["via"].as_str()), (Some(source), Some(via)));
    assert!(requests[1..].iter().all(|r| r["accepted"] == false), "only the first counts");
    first
}

#[test]
fn signals_stop_the_job_and_tell_who_sent_them() {
    for (name, via, source) in
        [("INT", "SIGINT", "api"), ("TERM", "SIGTERM", "service"), ("HUP", "SIGHUP", "service")]
    {
        let place = Place::new();
        let child = place.started(&[], POLITE);
        let sender = Command::new("sh")
            .args(["-c", &format!("echo $$; exec kill -s {name} {}", child.id())])
            .output()
            .unwrap();
        let done = finish(child);
        done.assert_code(9);
        assert!(done.stdout().ends_with("bye\n"), "{name}: the command gets SIGTERM, whatever we got");
        let request = accepted(&place, source, via);
        let pid: u32 = String::from_utf8(sender.stdout).unwrap().trim().parse().unwrap();
        assert_eq!(request["pid"], pid);
        assert_eq!(request["uid"], rustix::process::getuid().as_raw());
        assert_eq!(place.rungs(), ["cooperative", "SIGTERM"]);
        assert_eq!(place.events_of("ladderRung")[1]["why"], "no builder observed");
    }
}

#[test]
fn a_ci_host_is_named_as_the_source() {
    let place = Place::new();
    let mut command = place.run(&[], POLITE);
    command.env("CI", "true").env("GITLAB_CI", "true");
    let child = command.spawn().unwrap();
    wait_until("the command runs", || {
        fs::read_to_string(place.path("bundle/stdout.log")).is_ok_and(|t| t.contains("ready"))
    });
    signal(&child, "TERM");
    finish(child).assert_code(9);
    accepted(&place, "ci", "SIGTERM");
    assert_eq!(place.event("jobStarted")["ciHost"], "gitlab");
}

#[test]
fn a_hang_up_that_was_ignored_stays_ignored() {
    let place = Place::new();
    let mut command = Command::new("sh");
    place.furnish(&mut command);
    let runner = format!(
        "trap '' HUP; exec {} run --bundle bundle -- sh -c 'echo ready; while [ ! -e go ]; do sleep 0.02; done'",
        crate::rig::STUCKPROOF
    );
    let child = command.args(["-c", &runner]).spawn().unwrap();
    wait_until("the command runs", || {
        fs::read_to_string(place.path("bundle/stdout.log")).is_ok_and(|t| t.contains("ready"))
    });
    signal(&child, "HUP");
    fs::write(place.path("go"), "").unwrap();
    finish(child).assert_code(0);
    assert!(place.events_of("cancelRequested").is_empty());
}

#[test]
fn later_requests_are_recorded_and_change_nothing() {
    let place = Place::new();
    let script = "trap 'touch asked' TERM; echo ready; while [ ! -e go ]; do sleep 0.02; done; exit 4";
    let child = place.started(&["--kill-after", "1h", "--cancel-file", "stop"], script);
    signal(&child, "TERM");
    wait_until("the command was asked", || place.path("asked").exists());
    signal(&child, "TERM");
    wait_until("the second is on record", || place.events_of("cancelRequested").len() == 2);
    fs::write(place.path("stop"), "").unwrap();
    wait_until("the third is on record", || place.events_of("cancelRequested").len() == 3);
    signal(&child, "INT");
    wait_until("the fourth is on record", || place.events_of("cancelRequested").len() == 4);
    fs::write(place.path("go"), "").unwrap();
    finish(child).assert_code(4);
    accepted(&place, "service", "SIGTERM");
    let via: Vec<_> = place.events_of("cancelRequested").iter().map(|r| r["via"].clone()).collect();
    assert_eq!(via, ["SIGTERM", "SIGTERM", "cancel file", "SIGINT"]);
    assert_eq!(place.rungs(), ["cooperative", "SIGTERM"]);
}

#[test]
fn a_cancel_file_stops_the_job() {
    let place = Place::new();
    let child = place.started(&["--cancel-file", "stop"], POLITE);
    fs::write(place.path("other"), "").unwrap();
    fs::rename(place.path("other"), place.path("stop")).unwrap();
    finish(child).assert_code(9);
    accepted(&place, "api", "cancel file");
}

#[test]
fn a_cancel_file_that_is_there_already_counts() {
    let place = Place::new();
    fs::write(place.path("stop"), "").unwrap();
    place.ran(&["--cancel-file", "stop"], "exec sleep 100").assert_code(128 + 15);
    accepted(&place, "api", "cancel file");
}

#[test]
fn the_end_of_standard_input_stops_the_job() {
    let place = Place::new();
    // What the command reads is nothing: the runner keeps its own standard input for itself.
    let script = "cat; trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    let mut command = place.run(&["--cancel-on-stdin-close"], script);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    wait_until("the command runs", || {
        fs::read_to_string(place.path("bundle/stdout.log")).is_ok_and(|t| t.contains("ready"))
    });
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"thrown away").unwrap();
    assert!(child.try_wait().unwrap().is_none());
    drop(child.stdin.take());
    assert_eq!(end_of(&mut child).code(), Some(9));
    accepted(&place, "api", "stdin closed");
    assert_eq!(fs::read_to_string(place.path("bundle/stdout.log")).unwrap(), "ready\n");
}

#[test]
fn a_request_is_on_disk_at_once_and_dated_by_the_monotonic_clock() {
    let place = Place::new();
    let child = place.started(
        &["--kill-after", "1h"],
        "trap 'touch asked' TERM; echo ready; while [ ! -e go ]; do sleep 0.02; done; exit 0",
    );
    let before = stuckproof::clock::Mono::now();
    signal(&child, "TERM");
    wait_until("the request is on record", || !place.events_of("cancelRequested").is_empty());
    let after = stuckproof::clock::Mono::now();
    let at = place.event("cancelRequested")["t"].as_u64().unwrap();
    assert!((before.0..=after.0).contains(&at));
    fs::write(place.path("go"), "").unwrap();
    finish(child).assert_code(0);
    assert_eq!(place.event("jobEnded")["cancel"], "cancelling", "no builder was there to acknowledge it");
}
