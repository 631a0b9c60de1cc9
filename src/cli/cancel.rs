//! `stuckproof cancel`.

use super::{fail, say};
use crate::attempts;
use crate::supervise::control::{self, Caller, Cancelled, ControlError, Question, Reply};
use clap::Args;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// More than the next attempt at a job takes to begin.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often it is looked for.
const TICK: Duration = Duration::from_millis(10);

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
    match ask(options.job.as_deref(), &question) {
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

/// Asks the job. Between two attempts at one nobody listens, and the next would run on: so that one is waited for.
fn ask(job: Option<&str>, question: &Question) -> Result<Reply, ControlError> {
    let until = Instant::now() + PATIENCE;
    loop {
        let reply = control::find(job).and_then(|entry| control::ask(&entry, question));
        let is_tried = || job.is_some_and(|folder| attempts::are_being_made(Path::new(folder)));
        if reply.is_ok() || !is_tried() || Instant::now() >= until {
            return reply;
        }
        std::thread::sleep(TICK);
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
