//! What happens when a build stalls or is silent: it is said, explained, stopped where that was asked for, remembered.

use crate::acting;
use crate::common::job::{Job, Place, start, stuckproof};
use crate::common::wait_for;
use serde_json::Value;

fn explained(job: &Job) -> Value {
    let bundle = job.place().bundle();
    let output = stuckproof().arg("explain").arg(bundle).arg("--json").output().expect("stuckproof starts");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

fn answer<'a>(explained: &'a Value, question: &str) -> &'a str {
    let answers = explained["answers"].as_array().expect("a list");
    let found = answers.iter().find(|answer| answer["question"] == question).expect("each is answered");
    found["answer"].as_str().expect("a word")
}

#[test]
fn a_stall_is_said_explained_and_stopped_and_the_second_one_is_to_be_looked_into() {
    let history = Place::new();
    let store = history.file("history");
    for earlier in 0..2 {
        let place = Place::new();
        let command = acting(&place, "small", "two_locks", "step", 0);
        let mut options = vec!["--stall-after", "2s", "--history", &store, "--kill-after", "1s"];
        if earlier == 1 {
            options.extend(["--on-stall", "cancel", "--grace", "1s"]);
        }
        let job = start(place, &options, &command);
        job.wait_for_event("phaseStarted");
        if earlier == 0 {
            let stalled = || Some(explained(&job)).filter(|explained| answer(explained, "cancel") == "yes");
            let explained = wait_for("a stall", stalled);
            assert_eq!(answer(&explained, "continue"), "no");
            job.signal(rustix::process::Signal::KILL);
            job.end();
            continue;
        }
        let ended = job.end();
        let bundle = ended.bundle();
        bundle.assert_state("failed", Some("killed_by_runner"));
        assert!(ended.stderr.contains("stuckproof: stalled: silent for"), "{}", ended.stderr);
        let request = &bundle.evidence["requests"][0];
        assert_eq!((&request["via"], &request["source"]), (&"stall".into(), &"service".into()));
        assert!(request["reason"].as_str().is_some_and(|reason| reason.contains("Timing graph nodes")));
        let stalled = &bundle.evidence["silences"]["stalls"][0]["facts"];
        assert_eq!(stalled["earlierStalls"], 1, "remembered although its runner was killed: {stalled}");
        assert_eq!(bundle.summary["retryPolicy"], "investigate");
        let reasons = bundle.evidence["retry"]["reasons"].to_string();
        assert!(reasons.contains("tactic") && reasons.contains("Timing graph nodes"), "{reasons}");
    }
}

#[test]
fn a_silent_log_has_a_heartbeat_and_the_commands_output_has_none() {
    let place = Place::new();
    let command = acting(&place, "small", "spin", "step", 6);
    let run = place.run(&["--heartbeat", "2s", "--stall-after", "2s"], &command);
    let ended = Job::start(place, run).end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let beats = ended.stderr.lines().filter(|line| line.starts_with("stuckproof: running for"));
    let beats: Vec<&str> = beats.collect();
    assert!(beats.len() >= 2 && beats[0].contains("Timing graph nodes"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    assert_eq!(ended.foreign_stderr(), "");
}
