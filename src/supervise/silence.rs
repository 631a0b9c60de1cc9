//! Follows what the builders do, and judges their silences.

use crate::clock::Mono;
use crate::event::{BuildFacts, Event, EventKind, LibraryAttached, PhaseStarted};
use crate::history::{Entry, Expectation, Outcome, Paths};
use crate::resources::Sample;
use crate::stall::{Detector, Expected, Facts, Limits, Place};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Asks the history for a build, and lets the main loop know.
pub type Lookup = Box<dyn Fn(u32, &LibraryAttached, &BuildFacts) + Send>;

/// The silences of one job.
pub struct Silence {
    limits: Limits,
    lookup: Option<Lookup>,
    /// None until the command runs.
    detector: Option<Detector>,
    libraries: Vec<LibraryAttached>,
    builds: BTreeMap<u32, Open>,
    due: Vec<Event>,
}

/// A build that has not returned.
struct Open {
    pid: u32,
    started: Mono,
    paths: Paths,
    phases: Vec<OpenPhase>,
    expected: Option<Expectation>,
}

struct OpenPhase {
    phase: u64,
    name: String,
    since: Mono,
}

/// What a running job's silence means, for `stuckproof status`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveSilence {
    /// The facts, as `silenceJudged` has them.
    pub facts: Facts,
    /// The same in words.
    pub words: String,
    /// What earlier builds make expect, or null.
    pub expected: Option<LiveExpected>,
}

/// What earlier builds make expect of a running one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LiveExpected {
    /// The build.
    pub build: u32,
    /// How many builds this rests on.
    pub builds: u32,
    /// How long one takes, milliseconds.
    pub total_ms: f64,
    /// How long this one will still take, milliseconds.
    pub rest_ms: f64,
    /// How long its innermost open phase takes, milliseconds, or null where that is not known.
    pub phase_ms: Option<f64>,
}

impl Silence {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new(limits: Limits, lookup: Option<Lookup>) -> Self {
        Self {
            limits,
            lookup,
            detector: None,
            libraries: Vec::new(),
            builds: BTreeMap::new(),
            due: Vec::new(),
        }
    }

    /// Takes an event in, without the secrets in it.
    pub fn note(&mut self, at: Mono, kind: &EventKind) {
        match kind {
            EventKind::CommandStarted(_) => self.detector = Some(Detector::new(self.limits, at)),
            EventKind::LibraryAttached(library) => self.libraries.push(library.clone()),
            EventKind::BuildStarted(start) => {
                let open = Open {
                    pid: start.pid,
                    started: at,
                    paths: Paths::default(),
                    phases: Vec::new(),
                    expected: None,
                };
                self.builds.insert(start.build, open);
                self.called_back(at);
            }
            EventKind::BuildDescribed(described) => self.look_up(described.build, &described.facts),
            EventKind::PhaseStarted(start) => {
                if let Some(build) = self.builds.get_mut(&start.build) {
                    build.open(start, at);
                }
                self.called_back(at);
            }
            EventKind::PhaseFinished(finish) => {
                self.close(finish.build, finish.phase);
                self.called_back(at);
            }
            EventKind::PhaseAborted(abort) => self.close(abort.build, Some(abort.phase)),
            EventKind::StepCompleted(_) | EventKind::Message(_) => self.called_back(at),
            EventKind::BuildReturned(returned) => {
                self.called_back(at);
                self.builds.remove(&returned.build);
            }
            _ => {}
        }
    }

