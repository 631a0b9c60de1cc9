//! The user's own check of the engine, and requests to stop that come after the command's end. A check that waits for a
//! file holds the job exactly there.

use crate::common::job::{Job, Place, start, stuckproof};
use crate::common::{model, script, wait_for};
use crate::scene::{PREVIOUS, artifact, assert_as_before, assert_nothing_beside, engine, is_whole, place};
use rustix::process::Signal;
use std::fs;

/// A real build whose engine is checked until `go` exists; the check then ends with this code.
fn checking(code: i32) -> Job {
    checking_what(&script("build_onnx.py", &[&model("small"), "{engine}"]), code, &[])
}

/// The same for any command.
fn checking_what(wrapped: &[String], code: i32, options: &[&str]) -> Job {
    let place = place();
    let path = engine(&place);
    let check = format!(
        "echo $$ > '{0}'; while [ ! -e '{1}' ]; do sleep 0.02; done; test -s {{engine}} && exit {code}",
        place.file("checking"),
        place.file("go")
    );
    let job = start(place, &[&["--engine", &path, "--validate", &check], options].concat(), wrapped);
    wait_for("the check", || {
        fs::read_to_string(job.place().file("checking")).ok().filter(|t| t.ends_with('\n'))
    });
    job
}

fn go(place: &Place) {
    fs::write(place.file("go"), "").expect("it can be written");
}

#[test]
fn only_an_engine_that_passes_is_published() {
    for (code, status) in [(0, "pass"), (7, "fail")] {
        let job = checking(code);
        assert_as_before_but_for_work(job.place());
        go(job.place());
        let ended = job.end();
        let bundle = ended.bundle();
        bundle.assert_state("succeeded", None);
        assert_eq!(bundle.summary["validationStatus"], status);
        assert_eq!(bundle.evidence["validation"]["code"], code);
        assert_nothing_beside(&ended.place);
        let there = fs::read(engine(&ended.place)).expect("it is there");
        if code == 0 {
            assert!(is_whole(&there));
            assert_eq!(ended.code(), 0);
        } else {
            assert_eq!((there.as_slice(), ended.code()), (PREVIOUS, 123));
            assert_eq!(bundle.summary["retryPolicy"], "rollback");
            assert_eq!(bundle.summary["cleanupStatus"], "quarantined");
        }
    }
}

fn assert_as_before_but_for_work(place: &Place) {
    assert_eq!(fs::read(engine(place)).expect("it is there"), PREVIOUS);
}

#[test]
fn a_stop_while_the_engine_is_checked_is_recorded_answered_and_ends_the_check() {
    let job = checking(0);
    let check = fs::read_to_string(job.place().file("checking")).expect("a pid");
    let asked = stuckproof().arg("cancel").arg(job.place().bundle()).output().expect("it starts");
    let said = [asked.stdout, asked.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains("has ended") && said.contains("request 1 was recorded"), "{said}");
    let ended = job.end();
    assert_eq!(ended.code(), 123, "{}", ended.stderr);
    assert!(fs::metadata(format!("/proc/{}", check.trim())).is_err(), "the check is gone");
    let bundle = ended.bundle();
    bundle.assert_state("succeeded", None);
    assert_eq!(bundle.evidence["requests"][0]["outcome"], "too_late");
    assert_eq!(bundle.summary["validationStatus"], "pending");
    assert_as_before(&ended.place);
}

#[test]
fn signals_and_the_deadline_are_heard_while_the_engine_is_checked() {
    let quick = ["sh", "-c", "printf new > \"$1\"", "sh", "{engine}"].map(str::to_owned);
    let job = checking_what(&quick, 0, &["--deadline", "3s"]);
    let ended = job.end();
    assert_eq!(ended.code(), 124, "{}", ended.stderr);
    assert_eq!(ended.bundle().evidence["requests"][0]["via"], "deadline");
    assert_as_before(&ended.place);

    let job = checking_what(&quick, 0, &[]);
    job.signal(Signal::TERM);
    job.wait_for_event("cancelRequested");
    let ended = job.end();
    assert_eq!(ended.bundle().evidence["requests"][0]["via"], "SIGTERM");
    assert_as_before(&ended.place);
}

#[test]
fn a_runner_that_is_killed_while_the_engine_is_checked_publishes_nothing_unchecked() {
    let job = checking(0);
    job.signal(Signal::KILL);
    let place = job.end_of_the_killed();
    let path = place.bundle();
    wait_for("the keeper to finish the bundle", || {
        crate::common::bundle::Bundle::is_finished(&path).then_some(())
    });
    wait_for("the folder beside it to go", || fs::metadata(place.file("models/a.engine.stuckproof")).err());
    let bundle = crate::common::bundle::Bundle::load_whoever_finished(&path);
    assert_as_before(&place);
    assert_eq!(bundle.summary["validationStatus"], "pending");
    assert_eq!(artifact(&path)["outcome"], "kept");
    assert_eq!(bundle.evidence["exitCode"], 123);
}
