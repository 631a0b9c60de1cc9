//! SIGKILL of the runner: the keeper ends the job and finishes its bundle.

use crate::rig::{Done, Place, end_of, finish, wait_until};
use crate::watch::{keeper, look, marked, pid_in, send, wait_for_whole_bundle};
use std::fs;
use std::io::Read;
use std::process::Child;
use std::time::{Duration, Instant};
use stuckproof::evidence::{Evidence, JobState};

/// Kills the runner and waits for what the keeper makes of it.
fn lose_runner(place: &Place, runner: Child) -> (Evidence, Done) {
    let (job, guard) = (place.job(), keeper(&runner));
    send(runner.id(), "KILL");
    let done = finish(runner);
    let evidence = wait_for_whole_bundle(place);
    assert_eq!(marked(&job), [], "nothing of the job lives once its bundle is finished");
    wait_until("the keeper has ended", || look(guard.pid).is_none());
    (evidence, done)
}

fn assert_lost(evidence: &Evidence) {
    assert_eq!((evidence.state, evidence.cause.as_deref()), (JobState::Failed, Some("runner_lost")));
}

#[test]
fn the_command_is_ended_and_the_bundle_finished() {
    let place = Place::new();
    let runner =
        place.started(&[], "trap 'echo asked; exit 9' TERM; echo ready; while :; do sleep 0.02; done");
    let (evidence, _) = lose_runner(&place, runner);
    assert_lost(&evidence);
    assert_eq!((evidence.command.code, evidence.command.signal), (Some(9), None));
    assert_eq!(evidence.exit_code, Some(9));
    assert_eq!(fs::read_to_string(place.path("bundle/stdout.log")).unwrap(), "ready\nasked\n");
    let request = place.event("cancelRequested");
    assert_eq!((&request["via"], &request["source"]), (&"runner lost".into(), &"service".into()));
    assert_eq!((&request["request"], &request["accepted"]), (&1.into(), &true.into()));
    assert_eq!(place.rungs(), ["cooperative", "SIGTERM"]);
    let words = &place.events_of("ladderRung")[1]["why"];
    assert_eq!(words, "the runner was lost; no builder observed");
    assert!(place.verb(&["status", "bundle"]).stdout().contains("runner_lost"));
    place.verb(&["finalize", "bundle"]).assert_code(0);
}

#[test]
fn the_hostile_are_ended_too() {
    let place = Place::new();
    // One ignores SIGTERM in a session of its own, one stops itself, one is a daemon that forked twice.
    let script = "setsid sh -c 'trap \"\" TERM; echo $$ > stubborn; while :; do sleep 0.05; done' &
                  sh -c 'echo $$ > stopped; kill -STOP $$; sleep 100' &
                  (setsid sh -c 'sleep 100 & echo $! > daemon' &)
                  trap '' TERM
                  while [ ! -s stubborn ] || [ ! -s stopped ] || [ ! -s daemon ]; do sleep 0.02; done
                  echo ready; while :; do sleep 0.05; done";
    let runner = place.started(&["--kill-after", "300ms"], script);
    let (evidence, _) = lose_runner(&place, runner);
    assert_lost(&evidence);
    assert_eq!(evidence.command.signal, Some(9));
    for name in ["stubborn", "stopped", "daemon"] {
        assert_eq!(look(pid_in(&place, name)), None, "{name}");
    }
    let daemon = pid_in(&place, "daemon");
    let named = evidence.leftovers.iter().find(|l| l.pid == daemon).expect("the daemon is named");
    assert_eq!((named.name.as_str(), named.action.as_str()), ("sleep", "killed"));
}

#[test]
fn whoever_waits_for_the_runners_output_does_not_wait_for_the_keeper() {
    let place = Place::new();
    let stubborn = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let mut runner = place.started(&["--kill-after", "10s"], stubborn);
    let guard = keeper(&runner);
    let mut out = runner.stdout.take().unwrap();
    send(runner.id(), "KILL");
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).unwrap();
    let refused = place.verb(&["finalize", "bundle"]);
    assert!(look(guard.pid).is_some(), "the end of the output came first");
    refused.assert_code(125);
    assert!(refused.stderr.contains("still"), "{}", refused.stderr);
    assert_eq!(end_of(&mut runner).code(), None);
    assert_lost(&wait_for_whole_bundle(&place));
}

