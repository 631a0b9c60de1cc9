//! Puts on record what the wire brings and what the supervisor does.
//!
//! When the log can no longer be written, the build goes on, the first failure is kept, and the job fails for it.

use super::silence::{LiveSilence, Silence};
use super::status::{Board, Live};
use crate::artifact::Said;
use crate::clock::{Anchor, Mono};
use crate::event::{
    CancelRequested, CommandExited, Event, EventKind, EvidenceLost, JobStarted, LogError, LogWriter,
    OpenPhase, RecordsUnfinished,
};
use crate::history::{Entry, Expectation};
use crate::mask::Secrets;
use crate::observe::Tracker;
use crate::resources::Sample;
use crate::stall::Facts;
use crate::verdict::{Judge, Verdict};
use crate::wire::{Control, DAMAGED, Reader, Record, Unread};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What a log that was given up cannot tell: everything that did not come from the wire.
#[derive(Debug, Default)]
pub struct Unlogged {
    /// How and when the command ended.
    pub exited: Option<(Mono, CommandExited)>,
    /// The rest in its order. A part of it may be in the log.
    pub events: Vec<Event>,
}

/// The record of one job.
pub struct Recorder {
    log: LogWriter,
    control: Arc<Control>,
    reader: Reader,
    tracker: Tracker,
    judge: Judge,
    said: Said,
    board: Board,
    silence: Silence,
    secrets: Arc<Secrets>,
    job: String,
    anchor: Anchor,
    records: Vec<Record>,
    events: Vec<Event>,
    unlogged: Unlogged,
    /// Libraries that were met since the last question.
    libraries: Vec<String>,
    dirty: bool,
    /// Whether something was appended that must survive a crash of the machine.
    weighty: bool,
    wire_failed: bool,
    lost: Option<String>,
}

impl Recorder {
    /// Starts the log with its header, on disk when this returns.
    pub fn create(
        path: &Path,
        header: &JobStarted,
        wire: &Path,
        control: Arc<Control>,
        silence: Silence,
        secrets: &Arc<Secrets>,
    ) -> Result<Self, LogError> {
        let mut log = LogWriter::create(path, header)?.masking(Arc::clone(secrets));
        log.sync()?;
        Ok(Self {
            log,
            control,
            reader: Reader::new(wire),
            tracker: Tracker::new(),
            judge: Judge::default(),
            said: Said::default(),
            board: Board::new(header.anchor().mono),
            silence,
            secrets: Arc::clone(secrets),
            job: header.job.clone(),
            anchor: header.anchor(),
            records: Vec::new(),
            events: Vec::new(),
            unlogged: Unlogged::default(),
            libraries: Vec::new(),
            dirty: false,
            weighty: false,
            wire_failed: false,
            lost: None,
        })
    }

    /// Whether what came from the wire, or anything else on record, held a secret.
    #[must_use]
    pub fn has_masked(&self) -> bool {
        self.log.has_masked()
    }

    /// The log's file, whose lock whoever shares the handle holds as well.
    #[must_use]
    pub fn log_file(&self) -> &File {
        self.log.file()
    }

    /// Whether a builder library was ever observed.
    #[must_use]
    pub fn builder_seen(&self) -> bool {
        self.board.builder_seen()
    }

    /// Why the record is not complete, if it is not.
    #[must_use]
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// How the job is now.
    #[must_use]
    pub fn live(&self, bundle: &Path, now: Mono) -> Live {
        let live = self.board.live(&self.job, bundle, self.anchor, self.tracker.open_branch(now), now);
        Live { silence: self.silence.live(now), ..live }
    }

    /// The job's name.
    #[must_use]
    pub fn job(&self) -> &str {
        &self.job
    }

    /// When the job began.
    #[must_use]
    pub fn started(&self) -> Mono {
        self.anchor.mono
    }

    /// What the job's silence means now.
    #[must_use]
    pub fn silence(&self, now: Mono) -> Option<LiveSilence> {
        self.silence.live(now)
    }

    /// Takes a sample in; the facts where the verdict on the silence changed.
    pub fn sampled(&mut self, sample: &Sample) -> Option<Facts> {
        self.silence.sampled(sample)
    }

    /// What the history says of a build.
    pub fn expect(&mut self, build: u32, expectation: Expectation) {
        self.silence.expect(build, expectation);
    }

    /// The job was paused for so long.
    pub fn shift(&mut self, pause: Duration) {
        self.silence.shift(pause);
    }

    /// What the history is to remember of a stall at once.
    #[must_use]
    pub fn stalled_entry(&self, facts: &Facts) -> Option<Entry> {
        self.silence.stalled_entry(&self.job, facts)
    }

    /// The phases that are open now, as far as the wire was read.
    #[must_use]
    pub fn open_branch(&self, now: Mono) -> Vec<OpenPhase> {
        self.tracker.open_branch(now)
    }

