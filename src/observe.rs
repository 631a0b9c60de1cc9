//! Makes events of what the attach libraries tell.
//!
//! The wire speaks of names, processes and the builds of one process. A [`Tracker`] gives builds and phases their own
//! numbers over the whole job, finds the phase that a name means, and notices the first answer to a request.
//!
//! A name means the phase of that name, in that build, that was opened last and is still open. `TensorRT` needs no less:
//! it uses a name many times under one parent, reports a parent's steps while a child is open, and can have the same
//! name open twice.

use crate::clock::Mono;
use crate::event::{
    ApplicationDeclined, AttachRefused, BuildDescribed, BuildReturned, BuildStarted, CancelAcknowledged,
    Event, EventKind, LibraryAttached, Message, OpenPhase, PhaseAborted, PhaseFinished, PhaseStarted,
    StepCompleted,
};
use crate::wire::{Body, LibraryFacts, Method, ProcessKey, Record, Severity};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Follows every build of a job from its records.
#[derive(Debug, Default)]
pub struct Tracker {
    builds: BTreeMap<(ProcessKey, u32), Build>,
    /// The builds of each process that have not returned.
    running: BTreeMap<ProcessKey, BTreeSet<u32>>,
    last_build: u32,
    last_phase: u64,
    accepted: Option<(u32, Mono)>,
    early: Vec<Answer>,
}

/// A build between its start and its return, and after it.
#[derive(Debug)]
struct Build {
    number: u32,
    /// The open phases by their instances, which is the order of their start.
    open: BTreeMap<u64, Open>,
    /// The open instances of each name, in the same order.
    named: HashMap<Arc<str>, Vec<u64>>,
    returned: bool,
    answered: bool,
}

/// An open phase.
#[derive(Debug)]
struct Open {
    phase: u64,
    parent: Option<u64>,
    name: Arc<str>,
    steps: i32,
    reported: u32,
    last_step: Option<i32>,
    since: Mono,
}

/// The first false that a build was given by our monitor.
#[derive(Debug, Clone, Copy)]
struct Answer {
    request: u32,
    build: u32,
    phase: Option<u64>,
    at: Mono,
}

impl Tracker {
    /// A tracker that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes one record and appends the events that it makes.
    pub fn ingest(&mut self, record: &Record, out: &mut Vec<Event>) {
        let at = record.at;
        match &record.body {
            Body::Library(facts) => {
                let kind = EventKind::LibraryAttached(library(record.process.pid, facts));
                out.push(Event { at, kind });
            }
            Body::Refused { reason } => {
                let refused = AttachRefused { pid: record.process.pid, reason: reason.clone() };
                out.push(Event { at, kind: EventKind::AttachRefused(refused) });
            }
            Body::BuildStart { method, chained } => {
                self.start_build(record, method_name(*method), *chained, out);
            }
            Body::BuildFacts(facts) => {
                let build = self.build(record, out).number;
                let described = BuildDescribed { build, facts: facts.as_ref().clone() };
                out.push(Event { at, kind: EventKind::BuildDescribed(described) });
            }
            Body::PhaseStart { name, parent, steps } => {
                self.start_phase(record, name, parent.as_deref(), *steps, out);
            }
            Body::Step { name, step, answered } => self.step(record, name, *step, *answered, out),
            Body::PhaseFinish { name } => self.finish_phase(record, name, out),
            Body::ApplicationFalse { name, step } => self.declined(record, name, *step, out),
            Body::BuildReturn { engine, bytes, messages } => {
                let build = self.build(record, out);
                build.abort(at, "the builder returned", out);
                build.returned = true;
                let build = build.number;
                self.stop(record);
                let returned = BuildReturned { build, engine: *engine, bytes: *bytes, messages: *messages };
                out.push(Event { at, kind: EventKind::BuildReturned(returned) });
            }
            Body::Message { severity, text, truncated } => {
                let message = self.message(record, *severity, text, *truncated);
                out.push(Event { at, kind: EventKind::Message(message) });
            }
        }
    }

    /// The phases that were open at `at`, for every build that has not returned, in the order of their start.
    #[must_use]
    pub fn open_branch(&self, at: Mono) -> Vec<OpenPhase> {
        let running = self.builds.values().filter(|build| !build.returned);
        let mut branch: Vec<OpenPhase> = running
            .flat_map(|build| build.open.values().map(|open| (build.number, open)))
            .filter(|(_, open)| open.since <= at)
            .map(|(build, open)| OpenPhase {
                build,
                phase: open.phase,
                name: open.name.to_string(),
                last_step: open.last_step,
                steps: open.steps,
                open_ns: at.0 - open.since.0,
            })
            .collect();
        branch.sort_unstable_by_key(|open| (open.build, open.phase));
        branch
    }

