//! Real builds, and every way in which they end.

use crate::common::bundle::Bundle;
use crate::common::job::{Job, Place, start};
use crate::common::witness::wait_for_long_step;
use crate::common::{NO_SIGNALS, model, script, wait_for};
use crate::scene::{
    PREVIOUS, artifact, assert_as_before, assert_nothing_beside, assert_told, engine, is_whole, names, place,
};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

/// How the client is told where to write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Staged,
    InPlace,
}

impl How {
    fn word(self, place: &Place) -> String {
        if self == Self::Staged { "{engine}".to_owned() } else { engine(place) }
    }
}

/// A build in its long step.
fn in_the_step(how: How, options: &[&str]) -> Job {
    let job = building("slow", how, options);
    wait_for_long_step(&job.place().file("stamps"));
    job
}

/// A build of a model whose user's monitor puts stamps.
fn building(name: &str, how: How, options: &[&str]) -> Job {
    let place = place();
    let wrapped = script("user_monitor.py", &[&model(name), &how.word(&place), &place.file("stamps")]);
    let path = engine(&place);
    start(place, &[&["--engine", &path], options].concat(), &wrapped)
}

#[test]
fn a_success_replaces_it_whole() {
    for how in [How::Staged, How::InPlace] {
        let place = place();
        let wrapped = script("build_onnx.py", &[&model("small"), &how.word(&place)]);
        let path = engine(&place);
        let ended = start(place, &["--engine", &path], &wrapped).end();
        assert_eq!(ended.code(), 0, "{}", ended.stderr);
        let bundle = ended.bundle();
        let new = fs::read(&path).expect("it is there");
        assert!(is_whole(&new));
        assert_nothing_beside(&ended.place);
        let artifact = artifact(&bundle.path);
        assert_eq!(artifact["outcome"], "published");
        assert_eq!(artifact["content"], "TensorRT-RTX engine");
        assert_eq!(artifact["before"]["sha256"], stuckproof::digest::sha256_hex(PREVIOUS));
        assert_eq!(artifact["after"]["sha256"], stuckproof::digest::sha256_hex(&new));
        assert_eq!(bundle.summary["cleanupStatus"], "cleaned");
        assert!(bundle.summary["retryPolicy"].is_null());
    }
}

#[test]
fn a_build_that_fails_changes_nothing() {
    for how in [How::Staged, How::InPlace] {
        let place = place();
        // Like trtexec, it empties the path before it builds; what fails is the parser's model.
        let build = script("build_onnx.py", &[&place.file("no.onnx"), &how.word(&place)]).join(" ");
        let path = engine(&place);
        let line = format!("printf half > \"$1\"; exec {build}");
        let wrapped = ["sh", "-c", &line, "sh", &how.word(&place)].map(str::to_owned);
        let ended = start(place, &["--engine", &path], &wrapped).end();
        assert_eq!(ended.code(), 1);
        assert_as_before(&ended.place);
        let bundle = ended.bundle();
        let outcome = if how == How::Staged { "kept" } else { "restored" };
        let artifact = artifact(&bundle.path);
        assert_eq!(artifact["outcome"], outcome);
        crate::scene::assert_set_aside(&ended.place, &artifact, b"half");
        assert_eq!(bundle.summary["retryPolicy"], "investigate");
    }
}

#[test]
fn a_builder_that_gives_up_changes_nothing() {
    for how in [How::Staged, How::InPlace] {
        let place = place();
        let build = script("build_onnx.py", &[&model("ch_PP-OCRv4_rec_infer"), &how.word(&place)]).join(" ");
        let path = engine(&place);
        let line = format!("printf half > \"$1\"; exec {build}");
        let wrapped = ["sh", "-c", &line, "sh", &how.word(&place)].map(str::to_owned);
        let ended = start(place, &["--engine", &path], &wrapped).end();
        let bundle = ended.bundle();
        bundle.assert_state("failed", Some("builder"));
        assert_as_before(&ended.place);
        let outcome = if how == How::Staged { "kept" } else { "restored" };
        let artifact = artifact(&bundle.path);
        assert_eq!(artifact["outcome"], outcome);
        crate::scene::assert_set_aside(&ended.place, &artifact, b"half");
        assert_eq!(bundle.summary["retryPolicy"], "investigate");
    }
}

#[test]
fn a_cancel_in_a_long_step_changes_nothing() {
    let job = in_the_step(How::Staged, &NO_SIGNALS);
    job.signal(Signal::TERM);
    let ended = job.end();
    let bundle = ended.bundle();
    bundle.assert_state("cancelled", Some("service"));
    assert_as_before(&ended.place);
    assert_told(&ended.place, &bundle);
    assert_eq!(bundle.summary["cleanupStatus"], "cleaned", "nothing was written");
    assert_eq!(bundle.summary["retryPolicy"], "retry_cold");
    assert!(bundle.time("ackToCleanedMs") >= bundle.time("ackToReturnMs"));
}

#[test]
fn a_child_that_is_killed_changes_nothing() {
    let job = in_the_step(How::InPlace, &[]);
    let pid = job.wait_for_event("commandStarted")["pid"].as_i64().expect("a pid");
    // As if it had begun to write.
    fs::write(engine(job.place()), "vtrt").expect("it can be written");
    kill_process(Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid"), Signal::KILL)
        .expect("the command lives");
    let ended = job.end();
    let bundle = ended.bundle();
    bundle.assert_state("failed", Some("killed_by_host"));
    assert_as_before(&ended.place);
    crate::scene::assert_set_aside(&ended.place, &artifact(&bundle.path), b"vtrt");
    assert_eq!(bundle.summary["cleanupStatus"], "quarantined");
    assert_eq!(bundle.summary["retryPolicy"], "retry_cold");
}

#[test]
fn a_runner_that_is_killed_changes_nothing() {
    let job = in_the_step(How::InPlace, &[]);
    fs::write(engine(job.place()), "vtrt").expect("it can be written");
    job.signal(Signal::KILL);
    let ended = job.end_of_the_killed();
    let path = ended.bundle();
    wait_for("the keeper to finish the bundle", || Bundle::is_finished(&path).then_some(()));
    let bundle = Bundle::load_whoever_finished(&path);
    wait_for("the folder beside it to go", || {
        (names(ended.file("models")) == ["a.engine", "stuckproof-quarantine"]).then_some(())
    });
    assert_as_before(&ended);
    let artifact = artifact(&bundle.path);
    assert_eq!(artifact["outcome"], "restored");
    crate::scene::assert_set_aside(&ended, &artifact, b"vtrt");
    assert!(artifact["settledAt"].is_null(), "nobody timed it");
    assert_ne!(bundle.summary["retryPolicy"], "rollback");
}

#[test]
fn a_deadline_changes_nothing() {
    // However fast the machine is, this build takes longer.
    let options = ["--deadline", "2s", "--grace", "100ms", "--kill-after", "100ms"];
    let ended = building("long", How::Staged, &options).end();
    assert_eq!(ended.code(), 124, "{}", ended.stderr);
    let bundle = ended.bundle();
    assert_as_before(&ended.place);
    assert_told(&ended.place, &bundle);
    assert_ne!(bundle.evidence["state"], "succeeded");
}
