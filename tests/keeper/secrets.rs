//! Secrets in the bundle of a job whose runner was killed, with the keeper and without.

use crate::planted::{SECRET, assert_clean, say_secret};
use crate::rig::{Place, end_of, finish, wait_until};
use crate::watch::{keeper, send, wait_for_whole_bundle};
use std::fs;

#[test]
fn the_keeper_masks_what_the_runner_did_not_come_to() {
    let place = Place::new();
    let runner = say_secret(&place, &[], "touch said; exec sleep 100");
    wait_until("everything is said", || place.path("said").exists());
    send(runner.id(), "KILL");
    finish(runner);
    let evidence = wait_for_whole_bundle(&place);
    assert_eq!(evidence.output.as_ref().map(|output| &*output.by), Some("keeper"));
    let kept = fs::read_to_string(place.path("bundle/stdout.log")).unwrap();
    assert!(kept.contains("before (masked) after\n(masked)\n"), "{kept}");
    assert_clean(&place);
}

#[test]
fn whoever_finishes_by_hand_masks_the_secrets_of_their_environment() {
    let place = Place::new();
    let mut runner = say_secret(&place, &[], "touch said; exec sleep 100");
    wait_until("everything is said", || place.path("said").exists());
    let guard = keeper(&runner);
    send(guard.pid, "STOP");
    send(runner.id(), "KILL");
    end_of(&mut runner);
    // The kernel kills the command with the keeper.
    send(guard.pid, "KILL");
    let finalize = || {
        let mut command = place.stuckproof();
        command.args(["finalize", "bundle"]).env("API_TOKEN", SECRET);
        finish(command.spawn().unwrap())
    };
    wait_until("nothing lives any more", || finalize().code() == Some(0));
    let evidence = place.json("evidence.json");
    assert_eq!(evidence["output"]["by"], "finalize");
    assert!(
        evidence["output"]["values"].as_u64().is_some_and(|values| values >= 1),
        "{}",
        evidence["output"]
    );
    let notes = evidence["notes"].to_string();
    assert!(notes.contains("their own environment only"), "{notes}");
    assert_clean(&place);
    let before = fs::read(place.path("bundle/stdout.log")).unwrap();
    finalize().assert_code(0);
    assert_eq!(fs::read(place.path("bundle/stdout.log")).unwrap(), before);
}
