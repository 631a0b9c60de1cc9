//! A secret in the names of a real network, in TensorRT's own message about it, in arguments, environment and output, is
//! in no file of the bundle.

mod common;

use common::job::{Job, Place, stuckproof};
use common::{environment, script, text, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::process::Command;

const SECRET: &str = "planted-word";

/// A model whose input has the secret for a name, and a build that TensorRT refuses with a message about it.
fn complaint(place: &Place) -> Vec<String> {
    let maker = text(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/make_tiny.py"));
    let model = place.file("model.onnx");
    let made = common::command(&environment("python")).args([&*maker, "external", &model, SECRET]).status();
    assert!(made.expect("python starts").success());
    let mut wrapped = script("variants.py", &[&model, "misfit", "base"]);
    wrapped.push(format!("token={SECRET}"));
    wrapped
}

fn with_secret(mut command: Command) -> Command {
    command.env("DEPLOY_TOKEN", SECRET).env("CUDA_CACHE_PATH", format!("/tmp/{SECRET}"));
    command
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn assert_clean(bundle: &Path) {
    let files = files(bundle);
    assert!(files.len() >= 7, "{files:?}");
    for file in files {
        let bytes = std::fs::read(&file).expect("a file");
        assert!(!String::from_utf8_lossy(&bytes).contains(SECRET), "{}", file.display());
    }
}

#[test]
fn a_message_of_the_builder_keeps_no_secret() {
    let place = Place::new();
    let command = with_secret(place.run(&[], &complaint(&place)));
    let ended = Job::start(place, command).end();
    let bundle = ended.bundle();
    assert!(ended.stdout.contains(SECRET), "the builder complains of it: {}", ended.stdout);
    let said = bundle.builds()[0]["errors"][0]["text"].as_str().expect("an error");
    assert!(said.contains("Dimension mismatch for tensor (masked)input"), "{said}");
    assert_eq!(bundle.builds()[1]["facts"]["inputs"][0]["name"], "(masked)input");
    assert_clean(&bundle.path);
}

/// A build that stands still behind its complaint, with its runner.
fn held(place: Place) -> Job {
    let mut wrapped = complaint(&place);
    wrapped.splice(3.., ["misfit", "hold"].map(str::to_owned));
    let command = with_secret(place.run(&[], &wrapped));
    let job = Job::start(place, command);
    job.wait_for_event("message");
    job
}

#[test]
fn the_keeper_of_a_killed_runner_leaves_no_secret() {
    let job = held(Place::new());
    let bundle = job.place().bundle();
    job.signal(Signal::KILL);
    wait_for("the keeper's bundle", || common::bundle::Bundle::is_finished(&bundle).then_some(()));
    assert_clean(&bundle);
}

#[test]
fn a_bundle_that_is_finished_by_hand_keeps_no_secret() {
    let job = held(Place::new());
    let bundle = job.place().bundle();
    let keeper = keeper_of(job.pid());
    kill_process(keeper, Signal::STOP).expect("the keeper can be stopped");
    job.signal(Signal::KILL);
    kill_process(keeper, Signal::KILL).expect("the keeper can be killed");
    wait_for("a bundle that can be finished", || {
        let mut finalize = with_secret(stuckproof());
        let done = finalize.arg("finalize").arg(&bundle).output().expect("it starts");
        done.status.success().then_some(())
    });
    assert_clean(&bundle);
}

fn keeper_of(runner: Pid) -> Pid {
    let children = format!("/proc/{0}/task/{0}/children", runner.as_raw_nonzero());
    let children = std::fs::read_to_string(children).expect("the runner lives");
    let first = children.split_whitespace().next().expect("it has a keeper");
    Pid::from_raw(first.parse().expect("a number")).expect("a process")
}
