//! `stuckproof finalize`.

use crate::common::job::stuckproof;
use crate::scene::{Remains, Story, header, process};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use stuckproof::event::{CommandStarted, EventKind};

fn finalize(bundles: &[&Path]) -> Output {
    let mut command = stuckproof();
    command
        .arg("finalize")
        .args(bundles)
        .env_remove("CI_JOB_STATUS")
        .stdin(Stdio::null())
        .output()
        .expect("stuckproof starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn it_says_what_became_of_each_bundle() {
    let mut story = Story::begin();
    story.library(process(4001, 1));
    let (one, other) = (Remains::of(&story, &story.events()), Remains::of(&story, &story.events()));
    let done = finalize(&[one.path(), other.path()]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(text(&done.stdout).matches("failed: runner_lost").count(), 2, "{}", text(&done.stdout));
    assert!(done.stderr.is_empty());
    let after = one.files();
    assert_eq!(finalize(&[one.path()]).status.code(), Some(0));
    assert_eq!(one.files(), after);
}

#[test]
fn a_folder_stands_for_the_bundles_in_it() {
    let story = Story::begin();
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["one", "other"] {
        let remains = Remains::of(&story, &story.events());
        std::fs::rename(remains.path(), folder.path().join(name)).expect("it can be moved");
        std::fs::create_dir(remains.path()).expect("its place is cleaned up");
    }
    std::fs::write(folder.path().join("a file"), "").expect("a file");
    let done = finalize(&[folder.path()]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(text(&done.stdout).matches("failed: runner_lost").count(), 2, "{}", text(&done.stdout));
}

#[test]
fn what_the_host_says_is_kept_where_the_runner_was_lost_and_only_said_where_it_was_not() {
    let story = Story::begin();
    let remains = Remains::of(&story, &story.events());
    let finalize = |status: &str| {
        let mut command = stuckproof();
        command.arg("finalize").arg(remains.path()).env("CI_JOB_STATUS", status).stdin(Stdio::null());
        command.output().expect("stuckproof starts")
    };
    let done = finalize("canceled");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let evidence = std::fs::read_to_string(remains.path().join("evidence.json")).expect("there is evidence");
    let evidence: serde_json::Value = serde_json::from_str(&evidence).expect("it is JSON");
    let report = serde_json::json!({"status": "canceled", "toldBy": "CI_JOB_STATUS"});
    assert_eq!(evidence["hostReport"], report);
    assert_eq!(evidence["cause"], "runner_lost", "what the host says decides nothing");
    let after = remains.files();
    let again = finalize("success");
    assert_eq!(text(&again.stderr), "stuckproof: the host says success (CI_JOB_STATUS)\n");
    assert_eq!(remains.files(), after);
}

#[test]
fn one_that_cannot_be_finished_does_not_keep_the_others_from_it() {
    let story = Story::begin();
    let good = Remains::of(&story, &story.events());
    let empty = tempfile::tempdir().expect("a temporary folder");
    let done = finalize(&[empty.path(), &empty.path().join("missing"), good.path()]);
    assert_eq!(done.status.code(), Some(125));
    assert_eq!(text(&done.stderr).matches("there is no bundle in").count(), 2, "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("failed: runner_lost"));
    let elsewhere = finalize(&[]);
    assert_eq!(elsewhere.status.code(), Some(125));
    assert!(
        text(&elsewhere.stderr).contains("no bundle in stuckproof-evidence"),
        "{}",
        text(&elsewhere.stderr)
    );
}

#[test]
fn processes_of_the_job_that_live_are_named() {
    let mut command = Command::new("sleep");
    command.arg("600").env("STUCKPROOF_JOB", header().job).process_group(0);
    let mut child = command.spawn().expect("sleep starts");
    let mut story = Story::begin();
    story.own(EventKind::CommandStarted(CommandStarted { pid: child.id() }));
    let remains = Remains::of(&story, &story.events());
    let before = remains.files();
    let done = finalize(&[remains.path()]);
    child.kill().and_then(|()| child.wait()).expect("it can be ended");
    assert_eq!(done.status.code(), Some(125));
    assert!(text(&done.stderr).contains(&format!("sleep ({})", child.id())), "{}", text(&done.stderr));
    assert_eq!(remains.files(), before);
    assert_eq!(finalize(&[remains.path()]).status.code(), Some(0));
}
