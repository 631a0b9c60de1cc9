//! Every real model ends in its right state, with what TensorRT said about it.

mod common;

use common::bundle::Bundle;
use common::job::{Place, alone, run, start, stuckproof};
use common::tree::Tree;
use common::{model, script, wait_for};

/// Builds a model; asserts that the code is the script's own.
fn build(name: &str) -> Bundle {
    let place = Place::new();
    let wrapped = script("build_onnx.py", &[&model(name), &place.file("engine")]);
    let ended = run(&[], &wrapped);
    let bundle = ended.bundle();
    let engine = bundle.build()["engine"].as_bool().expect("the builder returned");
    assert_eq!(ended.code(), i32::from(!engine), "{}", ended.stderr);
    bundle
}

fn assert_succeeds(name: &str) {
    let bundle = build(name);
    bundle.assert_state("succeeded", None);
    Tree::of(&bundle, 1).assert_whole();
    assert_eq!(bundle.build()["errors"].as_array().map(Vec::len), Some(0));
}

/// The texts of the error lines in the evidence of the one build.
fn errors(bundle: &Bundle) -> Vec<&str> {
    let lines = bundle.build()["errors"].as_array().expect("a list");
    lines.iter().map(|line| line["text"].as_str().expect("a text")).collect()
}

/// The texts of the error lines that the script prints on its own.
fn errors_alone(name: &str) -> Vec<String> {
    let place = Place::new();
    let output = alone(&script("build_onnx.py", &[&model(name), &place.file("engine")]));
    let printed =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    printed
        .lines()
        .filter_map(|line| line.split_once("[TRT] [E] "))
        .map(|(_, text)| text.to_owned())
        .collect()
}

fn assert_fails(name: &str, code: u64, phases: usize) {
    let bundle = build(name);
    bundle.assert_state("failed", Some("builder"));
    let expected = errors_alone(name);
    assert!(!expected.is_empty(), "the script prints its errors");
    assert_eq!(errors(&bundle), expected);
    assert_eq!(bundle.build()["errors"][0]["code"], code);
    assert_eq!(Tree::of(&bundle, 1).instances.len(), phases);
}

#[test]
fn nudenet_succeeds() {
    assert_succeeds("320n");
}

#[test]
fn text_detection_succeeds() {
    assert_succeeds("ch_PP-OCRv4_det_infer");
}

#[test]
fn text_direction_succeeds() {
    assert_succeeds("ch_ppocr_mobile_v2.0_cls_infer");
}

#[test]
fn voice_activity_by_the_sequence_succeeds() {
    assert_succeeds("silero_vad_16k_sequence");
}

#[test]
fn text_recognition_fails_after_many_steps() {
    assert_fails("ch_PP-OCRv4_rec_infer", 4, 6);
}

#[test]
fn voice_activity_fails_before_any_phase() {
    assert_fails("silero_vad_16k_op15", 2, 0);
}

/// Holds a build at a place, cancels it there by the control socket, and lets it go on to its end.
fn cancelled_at(place_of_wait: &str, name: &str, more: &[&str]) -> (i32, Bundle) {
    let place = Place::new();
    let (gate, stamps) = (place.file("gate"), place.file("stamps"));
    let model = model(name);
    let arguments: Vec<&str> =
        [&*model, &*gate, &*stamps, place_of_wait].into_iter().chain(more.iter().copied()).collect();
    let job = start(place, &[], &script("hold.py", &arguments));
    wait_for("the place of the wait", || {
        std::fs::exists(format!("{gate}.reached")).ok().filter(|&there| there)
    });
    let job_name = job.wait_for_event("jobStarted")["job"].as_str().expect("a name").to_owned();
    let asked = stuckproof().args(["cancel", &job_name]).output().expect("stuckproof starts");
    assert!(asked.status.success(), "{asked:?}");
    job.wait_for_event("cancelRequested");
    std::fs::write(format!("{gate}.go"), "").expect("the gate opens");
    let ended = job.end();
    (ended.code(), ended.bundle())
}

#[test]
fn an_engine_after_a_late_cancel_is_a_success() {
    let (code, bundle) = cancelled_at("Building engine", "small", &[]);
    bundle.assert_state("succeeded", None);
    assert_eq!(code, 0);
    assert_eq!(bundle.evidence["requests"][0]["outcome"], "too_late");
    assert_eq!(bundle.build()["notes"], serde_json::json!(["too_late"]));
    assert!(bundle.summary["cancelLatencyMs"].is_null());
    assert_eq!(bundle.of_kind("cancelAcknowledged").count(), 0);
}

#[test]
fn a_failure_after_all_phases_stays_a_failure_under_a_late_cancel() {
    let (code, bundle) = cancelled_at("Building engine", "small", &["forget-target"]);
    bundle.assert_state("failed", Some("builder"));
    assert_eq!(code, 1);
    assert_eq!(bundle.evidence["requests"][0]["outcome"], "undelivered");
    assert_eq!(errors(&bundle), ["Unexpected exception bad optional access"]);
}

#[test]
fn a_failing_model_stays_a_failure_under_a_late_cancel() {
    let (code, bundle) = cancelled_at("Building engine", "ch_PP-OCRv4_rec_infer", &[]);
    bundle.assert_state("failed", Some("builder"));
    assert_eq!(code, 1);
    assert_eq!(bundle.evidence["requests"][0]["outcome"], "undelivered");
    assert_eq!(errors(&bundle), errors_alone("ch_PP-OCRv4_rec_infer"));
}

#[test]
fn a_model_that_fails_before_any_phase_stays_a_failure_under_a_cancel() {
    let (code, bundle) = cancelled_at("before", "silero_vad_16k_op15", &[]);
    bundle.assert_state("failed", Some("builder"));
    assert_eq!(code, 1);
    assert_eq!(bundle.evidence["requests"][0]["outcome"], "undelivered");
    assert_eq!(errors(&bundle), errors_alone("silero_vad_16k_op15"));
}

#[test]
fn a_request_before_the_build_stops_it_at_its_first_step() {
    let (code, bundle) = cancelled_at("before", "small", &[]);
    bundle.assert_state("cancelled", Some("api"));
    assert_eq!(code, 1);
    assert_eq!(bundle.of_kind("stepCompleted").count(), 1);
    assert_eq!(bundle.evidence["requests"][0]["outcome"], "delivered");
}
