//! The phase tree that a log's events rebuild into, one per build.
//!
//! Names identify nothing; the tree goes by the instance numbers that the log carries. Steps are counted, not kept, so
//! that a build of millions of steps needs memory for its phases only.

use super::cancellability::{Cancellability, Gaps};
use super::kinds::{BuildReturned, BuildStarted, Event, EventKind, PhaseStarted};
use crate::clock::Mono;
use std::collections::BTreeMap;

/// How many of a build's longest silences are kept.
const SILENCES: usize = 5;

/// The builds of a job, in the order of their numbers.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    builds: BTreeMap<u32, BuildTree>,
    last: Mono,
    exited: Option<Mono>,
}

/// One build.
#[derive(Debug, Clone)]
pub struct BuildTree {
    /// Its number.
    pub build: u32,
    /// The builder's process.
    pub pid: u32,
    /// The thread that called.
    pub tid: u32,
    /// The method's name.
    pub method: String,
    /// Whether the application's own monitor was chained.
    pub chained: bool,
    /// When the method was entered.
    pub started: Mono,
    /// What the method returned and when, or `None` where that was not seen.
    pub returned: Option<(Mono, BuildReturned)>,
    /// Its return, or the last moment that is known of it.
    pub ended: Mono,
    /// Its phases in the order of their start, which is the order of their instances.
    pub phases: Vec<PhaseInstance>,
    /// `stepComplete` calls.
    pub steps: u64,
    /// Its longest silences, longest first.
    pub silences: Vec<Silence>,
    walk: Walk,
}

/// One phase between its start and its end.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseInstance {
    /// The instance.
    pub phase: u64,
    /// Its parent's instance, or `None` for a root.
    pub parent: Option<u64>,
    /// The parent's name where no open phase had it.
    pub unknown_parent: Option<String>,
    /// The display name.
    pub name: String,
    /// Steps announced.
    pub announced: i32,
    /// Steps reported.
    pub reported: u32,
    /// When it began.
    pub started: Mono,
    /// When it ended; the last moment that is known where it is open.
    pub ended: Mono,
    /// How it ended.
    pub end: PhaseEnd,
}

/// How a phase ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PhaseEnd {
    /// It has not.
    Open,
    /// `phaseFinish`.
    Finished,
    /// We closed it, for this reason.
    Aborted(String),
}

/// A time without any callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// Nanoseconds.
    pub ns: u64,
    /// When it began.
    pub from: Mono,
    /// The innermost open phase, or `None` outside of any.
    pub phase: Option<u64>,
}

/// Where the reading of a build stands.
#[derive(Debug, Clone, Default)]
struct Walk {
    /// Open phases by their instances, which is the order of their start, each with its time as the innermost one in the
    /// current gap. A job may have as many open at once as it likes, and close them in any order.
    open: BTreeMap<u64, u64>,
    /// The open phases with such a time, so that the end of a gap costs what has happened in it and no more.
    touched: Vec<u64>,
    /// The phase closed in this gap that was the innermost one for the longest, with that time.
    closed: (Option<u64>, u64),
    /// Time of the current gap outside of any phase.
    outside: u64,
    /// Up to here the gap's time is shared out.
    shared: Mono,
    last_callback: Mono,
    /// The innermost open phase since the last callback.
    quiet: Option<u64>,
    last_step: Mono,
    gaps: Gaps,
    worst: u64,
    worst_phase: Option<u64>,
    tail: u64,
}

impl Tree {
    /// The tree of a whole log, or of a part from its start.
    #[must_use]
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut tree = Self::default();
        events.into_iter().for_each(|event| tree.see(event));
        tree.finish();
        tree
    }

    /// Takes the next event.
    pub fn see(&mut self, event: &Event) {
        let at = event.at;
        self.last = self.last.max(at);
        match &event.kind {
            EventKind::BuildStarted(start) => {
                self.builds.entry(start.build).or_insert_with(|| BuildTree::new(start, at));
            }
            EventKind::CommandExited(_) => self.exited = Some(at),
            EventKind::PhaseStarted(start) => self.with(start.build, |build| build.start(start, at)),
            EventKind::StepCompleted(step) => self.with(step.build, |build| build.step(step.phase, at)),
            EventKind::PhaseFinished(finish) => self.with(finish.build, |build| {
                build.callback(at);
                build.close(finish.phase, at, &PhaseEnd::Finished);
                build.walk.quiet = build.walk.innermost();
            }),
            EventKind::PhaseAborted(abort) => self.with(abort.build, |build| {
                build.close(Some(abort.phase), at, &PhaseEnd::Aborted(abort.reason.clone()));
            }),
            EventKind::BuildReturned(returned) => self.with(returned.build, |build| {
                build.end(at);
                build.returned = Some((at, returned.clone()));
            }),
            _ => {}
        }
    }

    /// Closes the books: what has not ended is measured up to the command's exit, or to the last event; a phase that was
    /// left open, up to the end of its build.
    pub fn finish(&mut self) {
        let end = self.exited.unwrap_or(self.last);
        for build in self.builds.values_mut() {
            if build.returned.is_none() {
                build.end(end);
            }
            build.end_phases();
        }
    }

    /// The builds.
    #[must_use]
    pub fn builds(&self) -> impl ExactSizeIterator<Item = &BuildTree> {
        self.builds.values()
    }

    /// One build.
    #[must_use]
    pub fn build(&self, number: u32) -> Option<&BuildTree> {
        self.builds.get(&number)
    }

    fn with(&mut self, build: u32, act: impl FnOnce(&mut BuildTree)) {
        if let Some(build) = self.builds.get_mut(&build) {
            act(build);
        }
    }
}

