//! A secret that the user planted everywhere is in no file of the bundle, whatever becomes of the job.

use crate::planted::{SECRET, assert_clean, say_secret};
use crate::rig::{Done, Place, finish, signal, wait_until};
use std::fs;

fn assert_output(place: &Place, done: &Done) {
    let passed = done.stdout();
    assert!(passed.contains(&format!("before {SECRET} after")), "what passes through is as it was: {passed}");
    let kept = fs::read_to_string(place.path("bundle/stdout.log")).unwrap();
    let lines = "before (masked) after\n(masked)\n{\"token\": \"(masked)\"}\n";
    assert!(kept.contains(lines), "{kept}");
    assert_eq!(place.json("evidence.json")["output"]["by"], "runner");
}

#[test]
fn a_job_that_succeeds_keeps_no_secret() {
    let place = Place::new();
    let done = finish(say_secret(&place, &[], "true"));
    done.assert_code(0);
    assert_output(&place, &done);
    assert_clean(&place);
}

#[test]
fn a_job_that_is_stopped_keeps_no_secret() {
    let place = Place::new();
    let child = say_secret(&place, &["--grace", "none"], "touch said; exec sleep 100");
    wait_until("everything is said", || place.path("said").exists());
    let reason = format!("because of {SECRET}");
    place.verb(&["cancel", &place.job(), "--reason", &reason]).assert_code(0);
    wait_until("the request is on record", || !place.events_of("cancelRequested").is_empty());
    signal(&child, "INT");
    let done = finish(child);
    assert_output(&place, &done);
    assert_eq!(place.events_of("cancelRequested")[0]["reason"], "because of (masked)");
    assert_clean(&place);
}

#[test]
fn what_a_secret_is_can_be_said() {
    let place = Place::new();
    let mut command = place.stuckproof();
    command.args([
        "run",
        "--bundle",
        "bundle",
        "--mask-env",
        "DEPLOY_*",
        "--no-mask-env",
        "PUBLIC_KEY",
        "--",
    ]);
    command.args(["sh", "-c", "echo $DEPLOY_WORD $PUBLIC_KEY $DOOR_KEY"]);
    command.env("DEPLOY_WORD", "hidden-word").env("PUBLIC_KEY", "shown-word").env("DOOR_KEY", "1234567");
    finish(command.spawn().unwrap()).assert_code(0);
    let kept = fs::read_to_string(place.path("bundle/stdout.log")).unwrap();
    assert_eq!(kept, "(masked) shown-word 1234567\n");
}

#[test]
fn an_engine_whose_path_holds_a_secret_is_refused() {
    let place = Place::new();
    let mut command = place.stuckproof();
    command.args(["run", "--bundle", "bundle", "--engine", "hidden-word.engine", "--", "touch", "ran"]);
    let refused = finish(command.env("DEPLOY_TOKEN", "hidden-word").spawn().unwrap());
    refused.assert_code(125);
    assert!(
        refused.stderr.contains("--no-mask-env") && !refused.stderr.contains("hidden"),
        "{}",
        refused.stderr
    );
    assert!(!place.path("ran").exists() && !place.path("bundle").exists());
}

#[test]
fn without_a_copy_nothing_of_the_output_is_in_the_bundle_at_any_time() {
    let place = Place::new();
    let script = "ls bundle; echo passed; echo said >&2";
    let done = finish(place.run(&["--no-output-copy"], script).spawn().unwrap());
    done.assert_code(0);
    assert!(done.stdout().ends_with("passed\n") && done.stderr.contains("said\n"), "{}", done.stdout());
    assert!(!done.stdout().contains("stdout.log"), "{}", done.stdout());
    for name in ["stdout.log", "stderr.log"] {
        assert!(!place.path("bundle").join(name).exists(), "{name}");
    }
    let evidence = place.json("evidence.json");
    assert!(
        evidence["output"].is_null() && evidence["nulls"]["output"].is_string(),
        "{:#}",
        evidence["nulls"]
    );
}
