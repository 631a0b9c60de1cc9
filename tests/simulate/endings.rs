//! What becomes of the builds of the fixtures.

use crate::common::NO_SIGNALS;
use crate::common::bundle::Bundle;
use crate::common::tree::Tree;
use crate::scene::{Scene, script};
use serde_json::{Value, json};

/// Everything that is made with it says so.
fn assert_simulated(bundle: &Bundle, version: &str) {
    assert_eq!(bundle.summary["tensorrtVersion"], format!("{version} (simulated)"));
    assert!(bundle.of_kind("libraryAttached").all(|library| library["simulated"] == true));
    let notes = bundle.evidence["notes"].as_array().expect("a list");
    assert!(notes.iter().any(|note| note.as_str().is_some_and(|note| note.contains("simulated builder"))));
}

#[test]
fn a_build_of_tensorrt_10() {
    let ended = Scene::new().run(&[], "build");
    let bundle = ended.bundle();
    bundle.assert_state("succeeded", None);
    assert_simulated(&bundle, "TensorRT 10.13.2.6");
    assert_eq!(bundle.summary["language"], "cpp");
    let engine = std::fs::read(ended.place.file("engine")).expect("an engine");
    assert_eq!(bundle.build()["bytes"], engine.len());
    assert!(engine.starts_with(b"ftrt simulated by stuckproof"));
    let tree = Tree::of(&bundle, 1);
    assert_eq!(tree.roots(), ["Building engine"]);
    assert_eq!(tree.named("Timing tactics").next().map(|phase| phase.reported), Some(40));
    let facts = &bundle.of_kind("buildDescribed").next().expect("the builder was asked")["facts"];
    assert_eq!(facts["config"]["optimizationLevel"], 3);
    assert_eq!(facts["config"]["poolWorkspace"], 1 << 30);
    assert_eq!(facts["timingCacheAttached"], true);
    assert_eq!((&facts["layers"], &facts["layerKinds"]["1"]), (&json!(129), &json!(57)));
    assert_eq!(facts["inputs"][0], json!({ "name": "images", "dataType": 0, "shape": "-1x3x640x640" }));
    assert_eq!(facts["outputs"][0]["name"], "boxes");
    assert_eq!(facts["profiles"][0]["opt"], "4x3x640x640");
}

#[test]
fn a_cancel_in_a_long_silence_is_answered_at_its_end() {
    let ended = Scene::new().cancel(&NO_SIGNALS, "search");
    let bundle = ended.bundle();
    bundle.assert_state("cancelled", Some("api"));
    assert_simulated(&bundle, "TensorRT-RTX 1.7.1.116");
    assert!(bundle.summary["cancelLatencyMs"].as_f64().is_some());
    assert!(!std::path::Path::new(&ended.place.file("engine")).exists());
    let said = bundle.of_kind("message").last().expect("the builder said why")["text"].clone();
    assert!(said.as_str().is_some_and(|said| said.contains("Error Code 7: BuildCanceled")), "{said}");
}

#[test]
fn a_builder_that_ignores_false_is_killed() {
    let options = ["--grace", "300ms", "--kill-after", "300ms"];
    let ended = Scene::new().cancel(&options, "deaf");
    let bundle = ended.bundle();
    bundle.assert_state("failed", Some("killed_by_runner"));
    assert_simulated(&bundle, "TensorRT 11.4.0.0");
    let answered = bundle.of_kind("stepCompleted").filter(|step| step["answered"] == 1).count();
    assert!(answered > 1, "it went on after the first false");
    let signals: Vec<&Value> = bundle.of_kind("ladderRung").map(|rung| &rung["rung"]).collect();
    assert!(signals.contains(&&json!("SIGKILL")), "SIGTERM was ignored: {signals:?}");
    assert_eq!(std::fs::read(ended.place.file("engine")).expect("begun"), b"");
}

#[test]
fn an_engine_after_false_is_a_success_and_the_cancel_too_late() {
    let ended = Scene::new().cancel(&NO_SIGNALS, "too_late");
    let bundle = ended.bundle();
    bundle.assert_state("succeeded", None);
    assert_simulated(&bundle, "TensorRT 11.1.0.0");
    assert_eq!(bundle.evidence["requests"][0]["outcome"], "too_late");
    assert!(std::path::Path::new(&ended.place.file("engine")).exists());
}

#[test]
fn a_crash_in_a_phase() {
    let bundle = Scene::new().run(&[], "crash").bundle();
    bundle.assert_state("failed", Some("crash"));
    assert_simulated(&bundle, "TensorRT 9.3.0.0");
    let aborted: Vec<&Value> = bundle.of_kind("phaseAborted").map(|phase| &phase["name"]).collect();
    assert_eq!(aborted, ["Timing tactics", "Building engine"]);
}