impl BuildTree {
    fn new(start: &BuildStarted, at: Mono) -> Self {
        Self {
            build: start.build,
            pid: start.pid,
            tid: start.tid,
            method: start.method.clone(),
            chained: start.chained,
            started: at,
            returned: None,
            ended: at,
            phases: Vec::new(),
            steps: 0,
            silences: Vec::new(),
            walk: Walk { shared: at, last_callback: at, last_step: at, ..Walk::default() },
        }
    }

    /// A phase by its instance.
    #[must_use]
    pub fn phase(&self, instance: u64) -> Option<&PhaseInstance> {
        self.index(instance).map(|index| &self.phases[index])
    }

    /// The waits that a cancel would have had; `None` for a build of no length.
    #[must_use]
    pub fn cancellability(&self) -> Option<Cancellability> {
        let walk = &self.walk;
        let phase =
            walk.worst_phase.and_then(|id| self.phase(id)).map(|phase| (phase.phase, phase.name.as_str()));
        Cancellability::new(&walk.gaps, walk.worst, phase, walk.tail)
    }

    fn index(&self, instance: u64) -> Option<usize> {
        self.phases.binary_search_by_key(&instance, |phase| phase.phase).ok()
    }

    /// Takes a new phase. Instances rise and parents come before their children in every log that we write; a log that
    /// says otherwise must not lead its readers in circles.
    fn start(&mut self, start: &PhaseStarted, at: Mono) {
        self.callback(at);
        if self.phases.last().is_some_and(|last| last.phase >= start.phase) {
            return;
        }
        let parent = start.parent.filter(|parent| self.index(*parent).is_some());
        self.walk.open.insert(start.phase, 0);
        self.walk.quiet = Some(start.phase);
        self.phases.push(PhaseInstance {
            phase: start.phase,
            parent,
            unknown_parent: start.unknown_parent.clone(),
            name: start.name.clone(),
            announced: start.steps,
            reported: 0,
            started: at,
            ended: at,
            end: PhaseEnd::Open,
        });
    }

    fn step(&mut self, instance: Option<u64>, at: Mono) {
        self.callback(at);
        self.steps += 1;
        if let Some(index) = instance.and_then(|instance| self.index(instance)) {
            self.phases[index].reported += 1;
        }
        if self.returned.is_none() {
            self.walk.close_gap(at);
        }
    }

    fn close(&mut self, instance: Option<u64>, at: Mono, end: &PhaseEnd) {
        self.walk.share(at);
        let Some(index) = instance.and_then(|instance| self.index(instance)) else { return };
        let phase = &mut self.phases[index];
        phase.ended = at;
        phase.end = end.clone();
        self.walk.close(phase.phase);
    }

    /// Notes the silence that a callback, or the end, has broken. What comes after the return belongs to the tree but
    /// not to the build's time.
    fn callback(&mut self, at: Mono) {
        if self.returned.is_some() {
            return;
        }
        self.walk.share(at);
        let from = self.walk.last_callback;
        let ns = at.0.saturating_sub(from.0);
        let place = self.silences.partition_point(|silence| silence.ns >= ns);
        if ns > 0 && place < SILENCES {
            self.silences.truncate(SILENCES - 1);
            self.silences.insert(place, Silence { ns, from, phase: self.walk.quiet });
        }
        self.walk.last_callback = from.max(at);
    }

    fn end(&mut self, at: Mono) {
        self.callback(at);
        self.walk.tail = at.0.saturating_sub(self.walk.last_step.0);
        self.walk.close_gap(at);
        self.ended = at;
    }

    /// Phases that nobody has closed last as long as the build. Once, at the end of the books: a log may say any number
    /// of times that a build returned.
    fn end_phases(&mut self) {
        for phase in self.phases.iter_mut().filter(|phase| phase.end == PhaseEnd::Open) {
            phase.ended = self.ended.max(phase.started);
        }
    }
}

impl Walk {
    /// Gives the time since the last event to the innermost open phase.
    fn share(&mut self, at: Mono) {
        let ns = at.0.saturating_sub(self.shared.0);
        match self.open.last_entry() {
            Some(mut innermost) => {
                if *innermost.get() == 0 && ns > 0 {
                    self.touched.push(*innermost.key());
                }
                *innermost.get_mut() += ns;
            }
            None => self.outside += ns,
        }
        self.shared = self.shared.max(at);
    }

    fn innermost(&self) -> Option<u64> {
        self.open.last_key_value().map(|(phase, _)| *phase)
    }

    fn close(&mut self, phase: u64) {
        if let Some(ns) = self.open.remove(&phase)
            && ns > self.closed.1
        {
            self.closed = (Some(phase), ns);
        }
    }

    fn close_gap(&mut self, at: Mono) {
        let ns = at.0.saturating_sub(self.last_step.0);
        self.gaps.add(ns);
        if ns > self.worst {
            self.worst = ns;
            self.worst_phase = self.longest();
        }
        self.last_step = self.last_step.max(at);
        self.closed = (None, 0);
        self.outside = 0;
        for phase in self.touched.drain(..) {
            if let Some(ns) = self.open.get_mut(&phase) {
                *ns = 0;
            }
        }
    }

    /// The phase that was innermost for the longest part of the gap; the inner one of two that were equally long.
    fn longest(&self) -> Option<u64> {
        let outside = (None, self.outside);
        let open = self.touched.iter().filter_map(|phase| Some((*phase, *self.open.get(phase)?)));
        let open = open.max_by_key(|&(phase, ns)| (ns, phase)).map(|(phase, ns)| (Some(phase), ns));
        std::iter::once(outside).chain(open).chain([self.closed]).max_by_key(|&(_, ns)| ns)?.0
    }
}
