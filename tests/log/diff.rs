//! What is told of two jobs that differ, and of two that do not.

use crate::job::{COMMAND, Job, build_start, described, finish, gpu_host, host, returned, rtx, start, step};
use crate::names::{HOSTILE, cases, text};
use crate::shown::{cancelled, failed, hostile_job, two_builds, unobserved};
use proptest::collection::vec;
use proptest::prelude::*;
use stuckproof::diff::{Difference, Threshold, compare};
use stuckproof::event::{BuildFacts, InputKind, ProfileShape};
use stuckproof::evidence::Bundle;
use stuckproof::render::{Style, difference, difference_page};
use stuckproof::wire::Body;

const THRESHOLD: Threshold = Threshold { percent: 20.0, ms: 50.0 };

fn bundle(job: &mut Job, name: &str) -> Bundle {
    let mut bundle = job.bundle();
    bundle.path = name.into();
    bundle
}

fn compared(a: &mut Job, b: &mut Job) -> Difference {
    compare(&bundle(a, "one"), &bundle(b, "two"), THRESHOLD)
}

fn shown(found: &Difference) -> String {
    let mut text = Vec::new();
    difference(found, &mut text, Style::default()).expect("memory can be written");
    String::from_utf8(text).expect("text")
}

fn page(found: &Difference) -> String {
    let mut text = Vec::new();
    difference_page(found, &mut text).expect("memory can be written");
    String::from_utf8(text).expect("text")
}

/// A build that succeeds, of which some facts and times are somebody's choice.
fn built(edit: fn(&mut BuildFacts), digest: &str, slow: u64) -> Job {
    let mut job = Job::new();
    job.at(1).input(1, InputKind::Argument, "models/m.onnx").digested(1, Some(&digest.repeat(32)));
    let Body::BuildFacts(mut facts) = described() else { unreachable!("it describes a build") };
    edit(&mut facts);
    job.at(40).tell_of(COMMAND, 0, rtx(true)).at(50).tell(build_start()).tell(Body::BuildFacts(facts));
    job.tell(start("Building engine", None, 2));
    for index in 0..2 {
        job.at(60 + 100 * index).tell(start("Timing tactics", Some("Building engine"), 1));
        job.at(100 + 100 * index + slow * index)
            .tell(step("Timing tactics", 0, 0))
            .tell(finish("Timing tactics"));
    }
    job.at(400 + slow)
        .tell(finish("Building engine"))
        .tell(returned(true))
        .at(500 + slow)
        .exit(Some(0), None);
    job.end(0);
    job.baseline(&host(None));
    job
}

#[test]
fn what_a_person_would_look_at_first_comes_first() {
    let mut before = built(|_| {}, "ab", 0);
    let edit = |facts: &mut BuildFacts| {
        facts.config.insert("flags".to_owned(), 64 | 1 << 4);
        facts.config.insert("optimizationLevel".to_owned(), 5);
        facts.compute_capabilities = vec![86, 89];
        facts.layers = 3;
        facts.layer_kinds.insert("17".to_owned(), 1);
        facts.outputs[0].data_type = 1;
        let [min, opt, max] = ["1x3x8", "4x3x8", "16x3x8"].map(str::to_owned);
        facts.profiles = vec![ProfileShape { profile: 0, input: "x".to_owned(), min, opt, max }];
    };
    let mut after = built(edit, "cd", 5_000);
    after.baseline(&gpu_host(&["NVIDIA L4"]));
    let found = compared(&mut before, &mut after);
    assert!(!found.same && found.doubts.is_empty());
    insta::assert_snapshot!("difference", shown(&found));
    insta::assert_snapshot!("difference-page", page(&found));
}

#[test]
fn endings_and_numbers_of_builds_may_differ() {
    let found = compared(&mut cancelled(), &mut failed());
    insta::assert_snapshot!("difference-of-endings", shown(&found));
    let found = compared(&mut two_builds(), &mut unobserved());
    let state = &found.sections[0];
    assert_eq!(state.name, "state");
    assert!(state.changes.iter().any(|change| change.what == "builds"), "{state:?}");
}

#[test]
fn times_alone_are_no_difference() {
    let found = compared(&mut built(|_| {}, "ab", 0), &mut built(|_| {}, "ab", 0));
    assert!(found.same && found.sections.is_empty(), "{found:#?}");
    assert!(shown(&found).ends_with("\nNothing differs.\n"));
    let found = compared(&mut built(|_| {}, "ab", 0), &mut built(|_| {}, "ab", 3_000));
    assert!(found.same && found.sections.len() == 1, "{found:#?}");
    let changes = &found.sections[0].changes;
    let second = "the build › Building engine › Timing tactics (2)";
    assert!(changes.len() == 4 && changes.iter().any(|change| change.what == second), "{changes:?}");
    assert!(shown(&found).ends_with("\nNothing differs but times.\n"));
}

#[test]
fn a_bundle_that_is_not_whole_leaves_a_doubt() {
    let mut open = Job::new();
    let found = compared(&mut open, &mut built(|_| {}, "ab", 0));
    assert!(found.doubts[0].contains("the first bundle has not ended"), "{:?}", found.doubts);
    assert!(shown(&found).contains("doubt: the job of the first bundle"));
}

fn assert_harmless(found: &Difference) {
    let text = shown(found);
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    for line in page(found).lines().filter(|line| line.starts_with("| ")) {
        let bars = line.replace("\\\\", "").replace("\\|", "").matches('|').count();
        assert!(bars == 4 && !line.contains('<'), "{line}");
    }
    serde_json::to_string(found).expect("JSON");
}

#[test]
fn hostile_names_are_shown_harmlessly() {
    let texts = HOSTILE.map(str::to_owned);
    assert_harmless(&compared(&mut hostile_job(&texts), &mut cancelled()));
    let mut turned = texts.clone();
    turned.rotate_left(1);
    assert_harmless(&compared(&mut hostile_job(&texts), &mut hostile_job(&turned)));
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn any_two_jobs_can_be_compared(one in vec(text(), 1..6), other in vec(text(), 1..6)) {
        let found = compared(&mut hostile_job(&one), &mut hostile_job(&other));
        assert_harmless(&found);
        let same = compared(&mut hostile_job(&one), &mut hostile_job(&one));
        prop_assert!(same.sections.is_empty());
    }
}
