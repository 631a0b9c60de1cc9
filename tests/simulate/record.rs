//! Scripts made from logs play what the logs say.

use crate::common::job::{self, alone};
use crate::common::tree::Tree;
use crate::common::{model, script as python, text};
use crate::scene::Scene;
use std::process::Output;

fn from(log: &str, speed: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_stuckproof").to_owned();
    alone(&[program, "simulate".into(), "--from".into(), log.into(), "--speed".into(), speed.into()])
}

#[test]
fn a_real_build_is_played_with_the_same_tree() {
    let scene = Scene::new();
    let engine = scene.place.file("real");
    let recorded = job::run(&[], &python("build_onnx.py", &[&model("small"), &engine]));
    let real = recorded.bundle();
    let printed = from(&text(real.path.join("events.jsonl")), "2");
    assert!(printed.status.success(), "{printed:?}");
    let script = String::from_utf8(printed.stdout).expect("a script is text");
    let played = scene.run(&[], &script).bundle();
    played.assert_state("succeeded", None);
    let name = real.summary["tensorrtVersion"].as_str().expect("a version");
    assert_eq!(played.summary["tensorrtVersion"], format!("{name} (simulated)"));
    assert_eq!(played.summary["language"], "python");
    assert_eq!(Tree::of(&played, 1).calls, Tree::of(&real, 1).calls, "the same callbacks in the same order");
    assert_eq!(played.build()["bytes"], real.build()["bytes"]);
}

#[test]
fn what_holds_no_build_makes_no_script() {
    let scene = Scene::new();
    let nothing = job::run(&[], &["true".to_owned()]);
    let output = from(&text(nothing.place.bundle().join("events.jsonl")), "1");
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no builder is in it"));
    let output = from(&scene.place.file("none"), "1");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no script can be made of"), "{output:?}");
    let output = from("x", "0");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is no factor"), "{output:?}");
}
