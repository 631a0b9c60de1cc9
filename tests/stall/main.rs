//! Stuck or slow, on real builds whose truth is known: a labelled set, built by `fixtures/stall/act.py`.
//!
//! No build that works or advances is ever called stalled; every one that hangs idle is found within ten seconds of its
//! threshold. The short set runs with the tests. `STUCKPROOF_RUNS` runs all of it and prints the table of confusion.

mod blocked;
#[path = "../common/mod.rs"]
mod common;
mod crowded;
mod history;
mod labelled;
mod reaction;
mod resources;

use common::environment;
use common::job::Place;
use std::path::Path;

/// A real build of a model of the rig that acts at a place.
fn acting(place: &Place, model: &str, act: &str, at: &str, seconds: u64) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/stall/act.py");
    let script = script.to_string_lossy().into_owned();
    let words = [environment("python"), script, common::model(model), act.to_owned()];
    let rest = [at.to_owned(), seconds.to_string(), place.file("stamp")];
    words.into_iter().chain(rest).collect()
}