    /// The verdict on what is on record.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.judge.verdict()
    }

    /// What the builders said of the timing cache so far.
    pub fn said(&self) -> &Said {
        &self.said
    }

    /// Takes in what the wire holds.
    pub fn poll(&mut self) {
        self.read_wire();
        self.ingest(|_| true);
    }

    /// Puts a request on record, after what happened before it and before what happened since.
    pub fn request(&mut self, at: Mono, mut request: CancelRequested) {
        self.read_wire();
        self.ingest(|record| record.at <= at);
        request.open_branch = self.tracker.open_branch(at);
        let (number, accepted) = (request.request, request.accepted);
        self.append(&Event { at, kind: EventKind::CancelRequested(request) });
        if accepted {
            let mut events = std::mem::take(&mut self.events);
            self.tracker.request_accepted(number, at, &mut events);
            self.append_all(events);
        }
        self.ingest(|_| true);
    }

    /// Puts one event on record that does not come from the wire.
    pub fn append(&mut self, event: &Event) {
        match &event.kind {
            EventKind::CommandExited(exited) => self.unlogged.exited = Some((event.at, exited.clone())),
            EventKind::JobEnded(_) => {}
            _ => self.unlogged.events.push(event.clone()),
        }
        self.put(event);
    }

    /// The files of the libraries that were met since this was last called.
    pub fn take_libraries(&mut self) -> Vec<String> {
        std::mem::take(&mut self.libraries)
    }

    fn put(&mut self, event: &Event) {
        if let EventKind::LibraryAttached(library) = &event.kind {
            self.libraries.push(library.path.clone());
        }
        self.judge.see(event);
        self.said.see(&event.kind);
        self.board.note(event);
        self.weighty |= weighty(&event.kind);
        self.dirty = true;
        let appended = self.log.append(event);
        self.keep(appended);
        // As the log has it: what a bundle teaches the history later must name things as they are looked up now.
        self.silence.note(event.at, &event.kind.masked(&self.secrets));
        for due in self.silence.due() {
            self.append(&due);
        }
    }

    /// Hands on what was appended: to the disk after a change of state, else to the kernel.
    pub fn settle(&mut self) {
        if !self.dirty {
            return;
        }
        let settled = if self.weighty { self.log.sync() } else { self.log.flush() };
        (self.dirty, self.weighty) = (false, false);
        self.keep(settled);
    }

    /// Whether the log could not be written to its end.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.log.is_given_up()
    }

    /// Where the log was given up: lets go of it, and gives what whoever finishes it cannot know from the disk.
    pub fn give_up(&mut self) -> Option<Unlogged> {
        if !self.log.is_given_up() {
            return None;
        }
        // The keeper shares the handle, and with it the lock. A file system without locks has nothing to let go of.
        let _ = self.log.file().unlock();
        Some(std::mem::take(&mut self.unlogged))
    }

    /// Nobody can write to the wire any more: takes in the rest, closes what is open, and counts what was lost.
    pub fn close(&mut self, at: Mono, reason: &str) {
        let finished = self.reader.finish(&mut self.records);
        self.ingest(|_| true);
        let mut events = std::mem::take(&mut self.events);
        self.tracker.close(at, reason, &mut events);
        self.append_all(events);
        match finished {
            Ok(unread) => self.unread(at, unread),
            Err(e) => self.lose(at, 0, &e.to_string()),
        }
    }

    fn unread(&mut self, at: Mono, unread: Unread) {
        if unread.unfinished > 0 {
            let unfinished = RecordsUnfinished { records: unread.unfinished };
            self.append(&Event { at, kind: EventKind::RecordsUnfinished(unfinished) });
        }
        if unread.damaged > 0 {
            self.lose(at, unread.damaged, DAMAGED);
        }
    }

    /// Puts a loss on record.
    pub fn lose(&mut self, at: Mono, records: u64, reason: &str) {
        let lost = EvidenceLost { records, reason: reason.to_owned() };
        self.append(&Event { at, kind: EventKind::EvidenceLost(lost) });
        self.lost.get_or_insert_with(|| reason.to_owned());
    }

    fn read_wire(&mut self) {
        if let Err(e) = self.reader.poll(&mut self.records)
            && !std::mem::replace(&mut self.wire_failed, true)
        {
            self.lose(Mono::now(), 0, &e.to_string());
        }
    }

    /// Turns the records up to the first that is not `wanted` into events.
    fn ingest(&mut self, wanted: impl Fn(&Record) -> bool) {
        let count = self.records.iter().take_while(|r| wanted(r)).count();
        let mut events = std::mem::take(&mut self.events);
        for record in self.records.drain(..count) {
            self.tracker.ingest(&record, &mut events);
        }
        self.append_all(events);
    }

    fn append_all(&mut self, mut events: Vec<Event>) {
        for event in events.drain(..) {
            self.put(&event);
        }
        // The vector is used again: a busy build brings thousands of events at a time.
        self.events = events;
    }

    fn keep(&mut self, result: Result<(), LogError>) {
        let Err(e) = result else { return };
        if let LogError::Write { source, .. } = &e {
            // The job fails in any case; this is for whoever finishes the bundle once there is room again.
            let _ = self.control.log_lost(source.raw_os_error().unwrap_or_default());
        }
        self.lost.get_or_insert_with(|| e.to_string());
    }
}

/// The changes of state that must be on disk before the job goes on.
fn weighty(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::ArtifactDeclared(_)
            | EventKind::ArtifactsAccepted(_)
            | EventKind::CancelRequested(_)
            | EventKind::CancelAcknowledged(_)
            | EventKind::BuildReturned(_)
            | EventKind::EvidenceLost(_)
            | EventKind::JobPaused(_)
            | EventKind::JobEnded(_)
    )
}
