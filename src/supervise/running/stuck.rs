//! What the loop does with samples: it puts verdicts on record, says them, and stops a stalled job where it was asked to.

use super::Running;
use crate::cancel::{Ask, Via};
use crate::clock::Mono;
use crate::event::{Event, EventKind, SilenceVerdict};
use crate::history::Expectation;
use crate::resources::{Sample, Sampler};
use crate::stall::{self, Facts};
use crate::supervise::job::Note;
use crate::supervise::prepare::told;
use crate::supervise::{OnStall, heartbeat};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A stalled builder that is asked to stop gets this long, where it would have had as long as it takes.
pub(super) const STALL_GRACE: Duration = Duration::from_secs(10);

impl Running {
    /// Starts to sample what descends from `root`. Where that is not possible, the job goes on, and fails for it.
    pub(super) fn start_sampling(&mut self, root: u32) {
        let job = self.core.recorder.job().to_owned();
        let hand_on = told(&self.core.tell, Note::Sample);
        match Sampler::start(self.core.bundle.path(), &job, root, hand_on) {
            Ok(sampler) => self.sampler = Some(sampler),
            Err(e) => self.core.recorder.lose(Mono::now(), 0, &e.to_string()),
        }
    }

    /// Ends the sampling and puts on record what its file lacks.
    pub(super) fn stop_sampling(&mut self) {
        if let Some(Err(why)) = self.sampler.take().map(Sampler::stop) {
            self.core.recorder.lose(Mono::now(), 0, &why);
        }
    }

    pub(super) fn sampled(&mut self, sample: &Sample) {
        // What the builder has said by now comes first.
        self.core.recorder.poll();
        if let Some(facts) = self.core.recorder.sampled(sample) {
            self.judged(&facts);
            self.record(Mono(sample.t), EventKind::SilenceJudged(facts));
        }
        let now = Mono::now();
        let output = self.output.iter().map(|carried| carried.load(Ordering::Relaxed)).sum();
        if self.core.pulse.is_due(output, now)
            && let Some(silence) = self.core.recorder.silence(now)
        {
            let line = heartbeat::line(&silence, now.since(self.core.recorder.started()));
            self.core.voice.say(&line);
        }
    }

    fn judged(&mut self, facts: &Facts) {
        if facts.verdict != SilenceVerdict::Stalled {
            return;
        }
        let words = stall::in_words(facts);
        self.core.voice.say(&words);
        self.remember_stall(facts);
        if self.core.plan.on_stall == OnStall::Cancel && self.accepted.is_none() {
            let source = self.core.host.source(Via::Stall);
            let ask = Ask { source, via: Via::Stall, reason: Some(words), pid: None, uid: None };
            self.core.cancellation.request(ask);
        }
    }

    /// On a thread: the history may lie on a disk that does not answer.
    fn remember_stall(&self, facts: &Facts) {
        let entry = self.core.recorder.stalled_entry(facts);
        if let Some((history, entry)) = self.core.plan.history.clone().zip(entry) {
            // At the end of the job it is tried again, and a failure is said then.
            std::thread::spawn(move || drop(history.keep(&entry)));
        }
    }

    pub(super) fn expected(&mut self, build: u32, expectation: Expectation) {
        let kind = EventKind::BuildExpected(expectation.as_event(build));
        self.core.recorder.expect(build, expectation);
        self.core.recorder.append(&Event { at: Mono::now(), kind });
    }
}
