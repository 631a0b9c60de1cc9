//! What the user's own monitor wrote down in its own process with its own clock (`fixtures/clients/python/monitors.py`).

use super::job::alone;
use super::{model, script, wait_for};
use serde_json::Value;
use std::path::Path;

/// One line of a witness.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub ns: u64,
    /// What was called.
    pub call: Call,
}

/// What the builder told, without its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// `phaseStart`: name, parent, steps.
    Start(String, Option<String>, i64),
    /// `stepComplete`: name, step.
    Step(String, i64),
    /// `phaseFinish`: name.
    Finish(String),
    /// The client's own words: `calling`, `returned`.
    Other(String),
}

impl Call {
    /// A line's call.
    pub fn of(line: &Value) -> Self {
        let text = |field: &str| line[field].as_str().unwrap_or_default().to_owned();
        let number = |field: &str| line[field].as_i64().expect("a number");
        match line["call"].as_str().expect("a call") {
            "phaseStart" => {
                Self::Start(text("name"), line["parent"].as_str().map(str::to_owned), number("steps"))
            }
            "stepComplete" => Self::Step(text("name"), number("step")),
            "phaseFinish" => Self::Finish(text("name")),
            other => Self::Other(other.to_owned()),
        }
    }

    /// Whether the builder made it.
    pub fn is_callback(&self) -> bool {
        !matches!(self, Self::Other(_))
    }
}

/// The notes in a file, whole lines only.
pub fn notes(path: impl AsRef<Path>) -> Vec<Note> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.map(|line| Note { ns: line["ns"].as_u64().expect("a stamp"), call: Call::of(&line) }).collect()
}

/// The callbacks of a build of a model without stuckproof.
pub fn callbacks_alone(name: &str) -> Vec<Call> {
    let folder = super::job::Place::new();
    let stamps = folder.file("stamps");
    let output = alone(&script("user_monitor.py", &[&model(name), &folder.file("engine"), &stamps]));
    let calls: Vec<Call> =
        notes(&stamps).into_iter().map(|note| note.call).filter(Call::is_callback).collect();
    assert!(!calls.is_empty(), "no callback: {output:?}");
    calls
}

/// Waits until the build is inside the phase that holds its one long step.
pub fn wait_for_long_step(stamps: &str) -> u64 {
    wait_for("the long step", || {
        let text = std::fs::read_to_string(stamps).unwrap_or_default();
        let begun =
            |line: &&str| line.contains("\"phaseStart\"") && line.contains("Determining refit engines");
        let line: Value = serde_json::from_str(text.lines().find(begun)?).ok()?;
        line["ns"].as_u64()
    })
}

/// The moment of a client's own note.
pub fn moment(notes: &[Note], word: &str) -> u64 {
    let said = |note: &&Note| note.call == Call::Other(word.to_owned());
    notes.iter().find(said).unwrap_or_else(|| panic!("the client did not say {word}")).ns
}
