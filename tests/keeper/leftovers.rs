//! What is still there after the command's end, and what becomes of it.

use crate::rig::{Place, finish, wait_until};
use crate::watch::{look, marked, pid_in, send};
use std::time::{Duration, Instant};

/// Leaves a daemon in a session of its own.
const DAEMON: &str = "(setsid sleep 100 & echo $! > daemon)";

#[test]
fn a_daemon_may_stay_after_a_success_and_is_named() {
    let place = Place::new();
    place.ran(&[], &format!("{DAEMON}; exit 0")).assert_code(0);
    let daemon = pid_in(&place, "daemon");
    assert!(look(daemon).is_some(), "it moved away on purpose");
    let leftover = place.event("leftoverFound");
    assert_eq!((&leftover["pid"], &leftover["session"]), (&daemon.into(), &daemon.into()));
    assert_eq!((&leftover["name"], &leftover["action"]), (&"sleep".into(), &"left".into()));
    assert_eq!(place.json("evidence.json")["leftovers"][0]["pid"], daemon);
    assert!(place.rungs().is_empty());
    send(daemon, "KILL");
}

#[test]
fn a_daemon_is_ended_where_that_is_wanted() {
    let place = Place::new();
    place.ran(&["--kill-daemons"], &format!("{DAEMON}; exit 0")).assert_code(0);
    assert_eq!(look(pid_in(&place, "daemon")), None);
    let leftover = place.event("leftoverFound");
    assert_eq!((&leftover["name"], &leftover["action"]), (&"sleep".into(), &"killed".into()));
    assert_eq!(place.rungs(), ["SIGTERM"]);
    assert_eq!(place.event("jobEnded")["state"], "succeeded");
}

#[test]
fn a_daemon_is_ended_after_a_failure() {
    let place = Place::new();
    let script = "setsid sh -c 'trap \"\" TERM; echo $$ > daemon; while :; do sleep 0.05; done' & \
                  while [ ! -s daemon ]; do sleep 0.02; done; exit 3";
    place.ran(&["--kill-after", "200ms"], script).assert_code(3);
    assert_eq!(look(pid_in(&place, "daemon")), None);
    let leftovers = place.events_of("leftoverFound");
    assert_eq!(leftovers[0]["pid"], pid_in(&place, "daemon"));
    assert!(leftovers.iter().all(|l| l["action"] == "killed"));
    assert_eq!(place.rungs(), ["SIGTERM", "SIGKILL"]);
}

#[test]
fn a_helper_in_a_group_of_its_own_is_no_daemon() {
    let place = Place::new();
    // Job control gives each background command a group, and leaves it in the session.
    place.ran(&[], "set -m; sleep 100 & echo $! > helper; exit 0").assert_code(0);
    let helper = pid_in(&place, "helper");
    assert_eq!(look(helper), None);
    let leftover = place.event("leftoverFound");
    assert_eq!((&leftover["pid"], &leftover["action"]), (&helper.into(), &"killed".into()));
}

#[test]
fn a_stop_reaches_those_that_left_the_group() {
    let place = Place::new();
    let script = "set -m; sh -c 'trap \"touch asked; exit 0\" TERM; echo ready; while :; do sleep 0.02; done' & \
                  trap 'wait; exit 5' TERM; wait; exit 6";
    let runner = place.started(&["--kill-after", "1h"], script);
    send(runner.id(), "TERM");
    finish(runner).assert_code(5);
    assert!(place.path("asked").exists());
}

#[test]
fn whoever_forks_from_session_to_session_is_ended() {
    let place = Place::new();
    // Each process lives for a moment only, and its child is in a session of its own already.
    let hop = "import os,time\n\
               while os.path.exists('hopping'):\n\
               \x20pid=os.fork()\n\
               \x20if pid: os._exit(0)\n\
               \x20os.setsid()\n\
               \x20time.sleep(0.002)\n";
    std::fs::write(place.path("hop.py"), hop).unwrap();
    std::fs::write(place.path("hopping"), "").unwrap();
    let start = Instant::now();
    let done = place.ran(&["--kill-after", "200ms"], "python3 hop.py; touch begun; exit 3");
    done.assert_code(3);
    assert!(place.path("begun").exists());
    assert!(place.path("hopping").exists(), "nobody told it to stop");
    let job = place.job();
    assert_eq!(marked(&job), []);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn whoever_forks_in_a_loop_is_ended() {
    let place = Place::new();
    let bomb = "trap '' TERM; echo ready; while :; do (sleep 0.05 &) ; done";
    let runner = place.started(&["--kill-after", "500ms"], bomb);
    let job = place.job();
    std::thread::sleep(Duration::from_secs(1));
    send(runner.id(), "TERM");
    finish(runner).assert_code(128 + 9);
    wait_until("nothing of it lives", || marked(&job).is_empty());
}
