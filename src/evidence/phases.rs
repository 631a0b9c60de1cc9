//! What `phases.json` holds: the phases of every build in the order of their start, each with its parent.
//!
//! The list is flat, so that a tree of any depth can be read without recursion; parents stand before their children.

use crate::clock::Mono;
use crate::event::{BuildTree, PhaseEnd, PhaseInstance, Tree};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The phase trees of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "phases")]
pub struct Phases {
    /// Version of this file's format: 1.
    pub format: u32,
    /// Whether the log has its end.
    pub finished: bool,
    /// The builds.
    pub builds: Vec<BuildPhases>,
}

/// The phases of one build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuildPhases {
    /// The build.
    pub build: u32,
    /// The builder's process.
    pub pid: u32,
    /// The thread that called.
    pub tid: u32,
    /// The method's name.
    pub method: String,
    /// When the method was entered, on the job's clock.
    pub started_ns: u64,
    /// To its return, or to the last moment that is known of it.
    pub duration_ms: f64,
    /// Its phases.
    pub phases: Vec<Phase>,
}

/// One phase instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Phase {
    /// The instance, counted over the whole job.
    pub phase: u64,
    /// The parent's instance, or null for a root.
    pub parent: Option<u64>,
    /// The parent's name as `TensorRT` gave it, where no open phase had it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unknown_parent: Option<String>,
    /// The display name.
    pub name: String,
    /// Steps announced.
    pub announced: i32,
    /// Steps reported.
    pub reported: u32,
    /// When it began, milliseconds after its build.
    pub start_ms: f64,
    /// How long it was open.
    pub duration_ms: f64,
    /// How it ended.
    pub end: End,
    /// Why it was closed, where it was aborted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// How a phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum End {
    /// By its own finish.
    Finished,
    /// By us, since nobody else would.
    Aborted,
    /// Not yet.
    Open,
}

impl Phases {
    pub(super) fn of(tree: &Tree, finished: bool) -> Self {
        Self { format: 1, finished, builds: tree.builds().map(BuildPhases::of).collect() }
    }

    /// Those of one build; builds stand in the order of their numbers.
    #[must_use]
    pub fn of_build(&self, number: u32) -> Option<&BuildPhases> {
        self.builds.binary_search_by_key(&number, |build| build.build).ok().map(|place| &self.builds[place])
    }
}

impl BuildPhases {
    fn of(build: &BuildTree) -> Self {
        Self {
            build: build.build,
            pid: build.pid,
            tid: build.tid,
            method: build.method.clone(),
            started_ns: build.started.0,
            duration_ms: build.ended.ms_since(build.started),
            phases: build.phases.iter().map(|phase| Phase::of(phase, build.started)).collect(),
        }
    }
}

impl Phase {
    fn of(phase: &PhaseInstance, build_started: Mono) -> Self {
        let (end, reason) = match &phase.end {
            PhaseEnd::Open => (End::Open, None),
            PhaseEnd::Finished => (End::Finished, None),
            PhaseEnd::Aborted(reason) => (End::Aborted, Some(reason.clone())),
        };
        Self {
            phase: phase.phase,
            parent: phase.parent,
            unknown_parent: phase.unknown_parent.clone(),
            name: phase.name.clone(),
            announced: phase.announced,
            reported: phase.reported,
            start_ms: phase.started.ms_since(build_started),
            duration_ms: phase.ended.ms_since(phase.started),
            end,
            reason,
        }
    }
}
