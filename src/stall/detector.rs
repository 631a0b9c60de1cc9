//! The verdict on a silence.

use super::window::{Span, Window};
use crate::clock::Mono;
use crate::event::{SilenceJudged, SilenceVerdict};
use crate::resources::{Sample, gpu_work};
use std::time::Duration;

/// A silence shorter than this is none.
const QUIET: Duration = Duration::from_secs(15);
/// However long a sample was in coming, it says nothing of more time than this: we, or the whole machine, did not run.
const LONGEST_SPAN: Duration = Duration::from_secs(5);
/// What history allows beyond the longest silence that it knows: half of it, and this.
const LEEWAY: Duration = Duration::from_secs(5);
/// Without history, a load explains a silence up to so many times the threshold.
const LOAD_EXPLAINS: u32 = 5;

/// What the user set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A silent build that has been idle for so long is stalled, unless earlier builds were idle for longer.
    pub stall_after: Duration,
}

impl Limits {
    fn quiet(self) -> Duration {
        QUIET.min(self.stall_after / 4)
    }

    fn threshold(self, expected: &Expected) -> Duration {
        self.stall_after.max(expected.idle * 2)
    }
}

/// Where the job is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The build that is open, or none.
    pub build: Option<u32>,
    /// Its innermost open phase.
    pub phase: Option<u64>,
    /// That phase's name.
    pub name: Option<String>,
}

/// What earlier builds make expect there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expected {
    /// The longest silence; none where there were no such builds.
    pub silence: Option<Duration>,
    /// The longest that one was idle.
    pub idle: Duration,
    /// How many stalled there.
    pub stalls: u32,
}

/// What a verdict rests on; it is what the log tells.
pub type Facts = SilenceJudged;

/// Follows the silences of one job.
#[derive(Debug)]
pub struct Detector {
    limits: Limits,
    window: Window,
    /// The last sign of life, moved on by pauses.
    since: Mono,
    before: Option<Sample>,
    last: Sample,
    longest_idle: Duration,
    standing: Option<Facts>,
}

impl Detector {
    /// Begins with a sign of life at `at`.
    #[must_use]
    pub fn new(limits: Limits, at: Mono) -> Self {
        Self {
            limits,
            window: Window::new(limits.stall_after),
            since: at,
            before: None,
            last: Sample::default(),
            longest_idle: Duration::ZERO,
            standing: None,
        }
    }

    /// The builder called back at `at`. What was said of the silence before is taken back.
    pub fn called_back(&mut self, at: Mono) -> Option<Facts> {
        let over = self.standing.take().map(|facts| Facts {
            verdict: SilenceVerdict::Advancing,
            reason: "called back".to_owned(),
            silent_ns: nanos(at.since(self.since)),
            idle_ns: nanos(self.longest_idle),
            ..facts
        });
        self.since = self.since.max(at);
        self.longest_idle = Duration::ZERO;
        self.window.clear();
        // The next sample tells of the time before this as well.
        self.before = None;
        over
    }

    /// The job was paused for so long: nobody was silent meanwhile.
    pub fn shift(&mut self, pause: Duration) {
        self.since = Mono(self.since.0.saturating_add(nanos(pause)));
        self.before = None;
    }

    /// Takes a sample.
    pub fn sample(&mut self, sample: &Sample) {
        if let Some(before) = self.before.replace(sample.clone()) {
            self.window.push(span(&before, sample));
            self.longest_idle = self.longest_idle.max(self.window.idle());
        }
        self.last = sample.clone();
    }

    /// The verdict now, if it is another than before.
    pub fn judge(&mut self, now: Mono, place: &Place, expected: &Expected) -> Option<Facts> {
        let facts = self.facts(now, place, expected);
        let standing = self.standing.as_ref();
        let before = standing.map_or((SilenceVerdict::Advancing, None), |f| (f.verdict, Some(&f.reason)));
        if before.0 == facts.verdict && (before.1.is_none() || before.1 == Some(&facts.reason)) {
            return None;
        }
        self.standing = (facts.verdict != SilenceVerdict::Advancing).then(|| facts.clone());
        Some(facts)
    }

