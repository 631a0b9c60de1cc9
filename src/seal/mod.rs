//! The seal: a manifest over everything in a finished bundle, and a signature over the manifest.
//!
//! It is written last, by whoever finishes the bundle, and nothing in the bundle changes after it. Facts that come later
//! are written beside the bundle and name the manifest's digest ([`addendum`]).

pub mod addendum;
mod folder;
mod manifest;
mod statement;

pub use folder::{Folder, Listing, MOST_FILES, Odd, Oddity, odd_path};
pub use manifest::{Chain, Entry, Manifest};
pub use statement::{PAYLOAD_TYPE, Predicate, Statement, Subject, SubjectDigest, TestResult, statement};

use crate::digest::Hex;
use crate::evidence::{Bundle, document};
use crate::fsio::{FsError, RESERVE, write_all_atomic, write_all_closing};
use crate::sign::{Envelope, SigningKey};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The manifest's name in a bundle.
pub const MANIFEST: &str = "manifest.json";
/// The signature's name in a bundle.
pub const SIGNATURE: &str = "manifest.sig.json";

/// What a file of the command's output is called while a copy of it is made.
const COPY: &str = "log.part";

/// Why a bundle cannot be sealed.
#[derive(Debug, Error)]
pub enum SealError {
    /// The job has no end on record.
    #[error("the bundle {path} has no end yet; wait for its job, or run `stuckproof finalize {path}`", path = .0.display())]
    Unfinished(PathBuf),
    /// Something in the folder has no place in a bundle.
    #[error("the bundle {path} holds {name}, which {what}; move it out, then run `stuckproof finalize {path}`", path = .path.display())]
    Odd {
        /// The folder.
        path: PathBuf,
        /// The file.
        name: String,
        /// What it is.
        what: String,
    },
    /// The bundle has a seal that is none.
    #[error("the seal of {path} cannot be signed: {why}; see `stuckproof verify {path}`", path = .path.display())]
    Broken {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The system refused.
    #[error(transparent)]
    File(#[from] FsError),
}

/// A path beside a bundle: its own with something behind its name.
#[must_use]
pub fn beside(bundle: &Path, suffix: &str) -> PathBuf {
    let real = || std::fs::canonicalize(bundle).unwrap_or_else(|_| bundle.to_owned());
    // Of `.` and of a path that ends in `..` only the real name tells what the folder is called.
    let named = if bundle.file_name().is_some() { bundle.to_owned() } else { real() };
    let mut name = named.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    named.with_file_name(name)
}

/// SHA-256 of a bundle's manifest.
pub fn digest(bundle: &Path) -> io::Result<Hex> {
    let (digest, _) = Hex::of_all(Folder::open(bundle)?.file(MANIFEST)?)?;
    Ok(digest)
}

/// Whether a bundle is sealed.
#[must_use]
pub fn is_sealed(bundle: &Path) -> bool {
    bundle.join(MANIFEST).symlink_metadata().is_ok()
}

/// Seals a finished bundle as it is on disk, and signs the seal where there is a key. A seal that is there stays; it is
/// signed where it has no signature yet.
pub fn seal(bundle: &Bundle, key: Option<&SigningKey>) -> Result<(), SealError> {
    let path = &bundle.path;
    if is_sealed(path) {
        return key.map_or(Ok(()), |key| sign(bundle, key));
    }
    if !bundle.evidence.finished {
        return Err(SealError::Unfinished(path.clone()));
    }
    if bundle.evidence.leftovers.iter().any(|leftover| leftover.action == "left") {
        take_output_away(path)?;
    }
    let manifest = Manifest {
        format: 1,
        job: bundle.evidence.job.clone(),
        stuckproof: env!("CARGO_PKG_VERSION").to_owned(),
        chain: Chain { seq: bundle.lines, head: bundle.head.to_string() },
        files: entries(path)?,
    };
    let bytes = document(&manifest);
    let signature = key.map(|key| envelope(bundle, &manifest, &bytes, key));
    let signature = signature.as_deref().map(|signature| (SIGNATURE, signature));
    let files: Vec<_> = [(MANIFEST, &*bytes)].into_iter().chain(signature).collect();
    Ok(write_all_closing(path, &files)?)
}

/// Signs a seal that is there. Whether the bundle still fits it is for `verify` to say; the signature is over what the
/// manifest says.
fn sign(bundle: &Bundle, key: &SigningKey) -> Result<(), SealError> {
    let path = &bundle.path;
    if path.join(SIGNATURE).symlink_metadata().is_ok() {
        return Ok(());
    }
    let broken = |why: String| SealError::Broken { path: path.clone(), why };
    let bytes = std::fs::read(path.join(MANIFEST)).map_err(|e| broken(e.to_string()))?;
    let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|e| broken(e.to_string()))?;
    let fits = |file: &Entry| entry(path, &file.path).is_ok_and(|now| now == *file);
    if let Some(file) = manifest.files.iter().find(|file| !fits(file)) {
        return Err(broken(format!("{} is not what was sealed", file.path)));
    }
    Ok(write_all_atomic(path, &[(SIGNATURE, &envelope(bundle, &manifest, &bytes, key))])?)
}

fn envelope(bundle: &Bundle, manifest: &Manifest, bytes: &[u8], key: &SigningKey) -> Vec<u8> {
    let statement = statement(bundle, manifest, &Hex::of(bytes).to_string());
    document(&Envelope::sign(PAYLOAD_TYPE, &document(&statement), key))
}

/// Every file of the bundle with its digest.
fn entries(path: &Path) -> Result<Vec<Entry>, SealError> {
    let failed = |e| FsError::new("list", path, e);
    let listing = Folder::open(path).and_then(|folder| folder.list()).map_err(failed)?;
    // What a network file system keeps of a file that is deleted and still open goes by itself.
    if let Some(odd) = listing.odd.into_iter().find(|odd| !odd.name.starts_with(".nfs")) {
        let Odd { name, what } = odd;
        return Err(SealError::Odd { path: path.to_owned(), name, what: what.in_words() });
    }
    listing.files.iter().filter(|name| *name != RESERVE).map(|name| entry(path, name)).collect()
}

fn entry(bundle: &Path, name: &str) -> Result<Entry, SealError> {
    let digest = || -> io::Result<(Hex, u64)> { Hex::of_all(Folder::open(bundle)?.file(name)?) };
    let (sha256, size) = digest().map_err(|e| FsError::new("read", &bundle.join(name), e))?;
    Ok(Entry { path: name.to_owned(), size, sha256: sha256.to_string() })
}

/// Processes that may stay after a success still hold the files of the command's output: what they write from here on
/// goes to files that nobody sees.
fn take_output_away(bundle: &Path) -> Result<(), FsError> {
    for name in ["stdout.log", "stderr.log"] {
        let path = bundle.join(name);
        if !path.symlink_metadata().is_ok_and(|facts| facts.is_file()) {
            continue;
        }
        let copy = path.with_extension(COPY);
        let copied = std::fs::copy(&path, &copy).and_then(|_| std::fs::rename(&copy, &path));
        copied.map_err(|e| FsError::new("copy", &path, e))?;
    }
    Ok(())
}