#[test]
fn a_command_that_had_ended_by_itself_keeps_its_end() {
    let place = Place::new();
    let runner = place.started(&[], "echo ready; while [ ! -e go ]; do sleep 0.02; done; echo done");
    let (guard, command) = (keeper(&runner), place.event("commandStarted")["pid"].as_u64().unwrap());
    send(runner.id(), "STOP");
    wait_until("the runner stands still", || look(runner.id()).is_some_and(|p| p.state == "T"));
    fs::write(place.path("go"), "").unwrap();
    wait_until("the command has ended", || look(command as u32).is_none());
    send(runner.id(), "KILL");
    finish(runner);
    let evidence = wait_for_whole_bundle(&place);
    assert_eq!((evidence.state, evidence.cause), (JobState::Succeeded, None));
    assert_eq!((evidence.command.code, evidence.exit_code), (Some(0), Some(0)));
    assert_eq!(evidence.requests, []);
    assert_eq!(fs::read_to_string(place.path("bundle/stdout.log")).unwrap(), "ready\ndone\n");
    wait_until("the keeper has ended", || look(guard.pid).is_none());
}

#[test]
fn a_stop_that_was_under_way_stays_the_one_that_counts() {
    let place = Place::new();
    let script = "trap 'touch asked' TERM; echo ready; while :; do sleep 0.02; done";
    let runner = place.started(&["--kill-after", "1s"], script);
    send(runner.id(), "TERM");
    wait_until("the command was asked", || place.path("asked").exists());
    let (evidence, _) = lose_runner(&place, runner);
    assert_lost(&evidence);
    assert_eq!(place.event("cancelRequested")["via"], "SIGTERM");
    assert_eq!(place.rungs().last().map(String::as_str), Some("SIGKILL"));
}

#[test]
fn a_paused_job_is_ended_as_well() {
    let place = Place::new();
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    let runner = place.started(&["--kill-after", "1h"], script);
    send(runner.id(), "TSTP");
    wait_until("the runner stands still", || look(runner.id()).is_some_and(|p| p.state == "T"));
    let (evidence, _) = lose_runner(&place, runner);
    assert_lost(&evidence);
    assert_eq!(evidence.command.code, Some(9), "it was let go on, and heard the signal");
    assert_eq!(evidence.pauses.len(), 1);
}

#[test]
fn signals_to_the_keeper_change_nothing() {
    let place = Place::new();
    let runner = place.started(&[], "echo ready; while [ ! -e go ]; do sleep 0.02; done; exit 4");
    let guard = keeper(&runner);
    assert_eq!(guard.group, guard.pid, "it has a group of its own");
    for signal in ["INT", "TERM", "HUP", "QUIT", "TSTP", "USR1"] {
        send(guard.pid, signal);
    }
    fs::write(place.path("go"), "").unwrap();
    finish(runner).assert_code(4);
    assert!(place.events_of("cancelRequested").is_empty() && place.rungs().is_empty());
    wait_until("the keeper has ended", || look(guard.pid).is_none());
}

#[test]
fn the_output_keeps_to_its_cap() {
    let place = Place::new();
    let script = "i=0; while [ $i -lt 2000 ]; do echo \"line $i\"; i=$((i + 1)); done; echo ready; \
                  touch written; exec sleep 100";
    let runner = place.run(&["--output-cap", "1KiB"], script).spawn().unwrap();
    wait_until("all is written", || place.path("written").exists());
    let (evidence, _) = lose_runner(&place, runner);
    assert_lost(&evidence);
    let kept = fs::read_to_string(place.path("bundle/stdout.log")).unwrap();
    assert!(kept.starts_with("line 0\n") && kept.ends_with("ready\n"), "{kept}");
    assert!(kept.len() < 1200 && kept.contains("bytes were left out here"), "{} bytes", kept.len());
}

#[test]
fn it_does_not_take_longer_than_the_ladder() {
    let place = Place::new();
    let stubborn = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let runner = place.started(&["--grace", "none", "--kill-after", "200ms"], stubborn);
    let start = Instant::now();
    lose_runner(&place, runner);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