#[test]
fn an_error_of_the_builder_in_a_tool_that_goes_on() {
    let ended = Scene::new().run(&[], "error");
    let bundle = ended.bundle();
    bundle.assert_state("failed", Some("builder"));
    assert_simulated(&bundle, "TensorRT 10.3.0.0");
    assert_eq!(ended.code(), 1);
    assert_eq!(bundle.build()["errors"][0]["code"], 10);
    assert_eq!(std::fs::read(ended.place.file("engine")).expect("written all the same"), b"");
}

#[test]
fn a_deadlock_is_ended_by_the_ladder() {
    let options = ["--grace", "100ms", "--kill-after", "5s"];
    let bundle = Scene::new().cancel(&options, "hang").bundle();
    bundle.assert_state("failed", Some("killed_by_runner"));
    assert_simulated(&bundle, "TensorRT 10.16.1.0");
    assert_eq!(bundle.summary["language"], "python");
    assert_eq!(bundle.evidence["requests"][0]["outcome"], "undelivered");
}

#[test]
fn builders_at_once_with_many_threads() {
    let bundle = Scene::new().run(&[], "threads").bundle();
    bundle.assert_state("succeeded", None);
    assert_simulated(&bundle, "TensorRT 11.4.0.0");
    let mut methods: Vec<&str> =
        bundle.of_kind("buildStarted").filter_map(|b| b["method"].as_str()).collect();
    methods.sort_unstable();
    let all = ["buildEngineWithConfig", "buildSerializedNetwork", "buildSerializedNetworkWithKernelText"];
    assert_eq!(methods, all);
    let count = |kind: &str, name: &str| bundle.of_kind(kind).filter(|event| event["name"] == name).count();
    assert_eq!(count("phaseStarted", "Timing tactics"), 8 * 5);
    assert_eq!(count("stepCompleted", "Timing tactics"), 8 * 5 * 20);
    let threads: std::collections::BTreeSet<_> = bundle
        .of_kind("phaseStarted")
        .filter(|phase| phase["name"] == "Timing tactics")
        .filter_map(|phase| phase["tid"].as_u64())
        .collect();
    assert_eq!(threads.len(), 8);
    let steps = |name: &str| -> Vec<i64> {
        let of_name = bundle.of_kind("stepCompleted").filter(|step| step["name"] == name);
        of_name.filter(|step| step["steps"] == 3).filter_map(|step| step["step"].as_i64()).collect()
    };
    assert_eq!(steps("Building engine"), [2, 0, 1], "out of order, the last under its open child");
    let early = bundle.of_kind("phaseFinished").find(|phase| phase["name"] == "Finishing early");
    assert_eq!(early.map(|phase| (&phase["reported"], &phase["steps"])), Some((&json!(1), &json!(100))));
    let messages = |severity: &str| bundle.of_kind("message").filter(|m| m["severity"] == severity).count();
    assert_eq!(["internal_error", "error", "warning"].map(messages), [1, 1, 1]);
    let counted = bundle.builds().iter().find(|build| build["messages"]["verbose"] == 1);
    assert!(counted.is_some_and(|build| build["messages"]["info"] == 1), "{:#}", bundle.evidence["builds"]);
    assert_eq!(bundle.of_kind("buildStarted").filter(|build| build["chained"] == true).count(), 1);
}

/// Every line of the tables has a version that is played, and every one of them is attached to.
#[test]
fn every_family_is_attached_to_by_both_kinds_of_callers() {
    let versions = [
        ("tensorrt", "9.1.0"),
        ("tensorrt", "10.0.1"),
        ("tensorrt", "10.8.0"),
        ("tensorrt", "11.0.0"),
        ("tensorrt-rtx", "1.3.0"),
        ("tensorrt-rtx", "1.5.0"),
    ];
    for (place, (flavour, version)) in versions.into_iter().enumerate() {
        let call = if place % 2 == 0 { "linked" } else { "dlopen" };
        let head = format!("flavour = \"{flavour}\"\nversion = \"{version}\"\ncall = \"{call}\"\n");
        let script = script(&head, "", "{ phase = \"Building engine\", steps = 2, each = \"0\" }");
        let bundle = Scene::new().run(&[], &script).bundle();
        bundle.assert_state("succeeded", None);
        assert_eq!(bundle.evidence["counts"]["steps"], 2, "{flavour} {version}");
        assert_eq!(bundle.of_kind("buildDescribed").count(), 1, "{flavour} {version}");
    }
}
