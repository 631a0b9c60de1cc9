//! The control socket, through `stuckproof cancel` and `status` and by hand.

use crate::rig::{Done, Place, finish, lives, names, signal, wait_until};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

const PATIENT: &str = "echo ready; exec sleep 100";

fn cancelled(place: &Place, arguments: &[&str]) -> Done {
    let child = place.started(&[], PATIENT);
    let mut line = vec!["cancel"];
    line.extend(arguments);
    let said = place.verb(&line);
    said.assert_code(0);
    assert!(said.stdout.is_empty());
    assert!(said.stderr.contains("is stopping (request 1)"), "{}", said.stderr);
    finish(child)
}

#[test]
fn the_only_job_needs_no_name() {
    let place = Place::new();
    cancelled(&place, &[]).assert_code(128 + 15);
    let request = place.event("cancelRequested");
    assert_eq!((&request["source"], &request["via"]), (&"api".into(), &"control socket".into()));
    assert_eq!(request["reason"], Value::Null);
    assert_eq!(request["uid"], rustix::process::getuid().as_raw());
    assert!(request["pid"].is_u64());
}

#[test]
fn a_caller_says_what_it_is_and_why() {
    let place = Place::new();
    cancelled(&place, &["--source", "ide", "--reason", "the editor \"closed\"\n"]).assert_code(128 + 15);
    let request = place.event("cancelRequested");
    assert_eq!((&request["source"], &request["reason"]), (&"ide".into(), &"the editor \"closed\"\n".into()));
    assert_eq!(place.json("summary.json")["cancelSource"], "ide");
}

#[test]
fn a_job_is_found_by_its_name_its_beginning_and_its_bundle() {
    for which in ["name", "beginning", "bundle"] {
        let place = Place::new();
        let child = place.started(&[], PATIENT);
        let job = place.job();
        let name = match which {
            "name" => job.clone(),
            "beginning" => job[..job.len() - 2].to_owned(),
            _ => "./bundle".to_owned(),
        };
        place.verb(&["cancel", &name]).assert_code(0);
        finish(child).assert_code(128 + 15);
    }
}

#[test]
fn two_jobs_must_be_told_apart() {
    let place = Place::new();
    let first = place.started(&[], PATIENT);
    let other = place.stuckproof().args(["run", "--bundle", "other", "--", "sleep", "100"]).spawn().unwrap();
    wait_until("both jobs are known", || {
        let jobs: Value = serde_json::from_slice(&place.verb(&["status", "--json"]).stdout).unwrap();
        jobs.as_array().unwrap().len() == 2
    });
    let said = place.verb(&["cancel"]);
    said.assert_code(125);
    assert!(said.stderr.contains("several jobs are meant"), "{}", said.stderr);
    assert!(said.stderr.contains(&place.job()), "{}", said.stderr);
    place.verb(&["cancel", "other"]).assert_code(0);
    finish(other).assert_code(128 + 15);
    place.verb(&["cancel"]).assert_code(0);
    finish(first).assert_code(128 + 15);
}

#[test]
fn a_second_request_is_recorded() {
    let place = Place::new();
    let child = place.started(
        &["--kill-after", "1h"],
        "trap 'touch asked' TERM; echo ready; while [ ! -e go ]; do sleep 0.02; done; exit 0",
    );
    place.verb(&["cancel"]).assert_code(0);
    wait_until("the command was asked", || place.path("asked").exists());
    let again = place.verb(&["cancel"]);
    again.assert_code(0);
    assert!(again.stderr.contains("was stopping already; request 2 was recorded"), "{}", again.stderr);
    let live: Value =
        serde_json::from_slice(&place.verb(&["status", &place.job(), "--json"]).stdout).unwrap();
    assert_eq!(live["state"], "cancelling");
    assert_eq!(live["requests"].as_array().unwrap().len(), 2);
    fs::write(place.path("go"), "").unwrap();
    finish(child).assert_code(0);
}

#[test]
fn status_tells_of_the_running_and_of_the_finished() {
    let place = Place::new();
    let child = place.started(&[], PATIENT);
    let live: Value = serde_json::from_slice(&place.verb(&["status", "bundle", "--json"]).stdout).unwrap();
    assert_eq!(live["state"], "running");
    assert_eq!(live["job"], place.job());
    assert_eq!(live["commandPid"], place.event("commandStarted")["pid"]);
    assert_eq!(live["builds"], json!([]));
    assert_eq!(live["lastCallbackMs"], Value::Null);
    let text = place.verb(&["status"]);
    assert!(text.stdout().contains(": running, for "), "{}", text.stdout());
    signal(&child, "TERM");
    finish(child).assert_code(128 + 15);

    let past: Value = serde_json::from_slice(&place.verb(&["status", "bundle", "--json"]).stdout).unwrap();
    assert_eq!(
        (&past["state"], &past["finished"], &past["exitCode"]),
        (&"failed".into(), &true.into(), &143.into())
    );
    assert!(place.verb(&["status", "bundle"]).stdout().contains("failed: command"));
    let none = place.verb(&["status", "--json"]);
    none.assert_code(0);
    assert_eq!(none.stdout().trim(), "[]");
}

#[test]
fn the_folder_of_sockets_is_closed_to_others() {
    let place = Place::new();
    let child = place.started(&[], PATIENT);
    let folder = place.path("runtime/stuckproof");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let job = place.job();
    assert_eq!(names(&folder), [format!("{job}.json"), format!("{job}.sock")]);
    signal(&child, "TERM");
    finish(child).assert_code(128 + 15);
    assert!(names(&folder).is_empty(), "a job that is over leaves nothing");
}

