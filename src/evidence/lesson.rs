//! What a finished bundle teaches the history.

use super::Bundle;
use super::libraries::Libraries;
use super::model::{Build, JobState};
use super::phases::BuildPhases;
use crate::event::LibraryAttached;
use crate::history::{Entry, EntryPhase, EntrySilence, Key, Outcome, Paths};
use std::collections::BTreeMap;

/// Phases of one build that are remembered: the longest.
const PHASES: usize = 200;

/// One entry for each build that its builder has described.
#[must_use]
pub fn lessons(bundle: &Bundle) -> Vec<Entry> {
    let libraries = Libraries::of(&bundle.evidence.libraries);
    let both =
        bundle.evidence.builds.iter().filter_map(|build| Some((build, bundle.phases.of_build(build.build)?)));
    both.filter_map(|(build, phases)| lesson(bundle, libraries.in_process(build.pid)?, build, phases))
        .collect()
}

fn lesson(bundle: &Bundle, library: &LibraryAttached, build: &Build, phases: &BuildPhases) -> Option<Entry> {
    let facts = build.facts.as_ref()?;
    let sku = bundle.baseline.as_ref().ok().and_then(|baseline| baseline.sku(Some(facts)).ok());
    let keys = keys(phases);
    let silences = build.longest_silences.iter();
    let stalls = bundle.evidence.silences.stalls.iter().map(|judged| &judged.facts);
    let own_stalls = stalls.filter(|facts| facts.build == Some(build.build));
    Some(Entry {
        format: 1,
        job: bundle.evidence.job.clone(),
        build: build.build,
        key: Key::of(library, facts, sku.as_deref()),
        outcome: match build.state {
            JobState::Succeeded => Outcome::Succeeded,
            _ => Outcome::NotSucceeded,
        },
        total_ms: ms(build.duration_ms),
        longest_idle_ms: ms(build.longest_idle_ms),
        silences: silences.map(|s| EntrySilence { key: key(&keys, s.phase), ms: ms(s.ms) }).collect(),
        phases: longest(phases, &keys),
        stalled_in: own_stalls.filter_map(|facts| key(&keys, facts.phase)).collect(),
    })
}

fn key(keys: &BTreeMap<u64, String>, phase: Option<u64>) -> Option<String> {
    keys.get(&phase?).cloned()
}

fn keys(build: &BuildPhases) -> BTreeMap<u64, String> {
    let mut paths = Paths::default();
    let keyed =
        |phase: &super::Phase| Some((phase.phase, paths.open(phase.phase, phase.parent, &phase.name)?));
    build.phases.iter().filter_map(keyed).collect()
}

fn longest(build: &BuildPhases, keys: &BTreeMap<u64, String>) -> Vec<EntryPhase> {
    let mut phases: Vec<&super::Phase> = build.phases.iter().collect();
    phases.sort_by(|a, b| b.duration_ms.total_cmp(&a.duration_ms));
    let known = phases.iter().filter_map(|phase| {
        Some(EntryPhase {
            key: keys.get(&phase.phase)?.clone(),
            name: phase.name.chars().take(200).collect(),
            start_ms: ms(phase.start_ms),
            ms: ms(phase.duration_ms),
        })
    });
    known.take(PHASES).collect()
}

fn ms(ms: f64) -> u64 {
    ms.round() as u64
}
