//! The answers for people.

use super::{Answer, Explanation, Question, Word};
use crate::shown::Clean;
use std::io::{self, Write};

/// Prints the answers, each with its facts below it.
pub fn print(explanation: &Explanation, out: &mut impl Write) -> io::Result<()> {
    let state = serde_json::to_value(explanation.state).unwrap_or_default();
    write!(out, "{}: {}", Clean::short(&explanation.job), state.as_str().unwrap_or_default())?;
    match &explanation.cause {
        Some(cause) => writeln!(out, " ({})", Clean::short(cause))?,
        None => writeln!(out)?,
    }
    for earlier in &explanation.earlier {
        writeln!(out, "  before it, {}", Clean::line(earlier))?;
    }
    if let Some(silence) = &explanation.silence {
        writeln!(out, "  last verdict: {silence}")?;
    }
    explanation.answers.iter().try_for_each(|answer| one(answer, out))
}

fn one(answer: &Answer, out: &mut impl Write) -> io::Result<()> {
    let question = match answer.question {
        Question::Continue => "Should the build continue?",
        Question::Cancel => "Should it be cancelled?",
        Question::TimingCache => "May the retry use the timing cache?",
        Question::Rollback => "Should the system roll back to a known engine?",
    };
    let word = match answer.answer {
        Word::Yes => "yes",
        Word::No => "no",
        Word::CannotTell => "the facts do not suffice",
        Word::NotApplicable => "does not arise",
    };
    writeln!(out, "\n{question} {word}")?;
    for fact in &answer.because {
        writeln!(out, "  - {}", Clean::line(fact))?;
    }
    answer.next.iter().try_for_each(|next| writeln!(out, "  Next: {}", Clean::line(next)))
}
