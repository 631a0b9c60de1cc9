//! Requests to stop in the moments after the command's end. What holds the job there is the size of what has to be read.

use crate::common::bundle::Bundle;
use crate::common::job::{Job, start, stuckproof};
use crate::common::wait_for;
use crate::scene::{PREVIOUS, artifact, engine, place};
use rustix::process::Signal;
use std::fs;

/// A job whose engine of half a gigabyte, a single hole, is being read: the command has ended with this code.
fn reading(code: i32) -> Job {
    let place = place();
    let path = engine(&place);
    let line = format!("truncate -s 512M \"$1\"; exit {code}");
    let wrapped = ["sh", "-c", &line, "sh", "{engine}"].map(str::to_owned);
    let job = start(place, &["--engine", &path], &wrapped);
    job.wait_for_event("commandExited");
    job
}

#[test]
fn a_stop_while_the_engine_is_published_or_set_aside_is_recorded_and_answered_and_breaks_nothing() {
    for (code, outcome) in [(0, "published"), (4, "kept")] {
        let job = reading(code);
        job.signal(Signal::TERM);
        let settled = !Bundle::lines_so_far(&job.place().bundle(), &["\"artifactSettled\""]).is_empty();
        assert!(!settled, "the signal came in time");
        let asked = stuckproof().arg("cancel").arg(job.place().bundle()).output().expect("it starts");
        let said = [asked.stdout, asked.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(said.contains("has ended") && said.contains("was recorded"), "{said}");
        let ended = job.end();
        assert_eq!(ended.code(), code, "{}", ended.stderr);
        let bundle = ended.bundle();
        let via: Vec<&str> = bundle.of_kind("cancelRequested").filter_map(|e| e["via"].as_str()).collect();
        assert_eq!(via, ["SIGTERM", "control socket"]);
        let artifact = artifact(&bundle.path);
        assert_eq!(artifact["outcome"], outcome, "{artifact:#}");
        let there = fs::metadata(engine(&ended.place)).expect("it is there").len();
        assert_eq!(there, if code == 0 { 512 << 20 } else { PREVIOUS.len() as u64 });
        assert_eq!(artifact["partial"]["bytes"].as_u64(), (code != 0).then_some(512 << 20));
        assert_verified(&bundle, code);
    }
}

#[test]
fn a_stop_while_the_bundle_is_sealed_breaks_nothing() {
    let place = place();
    let wrapped = ["sh", "-c", "head -c 60000000 /dev/zero"].map(str::to_owned);
    let job = start(place, &[], &wrapped);
    let bundle = job.place().bundle();
    wait_for("the end on record", || Bundle::lines_so_far(&bundle, &["\"jobEnded\""]).into_iter().next());
    job.signal(Signal::TERM);
    assert!(!bundle.join("manifest.json").exists(), "the request came in time");
    let ended = job.end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let bundle = ended.bundle();
    bundle.assert_state("succeeded", None);
    assert_verified(&bundle, 0);
}

fn assert_verified(bundle: &Bundle, code: i32) {
    let verified = stuckproof().arg("verify").arg(&bundle.path).output().expect("it starts");
    assert_eq!(verified.status.code(), Some(i32::from(code != 0)), "{verified:?}");
}
