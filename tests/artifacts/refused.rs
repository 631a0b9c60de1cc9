//! What is refused before anything runs, and what a lost job has left in the way.

use crate::common::bundle::Bundle;
use crate::common::job::{Ended, Job, Place, start, stuckproof};
use crate::common::wait_for;
use crate::scene::{assert_as_before, engine, names, place, shell};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Output;

/// A job that builds the engine and goes on until `go` exists.
fn building(place: Place, script: &str) -> Job {
    let path = engine(&place);
    let wrapped = shell(
        &place,
        &format!("{script}\nG='{}'\nwhile [ ! -e \"$G\" ]; do sleep 0.02; done", place.file("go")),
    );
    let job = start(place, &["--engine", &path], &wrapped);
    job.wait_for_event("commandStarted");
    job
}

fn second(place: &Place, path: &str) -> Output {
    let bundle = place.file("second");
    let mut run = stuckproof();
    run.args(["run", "--bundle", &bundle, "--engine", path, "--", "touch", &place.file("ran")]);
    run.output().expect("stuckproof starts")
}

fn go(job: Job) -> Ended {
    fs::write(job.place().file("go"), "").expect("it can be written");
    job.end()
}

#[test]
fn of_two_jobs_on_one_engine_one_runs_and_the_other_is_told_who() {
    let job = building(place(), "");
    let name = job.wait_for_event("jobStarted")["job"].as_str().expect("a name").to_owned();
    let path = engine(job.place());
    symlink(&path, job.place().file("alias")).expect("a link");
    for spelling in [path, job.place().file("models/../models/a.engine"), job.place().file("alias")] {
        let refused = second(job.place(), &spelling);
        assert_eq!(refused.status.code(), Some(125));
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains(&name) && said.contains("stuckproof cancel"), "{said}");
        assert!(!job.place().bundle().join("../second").exists(), "no bundle of a job that never was");
        assert!(fs::metadata(job.place().file("ran")).is_err());
    }
    assert_eq!(go(job).code(), 0);
}

#[test]
fn two_jobs_that_start_together_do_not_both_run() {
    let place = place();
    let path = engine(&place);
    let jobs: Vec<_> = (0..4)
        .map(|number| {
            let mut run = stuckproof();
            run.args(["run", "--bundle", &place.file(&format!("b{number}")), "--engine", &path, "--"]);
            run.args(["sh", "-c", &format!("echo . >> '{}'; sleep 1", place.file("ran"))]);
            run.stderr(std::process::Stdio::null()).spawn().expect("stuckproof starts")
        })
        .collect();
    let mut codes: Vec<_> =
        jobs.into_iter().map(|mut job| job.wait().expect("our child").code().expect("a code")).collect();
    codes.sort_unstable();
    assert_eq!(codes, [0, 125, 125, 125]);
    assert_eq!(fs::read_to_string(place.file("ran")).expect("one ran"), ".\n");
}

#[test]
fn faults_are_told_with_the_next_step_and_nothing_runs() {
    let place = place();
    let cases: [(&[&str], &str); 6] = [
        (&["--engine", &place.file("no/a.engine")], "make the folder first"),
        (&["--engine", &place.file("models/a.engine/")], "a folder"),
        (&["--engine", "/proc/a.engine"], "cannot create"),
        (&["--engine", &engine(&place), "--engine", &engine(&place)], "given twice"),
        (&["--timing-cache", &place.file("models/")], "a file"),
        (&["--validate", "true"], "--engine"),
    ];
    for (options, expected) in cases {
        // A folder may be an engine, but a timing cache is a file.
        let mut run = stuckproof();
        run.args(["run", "--bundle", &place.file("bundle")]).args(options);
        let refused = run.args(["--", "touch", &place.file("ran")]).output().expect("stuckproof starts");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(125), "{options:?}: {said}");
        assert!(said.contains(expected), "{options:?}: {said}");
        assert!(fs::metadata(place.file("ran")).is_err() && !place.bundle().exists(), "{options:?}");
    }
    assert_as_before(&place);
}

/// A job whose runner and keeper were killed while half an engine lay at the path.
fn lost() -> Place {
    let job = building(place(), "printf half > \"$E\"; echo begun");
    let stdout = job.place().bundle().join("stdout.log");
    wait_for("half an engine", || {
        fs::read_to_string(&stdout).is_ok_and(|t| t.contains("begun")).then_some(())
    });
    let runner = job.pid().as_raw_nonzero().get().unsigned_abs();
    let keeper = crate::common::marked::keeper_of(runner).expect("a keeper");
    assert!(keeper.kill());
    job.signal(Signal::KILL);
    let place = job.end_of_the_killed();
    // The kernel ends the command with its keeper; only then is nobody left who could settle anything.
    wait_for("nobody lives", || {
        let left = stuckproof().arg("status").arg(place.bundle()).output().expect("it starts");
        String::from_utf8_lossy(&left.stdout).contains("lost").then_some(())
    });
    place
}

#[test]
fn the_next_job_finishes_a_lost_one_first() {
    let place = lost();
    assert_eq!(fs::read(engine(&place)).expect("it is there"), b"half");
    let next = second(&place, &engine(&place));
    let said = String::from_utf8_lossy(&next.stderr).into_owned();
    assert_eq!(next.status.code(), Some(0), "{said}");
    assert!(said.contains("was lost while it was building"), "{said}");
    assert_as_before(&place);
    let bundle = Bundle::load_whoever_finished(&place.bundle());
    assert_eq!(crate::scene::artifact(&bundle.path)["outcome"], "restored");
}

#[test]
fn a_lost_job_without_its_bundle_is_put_in_order_too() {
    let place = lost();
    fs::remove_dir_all(place.bundle()).expect("it can be removed");
    let next = second(&place, &engine(&place));
    assert_eq!(next.status.code(), Some(0), "{}", String::from_utf8_lossy(&next.stderr));
    assert_as_before(&place);
}

#[test]
fn a_foreign_bundle_moves_nothing_of_ours() {
    let ended = crate::scene::ran(place(), &[], "printf half > \"$E\"; exit 1");
    let log = ended.place.bundle().join("events.jsonl");
    let text = fs::read_to_string(&log).expect("the log");
    // Without its end and its settlements: as if it had still to be settled.
    let cut = text.find("\"event\":\"artifactSettled\"").expect("it was settled");
    let whole = text[..cut].rfind('\n').expect("a line") + 1;
    fs::write(&log, &text[..whole]).expect("the log can be cut");
    fs::remove_file(ended.place.bundle().join("manifest.json")).expect("the seal can be taken off");
    let before = names(ended.place.file("models"));
    let done = stuckproof().arg("finalize").arg(ended.place.bundle()).output().expect("it starts");
    assert!(done.status.success(), "{done:?}");
    assert_as_before(&ended.place);
    assert_eq!(names(ended.place.file("models")), before);
    let artifact = crate::scene::artifact(&ended.place.bundle());
    assert_eq!(artifact["outcome"], "failed");
    assert!(
        artifact["reason"].as_str().is_some_and(|why| why.contains("nothing was touched")),
        "{artifact:#}"
    );
}
