//! The application's own monitor, and scripts that hide what became of their build.

mod common;

use common::bundle::Bundle;
use common::job::{Place, alone, run, start};
use common::tree::Tree;
use common::witness::{Call, notes};
use common::{NO_SIGNALS, client, model, script};
use rustix::process::Signal;

/// A user's monitor that gives a bad answer at a step: the build fails, by the application's doing.
fn assert_application_cancel(answer: &str) {
    let place = Place::new();
    let stamps = place.file("stamps");
    let wrapped = script("user_monitor.py", &[&model("small"), &place.file("engine"), &stamps, answer, "50"]);
    let ended = run(&[], &wrapped);
    let bundle = ended.bundle();
    bundle.assert_state("failed", Some("application_cancel"));
    assert_eq!(ended.code(), 1, "{}", ended.stderr);
    let declined: Vec<_> = bundle.of_kind("applicationDeclined").collect();
    assert_eq!(declined.len(), 1);
    let last = notes(&stamps).into_iter().rfind(|note| matches!(note.call, Call::Step(..))).expect("steps");
    assert_eq!(
        last.call,
        Call::Step(
            declined[0]["name"].as_str().unwrap_or("?").to_owned(),
            declined[0]["step"].as_i64().unwrap_or(-1)
        )
    );
    assert_nobody_cancelled(&bundle);
    assert!(ended.stdout.contains("monitor kept"), "{}", ended.stdout);
    let stdout_alone = String::from_utf8_lossy(&alone(&wrapped).stdout).into_owned();
    assert_eq!(without_times(&ended.stdout), without_times(&stdout_alone), "the application sees the same");
}

/// TensorRT's logger dates its lines: `[month/day/year-time] [TRT] …`.
fn without_times(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.find("[TRT]").map_or(line, |at| &line[at..])).collect()
}

fn assert_nobody_cancelled(bundle: &Bundle) {
    assert!(bundle.summary["cancelSource"].is_null());
    assert!(bundle.summary["cancelLatencyMs"].is_null());
    assert_eq!(bundle.evidence["requests"], serde_json::json!([]));
    assert_eq!(bundle.of_kind("cancelAcknowledged").count(), 0);
}

#[test]
fn a_monitor_that_returns_false() {
    assert_application_cancel("false");
}

#[test]
fn a_monitor_that_returns_none() {
    assert_application_cancel("none");
}

#[test]
fn a_monitor_that_raises() {
    assert_application_cancel("raise");
}

#[test]
fn a_monitor_that_returns_text() {
    assert_application_cancel("text");
}

/// Interrupts a build in its long step.
fn interrupted(wrapped: &[String]) -> (i32, String, Bundle) {
    let job = start(Place::new(), &NO_SIGNALS, wrapped);
    let bundle = job.place().bundle();
    common::wait_for("the long step", || {
        let begun = ["\"phaseStarted\"", "\"Determining refit engines\""];
        (!Bundle::lines_so_far(&bundle, &begun).is_empty()).then_some(())
    });
    job.signal(Signal::INT);
    let ended = job.end();
    (ended.code(), ended.stdout.clone(), ended.bundle())
}

#[test]
fn a_monitor_sees_the_step_that_stops_the_build() {
    let place = Place::new();
    let stamps = place.file("stamps");
    let wrapped = script("user_monitor.py", &[&model("slow"), &place.file("engine"), &stamps]);
    let (code, stdout, bundle) = interrupted(&wrapped);
    bundle.assert_state("cancelled", Some("api"));
    assert_eq!(code, 1);
    assert!(stdout.contains("monitor kept"), "{stdout}");
    let told: Vec<_> = notes(&stamps).into_iter().map(|note| note.call).filter(Call::is_callback).collect();
    assert_eq!(Tree::of(&bundle, 1).calls, told);
}

#[test]
fn a_script_that_swallows_the_cancel_is_not_a_success() {
    let (code, stdout, bundle) = interrupted(&script("swallow_cancel.py", &[&model("slow")]));
    bundle.assert_state("cancelled", Some("api"));
    assert_eq!(bundle.evidence["command"]["code"], 0);
    assert_eq!(code, 123);
    assert!(stdout.contains("carrying on"), "{stdout}");
}

#[test]
fn a_program_that_does_not_look_at_what_the_build_returned_is_not_a_success() {
    let place = Place::new();
    let engine = place.file("engine");
    let wrapped =
        [client("streamed"), client("libtensorrt_rtx.so.1"), "700".into(), "8".into(), engine.clone()];
    let (code, stdout, bundle) = interrupted(&wrapped);
    bundle.assert_state("cancelled", Some("api"));
    assert_eq!(code, 123);
    assert_eq!(stdout, "Engine built, 0 bytes written\n");
    assert_eq!(std::fs::metadata(engine).expect("opened before the build").len(), 0);
}

#[test]
fn a_script_that_swallows_a_failure_is_not_a_success() {
    let ended = run(&[], &script("swallow_cancel.py", &[&model("silero_vad_16k_op15")]));
    ended.bundle().assert_state("failed", Some("builder"));
    assert_eq!(ended.code(), 123);
}
