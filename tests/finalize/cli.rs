//! `stuckproof finalize`.

use crate::scene::{Remains, Story, header, process};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use stuckproof::event::{CommandStarted, EventKind};

fn finalize(bundles: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stuckproof"));
    command.arg("finalize").args(bundles).stdin(Stdio::null()).output().expect("stuckproof starts")
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
fn one_that_cannot_be_finished_does_not_keep_the_others_from_it() {
    let story = Story::begin();
    let good = Remains::of(&story, &story.events());
    let empty = tempfile::tempdir().expect("a temporary folder");
    let done = finalize(&[empty.path(), &empty.path().join("missing"), good.path()]);
    assert_eq!(done.status.code(), Some(125));
    assert!(text(&done.stderr).contains("nothing in"), "{}", text(&done.stderr));
    assert!(text(&done.stdout).contains("failed: runner_lost"));
    assert_eq!(finalize(&[]).status.code(), Some(125), "a bundle must be named");
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
