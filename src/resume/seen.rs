//! What a log says, as far as its end needs it.

use super::ResumeError;
use super::replay::is_told;
use crate::artifact::Journal;
use crate::clock::Mono;
use crate::event::{
    CancelRequested, CommandExited, Event, EventKind, EvidenceLost, JobEnded, JobStarted, PhaseAborted,
    PhaseEnd, Tree,
};
use crate::verdict::{Judge, Verdict};
use std::path::Path;

/// Everything that was seen so far: on record before, or appended since.
#[derive(Debug)]
pub(super) struct Seen {
    judge: Judge,
    tree: Tree,
    /// What is on record of the artifacts.
    pub(super) journal: Journal,
    /// The last moment that is on record.
    pub(super) last: Mono,
    pub(super) exited: Option<CommandExited>,
    pub(super) accepted: Option<(Mono, CancelRequested)>,
    pub(super) losses: Vec<EvidenceLost>,
    /// Whether unfinished records are on record.
    pub(super) unfinished: bool,
    /// Everything that does not come from a record.
    pub(super) own: Vec<Event>,
    ended: Option<JobEnded>,
    /// Whether the last event is that the command exited with 0.
    pub(super) ends_with_success: bool,
}

impl Seen {
    /// Nothing but that the job began.
    pub(super) fn new(header: &JobStarted) -> Self {
        Self {
            judge: Judge::default(),
            tree: Tree::default(),
            journal: Journal::new(header),
            last: header.anchor().mono,
            exited: None,
            accepted: None,
            losses: Vec::new(),
            unfinished: false,
            own: Vec::new(),
            ended: None,
            ends_with_success: false,
        }
    }

    /// Takes the next event.
    pub(super) fn see(&mut self, event: &Event) {
        self.judge.see(event);
        self.tree.see(event);
        self.journal.see(&event.kind);
        self.last = self.last.max(event.at);
        if !is_told(&event.kind) {
            self.own.push(event.clone());
        }
        self.ends_with_success =
            matches!(event.kind, EventKind::CommandExited(CommandExited { code: Some(0), .. }));
        match &event.kind {
            EventKind::CommandExited(exited) => self.exited = Some(exited.clone()),
            EventKind::CancelRequested(request) if request.accepted => {
                self.accepted.get_or_insert_with(|| (event.at, request.clone()));
            }
            EventKind::RecordsUnfinished(_) => self.unfinished = true,
            EventKind::EvidenceLost(lost) => self.losses.push(lost.clone()),
            EventKind::JobEnded(ended) => self.ended = Some(ended.clone()),
            _ => {}
        }
    }

    /// What became of the job.
    pub(super) fn verdict(&self) -> Verdict {
        self.judge.verdict()
    }

    /// Whether the end that is on record follows from the rest.
    pub(super) fn check_end(&self, bundle: &Path) -> Result<(), ResumeError> {
        let verdict = self.verdict();
        let follows = self.ended.as_ref().is_some_and(|end| {
            (end.state, &end.cause, end.observed) == (verdict.state, &verdict.cause, verdict.observed)
        });
        if follows { Ok(()) } else { Err(ResumeError::ForeignEnd(bundle.to_owned())) }
    }

    /// The ends of the phases that nobody has closed, innermost first.
    pub(super) fn aborts(&self, reason: &str) -> Vec<Event> {
        let phases = self.tree.builds().flat_map(|build| {
            let open = build.phases.iter().rev().filter(|phase| phase.end == PhaseEnd::Open);
            open.map(|phase| PhaseAborted {
                build: build.build,
                phase: phase.phase,
                parent: phase.parent,
                name: phase.name.clone(),
                reported: phase.reported,
                steps: phase.announced,
                reason: reason.to_owned(),
            })
        });
        phases.map(|phase| Event { at: self.last, kind: EventKind::PhaseAborted(phase) }).collect()
    }
}
