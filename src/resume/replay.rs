//! Walks along the log and the wire at once, up to where the log ends.
//!
//! Every event that a builder caused was made of one record, and the records of a process are in the log in their own
//! order. So each such line uses up the next record of its process; what a fresh tracker makes of that record must be
//! what the log says. Behind the last line the tracker stands where the runner's stood, and the records that are left
//! are those that the runner did not come to.

use crate::clock::Mono;
use crate::event::{Event, EventKind, EvidenceLost};
use crate::observe::Tracker;
use crate::wire::{Body, ProcessKey, Record};
use std::collections::{BTreeMap, VecDeque};

/// The walk.
#[derive(Debug, Default)]
pub(super) struct Replay {
    tracker: Tracker,
    /// Each process's records with their places in the order of time.
    chains: BTreeMap<ProcessKey, VecDeque<(usize, Record)>>,
    /// The process of each build.
    builds: BTreeMap<u32, ProcessKey>,
    /// What the log must say next.
    due: VecDeque<Event>,
    lines: u64,
    /// The line at which log and wire part.
    parted: Option<u64>,
    /// Whether a secret was masked in a line.
    masked: bool,
}

/// What is left when the log has been walked.
pub(super) struct Rest {
    /// A tracker that has seen what the log says.
    pub(super) tracker: Tracker,
    /// Events of records that the log holds in part.
    pub(super) due: Vec<Event>,
    /// Records that the log does not hold, in the order of time.
    pub(super) records: Vec<Record>,
    /// Log and wire do not belong together: nothing of the wire can be placed.
    pub(super) loss: Option<EvidenceLost>,
    /// Whether the records hold a secret.
    pub(super) masked: bool,
}

impl Replay {
    /// A walk that stands before the first line.
    pub(super) fn new(records: Vec<Record>) -> Self {
        let mut replay = Self { lines: 1, ..Self::default() };
        for placed in records.into_iter().enumerate() {
            replay.chains.entry(placed.1.process).or_default().push_back(placed);
        }
        replay
    }

    /// Takes the next line.
    pub(super) fn see(&mut self, event: &Event) {
        self.lines += 1;
        if self.parted.is_none() && !self.follow(event) {
            self.parted = Some(self.lines);
        }
    }

    /// The end of the log.
    pub(super) fn rest(self) -> Rest {
        let mut left: Vec<(usize, Record)> = self.chains.into_values().flatten().collect();
        left.sort_unstable_by_key(|(place, _)| *place);
        let records: Vec<Record> = left.into_iter().map(|(_, record)| record).collect();
        let masked = self.masked;
        match self.parted {
            None => Rest { tracker: self.tracker, due: self.due.into(), records, loss: None, masked },
            Some(line) => {
                let reason = format!(
                    "line {line} of the log is not what the wire holds: one of the two was damaged, and what the builders told after that cannot be placed"
                );
                let loss = EvidenceLost { records: records.len() as u64, reason };
                Rest { tracker: self.tracker, due: Vec::new(), records: Vec::new(), loss: Some(loss), masked }
            }
        }
    }

    /// Whether a line is what the records make. One that follows from no record says nothing that could be checked here.
    fn follow(&mut self, event: &Event) -> bool {
        if is_told(&event.kind) {
            return (!self.due.is_empty() || self.advance(event))
                && self.due.pop_front().is_some_and(|due| self.is_told_by(event, &due));
        }
        if let EventKind::CancelRequested(request) = &event.kind
            && request.accepted
        {
            let mut made = Vec::new();
            self.tracker.request_accepted(request.request, event.at, &mut made);
            self.due.extend(made);
        }
        true
    }

    /// Whether a line says what the records say, but for secrets that were masked in it.
    fn is_told_by(&mut self, line: &Event, due: &Event) -> bool {
        let same = line == due;
        let masked = !same && line.at == due.at && line.kind.covers(&due.kind);
        self.masked |= masked;
        same || masked
    }

    /// Finds out what this line and those with it must be. False where a builder should have told it and has not.
    fn advance(&mut self, event: &Event) -> bool {
        let mut made = Vec::new();
        match (self.take(event), &event.kind) {
            (Some(record), _) => {
                self.tracker.ingest(&record, &mut made);
                self.learn_builds(record.process, &made);
            }
            // Nobody told it: what was open was closed from our side.
            (None, EventKind::PhaseAborted(abort)) => self.tracker.close(event.at, &abort.reason, &mut made),
            _ => return false,
        }
        self.due.extend(made);
        true
    }

    /// The record that a line was made of: the next one of its process, by its time.
    fn take(&mut self, event: &Event) -> Option<Record> {
        let (build, pid) = speaker(&event.kind);
        let known = build.and_then(|build| self.builds.get(&build)).copied();
        let any = |pid, registered| ProcessKey { pid, registered: Mono(registered) };
        let (first, last) = match (known, pid) {
            (Some(process), _) => (process, process),
            (None, Some(pid)) => (any(pid, 0), any(pid, u64::MAX)),
            (None, None) => return None,
        };
        let aborts = matches!(event.kind, EventKind::PhaseAborted(_));
        let fits = |record: &Record| record.at == event.at && (!aborts || closes(&record.body));
        let mut chains = self.chains.range_mut(first..=last).map(|(_, chain)| chain);
        let chain = chains.find(|chain| chain.front().is_some_and(|(_, record)| fits(record)))?;
        chain.pop_front().map(|(_, record)| record)
    }

    fn learn_builds(&mut self, process: ProcessKey, made: &[Event]) {
        for event in made {
            if let EventKind::BuildStarted(start) = &event.kind {
                self.builds.insert(start.build, process);
            }
        }
    }
}

/// Whether a line follows from a record.
pub(super) fn is_told(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::LibraryAttached(_)
            | EventKind::AttachRefused(_)
            | EventKind::BuildStarted(_)
            | EventKind::BuildDescribed(_)
            | EventKind::PhaseStarted(_)
            | EventKind::StepCompleted(_)
            | EventKind::PhaseFinished(_)
            | EventKind::PhaseAborted(_)
            | EventKind::ApplicationDeclined(_)
            | EventKind::Message(_)
            | EventKind::BuildReturned(_)
            | EventKind::CancelAcknowledged(_)
    )
}

/// Whether a record closes phases that are open.
fn closes(body: &Body) -> bool {
    matches!(body, Body::BuildReturn { .. } | Body::BuildStart { .. })
}

/// The build and the process that a line names.
fn speaker(kind: &EventKind) -> (Option<u32>, Option<u32>) {
    match kind {
        EventKind::LibraryAttached(e) => (None, Some(e.pid)),
        EventKind::AttachRefused(e) => (None, Some(e.pid)),
        EventKind::BuildStarted(e) => (None, Some(e.pid)),
        EventKind::BuildDescribed(e) => (Some(e.build), None),
        EventKind::PhaseStarted(e) => (Some(e.build), Some(e.pid)),
        EventKind::StepCompleted(e) => (Some(e.build), Some(e.pid)),
        EventKind::PhaseFinished(e) => (Some(e.build), Some(e.pid)),
        EventKind::PhaseAborted(e) => (Some(e.build), None),
        EventKind::ApplicationDeclined(e) => (Some(e.build), None),
        EventKind::Message(e) => (e.build, Some(e.pid)),
        EventKind::BuildReturned(e) => (Some(e.build), None),
        _ => (None, None),
    }
}
