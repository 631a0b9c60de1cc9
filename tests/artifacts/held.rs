//! Requests to stop in the moments after the command's end. What holds the job there is the size of what has to be read.

use crate::common::bundle::Bundle;
use crate::common::job::{Job, start, stuckproof};
use crate::common::wait_for;
use crate::scene::{PREVIOUS, artifact, engine, place};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Bytes of a file that is a single hole: a second and a half for a fast processor, many times what a request needs to come.
const HOLE: u64 = 3 << 30;

/// A job whose engine, a hole, is being read: the command has ended with this code.
fn reading(code: i32) -> Job {
    let place = place();
    let path = engine(&place);
    let line = format!("truncate -s {HOLE} \"$1\"; exit {code}");
    let wrapped = ["sh", "-c", &line, "sh", "{engine}"].map(str::to_owned);
    let job = start(place, &["--engine", &path], &wrapped);
    job.wait_for_event("commandExited");
    // A stop that comes before that spares the runner the reading.
    wait_for("the reading of the engine", || has_open(job.pid(), "a.engine").then_some(()));
    job
}

/// Whether a process has a file of this name open.
fn has_open(pid: Pid, name: &str) -> bool {
    let files = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())).into_iter().flatten().flatten();
    files
        .filter_map(|file| fs::read_link(file.path()).ok())
        .any(|file| file.file_name().is_some_and(|n| n == name))
}

