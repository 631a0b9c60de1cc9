//! The files that the builds were made from.

use super::{Section, Sheet};
use crate::event::InputKind;
use crate::evidence::Input;
use std::collections::{BTreeMap, HashMap};

/// Compares the inputs. They are matched by their names: the same model may lie in another folder.
pub(super) fn inputs(a: &[Input], b: &[Input]) -> Section {
    let mut sheet = Sheet::new("inputs");
    sheet.put_all("", &contents(a), &contents(b));
    sheet.section()
}

/// What is in each file; of several with one name each has a number.
fn contents(inputs: &[Input]) -> BTreeMap<String, String> {
    let mut contents = BTreeMap::new();
    let mut numbers: HashMap<&str, u64> = HashMap::new();
    for input in inputs.iter().filter(|input| input.kind != InputKind::Library) {
        let name = input.path.rsplit('/').next().unwrap_or_default();
        let mut key = name.to_owned();
        let number = numbers.entry(name).or_insert(1);
        // A file may be called like one with a number.
        while contents.contains_key(&key) {
            *number += 1;
            key = format!("{name} ({number})");
        }
        contents.insert(key, content(input));
    }
    contents
}

fn content(input: &Input) -> String {
    let size = input.bytes.map_or_else(|| "unknown size".to_owned(), |bytes| format!("{bytes} bytes"));
    match (&input.sha256, &input.changed) {
        (Some(digest), None) => format!("{size}, SHA-256 {digest}"),
        (Some(_), Some(what)) => format!("{size}, changed while the job ran: {what}"),
        (None, _) => format!("{size}, content not known"),
    }
}

/// The digest of the library that was met last.
pub(super) fn library(inputs: &[Input]) -> Option<&str> {
    inputs.iter().rfind(|input| input.kind == InputKind::Library)?.sha256.as_deref()
}
