//! `stuckproof addendum`.

use super::{fail, print, refuse_packed, signing_key};
use crate::seal::addendum::{Kind, Status, add};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The sealed bundle's folder
    bundle: PathBuf,
    /// What the fact is about
    #[arg(long)]
    kind: Kind,
    /// How it came out
    #[arg(long)]
    status: Status,
    /// What a reader should know
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Sign the addendum with this Ed25519 key (PKCS#8 PEM) [default: that of `STUCKPROOF_SIGN_KEY`, if set]
    #[arg(long, value_name = "KEY")]
    sign: Option<PathBuf>,
}

/// Writes the addendum and prints its path.
pub(super) fn main(options: &Options) -> ExitCode {
    let key = match signing_key(options.sign.as_deref()) {
        Ok(key) => key,
        Err(e) => return fail(&e),
    };
    if let Err(why) = refuse_packed(&options.bundle) {
        return fail(&why);
    }
    let what = (options.kind, options.status);
    match add(&options.bundle, what, &options.note, chrono::Utc::now(), key.as_ref()) {
        Ok(path) => print(|out| writeln!(out, "{}", path.display())),
        Err(e) => fail(&e),
    }
}
