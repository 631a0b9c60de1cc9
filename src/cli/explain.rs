//! `stuckproof explain`.

use super::status::ask;
use super::{fail, json, print};
use crate::attempts;
use crate::evidence;
use crate::explain;
use crate::supervise::control;
use clap::Args;
use std::path::Path;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// A running job (its name or the beginning of it) or a bundle; of a job that was tried several times the last attempt
    /// [default: the only job that runs]
    job: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Answers the four questions.
pub(super) fn main(options: &Options) -> ExitCode {
    let found = control::find(options.job.as_deref());
    // A job that has ended meanwhile is explained by its bundle.
    let live = found.as_ref().ok().and_then(|entry| ask(entry).ok());
    let bundle = match (&found, &options.job) {
        (Ok(entry), _) => entry.bundle.clone(),
        (Err(_), Some(name)) if Path::new(name).exists() => match attempts::last_of(Path::new(name)) {
            Ok(bundle) => bundle,
            Err(e) => return fail(&e),
        },
        (Err(e), _) => return fail(e),
    };
    let bundle = match evidence::load(&bundle) {
        Ok(bundle) => bundle,
        Err(e) => return fail(&e),
    };
    // Where the record cannot be read, the bundle can be explained all the same.
    let around = bundle.path.parent().filter(|_| bundle.evidence.header.attempt.is_some());
    let record = around.and_then(|folder| attempts::load(folder).ok());
    let explanation = explain::explain(&bundle, live.as_ref(), record.as_ref());
    if options.json { json(&explanation) } else { print(|out| explain::print(&explanation, out)) }
}
