//! Reviews: what passes, what decides, and that nothing passes for lack of evidence.

use crate::rig::{Done, Place};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Asks for nothing that needs a TensorRT build.
const PLAIN: &str = "observed = false\ncriteria = [5]\n";

fn place() -> Place {
    let place = Place::new();
    place.ran(&[], "exit 0").assert_code(0);
    fs::write(place.path("plain.toml"), PLAIN).unwrap();
    place
}

fn review(place: &Place, policy: &str, more: &[&str]) -> Done {
    fs::write(place.path("policy.toml"), policy).unwrap();
    place.verb(&[&["review", "bundle", "--policy", "policy.toml"], more].concat())
}

#[test]
fn each_rule_decides() {
    let place = place();
    review(&place, PLAIN, &[]).assert_code(0);
    for (rule, line) in [
        ("states", "states = [\"cancelled\"]\n"),
        ("gpu_skus", "gpu_skus = [\"NVIDIA L4\"]\n"),
        ("tensorrt_versions", "tensorrt_versions = [\"TensorRT 10\"]\n"),
        ("max_age", "max_age = \"0s\"\n"),
        ("validated", "validated = true\n"),
    ] {
        let done = review(&place, &format!("{PLAIN}{line}"), &["--format", "json"]);
        done.assert_code(1);
        let review: Value = serde_json::from_slice(&done.stdout).unwrap();
        let decisions = review["bundles"][0]["decisions"].as_array().unwrap();
        let failed: Vec<_> = decisions.iter().filter(|d| d["passed"] == false).map(|d| &d["rule"]).collect();
        assert_eq!(failed, [rule]);
    }
    let done = place.verb(&["review", "bundle"]);
    done.assert_code(1);
    assert!(done.stdout().contains("observed: 0 builds"), "by default a build is asked for");
    place.verb(&["addendum", "bundle", "--kind", "validation", "--status", "pass"]).assert_code(0);
    review(&place, &format!("{PLAIN}validated = true\n"), &[]).assert_code(0);
    place.verb(&["addendum", "bundle", "--kind", "validation", "--status", "fail"]).assert_code(0);
    review(&place, &format!("{PLAIN}validated = true\n"), &[]).assert_code(1);
}

#[test]
fn a_report_of_tests_has_the_same_answer() {
    let place = place();
    let done = review(&place, PLAIN, &["--format", "junit"]);
    done.assert_code(0);
    let report = quick_junit::Report::deserialize_from_str(&done.stdout()).unwrap();
    assert_eq!(report.test_suites[0].name.as_str(), "stuckproof review of bundle");
    let names: Vec<_> = report.test_suites[0].test_cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["verify", "states", "simulated", "criteria: 5 honest terminal state"]);
    fs::write(place.path("bundle/stdout.log"), "x").unwrap();
    let done = review(&place, PLAIN, &["--format", "junit"]);
    done.assert_code(2);
    assert!(
        done.stdout().contains("<error type=\"stuckproof.invalid\" message=\"digest: stdout.log"),
        "{}",
        done.stdout()
    );
}

#[test]
fn nothing_passes_for_lack_of_bundles_or_of_evidence() {
    let place = place();
    fs::create_dir(place.path("empty")).unwrap();
    let done = place.verb(&["review", "empty", "--policy", "plain.toml"]);
    done.assert_code(125);
    assert!(done.stderr.contains("nothing passes"), "{}", done.stderr);
    fs::create_dir(place.path("empty/not-a-bundle")).unwrap();
    place.verb(&["review", "empty", "--policy", "plain.toml"]).assert_code(3);
    fs::write(place.path("list"), "bundle\n\nnowhere\n").unwrap();
    place.verb(&["review", "@list", "--policy", "plain.toml"]).assert_code(3);
    fs::write(place.path("bundle/stdout.log"), "x").unwrap();
    place.verb(&["review", "@list", "--policy", "plain.toml"]).assert_code(2);
}

#[test]
fn an_engine_passes_by_its_digest_alone() {
    let place = place();
    let run =
        ["run", "--bundle", "all/one", "--engine", "a.engine", "--", "sh", "-c", "printf engine > {engine}"];
    place.verb(&run).assert_code(0);
    let subject = |engine| place.verb(&["review", "all", "--policy", "plain.toml", "--subject", engine]);
    subject("a.engine").assert_code(0);
    fs::write(place.path("b.engine"), "another").unwrap();
    subject("b.engine").assert_code(1);
    subject("none.engine").assert_code(1);
}

#[test]
fn surroundings_are_compared_with_a_reference() {
    let place = place();
    let with = |policy: &str| review(&place, &format!("{PLAIN}{policy}"), &["--reference", "bundle"]);
    with("drift = [\"/machine/kernel\"]\n").assert_code(0);
    with("drift = [\"/machine/none\"]\n").assert_code(1);
    let done = place.verb(&["review", "bundle", "--policy", "plain.toml", "--reference", "runtime"]);
    done.assert_code(125);
}

#[test]
fn a_policy_that_says_what_nobody_knows_is_refused() {
    let place = place();
    for wrong in
        ["state = []", "criteria = [9]", "max_age = \"soon\"", "states = [\"fine\"]", "signers = [\"x\"]"]
    {
        review(&place, wrong, &[]).assert_code(125);
    }
}

#[test]
fn hostile_names_stay_text() {
    let place = place();
    fs::create_dir(place.path("all")).unwrap();
    fs::rename(place.path("bundle"), place.path("all/a|b\u{1b}[2J<script>")).unwrap();
    let done = place.verb(&["review", "all", "--policy", "plain.toml", "--format", "markdown"]);
    done.assert_code(0);
    assert!(done.stdout().contains("a\\|b\\\\u\\{1b\\}\\[2J\\<script\\>"), "{}", done.stdout());
}

#[test]
fn the_documentation_lists_every_key() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source = fs::read_to_string(root.join("src/review/policy.rs")).unwrap();
    let table = fs::read_to_string(root.join("docs/policy.md")).unwrap();
    let body = source.split("pub struct Policy {").nth(1).unwrap().split("\n}").next().unwrap();
    let keys: Vec<_> =
        body.lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split(':').next()).collect();
    assert!(keys.len() > 8, "{keys:?}");
    for key in keys {
        assert!(table.contains(&format!("| `{key}` |")), "docs/policy.md does not list {key}");
    }
}
