//! `stuckproof finalize`.

use super::masking::Masking;
use super::say;
use crate::evidence;
use crate::exit;
use crate::mask::Secrets;
use crate::render;
use crate::resume;
use clap::Args;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The bundles' folders; one that is finished is left as it is
    #[arg(required = true, value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    #[command(flatten)]
    masking: Masking,
}

/// Finishes each bundle; one that cannot be finished does not keep the others from it.
pub(super) fn main(options: Options) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    let secrets = Arc::new(Secrets::collect(&options.masking.into(), std::env::vars_os(), &[]));
    for bundle in &options.bundles {
        if let Err(why) = finalize(bundle, &secrets) {
            say(&why);
            code = ExitCode::from(exit::OWN_FAULT);
        }
    }
    code
}

fn finalize(bundle: &Path, secrets: &Arc<Secrets>) -> Result<(), String> {
    resume::finish_abandoned(bundle, secrets).map_err(|e| e.to_string())?;
    let finished = evidence::load(bundle).map_err(|e| e.to_string())?;
    let mut out = io::stdout().lock();
    match render::past(&finished, &mut out).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(format!("cannot print: {e}")),
        _ => Ok(()),
    }
}