#[test]
fn a_folder_that_others_can_enter_is_not_used() {
    let place = Place::new();
    let folder = place.path("runtime/stuckproof");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let done = place.ran(&[], "true");
    done.assert_code(0);
    assert!(done.stderr.contains("cannot reach this job"), "{}", done.stderr);
    assert!(names(&folder).is_empty());
    place.verb(&["cancel"]).assert_code(125);
}

#[test]
fn what_a_killed_runner_left_is_no_job() {
    let place = Place::new();
    let mut child = place.started(&[], "echo $$ > inner; echo ready; exec sleep 100");
    signal(&child, "KILL");
    child.wait().unwrap();
    let folder = place.path("runtime/stuckproof");
    assert_eq!(names(&folder).len(), 2, "nobody was there to clean up");
    let said = place.verb(&["cancel"]);
    said.assert_code(125);
    assert!(said.stderr.contains("no job of this user is running"), "{}", said.stderr);
    assert!(names(&folder).is_empty());
    let mut past = Value::Null;
    wait_until("its keeper has finished the bundle", || {
        past = serde_json::from_slice(&place.verb(&["status", "bundle", "--json"]).stdout).unwrap();
        past["finished"] == true
    });
    assert_eq!((&past["state"], &past["cause"]), (&"failed".into(), &"runner_lost".into()));
    assert!(!lives(&fs::read_to_string(place.path("inner")).unwrap()));
}

/// A running job and its socket.
fn open(place: &Place) -> (std::process::Child, UnixStream) {
    let child = place.started(&[], PATIENT);
    let socket = place.path("runtime/stuckproof").join(format!("{}.sock", place.job()));
    (child, UnixStream::connect(socket).unwrap())
}

fn answer(mut stream: UnixStream) -> Value {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn nonsense_is_answered_with_an_error_and_changes_nothing() {
    let place = Place::new();
    let (child, stream) = open(&place);
    let peer = stream.peer_addr().unwrap();
    let path = peer.as_pathname().unwrap();
    for nonsense in [
        "\n",
        "stop\n",
        "{\"verb\":\"explode\"}\n",
        "{\"verb\":\"cancel\",\"source\":\"ctrl_c\"}\n",
        "{\"verb\":\"cancel\",\"job\":\"x\"}\n",
        "\u{0}\u{1}\n",
    ] {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(nonsense.as_bytes()).unwrap();
        let answer = answer(stream);
        assert_eq!(answer["answer"], "error", "{nonsense:?}: {answer}");
    }
    let mut long = UnixStream::connect(path).unwrap();
    // The server hangs up in the middle of it.
    let _ = long.write_all(&vec![b'x'; 200_000]);
    let mut text = String::new();
    let _ = long.read_to_string(&mut text);
    assert!(!text.contains("\"cancel\""), "{text}");
    assert!(place.events_of("cancelRequested").is_empty());
    signal(&child, "TERM");
    finish(child).assert_code(128 + 15);
}

#[test]
fn a_silent_client_delays_nobody_and_is_sent_away() {
    let place = Place::new();
    let (child, silent) = open(&place);
    place.verb(&["cancel"]).assert_code(0);
    finish(child).assert_code(128 + 15);
    drop(silent);

    let place = Place::new();
    let (child, silent) = open(&place);
    assert_eq!(answer(silent)["message"], "no whole line came in time");
    signal(&child, "TERM");
    finish(child).assert_code(128 + 15);
}

#[test]
fn between_two_attempts_the_next_one_is_waited_for() {
    let place = Place::new();
    let record = "{\n  \"format\": 1,\n  \"retries\": 2,\n  \"attempts\": [],\n  \"ended\": null\n}\n";
    fs::create_dir(place.path("tried")).unwrap();
    fs::write(place.path("tried/attempts.json"), record).unwrap();
    place.verb(&["cancel", "tried"]).assert_code(125);
    // As the runner of all attempts holds it, also while none of them runs.
    let runner = fs::File::open(place.path("tried")).unwrap();
    runner.lock().unwrap();
    let mut waiting = place.stuckproof().args(["cancel", "tried"]).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(waiting.try_wait().unwrap().is_none(), "the next attempt is still to come");
    let mut attempt = place.stuckproof();
    attempt.args(["run", "--bundle", "tried/attempt-2", "--", "sleep", "100"]);
    let attempt = attempt.spawn().unwrap();
    finish(waiting).assert_code(0);
    finish(attempt).assert_code(128 + 15);
    let waiting = place.stuckproof().args(["cancel", "tried"]).spawn().unwrap();
    drop(runner);
    let done = finish(waiting);
    done.assert_code(125);
    assert!(done.stderr.contains("no running job"), "{}", done.stderr);
}

#[test]
fn a_job_whose_bundle_was_moved_is_found_by_the_path_that_it_had() {
    let place = Place::new();
    let child = place.started(&[], PATIENT);
    fs::rename(place.path("bundle"), place.path("moved")).unwrap();
    place.verb(&["cancel", "bundle"]).assert_code(0);
    let done = finish(child);
    done.assert_code(125);
    assert!(done.stderr.contains("bundle was moved or removed"), "{}", done.stderr);
    place.verb(&["finalize", "moved"]).assert_code(0);
    place.verb(&["verify", "moved"]).assert_code(1);
}
