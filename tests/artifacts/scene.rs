//! A folder with yesterday's engine, a job that builds a new one there, and what must hold afterwards.

use crate::common::bundle::Bundle;
use crate::common::job::{Ended, Place, start, stuckproof};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// What an earlier build has left.
pub const PREVIOUS: &[u8] = b"yesterday's engine";

/// A place with a folder of engines, in which one lies.
pub fn place() -> Place {
    let place = Place::new();
    fs::create_dir(place.file("models")).expect("a folder");
    fs::write(engine(&place), PREVIOUS).expect("it can be written");
    place
}

/// The engine's path.
pub fn engine(place: &Place) -> String {
    place.file("models/a.engine")
}

/// A script that sees the engine's path as `$E`.
pub fn shell(place: &Place, script: &str) -> Vec<String> {
    ["sh", "-c", &format!("E='{}'\n{script}", engine(place))].map(str::to_owned).to_vec()
}

/// Runs a script as the job that builds the engine.
pub fn ran(place: Place, options: &[&str], script: &str) -> Ended {
    let engine = engine(&place);
    let wrapped = shell(&place, script);
    start(place, &[&["--engine", &engine], options].concat(), &wrapped).end()
}

/// The names in a folder, in order.
pub fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

/// The artifacts as the inventory has them.
pub fn inventory(bundle: &Path) -> Vec<Value> {
    let text = fs::read(bundle.join("inventory.json")).expect("the bundle has an inventory");
    let inventory: Value = serde_json::from_slice(&text).expect("JSON");
    inventory["artifacts"].as_array().expect("a list").clone()
}

/// The only artifact.
pub fn artifact(bundle: &Path) -> Value {
    let mut all = inventory(bundle);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

/// Asserts that yesterday's engine lies there as it was, and beside it nothing but a quarantine if there is one.
pub fn assert_as_before(place: &Place) {
    assert_eq!(fs::read(engine(place)).expect("it is there"), PREVIOUS);
    assert_nothing_beside(place);
}

/// Asserts that nothing of ours lies beside the engine but a quarantine.
pub fn assert_nothing_beside(place: &Place) {
    let mut names = names(place.file("models"));
    names.retain(|name| name != "stuckproof-quarantine");
    assert_eq!(names, ["a.engine"]);
}

/// Asserts that the quarantine holds this one file, and that its record says so.
pub fn assert_set_aside(place: &Place, artifact: &Value, content: &[u8]) {
    let entry = quarantined(place);
    assert_eq!(artifact["quarantine"].as_str().map(Path::new), Some(&*entry));
    assert_eq!(names(&entry), ["README.md", "a.engine", "record.json"]);
    assert_eq!(fs::read(entry.join("a.engine")).expect("it is there"), content);
    let shown = stuckproof().args(["quarantine", "show"]).arg(&entry).output().expect("it starts");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("It is what was set aside."), "{shown}");
    assert_eq!(artifact["partial"]["bytes"], content.len());
}

/// The only entry in the quarantine.
pub fn quarantined(place: &Place) -> PathBuf {
    let folder = PathBuf::from(place.file("models/stuckproof-quarantine"));
    let entries = names(&folder);
    assert_eq!(entries.len(), 1, "{entries:?}");
    fs::canonicalize(folder.join(&entries[0])).expect("it is there")
}

/// Whether a file is a whole engine: its header names the file's own size.
pub fn is_whole(engine: &[u8]) -> bool {
    let size = engine.get(16..24).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
    engine.starts_with(b"vtrt") && size == Some(engine.len() as u64)
}

/// Asserts that the bundle says what lies there.
pub fn assert_told(place: &Place, bundle: &Bundle) {
    let artifact = artifact(&bundle.path);
    let there = fs::read(engine(place)).ok();
    assert_eq!(
        artifact["after"]["bytes"].as_u64(),
        there.as_ref().map(|bytes| bytes.len() as u64),
        "{artifact:#}"
    );
    assert!(bundle.summary["cleanupStatus"].is_string(), "{:#}", bundle.summary);
}
