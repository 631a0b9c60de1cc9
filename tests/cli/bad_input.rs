//! Bad input gets a clear error and loses nothing.

use crate::rig::{Place, finish, names, signal, wait_until};
use std::fs;

/// Runs `stuckproof run ARGUMENTS` and gives what it said; it must have been our own fault.
fn refused(place: &Place, arguments: &[&str]) -> String {
    let done = place.verb(&[&["run"], arguments].concat());
    done.assert_code(125);
    assert!(done.stdout.is_empty(), "nothing of ours goes to standard output");
    done.stderr
}

#[test]
fn options_and_values_that_do_not_exist() {
    let place = Place::new();
    assert!(refused(&place, &["--dead-line", "5s", "--", "true"]).contains("--deadline"));
    assert!(refused(&place, &["--deadline", "soon", "--", "true"]).contains("1h30m"));
    assert!(refused(&place, &["--grace", "some", "--", "true"]).contains("1h30m"));
    assert!(refused(&place, &["--output-cap", "much", "--", "true"]).contains("64MiB"));
    assert!(refused(&place, &["--",]).contains("COMMAND"));
    assert!(
        refused(&place, &["--tty", "--cancel-on-stdin-close", "--", "true"]).contains("cannot be used with")
    );
    assert_eq!(names(&place.path("")), ["runtime"], "nothing was left behind");
}

#[test]
fn a_bundle_that_exists_is_left_as_it_is() {
    let place = Place::new();
    place.ran(&[], "echo first").assert_code(0);
    let before = fs::read(place.path("bundle/events.jsonl")).unwrap();
    let said = refused(&place, &["--bundle", "bundle", "--", "touch", "ran"]);
    assert!(said.contains("bundle exists and is not an empty folder; nothing was changed"), "{said}");
    assert_eq!(fs::read(place.path("bundle/events.jsonl")).unwrap(), before);
    assert!(!place.path("ran").exists(), "the command must not have run");
}

#[test]
fn a_file_where_the_bundle_should_be() {
    let place = Place::new();
    fs::write(place.path("file"), "precious").unwrap();
    assert!(refused(&place, &["--bundle", "file", "--", "true"]).contains("file exists"));
    assert!(refused(&place, &["--bundle", "file/inside", "--", "true"]).contains("cannot create"));
    assert_eq!(fs::read_to_string(place.path("file")).unwrap(), "precious");
}

#[test]
fn a_bundle_that_cannot_be_written() {
    let place = Place::new();
    // /proc takes no folders from anybody, root included.
    let said = refused(&place, &["--bundle", "/proc/bundle", "--", "touch", "ran"]);
    assert!(said.contains("cannot create the bundle's folder /proc/bundle"), "{said}");
    assert!(!place.path("ran").exists());
}

#[test]
fn an_empty_folder_is_a_fine_bundle() {
    let place = Place::new();
    fs::create_dir(place.path("bundle")).unwrap();
    place.ran(&[], "true").assert_code(0);
}

#[test]
fn a_cancel_file_in_no_folder() {
    let place = Place::new();
    let said = refused(&place, &["--cancel-file", "no/such/folder/stop", "--", "true"]);
    assert!(said.contains("does not exist"), "{said}");
}

#[test]
fn standard_input_that_has_no_end_to_wait_for() {
    let place = Place::new();
    let said = refused(&place, &["--cancel-on-stdin-close", "--", "true"]);
    assert!(said.contains("/dev/null"), "{said}");
}

#[test]
fn a_job_that_does_not_run() {
    let place = Place::new();
    let said = |arguments: &[&str]| {
        let done = place.verb(arguments);
        done.assert_code(125);
        done.stderr
    };
    assert!(said(&["cancel"]).contains("no job of this user is running"));
    assert!(said(&["cancel", "20250101"]).contains("no running job is called 20250101"));
    assert!(said(&["status", "20250101"]).contains("no running job"));
    assert!(said(&["show", "."]).contains("is no bundle"));
    assert!(said(&["cancel", "--source", "ctrl_c"]).contains("possible values: ide, service, api"));
}

#[test]
fn names_in_a_bundle_suit_every_artifact_store() {
    let place = Place::new();
    place.ran(&[], "echo out; echo err >&2").assert_code(0);
    let names = names(&place.path("bundle"));
    assert_eq!(
        names,
        [
            "baseline.json",
            "events.jsonl",
            "evidence.json",
            "inventory.json",
            "junit.xml",
            "manifest.json",
            "phases.json",
            "resources.jsonl",
            "stderr.log",
            "stdout.log",
            "summary.json"
        ]
    );
    let default = place.verb(&["run", "--", "true"]);
    default.assert_code(0);
    let last = default.stderr.lines().last().unwrap();
    let job = last.strip_prefix("stuckproof: evidence: stuckproof-evidence/").unwrap();
    assert!(job.chars().all(|c| c.is_ascii_digit() || c.is_ascii_lowercase() || c == '-'), "{job}");
    assert!(place.path("stuckproof-evidence").join(job).join("summary.json").exists());
}

/// Runs the program where no file may grow beyond this many bytes, which fails as a full disk does.
fn with_file_limit(place: &Place, blocks_of_512: u32, arguments: &str) -> std::process::Child {
    let mut command = std::process::Command::new("sh");
    place.furnish(&mut command);
    let line =
        format!("trap '' XFSZ; ulimit -f {blocks_of_512}; exec {} {arguments}", crate::rig::STUCKPROOF);
    command.args(["-c", &line]).spawn().unwrap()
}

#[test]
fn a_disk_without_room_for_the_log() {
    let place = Place::new();
    let done = finish(with_file_limit(&place, 1, "run --bundle bundle -- touch ran"));
    done.assert_code(125);
    assert!(done.stderr.contains("cannot write"), "{}", done.stderr);
    assert!(!place.path("ran").exists(), "a job without a log is not started");
}

#[test]
fn a_disk_that_fills_during_the_job_fails_the_job_and_not_the_command() {
    let place = Place::new();
    let script =
        "sh -c 'trap \"\" TERM; echo ready; while [ ! -e go ]; do sleep 0.02; done; touch whole; exit 0'";
    let child = with_file_limit(&place, 24, &format!("run --kill-after 1h --bundle bundle -- {script}"));
    let log = place.path("bundle/events.jsonl");
    wait_until("the command runs", || {
        fs::read_to_string(place.path("bundle/stdout.log")).is_ok_and(|t| t.contains("ready"))
    });
    // Each request is a line of the log.
    wait_until("the log is full", || {
        signal(&child, "TERM");
        fs::metadata(&log).unwrap().len() >= 24 * 512
    });
    signal(&child, "TERM");
    fs::write(place.path("go"), "").unwrap();
    let done = finish(child);
    done.assert_code(125);
    assert!(place.path("whole").exists(), "the command ran to its end");
    assert!(
        done.stderr.contains("the evidence is not complete, so the job failed: the event log"),
        "{}",
        done.stderr
    );
    assert!(place.path("bundle/wire").exists(), "what the log lacks is still here");
}
