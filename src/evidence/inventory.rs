//! `inventory.json`: every artifact before and after the job.

use super::summary::CleanupStatus;
use crate::clock::{Anchor, Mono};
use crate::event::{
    ArtifactDeclared, ArtifactFacts, ArtifactKind, ArtifactMode, ArtifactOutcome, ArtifactSettled,
    CachePolicy, SettledBy, TimingCacheMode,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Every artifact before and after the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "inventory")]
pub struct Inventory {
    /// Version of this file's format: 1.
    pub format: u32,
    /// Whether the log has its end.
    pub finished: bool,
    /// The job.
    pub job: String,
    /// The artifacts in the order in which they were declared.
    pub artifacts: Vec<Artifact>,
}

/// An artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Artifact {
    /// Its number, from 1.
    pub artifact: u32,
    /// What it is.
    pub kind: ArtifactKind,
    /// Whether it is a folder.
    pub folder: bool,
    /// Where it belongs, absolute.
    pub path: String,
    /// The file or folder that the path leads to.
    pub target: String,
    /// Where the command wrote it.
    pub mode: ArtifactMode,
    /// What was there before, or null.
    pub before: Option<ArtifactFacts>,
    /// What became of it; null before the end.
    pub outcome: Option<ArtifactOutcome>,
    /// Why so, or null before the end.
    pub reason: Option<String>,
    /// Why a job that would have succeeded failed for it, or null.
    pub fault: Option<String>,
    /// What is there now, or null.
    pub after: Option<ArtifactFacts>,
    /// What was set aside, or null.
    pub partial: Option<ArtifactFacts>,
    /// The quarantine's folder for it, or null.
    pub quarantine: Option<String>,
    /// What the job might do with a timing cache; null for an engine.
    pub policy: Option<CachePolicy>,
    /// What the builder did with a timing cache; null for an engine, and before the end.
    pub timing_cache: Option<TimingCacheMode>,
    /// What the first bytes of the engine say, or null where none was looked at.
    pub content: Option<String>,
    /// Files beside it that look like engines, are newer than the job's start and were not declared.
    pub undeclared: Vec<String>,
    /// When it was settled; null before that, and where nobody timed it.
    pub settled_at: Option<String>,
}

impl Artifact {
    /// Whether what was there before is known to be there still, or again.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.before.is_some()
            && matches!(self.outcome, Some(ArtifactOutcome::Kept | ArtifactOutcome::Restored))
    }
}

/// What is on record of the artifacts.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) declared: Vec<ArtifactDeclared>,
    pub(super) settled: Vec<(Mono, ArtifactSettled)>,
}

impl Gathered {
    pub(super) fn inventory(&self, job: &str, finished: bool, anchor: Anchor) -> Inventory {
        let mut settled = HashMap::new();
        for (at, facts) in &self.settled {
            settled.entry(facts.artifact).or_insert((*at, facts));
        }
        let of = |declared: &ArtifactDeclared| settled.get(&declared.artifact).copied();
        let artifacts = self.declared.iter().map(|one| artifact(one, of(one), anchor)).collect();
        Inventory { format: 1, finished, job: job.to_owned(), artifacts }
    }

    /// When the last artifact was settled, where the runner did it and all of them are.
    pub(super) fn cleaned(&self) -> Option<Mono> {
        let by_runner = self.settled.iter().all(|(_, settled)| settled.by == SettledBy::Runner);
        let all = self.settled.len() == self.declared.len();
        self.settled.iter().map(|(at, _)| *at).max().filter(|_| by_runner && all)
    }
}

/// An artifact as it was declared, with what became of it.
fn artifact(
    declared: &ArtifactDeclared,
    settled: Option<(Mono, &ArtifactSettled)>,
    anchor: Anchor,
) -> Artifact {
    let (at, settled) = settled.map_or((None, None), |(at, settled)| (Some(at), Some(settled)));
    let before = declared.previous.clone().map(|facts| ArtifactFacts {
        sha256: facts.sha256.or_else(|| settled.and_then(|settled| settled.previous_sha256.clone())),
        ..facts
    });
    let timed = settled.is_some_and(|settled| settled.by == SettledBy::Runner);
    Artifact {
        artifact: declared.artifact,
        kind: declared.kind,
        folder: declared.folder,
        path: declared.path.clone(),
        target: declared.target.clone(),
        mode: declared.mode,
        before,
        outcome: settled.map(|settled| settled.outcome),
        reason: settled.map(|settled| settled.reason.clone()),
        fault: settled.and_then(|settled| settled.fault.clone()),
        after: settled.and_then(|settled| settled.after.clone()),
        partial: settled.and_then(|settled| settled.partial.clone()),
        quarantine: settled.and_then(|settled| settled.quarantine.clone()),
        policy: declared.policy,
        timing_cache: settled.and_then(|settled| settled.timing_cache),
        content: settled.and_then(|settled| settled.content.clone()),
        undeclared: settled.map(|settled| settled.undeclared.clone()).unwrap_or_default(),
        settled_at: at.filter(|_| timed).map(|at| anchor.rfc3339(at)),
    }
}

/// What became of partial output; none without artifacts, and before the end.
pub(super) fn cleanup(inventory: &Inventory) -> Option<CleanupStatus> {
    let artifacts = &inventory.artifacts;
    if artifacts.is_empty() || !inventory.finished {
        return None;
    }
    let failed = |artifact: &Artifact| matches!(artifact.outcome, None | Some(ArtifactOutcome::Failed));
    Some(if artifacts.iter().any(failed) {
        CleanupStatus::Failed
    } else if artifacts.iter().any(|artifact| artifact.quarantine.is_some()) {
        CleanupStatus::Quarantined
    } else {
        CleanupStatus::Cleaned
    })
}
