//! SIGKILL of the keeper, alone and together with the runner.

use crate::rig::{Place, end_of, finish, wait_until};
use crate::watch::{keeper, look, marked, pid_in, send, wait_for_whole_bundle};
use std::fs;
use stuckproof::evidence::JobState;

#[test]
fn the_runner_ends_the_job_in_its_place() {
    let place = Place::new();
    let script = "trap '' TERM; (setsid sleep 100 & echo $! > daemon); sleep 100 & echo $! > helper; \
                  echo ready; while :; do sleep 0.05; done";
    let runner = place.started(&[], script);
    let job = place.job();
    send(keeper(&runner).pid, "KILL");
    let done = finish(runner);
    done.assert_code(128 + 9);
    assert!(done.stderr.contains("the keeper was lost"), "{}", done.stderr);
    let evidence = wait_for_whole_bundle(&place);
    assert_eq!(evidence.state, JobState::Failed);
    assert_eq!(evidence.command.signal, Some(9));
    let rung = place.event("ladderRung");
    assert_eq!((&rung["rung"], &rung["why"]), (&"SIGKILL".into(), &"the keeper was lost".into()));
    assert!(
        rung["t"].as_u64() <= place.event("commandExited")["t"].as_u64(),
        "our own doing, and so it says"
    );
    assert_eq!(marked(&job), []);
    for name in ["daemon", "helper"] {
        assert_eq!(look(pid_in(&place, name)), None, "{name}");
    }
}

#[test]
fn a_keeper_that_dies_after_the_command_changes_nothing() {
    let place = Place::new();
    // The helper keeps the job open for a moment after the command's end.
    let script = "(sleep 0.5; touch helped) & echo ready; exit 0";
    let runner = place.run(&[], script).spawn().unwrap();
    let guard = {
        let mut found = None;
        wait_until("the command has ended", || {
            if found.is_none() && place.path("bundle/stdout.log").exists() {
                found = crate::watch::all().into_iter().find(|p| p.parent == runner.id());
            }
            place.path("bundle/events.jsonl").exists() && !place.events_of("commandExited").is_empty()
        });
        found.unwrap()
    };
    send(guard.pid, "KILL");
    finish(runner).assert_code(0);
    assert_eq!(wait_for_whole_bundle(&place).state, JobState::Succeeded);
    assert!(place.path("helped").exists(), "the helper had the time that it always has");
    assert!(place.rungs().is_empty());
}

#[test]
fn without_both_the_command_dies_and_finalize_makes_the_bundle() {
    let place = Place::new();
    let runner = place.started(&[], "trap '' TERM; echo ready; exec sleep 100");
    let (job, guard) = (place.job(), keeper(&runner));
    send(runner.id(), "STOP");
    send(guard.pid, "KILL");
    send(runner.id(), "KILL");
    finish(runner);
    wait_until("the kernel has ended the command", || marked(&job).is_empty());
    let before = fs::read_to_string(place.path("bundle/events.jsonl")).unwrap();
    assert!(!before.contains("jobEnded"));
    place.verb(&["finalize", "bundle"]).assert_code(0);
    let evidence = wait_for_whole_bundle(&place);
    assert_eq!((evidence.state, evidence.cause.as_deref()), (JobState::Failed, Some("runner_lost")));
    assert_eq!((evidence.command.code, evidence.command.signal), (None, None), "nobody has seen its end");
}

#[test]
fn a_keeper_without_orders_leaves_by_itself() {
    let place = Place::new();
    let mut alone = place.stuckproof().args(["__keep", "nothing"]).spawn().unwrap();
    assert_eq!(end_of(&mut alone).code(), Some(0));
}
