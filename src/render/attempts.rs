//! The attempts at one job, a line each.

use super::{advice, text::Clean};
use crate::attempts::Attempts;
use std::io::{self, Write};

/// Prints how often a job was tried, what became of each attempt, and why there was no further one.
pub fn show(record: &Attempts, out: &mut impl Write) -> io::Result<()> {
    let most = record.retries.saturating_add(1);
    writeln!(out, "tried {} of at most {most} times", record.attempts.len())?;
    for attempt in &record.attempts {
        let (state, _) = advice::state(attempt.state);
        write!(out, "  {}. {state}", attempt.attempt)?;
        if let Some(cause) = &attempt.cause {
            write!(out, ": {}", Clean::short(cause))?;
        }
        if let Some(code) = attempt.exit_code {
            write!(out, ", exit code {code}")?;
        }
        if let Some(policy) = attempt.policy {
            write!(out, ", tried by {}", policy.name())?;
        }
        writeln!(out, ", in {}", Clean::short(&attempt.bundle))?;
    }
    match &record.ended {
        Some(why) => writeln!(out, "no further attempt: {}", Clean::line(why)),
        None => writeln!(
            out,
            "there may be further attempts; where the runner is gone, run `stuckproof finalize` on the folder"
        ),
    }
}
