//! The table of `docs/exit-codes.md`, row by row.

use crate::rig::Place;
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn the_commands_own_code_is_ours() {
    for code in [0, 1, 7, 255] {
        let place = Place::new();
        place.ran(&[], &format!("exit {code}")).assert_code(code);
        let ended = place.event("jobEnded");
        assert_eq!(ended["exitCode"], code);
        assert_eq!(ended["state"], if code == 0 { "succeeded" } else { "failed" });
        assert_eq!(ended["observed"], false);
    }
}

#[test]
fn a_signal_that_ended_the_command_is_128_and_its_number() {
    let place = Place::new();
    place.ran(&[], "kill -KILL $$").assert_code(128 + 9);
    assert_eq!(place.event("commandExited")["signal"], 9);
    assert_eq!(place.event("jobEnded")["state"], "failed");
}

#[test]
fn a_deadline_is_124() {
    let place = Place::new();
    place.ran(&["--deadline", "100ms"], "exec sleep 100").assert_code(124);
    let request = place.event("cancelRequested");
    assert_eq!((&request["via"], &request["source"]), (&"deadline".into(), &"service".into()));
    assert_eq!(place.event("jobEnded")["exitCode"], 124);
}

#[test]
fn a_deadline_that_came_too_late_to_matter_changes_nothing() {
    let place = Place::new();
    place.ran(&["--deadline", "1h"], "true").assert_code(0);
    assert!(place.events_of("cancelRequested").is_empty());
}

#[test]
fn a_command_that_swallows_the_deadline_and_says_0_still_is_no_timeout_that_passed() {
    // No builder was seen, so that the command's 0 is all that is known: it had what it wanted before the end.
    let place = Place::new();
    let script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    place.ran(&["--deadline", "2s"], script).assert_code(0);
    assert_eq!(place.event("jobEnded")["state"], "succeeded");
}

#[test]
fn a_command_that_is_not_there_is_127_and_one_that_cannot_run_126() {
    let place = Place::new();
    let missing = place.verb(&["run", "--bundle", "bundle", "--", "no-such-command-anywhere"]);
    missing.assert_code(127);
    assert!(missing.stderr.contains("cannot run no-such-command-anywhere: not found"), "{}", missing.stderr);
    assert_eq!(place.event("jobEnded")["exitCode"], 127);
    assert_eq!(place.event("jobEnded")["cause"], "command");
    assert!(fs::read_to_string(place.path("bundle/stderr.log")).unwrap().contains("not found"));

    let place = Place::new();
    fs::write(place.path("data"), "no program").unwrap();
    let data = place.verb(&["run", "--bundle", "bundle", "--", "./data"]);
    data.assert_code(126);
    assert!(data.stderr.contains("may you execute it?"), "{}", data.stderr);
    assert_eq!(place.json("evidence.json")["state"], "failed");
}

#[test]
fn an_interpreter_that_is_not_there_is_said_to_be_missing() {
    let place = Place::new();
    executable(&place, "script", "#!/no/such/interpreter\n");
    let done = place.verb(&["run", "--", "./script"]);
    done.assert_code(127);
    assert!(done.stderr.contains("interpreter in the file's first line"), "{}", done.stderr);
}

#[test]
fn a_script_without_a_first_line_runs_as_it_does_in_a_shell() {
    let place = Place::new();
    executable(&place, "script", "echo \"from $1\"; exit 5\n");
    let done = place.verb(&["run", "--", "./script", "here"]);
    done.assert_code(5);
    assert_eq!(done.stdout(), "from here\n");
}

fn executable(place: &Place, name: &str, text: &str) {
    fs::write(place.path(name), text).unwrap();
    fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn our_own_fault_is_125() {
    let place = Place::new();
    place.verb(&["run", "--no-such-option", "--", "true"]).assert_code(125);
    place.verb(&["run"]).assert_code(125);
    place.verb(&["cancel"]).assert_code(125);
    place.verb(&["show", "nowhere"]).assert_code(125);
}

#[test]
fn help_and_version_are_answers() {
    let place = Place::new();
    place.verb(&["--help"]).assert_code(0);
    let version = place.verb(&["--version"]);
    version.assert_code(0);
    assert_eq!(version.stdout(), format!("stuckproof {}\n", env!("CARGO_PKG_VERSION")));
}
