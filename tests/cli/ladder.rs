//! What happens to a command that does not stop, and to what it leaves behind.

use crate::rig::{Place, finish, lives, signal, wait_until};
use std::fs;

#[test]
fn a_stubborn_command_is_killed_and_each_rung_is_on_record() {
    let place = Place::new();
    let stubborn = "trap '' TERM INT; echo ready; while :; do sleep 0.05; done";
    let child = place.started(&["--kill-after", "300ms"], stubborn);
    signal(&child, "TERM");
    let done = finish(child);
    done.assert_code(128 + 9);
    assert_eq!(place.rungs(), ["cooperative", "SIGTERM", "SIGKILL"]);
    let rungs = place.events_of("ladderRung");
    let at = |rung: usize| rungs[rung]["t"].as_u64().unwrap();
    assert_eq!(at(0), place.event("cancelRequested")["t"].as_u64().unwrap());
    assert!(at(2) - at(1) >= 300_000_000, "SIGKILL came too early");
    let pid = place.event("commandStarted")["pid"].clone();
    assert_eq!((&rungs[1]["group"], &rungs[2]["group"]), (&pid, &pid));
    assert!(done.stderr.contains("SIGKILL to the command's processes: SIGTERM ignored"), "{}", done.stderr);
    assert_eq!(place.json("evidence.json")["ladder"].as_array().unwrap().len(), 3);
}

#[test]
fn a_stopped_command_hears_of_it_too() {
    let place = Place::new();
    let child =
        place.started(&["--kill-after", "1h"], "trap 'exit 9' TERM; echo ready; kill -STOP $$; exit 1");
    let pid = place.event("commandStarted")["pid"].to_string();
    wait_until("the command is stopped", || {
        fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| s.contains(") T "))
    });
    signal(&child, "TERM");
    finish(child).assert_code(9);
}

#[test]
fn the_whole_group_is_signalled() {
    let place = Place::new();
    let script = "sleep 100 & echo $! > inner; echo ready; wait";
    let child = place.started(&[], script);
    let inner = fs::read_to_string(place.path("inner")).unwrap();
    assert!(lives(&inner));
    signal(&child, "TERM");
    finish(child).assert_code(128 + 15);
    assert!(!lives(&inner));
}

#[test]
fn what_the_command_leaves_behind_is_ended_and_named() {
    let place = Place::new();
    let done = place.ran(&[], "sleep 100 & echo $! > inner; exit 0");
    done.assert_code(0);
    let inner = fs::read_to_string(place.path("inner")).unwrap();
    assert!(!lives(&inner));
    let rung = place.event("ladderRung");
    assert_eq!(rung["rung"], "SIGTERM");
    assert_eq!(rung["why"], format!("leftover processes: sleep {}", inner.trim()));
    assert!(rung["t"].as_u64() > place.event("commandExited")["t"].as_u64());
}

#[test]
fn a_stubborn_leftover_is_killed() {
    let place = Place::new();
    let script = "sh -c 'trap \"\" TERM; echo $$ > inner; while :; do sleep 0.05; done' & \
                  while [ ! -s inner ]; do sleep 0.01; done";
    place.ran(&["--kill-after", "200ms"], script).assert_code(0);
    assert_eq!(place.rungs(), ["SIGTERM", "SIGKILL"]);
    assert!(!lives(&fs::read_to_string(place.path("inner")).unwrap()));
}

#[test]
fn a_helper_that_leaves_by_itself_is_no_leftover() {
    let place = Place::new();
    place.ran(&[], "(sleep 0.05; touch helped) & exit 0").assert_code(0);
    assert!(place.path("helped").exists());
    assert!(place.rungs().is_empty());
}

#[test]
fn orphans_are_reaped_while_the_command_runs() {
    let place = Place::new();
    // The inner shell's child becomes the runner's, and must not stay a zombie.
    let script = "sh -c 'sh -c \"echo \\$\\$ > orphan; exit 0\" & exit 0'; \
                  while [ ! -s orphan ]; do sleep 0.01; done; echo ready; while [ ! -e go ]; do sleep 0.02; done";
    let child = place.started(&[], script);
    let orphan = fs::read_to_string(place.path("orphan")).unwrap();
    let stat = format!("/proc/{}/stat", orphan.trim());
    wait_until("the orphan is reaped", || !fs::exists(&stat).unwrap());
    fs::write(place.path("go"), "").unwrap();
    finish(child).assert_code(0);
}