    /// How things are now, whether or not the verdict has changed.
    #[must_use]
    pub fn facts(&self, now: Mono, place: &Place, expected: &Expected) -> Facts {
        let threshold = self.limits.threshold(expected);
        let (silent, idle) = (now.since(self.since), self.window.idle());
        let (verdict, reason) = self.verdict(silent, idle, place, expected);
        let all = self.window.all();
        Facts {
            build: place.build,
            phase: place.phase,
            phase_name: place.name.clone(),
            verdict,
            reason: reason.to_owned(),
            silent_ns: nanos(silent),
            idle_ns: nanos(idle),
            cpu_percent: percent(all.cpu, all.length),
            starved_percent: self.last.starved_ms.map(|_| percent(all.starved, all.length)),
            gpu_percent: gpu_work(&self.last),
            running: self.last.running,
            blocked: self.last.blocked,
            stopped: self.last.stopped,
            expected_ns: expected.silence.map(nanos),
            threshold_ns: nanos(threshold),
            earlier_stalls: expected.stalls,
        }
    }

    fn verdict(
        &self,
        silent: Duration,
        idle: Duration,
        place: &Place,
        expected: &Expected,
    ) -> (SilenceVerdict, &'static str) {
        use SilenceVerdict::{Advancing, SlowExpected, SlowUnexplained, Stalled};
        let threshold = self.limits.threshold(expected);
        let too_idle = idle >= threshold && silent >= threshold;
        if place.build.is_none() {
            // A command without a build may wait for work that is done elsewhere.
            return if too_idle { (SlowUnexplained, "no open build") } else { (Advancing, "no open build") };
        }
        // Before the second sample nothing is known of the silence.
        if silent < self.limits.quiet() || self.window.is_empty() {
            return (Advancing, "called back");
        }
        if too_idle {
            return match self.last.gpus {
                None => (SlowUnexplained, "gpu unseen"),
                Some(_) => (Stalled, self.idleness()),
            };
        }
        let busy = idle < self.limits.quiet();
        match expected.silence {
            Some(longest) if silent <= longest + longest / 2 + LEEWAY => (SlowExpected, "history"),
            Some(_) if busy => (SlowUnexplained, "longer than history"),
            None if busy && silent <= threshold * LOAD_EXPLAINS => (SlowExpected, "load"),
            None if busy => (SlowUnexplained, "long without history"),
            _ => (SlowUnexplained, "not explained yet"),
        }
    }

    /// The kind of idleness, by what the threads do.
    fn idleness(&self) -> &'static str {
        match (self.last.stopped, self.last.blocked) {
            (1.., _) => "stopped",
            (0, 1..) => "blocked",
            (0, 0) => "idle",
        }
    }
}

fn span(before: &Sample, now: &Sample) -> Span {
    let io = |sample: &Sample| sample.io_bytes.unwrap_or(0);
    let starved = before.starved_ms.zip(now.starved_ms).map(|(before, now)| now.saturating_sub(before));
    Span {
        length: Duration::from_nanos(now.t.saturating_sub(before.t)).min(LONGEST_SPAN),
        cpu: Duration::from_millis(now.cpu_ms.saturating_sub(before.cpu_ms)),
        starved: Duration::from_millis(starved.unwrap_or(0)),
        io: io(now).saturating_sub(io(before)),
        looks: 1,
        runs: u64::from(now.running > 0),
        gpu: u64::from(now.gpu_works() == Some(true)),
    }
}

fn percent(part: Duration, whole: Duration) -> u32 {
    let share = part.as_millis() * 100 / whole.as_millis().max(1);
    u32::try_from(share).unwrap_or(u32::MAX)
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
