//! `stuckproof pack`: a sealed bundle that verifies, as one file that verifies.

use crate::archive::{self, ArchiveError, SUFFIX, is_packed};
use crate::attempts::{self, AttemptsError};
use crate::digest::Hex;
use crate::fsio::{FsError, Staged};
use crate::seal::{addendum, beside};
use crate::shown::Clean;
use crate::verify::{Answer, Fault, Report, Wanted, verify, verify_packed};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a bundle is not packed.
#[derive(Debug, Error)]
pub enum PackError {
    /// It is packed.
    #[error("{path} is packed already", path = .0.display())]
    Packed(PathBuf),
    /// It is several bundles.
    #[error("{path} holds the attempts at one job, each with a bundle of its own; pack them by themselves: {bundles}", path = .path.display())]
    Attempts {
        /// The folder.
        path: PathBuf,
        /// The bundles in it.
        bundles: String,
    },
    /// The record of the attempts cannot be read.
    #[error(transparent)]
    Record(#[from] AttemptsError),
    /// It does not verify.
    #[error("{path} does not verify, and only what does is packed: {fault}; see `stuckproof verify {path}`", path = .path.display())]
    NotValid {
        /// The folder.
        path: PathBuf,
        /// The first fault.
        fault: String,
    },
    /// It is not the same in the archive.
    #[error("{path} cannot be packed so that it verifies again: {fault}; if something still writes to it, wait for that", path = .path.display())]
    NotSame {
        /// The folder.
        path: PathBuf,
        /// What differs.
        fault: String,
    },
    /// Readers would not know it.
    #[error("the name of {path} does not end in {SUFFIX}, by which packed bundles are known; give another -o", path = .0.display())]
    Name(PathBuf),
    /// It would become part of what is sealed.
    #[error("{path} lies in the bundle, which is sealed; give another -o", path = .0.display())]
    Inside(PathBuf),
    /// Something else is there.
    #[error("{path} exists and holds something else; nothing was changed; give another -o, or move it away", path = .0.display())]
    Exists(PathBuf),
    /// It cannot be put into an archive.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The system refused.
    #[error(transparent)]
    File(#[from] FsError),
}

/// Packs a bundle and its addenda, and gives the path of the archive: `to`, or one beside the bundle.
///
/// What is at the path is never replaced. Where it is the very archive already, that is as good.
pub fn pack(bundle: &Path, to: Option<&Path>) -> Result<PathBuf, PackError> {
    refuse_what_is_no_bundle(bundle)?;
    let to = to.map_or_else(|| beside(bundle, SUFFIX), Path::to_owned);
    check_place(bundle, &to)?;
    let report = verify(bundle, &Wanted::default());
    if let Some(fault) = fault(&report) {
        return Err(PackError::NotValid { path: bundle.to_owned(), fault });
    }
    let job = report.bundle.as_ref().map(|bundle| bundle.evidence.job.as_str()).unwrap_or_default();
    let staged = Staged::create(&to)?;
    archive::write(bundle, job, staged.file())?;
    let packed = verify_packed(staged.path(), &Wanted::default());
    let not_same = |fault: String| PackError::NotSame { path: bundle.to_owned(), fault };
    if let Some(fault) = fault(&packed) {
        return Err(not_same(fault));
    }
    if (&packed.manifest, &packed.addenda) != (&report.manifest, &report.addenda) {
        return Err(not_same("its seal or its addenda became others meanwhile".to_owned()));
    }
    let ours = digest(staged.path())?;
    if !staged.publish_new()? && digest(&to)? != ours {
        return Err(PackError::Exists(to));
    }
    Ok(to)
}

fn refuse_what_is_no_bundle(path: &Path) -> Result<(), PackError> {
    if is_packed(path) {
        return Err(PackError::Packed(path.to_owned()));
    }
    if attempts::are_in(path) {
        let record = attempts::load(path)?;
        let bundles = record.attempts.iter().map(|one| path.join(&one.bundle).display().to_string());
        let bundles = Clean::line(&bundles.collect::<Vec<_>>().join(", ")).to_string();
        return Err(PackError::Attempts { path: path.to_owned(), bundles });
    }
    Ok(())
}

/// Whether an archive may be made there.
fn check_place(bundle: &Path, to: &Path) -> Result<(), PackError> {
    if !is_packed(to) {
        return Err(PackError::Name(to.to_owned()));
    }
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let real = |path: &Path| std::fs::canonicalize(path);
    let folder = real(folder).map_err(|e| FsError::new("find", folder, e))?;
    let sealed = [bundle.to_owned(), addendum::folder(bundle)];
    let inside = sealed.iter().any(|sealed| real(sealed).is_ok_and(|sealed| folder.starts_with(sealed)));
    if inside { Err(PackError::Inside(to.to_owned())) } else { Ok(()) }
}

/// What keeps a bundle from being valid.
fn fault(report: &Report) -> Option<String> {
    match report.answer() {
        Answer::Valid | Answer::NotSucceeded => None,
        Answer::Invalid | Answer::CannotTell => Some(report.faults.first().map_or_else(
            || "nothing follows from its log".to_owned(),
            |Fault { rule, file, what, .. }| {
                Clean::line(&format!("{}: {file}: {what}", rule.name())).to_string()
            },
        )),
    }
}

fn digest(path: &Path) -> Result<Hex, FsError> {
    let digested = || -> io::Result<Hex> { Ok(Hex::of_all(File::open(path)?)?.0) };
    digested().map_err(|e| FsError::new("read", path, e))
}
