//! What `stuckproof diff` tells of real builds.

mod common;

use common::job::{Job, Place, stuckproof};
use common::{environment, script, text};
use serde_json::Value;
use std::path::Path;

/// Starts one build of the tiny model, stopped at its first step.
fn started(model: &str, variant: &str) -> Place {
    let place = Place::new();
    let command = place.run(&[], &script("variants.py", &[model, variant]));
    Job::start(place, command).end().place
}

fn diff(a: &Place, b: &Place) -> (Option<i32>, Value) {
    let mut command = stuckproof();
    command.arg("diff").args([a.bundle(), b.bundle()]).args(["--format", "json"]);
    let done = command.output().expect("it starts");
    (done.status.code(), serde_json::from_slice(&done.stdout).expect("JSON"))
}

/// What differs but for the command, which names the variant, and the SKU, for which the target stands without a GPU.
fn changes(document: &Value) -> Vec<(String, String)> {
    let sections = document["sections"].as_array().expect("a list");
    let told = sections.iter().filter(|section| section["times"] == false).flat_map(|section| {
        let name = section["name"].as_str().expect("a name").to_owned();
        let changes = section["changes"].as_array().expect("a list").clone();
        changes
            .into_iter()
            .map(move |change| (name.clone(), change["what"].as_str().expect("a text").to_owned()))
    });
    told.filter(|(_, what)| what != "command" && what != "SKU").collect()
}

#[test]
fn a_flag_a_shape_and_a_weight_are_told_by_their_names() {
    let place = Place::new();
    let model = place.file("model.onnx");
    let maker = text(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/models/make_tiny.py"));
    let made = common::command(&environment("python")).args([&*maker, "inline", &model]).status();
    assert!(made.expect("python starts").success());
    let base = started(&model, "base");
    let (code, same) = diff(&base, &started(&model, "base"));
    assert_eq!((code, changes(&same)), (Some(0), Vec::new()), "{same:#}");
    let hash = || ("engine", "hash of what was built");
    for (variant, section, what) in [
        ("flag", "configuration", "flag REFIT"),
        ("level", "configuration", "optimizationLevel"),
        ("target", "configuration", "targets"),
        ("profile", "configuration", "profile 0 of input"),
    ] {
        let (code, document) = diff(&base, &started(&model, variant));
        let expected = [(section, what), hash()].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!((code, changes(&document)), (Some(1), expected.to_vec()), "{variant}");
    }
    let mut bytes = std::fs::read(&model).expect("the model");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&model, bytes).expect("the model can be written");
    let (_, document) = diff(&base, &started(&model, "base"));
    let expected = [("inputs", "model.onnx"), hash()].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(changes(&document), expected, "{document:#}");
}
