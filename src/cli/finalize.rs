//! `stuckproof finalize`.

use super::masking::Masking;
use super::{fail, history, refuse_packed, say, signing_key};
use crate::attempts;
use crate::event::HostReported;
use crate::evidence::{self, EVENTS, EVIDENCE};
use crate::exit;
use crate::history::History;
use crate::mask::Secrets;
use crate::render;
use crate::resume;
use crate::seal;
use crate::sign::SigningKey;
use crate::supervise::{self, DEFAULT_FOLDER};
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
    /// The bundles' folders, or folders of bundles; a bundle that is sealed is left as it is
    #[arg(value_name = "BUNDLE", default_value = DEFAULT_FOLDER)]
    bundles: Vec<PathBuf>,
    /// What the CI host says of its job, for the record of a bundle that is finished here; GitLab, Azure and Buildkite say
    /// it in a variable
    #[arg(long, value_name = "STATUS")]
    host_status: Option<String>,
    /// The folder that is to remember the builds of bundles that are finished here, or `none` [default:
    /// `$STUCKPROOF_HISTORY`, else none: a bundle may come from another machine]
    #[arg(long, value_name = "DIR|none")]
    history: Option<PathBuf>,
    #[command(flatten)]
    masking: Masking,
}

/// Finishes each bundle; one that cannot be finished does not keep the others from it.
pub(super) fn main(options: Options) -> ExitCode {
    let key = match signing_key(options.sign.as_deref()) {
        Ok(key) => key,
        Err(e) => return fail(&e),
    };
    let host = supervise::host_report(options.host_status.as_deref());
    if let Some(HostReported { status, told_by }) = &host {
        say(&format!("the host says {status} ({told_by})"));
    }
    let history = history::named(options.history);
    let mut code = ExitCode::SUCCESS;
    let secrets = Arc::new(Secrets::collect(&options.masking.into(), std::env::vars_os(), &[]));
    for folder in &options.bundles {
        for result in bundles_in(folder)
            .into_iter()
            .map(|bundle| finalize(&bundle?, host.clone(), &secrets, key.as_ref(), history.as_ref()))
        {
            if let Err(why) = result {
                say(&why);
                code = ExitCode::from(exit::OWN_FAULT);
            }
        }
        for result in attempts_in(folder).iter().map(|folder| attempts::conclude(folder)) {
            if let Err(e) = result {
                code = fail(&e);
            }
        }
    }
    code
}

/// The folder of attempts that a folder is, or those in it.
fn attempts_in(folder: &Path) -> Vec<PathBuf> {
    if attempts::are_in(folder) {
        return vec![folder.to_owned()];
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| attempts::are_in(path)).collect()
}

/// The bundle that a folder is, or the bundles in it.
fn bundles_in(folder: &Path) -> Vec<Result<PathBuf, String>> {
    if let Err(why) = refuse_packed(folder) {
        return vec![Err(why)];
    }
    let is_bundle =
        |path: &Path| [EVENTS, EVIDENCE].iter().any(|name| path.join(name).symlink_metadata().is_ok());
    if is_bundle(folder) {
        return vec![Ok(folder.to_owned())];
    }
    let within = |folder: &Path| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    // A job that is tried several times has its bundles one folder deeper.
    let of_attempts = attempts_in(folder).into_iter().filter(|attempts| attempts != folder);
    let all = within(folder).into_iter().chain(of_attempts.flat_map(|attempts| within(&attempts)));
    let mut found: Vec<PathBuf> = all.filter(|path| is_bundle(path)).collect();
    found.sort();
    if found.is_empty() {
        let why = "no job was begun there, or its --bundle was another folder";
        return vec![Err(format!("there is no bundle in {}: {why}", folder.display()))];
    }
    found.into_iter().map(Ok).collect()
}

fn finalize(
    bundle: &Path,
    host: Option<HostReported>,
    secrets: &Arc<Secrets>,
    key: Option<&SigningKey>,
    history: Option<&History>,
) -> Result<(), String> {
    let was_sealed = seal::is_sealed(bundle);
    resume::finish_abandoned(bundle, host, secrets, key).map_err(|e| e.to_string())?;
    let finished = evidence::load(bundle).map_err(|e| e.to_string())?;
    render::past(&finished, &mut io::stdout().lock()).or_else(|e| unless_left(&e))?;
    if was_sealed {
        return check(bundle);
    }
    if let Some(why) = history.and_then(|history| history::learn(history.clone(), bundle)) {
        say(&why);
    }
    Ok(())
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
