//! After the last record: the evidence is written first, then the output is carried to its end, then the last line is
//! said.

use super::job::Core;
use super::late::PutBeside;
use super::recorder::Unlogged;
use crate::cancel::Via;
use crate::event::State;
use crate::exit;
use crate::fsio::FsError;
use crate::mask::Secrets;
use crate::verdict::{EVIDENCE_LOST, Verdict};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the last lines may take to be said after somebody gave up on the output.
const LAST_WORD: Duration = Duration::from_millis(100);

/// A job whose record is complete.
pub struct Finished {
    core: Core,
    verdict: Verdict,
    exit_code: u8,
    lost: Option<String>,
    pumps: usize,
}

/// A job that nobody works on any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// The exit code.
    pub exit_code: u8,
    /// How a stop was asked for after the end, if one was.
    pub asked: Option<Via>,
}

impl Finished {
    pub(super) fn new(
        core: Core,
        verdict: Verdict,
        exit_code: u8,
        lost: Option<String>,
        pumps: usize,
    ) -> Self {
        Self { core, verdict, exit_code, lost, pumps }
    }

    /// The bundle's folder.
    #[must_use]
    pub fn bundle(&self) -> &Path {
        self.core.bundle.path()
    }

    /// What no file of the bundle may hold.
    #[must_use]
    pub fn secrets(&self) -> &Arc<Secrets> {
        &self.core.secrets
    }

    /// What is missing from the log and not on the wire, where the log could not be written. Somebody else can finish it
    /// from then on.
    pub fn give_up_log(&mut self) -> Option<Unlogged> {
        self.core.recorder.give_up()
    }

    /// The evidence is written: takes the wire away, unless something in it may be missing from the log. A wire that
    /// holds a secret goes in any case.
    pub fn remove_wire(&self) -> Result<(), FsError> {
        let dispensable = self.lost.is_none() || self.core.recorder.has_masked();
        if dispensable { self.core.bundle.remove_wire() } else { Ok(()) }
    }

    /// Says what the evidence lacks; the job fails for it.
    pub fn fail(&mut self, what: String) {
        self.exit_code = exit::OWN_FAULT;
        self.lost.get_or_insert(what);
    }

    /// Waits until the output is carried, says the last lines and gives the exit code. A request to stop ends the wait: a
    /// reader that has stalled for ever must not hold the job. Each such request is put on record beside the bundle.
    #[must_use]
    pub fn leave(self, put_beside: PutBeside) -> Left {
        let Self { mut core, mut verdict, exit_code, lost, pumps } = self;
        // Everything is written: the keeper has nothing to finish.
        if let Some(keeper) = core.keeper.take() {
            keeper.dismiss();
        }
        let mut heard = std::mem::take(&mut core.heard);
        // What was asked before the wait began was asked of the job, which is over.
        heard.hear_all(&core.notes);
        let waited = heard.wait_for(&core.notes, pumps, None);
        for line in heard.put_on_record(&core, &verdict, put_beside) {
            core.voice.say(&line);
        }
        let recorded = verdict.clone();
        if let Some(lost) = lost {
            let lost = core.bundle.taken_away().unwrap_or(lost);
            core.voice.say(&format!("the evidence is not complete, so the job failed: {lost}"));
            // Where the log cannot be written, the verdict on it may still be another.
            (verdict.state, verdict.cause) = (State::Failed, Some(EVIDENCE_LOST.to_owned()));
        }
        core.voice.say(&conclusion(&verdict));
        core.voice.say(&format!("evidence: {}", core.bundle.shown().display()));
        core.voice.end();
        heard.wait_for(&core.notes, heard.over + 1, (!waited).then(|| Instant::now() + LAST_WORD));
        // Whoever asks from here on is told that nobody records it any more.
        core.cancellation.leave();
        core.registration = None;
        heard.hear_all(&core.notes);
        // Nothing is said any more.
        let _ = heard.put_on_record(&core, &recorded, put_beside);
        Left { exit_code, asked: heard.first }
    }
}

/// The state of a job and its cause.
pub(super) fn in_words(verdict: &Verdict) -> String {
    let state = match verdict.state {
        State::Succeeded => "succeeded",
        State::Cancelled => "cancelled",
        State::Failed => "failed",
    };
    let cause = verdict.cause.as_ref().map(|c| format!(" ({c})")).unwrap_or_default();
    format!("{state}{cause}")
}

fn conclusion(verdict: &Verdict) -> String {
    let observed = if verdict.observed { "" } else { "; no TensorRT build was observed" };
    format!("{}{observed}", in_words(verdict))
}
