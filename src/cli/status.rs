//! `stuckproof status`.

use super::{fail, json, print, say};
use crate::attempts;
use crate::evidence::{self, Bundle, Evidence};
use crate::render;
use crate::supervise::Live;
use crate::supervise::control::{self, ControlError, Entry, Question, Reply};
use clap::Args;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// A running job (its name or the beginning of it) or a bundle [default: all running jobs]
    job: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Tells how one job is, or all that run.
pub(super) fn main(options: &Options) -> ExitCode {
    let Some(name) = &options.job else { return all(options.json) };
    let live = control::find(Some(name)).and_then(|entry| ask(&entry));
    match live {
        Ok(live) if options.json => json(&live),
        Ok(live) => print(|out| render::live(&live, out)),
        Err(_) if attempts::are_in(Path::new(name)) => tried(Path::new(name), options.json),
        Err(e) if Path::new(name).exists() => bundle(Path::new(name), options.json, &e),
        Err(e) => fail(&e),
    }
}

pub(super) fn ask(entry: &Entry) -> Result<Live, ControlError> {
    match control::ask(entry, &Question::Status)? {
        Reply::Status(live) => Ok(*live),
        _ => {
            Err(ControlError::Refused("an answer to another question; is it of another version?".to_owned()))
        }
    }
}

fn all(as_json: bool) -> ExitCode {
    let jobs = match control::live_jobs() {
        Ok(jobs) => jobs,
        Err(e) => return fail(&e),
    };
    let mut answers = Vec::new();
    for entry in jobs {
        match ask(&entry) {
            Ok(live) => answers.push(live),
            // It may have ended just now; the others still count.
            Err(e) => say(&format!("{}: {e}", entry.job)),
        }
    }
    if as_json {
        return json(&answers);
    }
    if answers.is_empty() {
        say(&ControlError::NoJob.to_string());
    }
    print(|out| answers.iter().try_for_each(|live| render::live(live, out)))
}

/// What became of a job, from its bundle. `unreachable` says why no running job was asked.
fn bundle(path: &Path, as_json: bool, unreachable: &ControlError) -> ExitCode {
    let bundle = match evidence::load(path) {
        Ok(bundle) => bundle,
        Err(e) => return fail(&format!("{unreachable}; and {e}")),
    };
    if as_json { json(&Past::from(&bundle)) } else { print(|out| render::past(&bundle, out)) }
}

/// What became of a job that was tried several times.
fn tried(folder: &Path, as_json: bool) -> ExitCode {
    match attempts::load(folder) {
        Ok(record) if as_json => json(&record),
        Ok(record) => print(|out| render::attempts(&record, out)),
        Err(e) => fail(&e),
    }
}

/// A job that does not run any more, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Past<'a> {
    job: &'a str,
    bundle: &'a Path,
    finished: bool,
    state: evidence::JobState,
    cause: Option<&'a str>,
    observed: bool,
    exit_code: Option<u8>,
    started_at: &'a str,
    duration_ms: f64,
    builds: usize,
}

impl<'a> From<&'a Bundle> for Past<'a> {
    fn from(bundle: &'a Bundle) -> Self {
        let evidence: &Evidence = &bundle.evidence;
        Self {
            job: &evidence.job,
            bundle: &bundle.path,
            finished: evidence.finished,
            state: evidence.state,
            cause: evidence.cause.as_deref(),
            observed: evidence.observed,
            exit_code: evidence.exit_code,
            started_at: &evidence.started_at,
            duration_ms: evidence.duration_ms,
            builds: evidence.builds.len(),
        }
    }
}
