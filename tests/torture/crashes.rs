//! Builders that die by themselves, at every place where that makes a difference.

use crate::common::bundle::Bundle;
use crate::common::job::{Place, run};
use crate::common::{model, script};
use serde_json::{Value, json};

/// Runs a client that dies at this place; asserts the command's end and the job's cause.
fn die(at: &str, code: i32, cause: &str) -> Bundle {
    let place = Place::new();
    let wrapped = script("crash.py", &[&model("small"), &place.file("engine"), at]);
    let ended = run(&[], &wrapped);
    assert_eq!(ended.code(), code, "{}", ended.stderr);
    let bundle = ended.bundle();
    bundle.assert_state("failed", Some(cause));
    bundle
}

fn assert_build(build: &Value, state: &str, cause: &Value, engine: &Value) {
    assert_eq!((build["state"].as_str(), &build["cause"], &build["engine"]), (Some(state), cause, engine));
}

/// The names of the phases that were open, innermost first.
fn aborted(bundle: &Bundle) -> Vec<&str> {
    bundle.of_kind("phaseAborted").filter_map(|event| event["name"].as_str()).collect()
}

const BRANCH: [&str; 3] = ["Computing profile costs", "Building engine from subgraph", "Building engine"];

#[test]
fn inside_the_start_of_a_phase() {
    let bundle = die("start", 128 + 11, "crash");
    assert_build(bundle.build(), "failed", &json!("crash"), &Value::Null);
    assert_eq!(bundle.evidence["command"]["signal"], 11);
    assert_eq!(aborted(&bundle), BRANCH);
    assert_eq!(bundle.of_kind("phaseAborted").next().expect("a phase")["reported"], 0);
}

#[test]
fn inside_a_step() {
    let bundle = die("step", 128 + 11, "crash");
    assert_build(bundle.build(), "failed", &json!("crash"), &Value::Null);
    assert_eq!(aborted(&bundle), BRANCH);
    assert_eq!(bundle.of_kind("phaseAborted").next().expect("a phase")["reported"], 2);
}

#[test]
fn an_exit_inside_a_step_is_no_crash() {
    let bundle = die("exit", 3, "command");
    assert_build(bundle.build(), "failed", &json!("command"), &Value::Null);
    assert_eq!(bundle.evidence["command"]["code"], 3);
    assert_eq!(aborted(&bundle), BRANCH);
}

#[test]
fn between_two_builds() {
    let bundle = die("between", 128 + 11, "crash");
    assert_build(bundle.build(), "succeeded", &Value::Null, &json!(true));
    assert!(aborted(&bundle).is_empty());
}

#[test]
fn at_the_end_after_success() {
    let bundle = die("end", 128 + 11, "crash");
    assert_build(bundle.build(), "succeeded", &Value::Null, &json!(true));
    assert_eq!(bundle.evidence["command"]["signal"], 11);
}
