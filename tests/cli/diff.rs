//! `stuckproof diff`: what it says and which codes it gives.

use crate::rig::{Done, Place, finish};
use serde_json::Value;

fn ran(place: &Place, bundle: &str, command: &[&str]) {
    let mut run = place.stuckproof();
    run.args(["run", "--bundle", bundle, "--"]).args(command);
    finish(run.spawn().unwrap());
}

fn diff(place: &Place, more: &[&str]) -> Done {
    place.verb(&[&["diff", "one", "two"], more].concat())
}

#[test]
fn the_same_command_twice_gives_0_and_another_1() {
    let place = Place::new();
    ran(&place, "one", &["true"]);
    ran(&place, "two", &["true"]);
    let same = diff(&place, &["--threshold", "100"]);
    same.assert_code(0);
    assert!(same.stdout().contains("Nothing differs"), "{}", same.stdout());
    std::fs::remove_dir_all(place.path("two")).unwrap();
    ran(&place, "two", &["sh", "-c", "exit 3"]);
    let other = diff(&place, &[]);
    other.assert_code(1);
    assert!(
        other.stdout().contains("\nstate\n  state\n    A succeeded\n    B failed\n"),
        "{}",
        other.stdout()
    );
    let page = diff(&place, &["--format", "markdown"]);
    page.assert_code(1);
    assert!(page.stdout().contains("| exit code | 0 | 3 |"), "{}", page.stdout());
    let document: Value = serde_json::from_slice(&diff(&place, &["--format", "json"]).stdout).unwrap();
    assert_eq!((&document["format"], &document["same"]), (&1.into(), &false.into()));
    assert_eq!(document["sections"][0]["changes"][0]["b"], "failed");
}

#[test]
fn what_cannot_be_compared_gives_2() {
    let place = Place::new();
    ran(&place, "one", &["true"]);
    let missing = diff(&place, &[]);
    missing.assert_code(2);
    assert!(missing.stderr.contains("two is no bundle"), "{}", missing.stderr);
    ran(&place, "two", &["true"]);
    let log = place.path("two/events.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, text.replacen("commandStarted", "commandStartex", 1)).unwrap();
    let changed = diff(&place, &[]);
    changed.assert_code(2);
    assert!(changed.stdout().contains("doubt: the log of the second bundle"), "{}", changed.stdout());
    diff(&place, &["--threshold", "many"]).assert_code(125);
}

#[test]
fn an_engine_that_differs_is_told_by_its_digest() {
    let place = Place::new();
    for (bundle, content) in [("one", "first"), ("two", "second")] {
        let mut command = place.stuckproof();
        let script = format!("echo {content} > m.engine; exit 3");
        command.args(["run", "--bundle", bundle, "--engine", "m.engine", "--", "sh", "-c", &script]);
        finish(command.spawn().unwrap());
        std::fs::write(place.path("m.engine"), content).unwrap();
    }
    let told = place.verb(&["diff", "one", "two"]);
    told.assert_code(1);
    assert!(
        told.stdout().contains("artifact 1 (m.engine)\n    A nothing\n    B 5 bytes, SHA-256 "),
        "{}",
        told.stdout()
    );
}