    /// Says that `request` was accepted at `at`. From then on the first answer of each build to it makes an
    /// acknowledgement; for answers that were read before this call they are appended now.
    pub fn request_accepted(&mut self, request: u32, at: Mono, out: &mut Vec<Event>) {
        self.accepted = Some((request, at));
        for answer in std::mem::take(&mut self.early) {
            self.acknowledge(answer, out);
        }
    }

    /// Closes what is still open when nothing more can come, innermost phases first.
    pub fn close(&mut self, at: Mono, reason: &str, out: &mut Vec<Event>) {
        let mut builds: Vec<&mut Build> = self.builds.values_mut().collect();
        builds.sort_unstable_by_key(|build| build.number);
        for build in builds {
            build.abort(at, reason, out);
        }
    }

    /// The record's build. Where its start was lost, the build is made up here, so that the rest is not lost with it.
    fn build(&mut self, record: &Record, out: &mut Vec<Event>) -> &mut Build {
        match self.builds.entry((record.process, record.build)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                self.last_build += 1;
                out.push(build_started(self.last_build, record, "unknown", false));
                self.running.entry(record.process).or_default().insert(record.build);
                unknown.insert(Build::new(self.last_build))
            }
        }
    }

    /// The record's build runs no more.
    fn stop(&mut self, record: &Record) {
        if let Some(running) = self.running.get_mut(&record.process) {
            running.remove(&record.build);
        }
    }

    fn start_build(&mut self, record: &Record, method: &str, chained: bool, out: &mut Vec<Event>) {
        self.last_build += 1;
        let build = Build::new(self.last_build);
        self.running.entry(record.process).or_default().insert(record.build);
        if let Some(mut before) = self.builds.insert((record.process, record.build), build) {
            before.abort(record.at, "its builder started another build", out);
        }
        out.push(build_started(self.last_build, record, method, chained));
    }

    fn start_phase(
        &mut self,
        record: &Record,
        name: &Arc<str>,
        parent_name: Option<&str>,
        steps: i32,
        out: &mut Vec<Event>,
    ) {
        let phase = self.last_phase + 1;
        self.last_phase = phase;
        let build = self.build(record, out);
        let parent = parent_name.and_then(|name| build.find(name)).map(|parent| parent.phase);
        let unknown_parent = parent_name.filter(|_| parent.is_none()).map(str::to_owned);
        let since = record.at;
        let name = Arc::clone(name);
        let text = name.to_string();
        build.named.entry(Arc::clone(&name)).or_default().push(phase);
        build.open.insert(phase, Open { phase, parent, name, steps, reported: 0, last_step: None, since });
        let started = PhaseStarted {
            build: build.number,
            phase,
            parent,
            unknown_parent,
            name: text,
            steps,
            pid: record.process.pid,
            tid: record.tid,
        };
        out.push(Event { at: record.at, kind: EventKind::PhaseStarted(started) });
    }

    fn step(&mut self, record: &Record, name: &str, step: i32, answered: u32, out: &mut Vec<Event>) {
        let build = self.build(record, out);
        let number = build.number;
        let open = build.find(name).map(|open| {
            open.reported += 1;
            open.last_step = Some(step);
            &*open
        });
        let completed = StepCompleted {
            build: number,
            phase: open.map(|open| open.phase),
            parent: open.and_then(|open| open.parent),
            name: name.to_owned(),
            step,
            steps: open.map(|open| open.steps),
            answered: (answered != 0).then_some(answered),
            pid: record.process.pid,
            tid: record.tid,
        };
        let answer = Answer { request: answered, build: number, phase: completed.phase, at: record.at };
        let first = answered != 0 && !build.answered;
        build.answered |= first;
        out.push(Event { at: record.at, kind: EventKind::StepCompleted(completed) });
        if first {
            self.acknowledge(answer, out);
        }
    }

    /// Makes an acknowledgement of an answer, or keeps it until its request is told.
    fn acknowledge(&mut self, answer: Answer, out: &mut Vec<Event>) {
        match self.accepted {
            Some((request, requested)) if request == answer.request => {
                let acknowledged = CancelAcknowledged {
                    request,
                    build: answer.build,
                    phase: answer.phase,
                    latency_ns: answer.at.0.saturating_sub(requested.0),
                };
                out.push(Event { at: answer.at, kind: EventKind::CancelAcknowledged(acknowledged) });
            }
            _ => self.early.push(answer),
        }
    }

    fn finish_phase(&mut self, record: &Record, name: &str, out: &mut Vec<Event>) {
        let build = self.build(record, out);
        let open = build.take(name);
        let finished = PhaseFinished {
            build: build.number,
            phase: open.as_ref().map(|open| open.phase),
            parent: open.as_ref().and_then(|open| open.parent),
            name: name.to_owned(),
            reported: open.as_ref().map_or(0, |open| open.reported),
            steps: open.as_ref().map(|open| open.steps),
            pid: record.process.pid,
            tid: record.tid,
        };
        out.push(Event { at: record.at, kind: EventKind::PhaseFinished(finished) });
    }

    fn declined(&mut self, record: &Record, name: &str, step: i32, out: &mut Vec<Event>) {
        let build = self.build(record, out);
        let phase = build.find(name).map(|open| open.phase);
        let declined = ApplicationDeclined { build: build.number, phase, name: name.to_owned(), step };
        out.push(Event { at: record.at, kind: EventKind::ApplicationDeclined(declined) });
    }

    fn message(&self, record: &Record, severity: Severity, text: &str, truncated: bool) -> Message {
        let build = self.speaker(record);
        Message {
            build: build.map(|build| build.number),
            phase: build.and_then(|build| build.open.last_key_value()).map(|(phase, _)| *phase),
            severity: severity_name(severity).to_owned(),
            code: error_code(text),
            text: text.to_owned(),
            truncated,
            pid: record.process.pid,
            tid: record.tid,
        }
    }

    /// The build that a message belongs to: its own, or, where it names none, the only one running in its process.
    fn speaker(&self, record: &Record) -> Option<&Build> {
        if record.build != 0 {
            return self.builds.get(&(record.process, record.build));
        }
        let running = self.running.get(&record.process).filter(|running| running.len() == 1)?;
        self.builds.get(&(record.process, *running.first()?))
    }
}

