//! What the log says of silences: the verdicts, and what earlier builds made expect.

use crate::clock::{Anchor, Mono, round_ms};
use crate::event::{BuildExpected, EventKind, Likeness, SilenceJudged, SilenceVerdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Verdicts of `stalled` that are kept one by one.
const STALLS: usize = 50;

/// How the job's silences were judged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Silences {
    /// The last verdict on record; null where none was ever needed.
    pub last: Option<Judged>,
    /// The verdicts of `stalled`, in order.
    pub stalls: Vec<Judged>,
    /// How often the verdict changed to each.
    pub verdicts: BTreeMap<String, u64>,
}

/// One verdict, with the facts that it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Judged {
    /// When.
    pub at: String,
    /// When, on the job's clock.
    pub t_ns: u64,
    /// The facts, as the log has them.
    pub facts: SilenceJudged,
    /// The same in words.
    pub words: String,
}

/// What earlier builds made expect of a build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expected {
    /// Which earlier builds these were.
    pub likeness: Likeness,
    /// How many succeeded.
    pub builds: u32,
    /// How many stalled.
    pub stalls: u32,
    /// How long a build takes, or null where none is known.
    pub total_ms: Option<f64>,
    /// How far the build's own time was from that, in percent of it; null where one of the two is missing.
    pub error_percent: Option<f64>,
    /// The GPU that was looked for.
    pub sku: String,
    /// The cache mode that was looked for.
    pub cache: String,
    /// What of the history could not be used.
    pub notes: Vec<String>,
}

/// Gathers them from the log.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    silences: Silences,
    expected: BTreeMap<u32, BuildExpected>,
    idle: BTreeMap<u32, u64>,
}

impl Gathered {
    pub(super) fn see(&mut self, at: Mono, kind: &EventKind, anchor: Anchor) {
        match kind {
            EventKind::BuildExpected(expected) => {
                self.expected.insert(expected.build, expected.clone());
            }
            EventKind::SilenceJudged(facts) => self.judged(at, facts, anchor),
            _ => {}
        }
    }

    fn judged(&mut self, at: Mono, facts: &SilenceJudged, anchor: Anchor) {
        let words = crate::stall::in_words(facts);
        let judged = Judged { at: anchor.rfc3339(at), t_ns: at.0, facts: facts.clone(), words };
        *self.silences.verdicts.entry(facts.verdict.name().to_owned()).or_default() += 1;
        if facts.verdict == SilenceVerdict::Stalled && self.silences.stalls.len() < STALLS {
            self.silences.stalls.push(judged.clone());
        }
        // A silence that ended by itself was none to be stopped, unless somebody had stopped its threads.
        let by_itself = facts.verdict == SilenceVerdict::Advancing && facts.stopped == 0;
        if let Some(build) = facts.build.filter(|_| by_itself) {
            let longest = self.idle.entry(build).or_default();
            *longest = facts.idle_ns.max(*longest);
        }
        self.silences.last = Some(judged);
    }

    pub(super) fn silences(&self) -> Silences {
        self.silences.clone()
    }

    /// The longest that a build was idle in a silence that ended by itself.
    pub(super) fn longest_idle_ms(&self, build: u32) -> f64 {
        round_ms(self.idle.get(&build).copied().unwrap_or(0))
    }

    /// What was expected of a build; `took_ms` is how long it took, if it returned an engine.
    pub(super) fn expected(&self, build: u32, took_ms: Option<f64>) -> Option<Expected> {
        let expected = self.expected.get(&build)?;
        let total_ms = expected.total_ns.map(round_ms);
        let error = |(took, total): (f64, f64)| ((took - total) / total * 1_000.0).round() / 10.0;
        Some(Expected {
            likeness: expected.likeness,
            builds: expected.builds,
            stalls: expected.stalls,
            total_ms,
            error_percent: took_ms.zip(total_ms.filter(|total| *total > 0.0)).map(error),
            sku: expected.sku.clone(),
            cache: expected.cache.clone(),
            notes: expected.notes.clone(),
        })
    }
}
