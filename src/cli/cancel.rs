//! `stuckproof cancel`.

use super::{fail, say};
use crate::supervise::control::{self, Caller, Cancelled, Question, Reply};
use clap::Args;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The job: its name, the beginning of its name, or its bundle [default: the only one that runs]
    job: Option<String>,
    /// What asks
    #[arg(long, value_name = "SOURCE", default_value = "api")]
    source: Caller,
    /// Why, for the evidence
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Asks the job to stop and says what became of the request.
pub(super) fn main(options: &Options) -> ExitCode {
    let question = Question::Cancel { source: Some(options.source), reason: options.reason.clone() };
    let reply = control::find(options.job.as_deref()).and_then(|entry| control::ask(&entry, &question));
    match reply {
        Ok(Reply::Cancel(cancelled)) => {
            say(&in_words(&cancelled));
            ExitCode::SUCCESS
        }
        Ok(Reply::TooLate { job, ended }) => {
            say(&too_late(&job, ended.as_deref()));
            ExitCode::SUCCESS
        }
        Ok(_) => fail(&"the job gave an answer to another question; is it of another version?"),
        Err(e) => fail(&e),
    }
}

fn in_words(Cancelled { job, request, accepted, late }: &Cancelled) -> String {
    if *late {
        format!(
            "the command of job {job} has ended, and its files are being put in order; request {request} was recorded"
        )
    } else if *accepted {
        format!("job {job} is stopping (request {request})")
    } else {
        format!("job {job} was stopping already; request {request} was recorded")
    }
}

fn too_late(job: &str, ended: Option<&str>) -> String {
    let ended = ended.map(|state| format!(" ({state})")).unwrap_or_default();
    format!(
        "too late: job {job} has ended{ended}, and nothing changes; the request is put on record beside its bundle"
    )
}
