//! The hidden verb of the keeper.

use super::history;
use crate::exit;
use crate::mask::Secrets;
use crate::resume::{self, Known};
use crate::supervise::{self, Orphaned};
use clap::Args;
use std::path::Path;
use std::process::ExitCode;

/// The file in the bundle for what a keeper has to say: nobody reads its streams.
const DIARY: &str = "keeper.log";

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The job, for people who look at the list of processes.
    #[arg(value_name = "JOB")]
    _job: String,
}

/// Watches over the command; where the runner was lost, finishes its bundle.
pub(super) fn main(_: &Options) -> ExitCode {
    let Some(orphaned) = supervise::keep() else { return ExitCode::SUCCESS };
    let Orphaned { bundle, exited, events, log, output_cap, secrets, history } = orphaned;
    let known = Known {
        exited,
        events,
        host: None,
        reason: "the runner was lost",
        exit_code: exit::OWN_FAULT,
        by: "keeper",
        output_cap,
        secrets,
    };
    // The lock goes with the handle, at the last moment at which nobody else can have it.
    drop(log);
    match resume::finish(&bundle, &known, None) {
        Ok(_) => {
            // What is not remembered is nobody's loss but the next build's, and nobody reads of it here.
            let _ = history.and_then(|history| history::learn(history, &bundle));
            ExitCode::SUCCESS
        }
        Err(e) => complain(&bundle, e.to_string(), &known.secrets),
    }
}

fn complain(bundle: &Path, mut why: String, secrets: &Secrets) -> ExitCode {
    secrets.hide(&mut why);
    // A bundle that cannot be written cannot hold this either.
    let _ = std::fs::write(bundle.join(DIARY), format!("stuckproof: the runner was lost, and {why}\n"));
    ExitCode::from(exit::OWN_FAULT)
}
