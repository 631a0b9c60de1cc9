//! `stuckproof run --retry`: each attempt has a bundle of its own, and what the first one left is never what is published.

use crate::common::bundle::Bundle;
use crate::common::job::{Ended, Job, Place, start, stuckproof};
use crate::common::{model, script, wait_for};
use crate::scene::{PREVIOUS, assert_as_before, assert_nothing_beside, engine, is_whole, place, shell};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

/// A command that is killed in its build, as if by the host, so many times; then it goes on with the line. `$1` is its place
/// for the engine.
fn killed(place: &Place, times: u32, then: &str) -> Vec<String> {
    let build = format!("{}/fixtures/simulate/hang.toml", env!("CARGO_MANIFEST_DIR"));
    let line = format!(
        "for n in $(seq {times}); do if mkdir '{folder}'/$n; then
           printf half > \"$1\"
           (until grep -q '\"event\":\"phaseStarted\"' '{bundle}'/attempt-$n/events.jsonl; do sleep 0.02; done; kill -9 $$) &
           exec '{stuckproof}' simulate '{build}'
         fi; done
         {then}",
        folder = place.file(""),
        bundle = place.bundle().display(),
        stuckproof = env!("CARGO_BIN_EXE_stuckproof"),
    );
    ["sh", "-c", &line, "sh", "{engine}"].map(str::to_owned).to_vec()
}

fn retried(place: Place, options: &[&str], wrapped: &[String]) -> Job {
    let path = engine(&place);
    start(place, &[&["--engine", &path], options].concat(), wrapped)
}

fn record(place: &Place) -> Value {
    let text = fs::read(place.bundle().join("attempts.json")).expect("a record");
    serde_json::from_slice(&text).expect("JSON")
}

fn attempt(place: &Place, number: u32) -> Bundle {
    Bundle::load(&place.bundle().join(format!("attempt-{number}")))
}

/// The attempts as the record has them, each as it stands in its own bundle, and the last one's report on top.
fn assert_told(ended: &Ended, states: &[(&str, Option<&str>)]) -> Value {
    let record = record(&ended.place);
    let attempts = record["attempts"].as_array().expect("a list");
    assert_eq!(attempts.len(), states.len(), "{record:#}");
    for ((number, told), (state, cause)) in (1..).zip(attempts).zip(states) {
        let bundle = attempt(&ended.place, number);
        bundle.assert_state(state, *cause);
        assert_eq!((told["state"].as_str(), told["cause"].as_str()), (Some(*state), *cause));
        for field in ["job", "exitCode"] {
            assert_eq!(told[field], bundle.evidence[field], "{field}");
        }
    }
    let top = ended.place.bundle();
    for name in ["junit.xml", "summary.json"] {
        let last = top.join(format!("attempt-{}", states.len())).join(name);
        assert_eq!(fs::read(top.join(name)).ok(), fs::read(last).ok(), "{name}");
    }
    record
}

