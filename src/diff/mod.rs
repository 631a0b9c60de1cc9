//! What changed between two jobs, in the order in which a person would look: what became of them, what built, on what,
//! from what, how long it took, and what stood around it.

mod build;
mod file;
mod host;
mod names;
mod phases;

use crate::evidence::{Bundle, Evidence};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// What `stuckproof diff` tells.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// Version of this document's format: 1.
    pub format: u32,
    /// The first bundle.
    pub a: Side,
    /// The second.
    pub b: Side,
    /// Whether nothing differs but times.
    pub same: bool,
    /// Why the comparison cannot be relied on; empty where it can.
    pub doubts: Vec<String>,
    /// Where something differs, in order.
    pub sections: Vec<Section>,
}

/// One of the two bundles.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Side {
    /// Its folder.
    pub path: String,
    /// Its job.
    pub job: String,
    /// When that started.
    pub started_at: String,
}

/// Differences of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Section {
    /// What they are about.
    pub name: String,
    /// Whether they are of times only, which never repeat.
    pub times: bool,
    /// They.
    pub changes: Vec<Change>,
    /// How many more there are, smaller than those.
    pub more: u64,
}

/// One thing that differs. A side on which it is not there has null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// What.
    pub what: String,
    /// In the first bundle.
    pub a: Option<String>,
    /// In the second.
    pub b: Option<String>,
}

/// From which change of a duration on it is told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// Per cent of the longer one.
    pub percent: f64,
    /// Milliseconds.
    pub ms: f64,
}

/// Compares two bundles.
#[must_use]
pub fn compare(a: &Bundle, b: &Bundle, threshold: Threshold) -> Difference {
    let mut sections = vec![
        state(&a.evidence, &b.evidence),
        library(a, b),
        host::gpu(a.baseline.as_ref().ok(), b.baseline.as_ref().ok(), [&a.summary, &b.summary]),
    ];
    build::compare(&a.evidence, &b.evidence, &mut sections);
    sections.push(file::inputs(&a.evidence.inputs, &b.evidence.inputs));
    let mut cache = Sheet::new("timing cache");
    cache.put("mode", [a, b].map(|side| side.summary.timing_cache_mode.map(word)));
    sections.push(cache.section());
    sections.push(build::engines(a, b));
    sections.push(phases::compare(a, b, threshold));
    sections.push(counts(&a.evidence, &b.evidence));
    sections.push(host::surroundings(a, b));
    sections.retain(|section| !section.changes.is_empty());
    Difference {
        format: 1,
        a: Side::of(a),
        b: Side::of(b),
        same: sections.iter().all(|section| section.times),
        doubts: doubts("the first", a).chain(doubts("the second", b)).collect(),
        sections,
    }
}

impl Side {
    fn of(bundle: &Bundle) -> Self {
        let evidence = &bundle.evidence;
        Self {
            path: bundle.path.to_string_lossy().into_owned(),
            job: evidence.job.clone(),
            started_at: evidence.started_at.clone(),
        }
    }
}

/// Why what a bundle says may not be all, or not true.
fn doubts(name: &str, bundle: &Bundle) -> impl Iterator<Item = String> {
    let fault =
        bundle.faults.first().map(|fault| format!("the log of {name} bundle cannot be trusted: {fault}"));
    let open = !bundle.evidence.finished;
    let open = open.then(|| format!("the job of {name} bundle has not ended, or its runner was lost"));
    let lost = bundle.evidence.lost.first();
    let lost = lost.map(|lost| format!("a part of the record of {name} bundle was lost: {}", lost.reason));
    fault.into_iter().chain(open).chain(lost)
}

/// Gathers what differs of one kind.
struct Sheet {
    name: String,
    changes: Vec<Change>,
}

impl Sheet {
    fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), changes: Vec::new() }
    }

    /// Puts down a value of both sides, if they differ.
    fn put<T: Display>(&mut self, what: impl Display, sides: [Option<T>; 2]) {
        let [a, b] = sides.map(|side| side.map(|value| value.to_string()));
        if a != b {
            self.changes.push(Change { what: what.to_string(), a, b });
        }
    }

    /// Puts down what differs between two tables.
    fn put_all<V: Display>(&mut self, before: &str, a: &BTreeMap<String, V>, b: &BTreeMap<String, V>) {
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for name in names {
            self.put(format_args!("{before}{name}"), [a.get(name), b.get(name)]);
        }
    }

    fn section(self) -> Section {
        Section { name: self.name, times: false, changes: self.changes, more: 0 }
    }
}

fn state(a: &Evidence, b: &Evidence) -> Section {
    let mut sheet = Sheet::new("state");
    let both = [a, b];
    sheet.put("state", both.map(|side| Some(word(side.state))));
    sheet.put("cause", both.map(|side| side.cause.as_ref()));
    sheet.put("exit code", both.map(|side| side.exit_code));
    sheet.put("builds", both.map(|side| Some(side.builds.len())));
    sheet.put("first error", both.map(first_error));
    let asked =
        both.map(|side| side.requests.iter().find(|request| request.accepted).map(|request| &request.via));
    sheet.put("stop asked by", asked);
    sheet.section()
}

fn first_error(side: &Evidence) -> Option<&str> {
    let of_builds = side.builds.iter().flat_map(|build| &build.errors);
    of_builds.chain(&side.errors).map(|error| error.text.as_str()).next()
}

fn library(a: &Bundle, b: &Bundle) -> Section {
    let mut sheet = Sheet::new("library");
    sheet.put("TensorRT", [a, b].map(|side| Some(&side.summary.tensorrt_version)));
    let digest = |side: &Bundle| file::library(&side.evidence.inputs).map(str::to_owned);
    sheet.put("SHA-256", [a, b].map(digest));
    sheet.put("language", [a, b].map(|side| Some(word(side.summary.language))));
    sheet.section()
}

fn counts(a: &Evidence, b: &Evidence) -> Section {
    let mut sheet = Sheet::new("counts");
    let both = [a, b].map(|side| side.counts);
    sheet.put("phases", both.map(|counts| Some(counts.phases)));
    sheet.put("steps", both.map(|counts| Some(counts.steps)));
    sheet.put("messages", both.map(|counts| Some(counts.messages)));
    sheet.put("processes left behind", [a, b].map(|side| Some(side.leftovers.len())));
    sheet.section()
}

/// A value of a closed list, as the bundle's files write it.
fn word(value: impl Serialize) -> String {
    let json = serde_json::to_value(value).expect("a word of a list is JSON");
    json.as_str().unwrap_or_default().to_owned()
}
