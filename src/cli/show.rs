//! `stuckproof show`.

use super::fail;
use crate::evidence;
use crate::render::{self, Style};
use clap::Args;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The bundle's folder
    bundle: PathBuf,
}

/// Prints the bundle.
pub(super) fn main(options: &Options) -> ExitCode {
    let bundle = match evidence::load(&options.bundle) {
        Ok(bundle) => bundle,
        Err(e) => return fail(&e),
    };
    let stdout = io::stdout();
    let style = Style { color: stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none() };
    let mut out = BufWriter::new(stdout.lock());
    match render::show(&bundle, &mut out, style).and_then(|()| out.flush()) {
        // A pager that was left early wanted no more.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(e) => fail(&format!("cannot print: {e}")),
        Ok(()) => ExitCode::SUCCESS,
    }
}