    /// What follows from the events that were taken in.
    pub fn due(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.due)
    }

    /// Takes a sample in; the facts where the verdict changed.
    pub fn sampled(&mut self, sample: &Sample) -> Option<Facts> {
        let (place, expected) = self.place();
        let detector = self.detector.as_mut()?;
        detector.sample(sample);
        detector.judge(Mono(sample.t), &place, &expected)
    }

    /// The job was paused for so long.
    pub fn shift(&mut self, pause: Duration) {
        if let Some(detector) = &mut self.detector {
            detector.shift(pause);
        }
    }

    /// What the history says of a build. One that has returned meanwhile needs it no more.
    pub fn expect(&mut self, build: u32, expectation: Expectation) {
        if let Some(open) = self.builds.get_mut(&build) {
            open.expected = Some(expectation);
        }
    }

    /// How things are now.
    #[must_use]
    pub fn live(&self, now: Mono) -> Option<LiveSilence> {
        let (place, expected) = self.place();
        let facts = self.detector.as_ref()?.facts(now, &place, &expected);
        let words = crate::stall::in_words(&facts);
        Some(LiveSilence { facts, words, expected: self.live_expected(now) })
    }

    /// What the history is to remember at once, should nobody be there at the end to tell it: that a build stalled.
    #[must_use]
    pub fn stalled_entry(&self, job: &str, facts: &Facts) -> Option<Entry> {
        let build = facts.build?;
        let open = self.builds.get(&build)?;
        let in_phase = open.paths.key(facts.phase?)?.to_owned();
        Some(Entry {
            format: 1,
            job: job.to_owned(),
            build,
            key: open.expected.as_ref()?.key.clone(),
            outcome: Outcome::Stalled,
            total_ms: 0,
            longest_idle_ms: 0,
            silences: Vec::new(),
            phases: Vec::new(),
            stalled_in: vec![in_phase],
        })
    }

    fn called_back(&mut self, at: Mono) {
        let over = self.detector.as_mut().and_then(|detector| detector.called_back(at));
        self.due.extend(over.map(|facts| Event { at, kind: EventKind::SilenceJudged(facts) }));
    }

    /// A process that was forked after the library was met shares its parent's.
    fn look_up(&self, build: u32, facts: &BuildFacts) {
        let pid = self.builds.get(&build).map(|open| open.pid);
        let own = self.libraries.iter().rev().find(|library| Some(library.pid) == pid);
        let library = own.or(self.libraries.last());
        if let Some((lookup, library)) = self.lookup.as_ref().zip(library) {
            lookup(build, library, facts);
        }
    }

    fn close(&mut self, build: u32, phase: Option<u64>) {
        if let Some((build, phase)) = self.builds.get_mut(&build).zip(phase) {
            build.phases.retain(|open| open.phase != phase);
            build.paths.close(phase);
        }
    }

    /// Where the job is: in the build that began last and is still open.
    fn place(&self) -> (Place, Expected) {
        let Some((number, build)) = self.builds.last_key_value() else { return Default::default() };
        let innermost = build.phases.last();
        let place = Place {
            build: Some(*number),
            phase: innermost.map(|open| open.phase),
            name: innermost.map(|open| open.name.clone()),
        };
        let key = innermost.and_then(|open| build.paths.key(open.phase));
        let expected = build.expected.as_ref().map_or_else(Expected::default, |expected| Expected {
            silence: expected.silence(key),
            idle: expected.longest_idle,
            stalls: expected.stalls_in(key),
        });
        (place, expected)
    }

    fn live_expected(&self, now: Mono) -> Option<LiveExpected> {
        let (number, build) = self.builds.last_key_value()?;
        let expected = build.expected.as_ref()?;
        let keyed = |open: &OpenPhase| Some((build.paths.key(open.phase)?, now.since(open.since)));
        let open: Vec<(&str, Duration)> = build.phases.iter().filter_map(keyed).collect();
        let ms = |span: Duration| span.as_secs_f64() * 1e3;
        Some(LiveExpected {
            build: *number,
            builds: expected.builds,
            total_ms: ms(expected.total?),
            rest_ms: ms(expected.rest(now.since(build.started), &open)?),
            phase_ms: open.last().and_then(|(key, _)| expected.phase(key)).map(ms),
        })
    }
}

impl Open {
    fn open(&mut self, start: &PhaseStarted, at: Mono) {
        let PhaseStarted { phase, parent, name, .. } = start;
        self.paths.open(*phase, *parent, name);
        self.phases.push(OpenPhase { phase: *phase, name: name.clone(), since: at });
    }
}
