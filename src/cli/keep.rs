//! The hidden verb of the keeper.

use crate::supervise;
use clap::Args;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The job, for people who look at the list of processes.
    #[arg(value_name = "JOB")]
    _job: String,
}

/// Watches over the command; where the runner was lost, finishes its bundle.
pub(super) fn main(_: &Options) -> ExitCode {
    if let Some(orphaned) = supervise::keep() {
        drop(orphaned);
    }
    ExitCode::SUCCESS
}
