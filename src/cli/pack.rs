//! `stuckproof pack`.

use super::{fail, print};
use crate::pack::pack;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The sealed bundle's folder; its addenda are packed with it
    bundle: PathBuf,
    /// The file to write; what is there is never replaced [default: BUNDLE.tar.zst]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Packs the bundle and prints the path of the file.
pub(super) fn main(options: &Options) -> ExitCode {
    match pack(&options.bundle, options.output.as_deref()) {
        Ok(path) => print(|out| writeln!(out, "{}", path.display())),
        Err(e) => fail(&e),
    }
}