fn said(arguments: &[&str], place: &Place) -> String {
    let output = stuckproof().args(arguments).arg(place.bundle()).output().expect("stuckproof starts");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn a_build_that_the_host_killed_is_tried_again_and_its_engine_is_whole() {
    let place = place();
    let build = script("build_onnx.py", &[&model("small"), "\"$1\""]).join(" ");
    let wrapped = killed(&place, 1, &format!("exec {build}"));
    let ended = retried(place, &["--retry", "2"], &wrapped).end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let record = assert_told(&ended, &[("failed", Some("killed_by_host")), ("succeeded", None)]);
    assert_eq!(record["attempts"][1]["policy"], "retry_cold");
    assert_eq!(record["ended"], "the job succeeded");
    assert!(is_whole(&fs::read(engine(&ended.place)).expect("it is there")));
    assert_nothing_beside(&ended.place);
    assert_eq!(ended.announced(), Some(&*ended.place.bundle()));
    let shown = said(&["show"], &ended.place);
    assert!(shown.contains("tried 2 of at most 3 times") && shown.contains("== attempt-1 =="), "{shown}");
    let status = said(&["status"], &ended.place);
    assert!(status.contains("1. failed: killed_by_host, exit code 137"), "{status}");
    let verified = stuckproof().arg("verify").arg(ended.place.bundle()).output().expect("it starts");
    assert_eq!(verified.status.code(), Some(0), "the last attempt decides: {verified:?}");
}

#[test]
fn the_limit_ends_it_and_the_exit_code_is_that_of_the_last() {
    let place = place();
    let wrapped = killed(&place, 9, "");
    let ended = retried(place, &["--retry", "1"], &wrapped).end();
    assert_eq!(ended.code(), 137, "{}", ended.stderr);
    let record = assert_told(&ended, &[("failed", Some("killed_by_host")); 2]);
    assert_eq!(record["ended"], "the limit is reached: --retry 1");
    assert_as_before(&ended.place);
    let verified = stuckproof().arg("verify").arg(ended.place.bundle()).output().expect("it starts");
    assert_eq!(verified.status.code(), Some(1), "{verified:?}");
}

#[test]
fn what_would_end_the_same_way_is_not_tried_again() {
    let place = place();
    let wrapped = shell(&place, "test -n {engine}; exit 3");
    let ended = retried(place, &["--retry", "5"], &wrapped).end();
    assert_eq!(ended.code(), 3);
    let record = assert_told(&ended, &[("failed", Some("command"))]);
    assert_eq!(record["ended"], "the recommendation is investigate");
}

#[test]
fn a_stop_is_meant_for_all_attempts() {
    for by_signal in [true, false] {
        let place = place();
        let waiting = format!(": > '{}'; while :; do sleep 0.02; done", place.file("waiting"));
        let wrapped = killed(&place, 1, &waiting);
        let job = retried(place, &["--retry", "5"], &wrapped);
        wait_for("the second attempt", || fs::metadata(job.place().file("waiting")).ok());
        let report = fs::read_to_string(job.place().bundle().join("junit.xml")).expect("a report");
        assert!(report.contains("<failure") || report.contains("<error"), "it fails meanwhile");
        if by_signal {
            job.signal(Signal::TERM);
        } else {
            let said = said(&["cancel"], job.place());
            assert!(said.contains("is stopping (request 1)"), "{said}");
        }
        let ended = job.end();
        let last = attempt(&ended.place, 2);
        assert_eq!(last.evidence["requests"].as_array().map(Vec::len), Some(1), "heard once");
        assert!(
            record(&ended.place)["ended"].as_str().is_some_and(|why| why.contains("a stop was asked for"))
        );
        assert_eq!(record(&ended.place)["attempts"].as_array().map(Vec::len), Some(2));
        assert_as_before(&ended.place);
        assert_ne!(ended.code(), 0);
    }
}

#[test]
fn one_deadline_covers_all_attempts() {
    let place = place();
    let wrapped = killed(&place, 1, "while :; do sleep 0.02; done");
    let ended = retried(place, &["--retry", "5", "--deadline", "10s"], &wrapped).end();
    assert_eq!(ended.code(), 124, "{}", ended.stderr);
    let last = attempt(&ended.place, 2);
    let left = last.of_kind("jobStarted").next().expect("a first line")["deadlineMs"].as_u64();
    assert!(left.is_some_and(|left| (1..10_000).contains(&left)), "{left:?}");
    assert!(record(&ended.place)["ended"].as_str().is_some_and(|why| why.contains("deadline")));
}

#[test]
fn a_cold_attempt_does_not_read_the_timing_cache_of_the_one_before() {
    let place = place();
    let cache = place.file("cache");
    fs::write(&cache, PREVIOUS).expect("it can be written");
    let wrapped = killed(&place, 1, "");
    let ended = retried(place, &["--retry", "5", "--timing-cache", &cache], &wrapped).end();
    let record = assert_told(&ended, &[("failed", Some("killed_by_host"))]);
    assert!(record["ended"].as_str().is_some_and(|why| why.contains("another timing cache")));
}

#[test]
fn a_lost_runner_is_finished_with_all_of_its_attempts() {
    let place = place();
    let waiting = format!(": > '{}'; while :; do sleep 0.02; done", place.file("waiting"));
    let wrapped = killed(&place, 1, &waiting);
    let job = retried(place, &["--retry", "5"], &wrapped);
    wait_for("the second attempt", || fs::metadata(job.place().file("waiting")).ok());
    job.signal(Signal::KILL);
    let place = job.end_of_the_killed();
    let second = place.bundle().join("attempt-2");
    wait_for("the keeper to finish the bundle", || Bundle::is_finished(&second).then_some(()));
    wait_for("finalize to have nothing in its way", || {
        let done = stuckproof().arg("finalize").arg(place.bundle()).output().expect("it starts");
        done.status.success().then_some(())
    });
    let record = record(&place);
    assert_eq!(record["attempts"][1]["cause"], "runner_lost", "{record:#}");
    assert!(record["ended"].as_str().is_some_and(|why| why.contains("the runner was lost")));
    let top = fs::read(place.bundle().join("junit.xml")).expect("a report");
    assert_eq!(top, fs::read(second.join("junit.xml")).expect("a report"));
    assert_as_before(&place);
}
