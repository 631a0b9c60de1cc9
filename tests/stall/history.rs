//! The second build of a configuration knows what to expect.

use crate::common::bundle::Bundle;
use crate::common::job::{Place, run};
use crate::common::{model, script};
use serde_json::Value;

/// Models that build, and how much the expectation of their total may be off in the median, percent. A machine that is
/// busy with other tests is no measure: there only the expectation itself is checked.
const MODELS: [&str; 7] = [
    "320n",
    "ch_PP-OCRv4_det_infer",
    "ch_ppocr_mobile_v2.0_cls_infer",
    "silero_vad_16k_sequence",
    "small",
    "medium",
    "slow",
];
const MOST: f64 = 20.0;

fn build(name: &str, history: &str) -> Bundle {
    let place = Place::new();
    let wrapped = script("build_onnx.py", &[&model(name), &place.file("engine")]);
    let ended = run(&["--history", history], &wrapped);
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    ended.bundle()
}

fn expected(bundle: &Bundle) -> &Value {
    &bundle.build()["expected"]
}

#[test]
fn the_second_build_shows_an_expected_time() {
    let place = Place::new();
    let history = place.file("history");
    let first = build("small", &history);
    assert_eq!(expected(&first)["likeness"], "none");
    assert!(expected(&first)["totalMs"].is_null());
    let second = build("small", &history);
    assert_eq!((&expected(&second)["likeness"], &expected(&second)["builds"]), (&"same".into(), &1.into()));
    let (took, total) = (&first.build()["durationMs"], &expected(&second)["totalMs"]);
    assert!((took.as_f64().expect("ms") - total.as_f64().expect("ms")).abs() <= 1.0, "{took} {total}");
    let other = build("medium", &history);
    assert_eq!(expected(&other)["likeness"], "none", "another configuration");
}

#[test]
fn the_expected_total_is_near_the_real_one() {
    if std::env::var_os("STUCKPROOF_RUNS").is_none() {
        // Rounds of all models; the soak suite has a machine of its own.
        return;
    }
    let place = Place::new();
    let history = place.file("history");
    let mut errors = Vec::new();
    for name in MODELS {
        for round in 0..5 {
            let bundle = build(name, &history);
            let error = expected(&bundle)["errorPercent"].as_f64();
            println!("{name} round {round}: {} ms, error {error:?} %", bundle.build()["durationMs"]);
            assert_eq!(error.is_some(), round > 0);
            errors.extend(error.map(f64::abs));
        }
    }
    errors.sort_by(f64::total_cmp);
    let median = errors[errors.len() / 2];
    println!("median {median} %, worst {:?} %, of {}", errors.last(), errors.len());
    assert!(median < MOST, "{errors:?}");
}

#[test]
fn a_history_that_cannot_be_used_is_said_and_harms_nothing() {
    let place = Place::new();
    let file = place.file("file");
    std::fs::write(&file, "").expect("a file");
    let wrapped = script("build_onnx.py", &[&model("small"), &place.file("engine")]);
    let ended = run(&["--history", &file], &wrapped);
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("this build is not remembered"), "{}", ended.stderr);
    let bundle = ended.bundle();
    bundle.assert_state("succeeded", None);
    assert!(expected(&bundle)["notes"].to_string().contains("cannot be listed"));
}
