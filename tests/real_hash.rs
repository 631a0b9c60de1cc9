//! The hash of a build on the real builder: the same build has one hash wherever it is made, and every change that makes
//! another engine gives another.

mod common;

use common::bundle::Bundle;
use common::job::{Job, Place};
use common::{environment, script, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// What may be changed in a configuration or in a network, as `variants.py` knows it.
const CHANGES: [&str; 11] = [
    "flag",
    "level",
    "target",
    "profile",
    "pool",
    "iterations",
    "tactics",
    "streams",
    "verbosity",
    "tiling",
    "output",
];

/// Writes the tiny model, with its weights inside or beside it.
fn write_model(kind: &str, path: &str) {
    let maker = text(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/make_tiny.py"));
    let made =
        common::command(&environment("python")).args([&*maker, kind, path]).status().expect("python starts");
    assert!(made.success());
}

/// Starts the builds of a model, each stopped at its first step.
fn started(place: Place, options: &[&str], model: &str, variants: &[&str]) -> Bundle {
    let arguments: Vec<&str> = std::iter::once(model).chain(variants.iter().copied()).collect();
    let command = place.run(options, &script("variants.py", &arguments));
    let bundle = Job::start(place, command).end().bundle();
    assert_eq!(bundle.builds().len(), variants.len());
    bundle
}

fn hash_of(build: &Value) -> String {
    assert_eq!(build["configHashPartial"], false, "{build:#}");
    build["configHash"].as_str().unwrap_or_else(|| panic!("it has a hash: {build:#}")).to_owned()
}

/// The hash of the one unchanged build of a model. The whole check of its bundle takes longer than the build, and other
/// tests make it.
fn hash(place: Place, model: &str) -> String {
    let command = place.run(&[], &script("variants.py", &[model, "base"]));
    let ended = Job::start(place, command).end();
    let evidence = std::fs::read(ended.place.bundle().join("evidence.json")).expect("the evidence");
    let evidence: Value = serde_json::from_slice(&evidence).expect("JSON");
    hash_of(&evidence["builds"][0])
}

/// Changes one byte in the middle of a file, which is in the middle of weights.
fn change_a_byte(path: &str) {
    let mut bytes = std::fs::read(path).expect("the file is there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).expect("the file can be written");
}

#[test]
fn each_change_of_configuration_or_network_gives_another_hash() {
    let place = Place::new();
    let model = place.file("model.onnx");
    write_model("inline", &model);
    let variants: Vec<&str> = ["base", "base"].into_iter().chain(CHANGES).collect();
    let bundle = started(place, &[], &model, &variants);
    let hashes: Vec<String> = bundle.builds().iter().map(hash_of).collect();
    assert_eq!(hashes[0], hashes[1], "the same build");
    let different: BTreeSet<&String> = hashes.iter().collect();
    assert_eq!(different.len(), 1 + CHANGES.len(), "{variants:?}: {hashes:#?}");
}

#[test]
fn the_same_build_has_one_hash_in_any_folder() {
    let (here, there) = (Place::new(), Place::new());
    let (model, copy) = (here.file("model.onnx"), there.file("another-name.onnx"));
    write_model("inline", &model);
    std::fs::copy(&model, &copy).expect("the model can be copied");
    let mut relative = there.run(&[], &script("variants.py", &["another-name.onnx", "base"]));
    relative.current_dir(Path::new(&copy).parent().expect("a folder"));
    let other = Job::start(there, relative).end().bundle();
    assert_eq!(hash(here, &model), hash_of(other.build()));
    assert_eq!(other.evidence["inputs"][0]["path"], "another-name.onnx");
}

#[test]
fn one_byte_of_weights_gives_another_hash() {
    for kind in ["inline", "external"] {
        let place = Place::new();
        let model = place.file("model.onnx");
        write_model(kind, &model);
        let before = hash(Place::new(), &model);
        let weights = if kind == "inline" { model.clone() } else { format!("{model}.data") };
        change_a_byte(&weights);
        assert_ne!(hash(Place::new(), &model), before, "{kind}");
        change_a_byte(&weights);
        assert_eq!(hash(Place::new(), &model), before, "{kind}, as it was");
    }
}

#[test]
fn a_declared_input_counts_and_one_that_changes_leaves_no_hash() {
    let place = Place::new();
    let (model, more) = (place.file("model.onnx"), place.file("calibration"));
    write_model("external", &model);
    std::fs::write(&more, "numbers").expect("a file");
    let bundle = started(Place::new(), &["--input", &more], &model, &["base"]);
    assert_ne!(hash_of(bundle.build()), hash(Place::new(), &model));
    let kinds: Vec<&Value> =
        bundle.evidence["inputs"].as_array().expect("a list").iter().map(|i| &i["kind"]).collect();
    assert_eq!(kinds, ["declared", "argument", "external", "library"]);
    let library = &bundle.evidence["inputs"][3];
    assert_eq!(library["path"], bundle.evidence["libraries"][0]["path"]);
    assert!(library["sha256"].is_string() && library["buildId"].is_string(), "{library:#}");

    let away = format!("{model}.data");
    let spoil = format!(
        "from pathlib import Path; Path({away:?}).touch(); import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    );
    let wrapped = script("variants.py", &[&model, "base"]);
    let shifted = [&wrapped[..1], &["-c".to_owned(), spoil], &wrapped[1..]].concat();
    let spoilt_place = Place::new();
    let mut command = spoilt_place.run(&[], &shifted);
    command.env("PYTHONPATH", Path::new(&wrapped[1]).parent().expect("a folder"));
    let spoilt = Job::start(spoilt_place, command).end().bundle();
    assert!(spoilt.summary["buildConfigHash"].is_null());
    let why = spoilt.evidence["nulls"]["buildConfigHash"].as_str().expect("a reason");
    assert!(why.contains(".data changed while the job ran"), "{why}");
}

#[test]
fn without_an_input_the_hash_is_marked() {
    let place = Place::new();
    let model = place.file("model.onnx");
    write_model("inline", &model);
    let hidden = place.file("model.binary");
    std::fs::rename(&model, &hidden).expect("the model can be renamed");
    let bundle = started(Place::new(), &[], &hidden, &["base"]);
    assert_eq!(bundle.build()["configHashPartial"], true);
    assert!(bundle.build()["configHash"].is_string());
}
