//! What is on disk, when, and what a container's end leaves.

use crate::rig::{Place, STUCKPROOF, end_of, wait_until};
use crate::watch::{all, marked, send, wait_for_whole_bundle};
use crate::without::goes_without;
use std::fs;
use std::process::Command;
use stuckproof::evidence::{self, JobState};

/// Runs a script as a job under strace, and gives the calls that sync, and that start programs, in their order; none
/// where there is no strace.
fn traced(place: &Place, script: &str) -> Option<Vec<String>> {
    let mut command = Command::new("strace");
    place.furnish(&mut command);
    command.args([
        "-f",
        "-qq",
        "-o",
        "calls",
        "-e",
        "trace=fsync,fdatasync,sync_file_range,sync,syncfs,msync,execve",
    ]);
    command.args(["-e", "signal=none", STUCKPROOF, "run", "--bundle", "bundle", "--", "sh", "-c", script]);
    let Ok(mut child) = command.spawn() else {
        goes_without("strace");
        return None;
    };
    assert_eq!(end_of(&mut child).code(), Some(0));
    let calls = fs::read_to_string(place.path("calls")).unwrap();
    // Of a call that another thread interrupts, only the first half counts.
    Some(calls.lines().filter(|l| !l.contains(" resumed>")).map(str::to_owned).collect())
}

fn is_sync(call: &str) -> bool {
    call.contains("sync(")
}

#[test]
fn little_is_synced_and_never_for_the_sake_of_time() {
    let (short, long) = (Place::new(), Place::new());
    let Some(calls) = traced(&short, "true") else { return };
    let start = calls.iter().position(|call| call.contains("__exec")).expect("the command is started");
    // What another thread writes meanwhile keeps nobody waiting.
    let own = calls[0].split(' ').next().unwrap();
    let before = calls[..start].iter().filter(|call| is_sync(call) && call.starts_with(own)).count();
    assert!((1..=3).contains(&before), "{before} syncs before the command: {calls:#?}");
    let all = calls.iter().filter(|call| is_sync(call)).count();
    assert!(all <= 14, "{all} syncs: {calls:#?}");
    let busy = "i=0; while [ $i -lt 200 ]; do echo $i; sleep 0.005; i=$((i + 1)); done";
    let of_long = traced(&long, busy).unwrap().iter().filter(|call| is_sync(call)).count();
    // A baseline is written again where the GPU's answer came late: a file and its folder.
    assert!(of_long <= all + 2, "a longer job syncs no more: {of_long} against {all}");
}

#[test]
fn the_record_of_a_job_begins_before_its_command() {
    let place = Place::new();
    // The command itself looks at its bundle.
    place.ran(&[], "cp -r bundle seen; exit 0").assert_code(0);
    let seen = evidence::load(&place.path("seen")).unwrap();
    assert!(!seen.evidence.finished);
    let provisional = fs::read_to_string(place.path("seen/evidence.json")).unwrap();
    assert!(provisional.contains("\"finished\": false") && provisional.contains("\"state\": \"running\""));
    assert!(place.path("seen/summary.json").exists());
}

#[test]
fn a_container_that_is_killed_is_finished_by_hand() {
    let place = Place::new();
    let mut command = Command::new("unshare");
    place.furnish(&mut command);
    command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", STUCKPROOF]);
    command.args(["run", "--bundle", "bundle", "--", "sh", "-c", "echo ready; setsid sleep 100 & sleep 100"]);
    let mut container = command.spawn().unwrap();
    let log = place.path("bundle/stdout.log");
    let mut ended = None;
    wait_until("the script is ready", || {
        ended = container.try_wait().unwrap();
        ended.is_some() || fs::read_to_string(&log).is_ok_and(|text| text == "ready\n")
    });
    if ended.is_some() {
        goes_without("namespaces");
        return;
    }
    wait_until("its start is on record", || !place.events_of("commandStarted").is_empty());
    let job = place.job();
    let first =
        all().into_iter().find(|p| p.parent == container.id()).expect("the container's first process");
    send(first.pid, "KILL");
    end_of(&mut container);
    wait_until("the kernel has ended all of it", || marked(&job).is_empty());
    assert!(!evidence::load(&place.path("bundle")).unwrap().evidence.finished, "the keeper died with it");
    place.verb(&["finalize", "bundle"]).assert_code(0);
    let evidence = wait_for_whole_bundle(&place);
    assert_eq!((evidence.state, evidence.cause.as_deref()), (JobState::Failed, Some("runner_lost")));
    assert_eq!(evidence.exit_code, Some(125));
}
