//! `stuckproof finalize`.

use super::say;
use crate::evidence;
use crate::exit;
use crate::render;
use crate::resume;
use clap::Args;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The bundles' folders; one that is finished is left as it is
    #[arg(required = true, value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
}

/// Finishes each bundle; one that cannot be finished does not keep the others from it.
pub(super) fn main(options: &Options) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for bundle in &options.bundles {
        if let Err(why) = finalize(bundle) {
            say(&why);
            code = ExitCode::from(exit::OWN_FAULT);
        }
    }
    code
}

fn finalize(bundle: &Path) -> Result<(), String> {
    resume::finish_abandoned(bundle).map_err(|e| e.to_string())?;
    let finished = evidence::load(bundle).map_err(|e| e.to_string())?;
    let mut out = io::stdout().lock();
    match render::past(&finished, &mut out).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(format!("cannot print: {e}")),
        _ => Ok(()),
    }
}
