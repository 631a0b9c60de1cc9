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
