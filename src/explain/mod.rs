//! Answers the four questions of the acceptance test, each with the facts that it rests on: should the build continue,
//! should it be cancelled, may the retry use the timing cache, should the system roll back?
//!
//! Pure: a function of a bundle and, where the job runs, of what its runner says. Where the facts do not suffice, the
//! answer is that they do not.

mod ended;
mod running;
mod text;

pub use text::print;

use crate::attempts::{Attempt, Attempts};
use crate::evidence::{Bundle, JobState};
use crate::supervise::Live;
use serde::Serialize;

/// All four answers on one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The job.
    pub job: String,
    /// Its state.
    pub state: JobState,
    /// Its cause; null after a success and before the end.
    pub cause: Option<String>,
    /// What the attempts before this one came to; empty where there were none.
    pub earlier: Vec<String>,
    /// Whether its runner answers.
    pub running: bool,
    /// The last verdict on a silence, in words; null where none was needed.
    pub silence: Option<String>,
    /// The answers, in the order of the questions.
    pub answers: Vec<Answer>,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// What was asked.
    pub question: Question,
    /// The answer.
    pub answer: Word,
    /// The facts that it rests on, or that are missing.
    pub because: Vec<String>,
    /// What to do, where there is something to do; else null.
    pub next: Option<String>,
}

/// The four questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// Should the build continue?
    Continue,
    /// Should it be cancelled?
    Cancel,
    /// May the retry use the timing cache?
    TimingCache,
    /// Should the system roll back to a known engine?
    Rollback,
}

/// What can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Yes.
    Yes,
    /// No.
    No,
    /// The facts do not suffice.
    CannotTell,
    /// The question does not arise.
    NotApplicable,
}

impl Answer {
    fn new(question: Question, answer: Word, because: impl IntoIterator<Item = String>) -> Self {
        Self { question, answer, because: because.into_iter().collect(), next: None }
    }

    fn next(self, next: impl Into<String>) -> Self {
        Self { next: Some(next.into()), ..self }
    }
}

/// The answers on a job, from its bundle and, while it runs, from its runner; where it is one of several attempts, with the
/// record of them.
#[must_use]
pub fn explain(bundle: &Bundle, live: Option<&Live>, record: Option<&Attempts>) -> Explanation {
    let evidence = &bundle.evidence;
    let last = evidence.silences.last.as_ref().map(|judged| judged.words.clone());
    let now = live.and_then(|live| live.silence.as_ref()).map(|silence| silence.words.clone());
    let live = live.filter(|_| !evidence.finished);
    let number = evidence.header.attempt.as_ref().map_or(0, |attempt| attempt.number);
    let earlier = record.map(|record| record.before(number)).unwrap_or_default();
    let mut answers = match live {
        Some(live) => running::answers(evidence, live),
        None => ended::first_two(evidence),
    };
    answers.push(ended::timing_cache(bundle));
    answers.push(ended::rollback(bundle));
    Explanation {
        job: evidence.job.clone(),
        state: evidence.state,
        cause: evidence.cause.clone(),
        earlier: earlier.into_iter().map(Attempt::in_words).collect(),
        running: live.is_some(),
        silence: if live.is_some() { now } else { last },
        answers,
    }
}
