//! `stuckproof review`.

use super::{fail, json, print};
use crate::render;
use crate::review::{Policy, Review, find, review};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Bundles, packed or not, folders of bundles, or `@FILE` with a path a line
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// What is asked of them [default: a real, observed success]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// A bundle whose surroundings the others must share
    #[arg(long, value_name = "BUNDLE")]
    reference: Option<PathBuf>,
    /// An engine that is about to ship: a bundle that passes must have published it
    #[arg(long = "subject", value_name = "ENGINE")]
    subjects: Vec<PathBuf>,
    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Markdown,
    Json,
    Junit,
}

/// Reviews the bundles; the exit code is the review's.
pub(super) fn main(options: &Options) -> ExitCode {
    let review = match reviewed(options) {
        Ok(review) => review,
        Err(why) => return fail(&why),
    };
    let printed = match options.format {
        Format::Text => print(|out| render::reviewed(&review, out)),
        Format::Markdown => print(|out| render::reviewed_markdown(&review, out)),
        Format::Json => json(&review),
        Format::Junit => print(|out| out.write_all(&render::reviewed_junit(&review, chrono::Utc::now()))),
    };
    if printed == ExitCode::SUCCESS { ExitCode::from(review.exit_code()) } else { printed }
}

fn reviewed(options: &Options) -> Result<Review, String> {
    let policy = options.policy.as_deref().map(Policy::load).transpose().map_err(|e| e.to_string())?;
    let bundles = find(&options.paths).map_err(|e| e.to_string())?;
    let (policy, reference) = (policy.unwrap_or_default(), options.reference.as_deref());
    review(&bundles, &policy, reference, &options.subjects, chrono::Utc::now()).map_err(|e| e.to_string())
}