impl Build {
    fn new(number: u32) -> Self {
        Self { number, open: BTreeMap::new(), named: HashMap::new(), returned: false, answered: false }
    }

    /// The open phase that a name means.
    fn find(&mut self, name: &str) -> Option<&mut Open> {
        let phase = self.named.get(name)?.last()?;
        self.open.get_mut(phase)
    }

    /// The same, which is closed.
    fn take(&mut self, name: &str) -> Option<Open> {
        let named = self.named.get_mut(name)?;
        let phase = named.pop();
        if named.is_empty() {
            self.named.remove(name);
        }
        self.open.remove(&phase?)
    }

    fn abort(&mut self, at: Mono, reason: &str, out: &mut Vec<Event>) {
        self.named.clear();
        out.extend(std::mem::take(&mut self.open).into_values().rev().map(|open| {
            let aborted = PhaseAborted {
                build: self.number,
                phase: open.phase,
                parent: open.parent,
                name: open.name.to_string(),
                reported: open.reported,
                steps: open.steps,
                reason: reason.to_owned(),
            };
            Event { at, kind: EventKind::PhaseAborted(aborted) }
        }));
    }
}

fn build_started(build: u32, record: &Record, method: &str, chained: bool) -> Event {
    let (pid, tid) = (record.process.pid, record.tid);
    let started = BuildStarted { build, pid, tid, method: method.to_owned(), chained };
    Event { at: record.at, kind: EventKind::BuildStarted(started) }
}

fn library(pid: u32, facts: &LibraryFacts) -> LibraryAttached {
    LibraryAttached {
        pid,
        flavour: facts.flavour.clone(),
        version: facts.version.clone(),
        path: facts.path.clone(),
        python: facts.python,
        proven: facts.proven.clone(),
        simulated: facts.simulated,
        messages_unobserved: Some(facts.messages_unobserved.clone()).filter(|why| !why.is_empty()),
    }
}

fn method_name(method: Method) -> &'static str {
    match method {
        Method::SerializedNetwork => "buildSerializedNetwork",
        Method::EngineWithConfig => "buildEngineWithConfig",
        Method::ToStream => "buildSerializedNetworkToStream",
        Method::WithKernelText => "buildSerializedNetworkWithKernelText",
    }
}

fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::InternalError => "internal_error",
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
        Severity::Verbose => "verbose",
    }
}

/// The number after `Error Code`, as `TensorRT` writes it into its messages.
fn error_code(text: &str) -> Option<u32> {
    let (_, after) = text.split_once("Error Code ")?;
    let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    after[..digits].parse().ok()
}
