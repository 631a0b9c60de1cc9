//! Exit codes: an interface with a table in `docs/exit-codes.md` and a test for each.

/// The job did not succeed although the command said 0.
pub const NOT_SUCCEEDED: u8 = 123;
/// The job ran into its deadline.
pub const DEADLINE: u8 = 124;
/// Stuckproof itself failed: bad usage, a bundle that cannot be written, evidence that was lost.
pub const OWN_FAULT: u8 = 125;
/// The command was found but could not be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
pub const NOT_FOUND: u8 = 127;

/// The code of a process that a signal ended, as shells say it.
#[must_use]
pub fn of_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(255)
}

/// How the command ended, in what the exit code depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Code(u8),
    /// By this signal.
    Signal(i32),
}

/// What the job came to, in what the exit code depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// How the command ended.
    pub end: End,
    /// Whether the job's state is `succeeded`.
    pub succeeded: bool,
    /// Whether the accepted request was the deadline.
    pub deadline: bool,
    /// Whether evidence was lost or could not be written.
    pub own_fault: bool,
}

/// The exit code of a job.
#[must_use]
pub fn of_job(outcome: Outcome) -> u8 {
    if outcome.own_fault {
        return OWN_FAULT;
    }
    if outcome.deadline && !outcome.succeeded {
        return DEADLINE;
    }
    match outcome.end {
        End::Signal(signal) => of_signal(signal),
        End::Code(0) if !outcome.succeeded => NOT_SUCCEEDED,
        End::Code(code) => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(end: End, succeeded: bool) -> Outcome {
        Outcome { end, succeeded, deadline: false, own_fault: false }
    }

    #[test]
    fn zero_means_succeeded_and_nothing_else_does() {
        assert_eq!(of_job(outcome(End::Code(0), true)), 0);
        assert_eq!(of_job(outcome(End::Code(0), false)), NOT_SUCCEEDED);
        assert_eq!(of_job(outcome(End::Code(7), false)), 7);
        assert_eq!(of_job(outcome(End::Signal(15), false)), 143);
    }

    #[test]
    fn our_own_fault_comes_first_then_the_deadline() {
        let killed = outcome(End::Signal(9), false);
        assert_eq!(of_job(Outcome { deadline: true, ..killed }), DEADLINE);
        assert_eq!(of_job(Outcome { deadline: true, own_fault: true, ..killed }), OWN_FAULT);
        let saved = Outcome { deadline: true, ..outcome(End::Code(0), true) };
        assert_eq!(of_job(saved), 0, "an engine that was returned in spite of the deadline is a success");
    }
}
