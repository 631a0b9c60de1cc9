//! `stuckproof verify`.

use super::{fail, json, print};
use crate::attempts;
use crate::evidence::JobState;
use crate::render;
use crate::seal::addendum::Addendum;
use crate::sign::{KeyError, PublicKey};
use crate::verify::{Answer, Fault, Report, Wanted, verify};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The bundles' folders, or what `stuckproof pack` made of them; of a job that was tried several times all attempts are verified, and the last one decides
    /// whether the job succeeded
    #[arg(required = true, value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    /// A key that may sign (Ed25519 public key in PEM); may be given several times. A bundle that none of them signed is
    /// not valid, and one without a signature is not known to be
    #[arg(long = "signer", value_name = "KEY")]
    signers: Vec<PathBuf>,
    /// Take bundles without a signature as well; a signature that is there must still be of one of the signers
    #[arg(long, requires = "signers")]
    allow_unsigned: bool,
    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
}

/// Verifies each bundle; the exit code is that of the worst.
pub(super) fn main(options: &Options) -> ExitCode {
    let wanted = match wanted(&options.signers, options.allow_unsigned) {
        Ok(wanted) => wanted,
        Err(e) => return fail(&e),
    };
    let mut reports: Vec<Report> = Vec::new();
    let mut worst = Answer::Valid;
    for folder in &options.bundles {
        let of_folder: Vec<Report> = bundles(folder).iter().map(|bundle| verify(bundle, &wanted)).collect();
        worst = worst.worse(of_all(&of_folder));
        reports.extend(of_folder);
    }
    let printed = match options.format {
        Format::Text => print(|out| reports.iter().try_for_each(|report| render::verified(report, out))),
        Format::Json => json(&reports.iter().map(Verified::from).collect::<Vec<_>>()),
    };
    if printed == ExitCode::SUCCESS { ExitCode::from(worst.exit_code()) } else { printed }
}

/// The bundle that a folder is; of a job that was tried several times all of them.
fn bundles(folder: &Path) -> Vec<PathBuf> {
    if !attempts::are_in(folder) {
        return vec![folder.to_owned()];
    }
    // The first one is named even where it is missing, so that its absence is told.
    let mut found = vec![folder.join(attempts::bundle_name(1))];
    for attempt in 2.. {
        let bundle = folder.join(attempts::bundle_name(attempt));
        if !bundle.exists() {
            break;
        }
        found.push(bundle);
    }
    found
}

/// The answer on all attempts at one job: that one failed is no fault of the job whose last one succeeded.
fn of_all(attempts: &[Report]) -> Answer {
    let Some((last, earlier)) = attempts.split_last() else { return Answer::CannotTell };
    let earlier = earlier.iter().map(Report::answer).filter(|answer| *answer != Answer::NotSucceeded);
    earlier.fold(last.answer(), Answer::worse)
}

/// What is wanted of signatures.
pub(super) fn wanted(signers: &[PathBuf], unsigned_will_do: bool) -> Result<Wanted, KeyError> {
    let signers = signers.iter().map(|path| PublicKey::load(path)).collect::<Result<_, _>>()?;
    Ok(Wanted { signers, unsigned_will_do })
}

/// A report for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Verified<'a> {
    bundle: &'a Path,
    answer: Answer,
    job: Option<&'a str>,
    state: Option<JobState>,
    cause: Option<&'a str>,
    manifest: Option<&'a str>,
    signer: Option<&'a str>,
    faults: &'a [Fault],
    addenda: &'a [Addendum],
}

impl<'a> From<&'a Report> for Verified<'a> {
    fn from(report: &'a Report) -> Self {
        let evidence = report.bundle.as_ref().map(|bundle| &bundle.evidence);
        Self {
            bundle: &report.path,
            answer: report.answer(),
            job: evidence.map(|evidence| evidence.job.as_str()),
            state: evidence.map(|evidence| evidence.state),
            cause: evidence.and_then(|evidence| evidence.cause.as_deref()),
            manifest: report.manifest.as_deref(),
            signer: report.signer.as_deref(),
            faults: &report.faults,
            addenda: &report.addenda,
        }
    }
}
