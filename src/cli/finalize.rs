//! `stuckproof finalize`.

use super::masking::Masking;
use super::{fail, say, signing_key};
use crate::evidence;
use crate::exit;
use crate::mask::Secrets;
use crate::render;
use crate::resume;
use crate::seal;
use crate::sign::SigningKey;
use crate::verify::{Wanted, verify};
use clap::Args;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Sign the seals with this Ed25519 key (PKCS#8 PEM), also those of bundles that are sealed and not signed yet
    /// [default: that of `STUCKPROOF_SIGN_KEY`, if set]
    #[arg(long, value_name = "KEY")]
    sign: Option<PathBuf>,
    /// The bundles' folders; one that is sealed is left as it is
    #[arg(required = true, value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    #[command(flatten)]
    masking: Masking,
}

/// Finishes each bundle; one that cannot be finished does not keep the others from it.
pub(super) fn main(options: Options) -> ExitCode {
    let key = match signing_key(options.sign.as_deref()) {
        Ok(key) => key,
        Err(e) => return fail(&e),
    };
    let mut code = ExitCode::SUCCESS;
    let secrets = Arc::new(Secrets::collect(&options.masking.into(), std::env::vars_os(), &[]));
    for bundle in &options.bundles {
        if let Err(why) = finalize(bundle, &secrets, key.as_ref()) {
            say(&why);
            code = ExitCode::from(exit::OWN_FAULT);
        }
    }
    code
}

fn finalize(bundle: &Path, secrets: &Arc<Secrets>, key: Option<&SigningKey>) -> Result<(), String> {
    let was_sealed = seal::is_sealed(bundle);
    resume::finish_abandoned(bundle, secrets, key).map_err(|e| e.to_string())?;
    let finished = evidence::load(bundle).map_err(|e| e.to_string())?;
    render::past(&finished, &mut io::stdout().lock()).or_else(|e| unless_left(&e))?;
    if was_sealed { check(bundle) } else { Ok(()) }
}

/// A reader that left early wanted no more.
fn unless_left(error: &io::Error) -> Result<(), String> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(format!("cannot print: {error}")) }
}

/// Nothing is changed in a sealed bundle, so whoever asks to finish one is told where that would have been needed.
fn check(bundle: &Path) -> Result<(), String> {
    let report = verify(bundle, &Wanted::default());
    match report.faults.as_slice() {
        [] => Ok(()),
        [fault, rest @ ..] => Err(format!(
            "{} was sealed before and was left as it is, but it does not verify: {}: {}, and {} more faults; see `stuckproof verify`",
            bundle.display(),
            fault.file,
            fault.what,
            rest.len()
        )),
    }
}