#[test]
fn a_stop_while_the_engine_is_published_or_set_aside_is_recorded_and_answered_and_breaks_nothing() {
    for (code, outcome) in [(0, "published"), (4, "kept")] {
        let job = reading(code);
        job.signal(Signal::TERM);
        job.signal(Signal::INT);
        let settled = !Bundle::lines_so_far(&job.place().bundle(), &["\"artifactSettled\""]).is_empty();
        assert!(!settled, "the signal came in time");
        let asked = stuckproof().arg("cancel").arg(job.place().bundle()).output().expect("it starts");
        let said = [asked.stdout, asked.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(said.contains("has ended") && said.contains("was recorded"), "{said}");
        let ended = job.end();
        assert_eq!(ended.code(), code, "{}", ended.stderr);
        let bundle = ended.bundle();
        let mut via: Vec<&str> =
            bundle.of_kind("cancelRequested").filter_map(|e| e["via"].as_str()).collect();
        via.sort_unstable();
        assert_eq!(via, ["SIGINT", "SIGTERM", "control socket"]);
        let artifact = artifact(&bundle.path);
        assert_eq!(artifact["outcome"], outcome, "{artifact:#}");
        let there = fs::metadata(engine(&ended.place)).expect("it is there").len();
        assert_eq!(there, if code == 0 { HOLE } else { PREVIOUS.len() as u64 });
        assert_eq!(artifact["partial"]["bytes"].as_u64(), (code != 0).then_some(HOLE));
        assert_verified(&bundle, code);
    }
}

/// The addenda of a bundle that verifies, in their order.
fn late_requests(bundle: &Path) -> Vec<String> {
    let verified = stuckproof().args(["verify", "--format", "json"]).arg(bundle).output().expect("it starts");
    let documents: Value = serde_json::from_slice(&verified.stdout).expect("JSON");
    assert_eq!(documents[0]["faults"], serde_json::json!([]));
    let addenda = documents[0]["addenda"].as_array().expect("a list");
    let note = |addendum: &Value| {
        assert_eq!((&addendum["kind"], &addendum["status"]), (&"late_request".into(), &"too_late".into()));
        addendum["note"].as_str().expect("a text").to_owned()
    };
    addenda.iter().map(note).collect()
}

fn asked(bundle: &Path) -> (bool, String) {
    let asked = stuckproof().args(["cancel", "--reason", "enough"]).arg(bundle).output().expect("it starts");
    (asked.status.success(), String::from_utf8_lossy(&asked.stderr).into_owned())
}

/// A job of which a hole is being sealed.
fn sealing(options: &[&str]) -> Job {
    let place = place();
    let hole = place.bundle().join("hole");
    let wrapped = ["sh", "-c", &format!("truncate -s {HOLE} '{}'", hole.display())].map(str::to_owned);
    let job = start(place, options, &wrapped);
    job.wait_for_event("jobEnded");
    job
}

#[test]
fn a_stop_while_the_bundle_is_sealed_is_answered_and_put_on_record_beside_it() {
    let folder = place();
    let file = folder.file("stop");
    let job = sealing(&["--cancel-file", &file]);
    let bundle = job.place().bundle();
    for signal in [Signal::TERM, Signal::INT] {
        job.signal(signal);
    }
    let (answered, said) = asked(&bundle);
    assert!(answered && said.contains("has ended (succeeded), and nothing changes"), "{said}");
    let status = stuckproof().arg("status").arg(&bundle).output().expect("it starts");
    assert!(String::from_utf8_lossy(&status.stdout).contains("succeeded"), "{status:?}");
    fs::write(&file, "").expect("it can be written");
    assert!(!bundle.join("manifest.json").exists(), "the requests came in time");
    let ended = job.end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let told = "comes too late: the job has ended (succeeded), and nothing changes; it is on record beside the bundle";
    assert_eq!(ended.stderr.matches(told).count(), 4, "{}", ended.stderr);
    let mut notes = late_requests(&bundle);
    notes.sort();
    for (note, via) in notes.iter().zip(["SIGINT", "SIGTERM", "cancel file", "control socket"]) {
        assert!(note.starts_with(&format!("{via} (source ")), "{note}");
        assert!(note.contains(" ms after the job had ended: succeeded; nothing was changed"), "{note}");
    }
    assert_eq!(notes.len(), 4, "{notes:?}");
    assert!(notes[3].ends_with("; its reason: enough") && notes[3].contains(", process "), "{notes:?}");
    let bundle = ended.bundle();
    bundle.assert_state("succeeded", None);
    assert_eq!(bundle.of_kind("cancelRequested").count(), 0);
    assert_verified(&bundle, 0);
}

#[test]
fn a_stop_while_the_output_waits_for_its_reader_ends_the_wait_and_is_put_on_record() {
    for by_signal in [true, false] {
        let place = place();
        let wrapped = ["sh", "-c", "head -c 4000000 /dev/zero"].map(str::to_owned);
        let mut run = place.run(&[], &wrapped);
        let mut child = run.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("stuckproof starts");
        let bundle = place.bundle();
        // It has nothing left to do but to hand the output on, which nobody reads.
        wait_for("the seal", || bundle.join("manifest.json").exists().then_some(()));
        // What comes before the wait has begun does not end it.
        let code = wait_for("the end", || {
            if by_signal {
                let _ = kill_process(Pid::from_child(&child), Signal::INT);
            } else {
                asked(&bundle);
            }
            child.try_wait().expect("it is our child")
        });
        assert_eq!(code.code(), Some(0));
        let notes = late_requests(&bundle);
        let via = if by_signal { "SIGINT" } else { "control socket" };
        assert!(!notes.is_empty() && notes.iter().all(|note| note.starts_with(via)), "{notes:?}");
        // After that there is nobody to ask.
        let (answered, said) = asked(&bundle);
        assert!(!answered && said.contains("no running job"), "{said}");
    }
}

#[test]
fn no_attempt_follows_a_stop_that_came_after_the_end_of_the_last_one() {
    let place = place();
    let attempt = place.bundle().join("attempt-1");
    let line = format!(
        "truncate -s {HOLE} '{}'
         (until grep -q '\"event\":\"phaseStarted\"' '{}'; do sleep 0.02; done; kill -9 $$) &
         exec '{}' simulate '{}/fixtures/simulate/hang.toml'",
        attempt.join("hole").display(),
        attempt.join("events.jsonl").display(),
        env!("CARGO_BIN_EXE_stuckproof"),
        env!("CARGO_MANIFEST_DIR"),
    );
    let wrapped = ["sh", "-c", &line].map(str::to_owned);
    let job = start(place, &["--retry", "3"], &wrapped);
    wait_for("the end of the attempt", || Bundle::lines_so_far(&attempt, &["\"event\":\"jobEnded\""]).pop());
    let (answered, said) = asked(&job.place().bundle());
    assert!(answered && said.contains("too late"), "{said}");
    assert!(!attempt.join("manifest.json").exists(), "the request came in time");
    let ended = job.end();
    assert_eq!(ended.code(), 137, "{}", ended.stderr);
    assert!(ended.stderr.contains("a stop was asked for (control socket) after the last attempt had ended"));
    assert_eq!(late_requests(&attempt).len(), 1);
    let verified = stuckproof().arg("verify").arg(ended.place.bundle()).output().expect("it starts");
    assert_eq!(verified.status.code(), Some(1), "{verified:?}");
}

fn assert_verified(bundle: &Bundle, code: i32) {
    let verified = stuckproof().arg("verify").arg(&bundle.path).output().expect("it starts");
    assert_eq!(verified.status.code(), Some(i32::from(code != 0)), "{verified:?}");
}
