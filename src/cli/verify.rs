//! `stuckproof verify`.

use super::{fail, json, print};
use crate::attempts;
use crate::evidence::JobState;
use crate::render;
use crate::seal::addendum::Addendum;
use crate::sign::{KeyError, PublicKey};
use crate::verify::{Answer, Fault, Report, Tried, Wanted, verify, verify_attempts};
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
    let found: Vec<Found> = options.bundles.iter().map(|folder| Found::of(folder, &wanted)).collect();
    let worst = found.iter().map(Found::answer).fold(Answer::Valid, Answer::worse);
    let printed = match options.format {
        Format::Text => print(|out| {
            found.iter().try_for_each(|found| match found {
                Found::One(report) => render::verified(report, out),
                Found::Tried(tried) => render::verified_attempts(tried, out),
            })
        }),
        Format::Json => json(&found.iter().flat_map(Found::documents).collect::<Vec<_>>()),
    };
    if printed == ExitCode::SUCCESS { ExitCode::from(worst.exit_code()) } else { printed }
}

/// What was found in a folder.
enum Found {
    /// A bundle.
    One(Box<Report>),
    /// All attempts at a job.
    Tried(Tried),
}

impl Found {
    fn of(folder: &Path, wanted: &Wanted) -> Self {
        if attempts::are_in(folder) {
            Self::Tried(verify_attempts(folder, wanted))
        } else {
            Self::One(Box::new(verify(folder, wanted)))
        }
    }

    fn answer(&self) -> Answer {
        match self {
            Self::One(report) => report.answer(),
            Self::Tried(tried) => tried.answer(),
        }
    }

    fn documents(&self) -> Vec<Verified<'_>> {
        match self {
            Self::One(report) => vec![Verified::from(&**report)],
            Self::Tried(tried) => {
                let of_all = Verified::of_all(tried);
                tried.attempts.iter().map(Verified::from).chain(of_all).collect()
            }
        }
    }
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

impl<'a> Verified<'a> {
    /// On all attempts together: what became of the job is what the last one says.
    fn of_all(tried: &'a Tried) -> Option<Self> {
        let last = tried.attempts.last().map(Self::from)?;
        Some(Self {
            bundle: &tried.path,
            answer: tried.answer(),
            faults: &tried.faults,
            manifest: None,
            signer: None,
            addenda: &[],
            ..last
        })
    }
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
