//! How a running job is: what `stuckproof status` tells of it.

use super::silence::LiveSilence;
use crate::clock::{Anchor, Mono, round_ms};
use crate::event::{Event, EventKind, OpenPhase};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The state of a running job at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Live {
    /// The job.
    pub job: String,
    /// `running`, or `cancelling` from the first request on.
    pub state: String,
    /// Its bundle.
    pub bundle: PathBuf,
    /// Its runner.
    pub runner_pid: u32,
    /// The wrapped command's process, once it runs.
    pub command_pid: Option<u32>,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// How long it has run, milliseconds.
    pub elapsed_ms: f64,
    /// Builder libraries observed.
    pub libraries: u32,
    /// The builds so far, in their order.
    pub builds: Vec<LiveBuild>,
    /// The open phases of running builds, root first.
    pub open_branch: Vec<LivePhase>,
    /// The time since a builder last called back, milliseconds; null before the first callback.
    pub last_callback_ms: Option<f64>,
    /// The requests to stop so far.
    pub requests: Vec<LiveRequest>,
    /// What its silence means; null before the command runs.
    pub silence: Option<LiveSilence>,
}

/// A build of a running job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveBuild {
    /// The build.
    pub build: u32,
    /// Its process.
    pub pid: u32,
    /// The method.
    pub method: String,
    /// `running`, `engine` when it returned one, `nothing` when it returned none.
    pub state: String,
    /// How long it ran, or has been running, milliseconds.
    pub elapsed_ms: f64,
}

/// An open phase of a running job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LivePhase {
    /// The build.
    pub build: u32,
    /// The phase instance.
    pub phase: u64,
    /// Its name.
    pub name: String,
    /// The last step reported, or null.
    pub last_step: Option<i32>,
    /// The announced steps.
    pub steps: i32,
    /// How long it has been open, milliseconds.
    pub open_ms: f64,
}

/// A request to stop a running job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveRequest {
    /// Its number.
    pub request: u32,
    /// How it came.
    pub via: String,
    /// Whether it is the one that stops the job.
    pub accepted: bool,
    /// How long ago it came, milliseconds.
    pub ago_ms: f64,
    /// From the request to the builder's answer, milliseconds, once there is one.
    pub acknowledged_after_ms: Option<f64>,
}

/// What is remembered of the events of a running job, for [`Live`].
#[derive(Debug)]
pub struct Board {
    started: Mono,
    command_pid: Option<u32>,
    libraries: u32,
    builds: Vec<(Mono, Option<Mono>, LiveBuild)>,
    requests: Vec<(Mono, LiveRequest)>,
    last_callback: Option<Mono>,
}

impl Board {
    /// A board of a job that started at the anchor.
    #[must_use]
    pub fn new(started: Mono) -> Self {
        Self {
            started,
            command_pid: None,
            libraries: 0,
            builds: Vec::new(),
            requests: Vec::new(),
            last_callback: None,
        }
    }

    /// Whether a builder library was ever observed, so that somebody can answer a request.
    #[must_use]
    pub fn builder_seen(&self) -> bool {
        self.libraries > 0
    }

    /// Takes an event in.
    pub fn note(&mut self, event: &Event) {
        match &event.kind {
            EventKind::CommandStarted(e) => self.command_pid = Some(e.pid),
            EventKind::LibraryAttached(_) => self.libraries += 1,
            EventKind::BuildStarted(e) => self.builds.push((
                event.at,
                None,
                LiveBuild {
                    build: e.build,
                    pid: e.pid,
                    method: e.method.clone(),
                    state: "running".to_owned(),
                    elapsed_ms: 0.0,
                },
            )),
            EventKind::BuildReturned(e) => {
                if let Some((_, end, build)) = self.builds.iter_mut().find(|(.., b)| b.build == e.build) {
                    *end = Some(event.at);
                    build.state = (if e.engine { "engine" } else { "nothing" }).into();
                }
            }
            EventKind::PhaseStarted(_) | EventKind::StepCompleted(_) | EventKind::PhaseFinished(_) => {
                self.last_callback = Some(event.at);
            }
            EventKind::CancelRequested(e) => self.requests.push((
                event.at,
                LiveRequest {
                    request: e.request,
                    via: e.via.clone(),
                    accepted: e.accepted,
                    ago_ms: 0.0,
                    acknowledged_after_ms: None,
                },
            )),
            EventKind::CancelAcknowledged(e) => {
                if let Some((_, request)) = self.requests.iter_mut().find(|(_, r)| r.request == e.request) {
                    request.acknowledged_after_ms.get_or_insert(round_ms(e.latency_ns));
                }
            }
            _ => {}
        }
    }

    /// The board as of `now`.
    #[must_use]
    pub fn live(&self, job: &str, bundle: &Path, anchor: Anchor, open: Vec<OpenPhase>, now: Mono) -> Live {
        let builds = self.builds.iter().map(|(start, end, build)| LiveBuild {
            elapsed_ms: end.unwrap_or(now).ms_since(*start),
            ..build.clone()
        });
        let requests =
            self.requests.iter().map(|(at, r)| LiveRequest { ago_ms: now.ms_since(*at), ..r.clone() });
        Live {
            job: job.to_owned(),
            state: if self.requests.is_empty() { "running" } else { "cancelling" }.to_owned(),
            bundle: bundle.to_path_buf(),
            runner_pid: std::process::id(),
            command_pid: self.command_pid,
            started_at: anchor.rfc3339(self.started),
            elapsed_ms: now.ms_since(self.started),
            libraries: self.libraries,
            builds: builds.collect(),
            open_branch: open.into_iter().map(LivePhase::from).collect(),
            last_callback_ms: self.last_callback.map(|at| now.ms_since(at)),
            requests: requests.collect(),
            silence: None,
        }
    }
}

impl From<OpenPhase> for LivePhase {
    fn from(open: OpenPhase) -> Self {
        Self {
            build: open.build,
            phase: open.phase,
            name: open.name,
            last_step: open.last_step,
            steps: open.steps,
            open_ms: round_ms(open.open_ns),
        }
    }
}
