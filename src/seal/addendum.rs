//! Facts that come after the seal, in a folder beside the bundle: each names the manifest and the fact before it.

use super::statement::Statement;
use super::{Folder, PAYLOAD_TYPE, Subject, beside};
use crate::digest::Hex;
use crate::evidence::document;
use crate::fsio::{FsError, unfinished_name, write_all_atomic};
use crate::sign::{Envelope, SigningKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The type of the predicate in a signed addendum.
const PREDICATE: &str = "urn:stuckproof:addendum:v1";
/// More addenda than any bundle has.
pub const MOST: usize = 1_000;

/// A fact that came after the seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "addendum")]
pub struct Addendum {
    /// Version of this file's format: 1.
    pub format: u32,
    /// Its place among the addenda of its bundle, from 1.
    pub number: u32,
    /// What it is about.
    pub kind: Kind,
    /// How that came out.
    pub status: Status,
    /// What a reader should know.
    pub note: String,
    /// When it was written: RFC 3339 in UTC.
    pub at: String,
    /// Version of the stuckproof that wrote it.
    pub stuckproof: String,
    /// SHA-256 of the bundle's `manifest.json`.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub manifest: String,
    /// SHA-256 of the addendum before; 64 zeros in the first.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub previous: String,
}

/// What an addendum is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A check of the engine somewhere else.
    Validation,
    /// A release of something from quarantine.
    Release,
    /// A request to stop that came after the end; the runner writes it.
    #[value(skip)]
    LateRequest,
}

/// How something came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Well.
    Pass,
    /// Not well.
    Fail,
    /// It came too late to change anything.
    #[value(skip)]
    TooLate,
}

/// Why an addendum cannot be written.
#[derive(Debug, Error)]
pub enum AddendumError {
    /// There is nothing to add to.
    #[error("{path} is not sealed; where its job still runs, wait for its end, else run `stuckproof finalize {path}` first", path = .0.display())]
    NotSealed(PathBuf),
    /// The folder of addenda is full.
    #[error("{path} holds {MOST} addenda already", path = .0.display())]
    TooMany(PathBuf),
    /// One before others is missing.
    #[error("{path} is missing, and there are addenda after it; bring it back first, so that the new one has its place", path = .0.display())]
    Missing(PathBuf),
    /// The system refused.
    #[error(transparent)]
    File(#[from] FsError),
}

/// The folder of a bundle's addenda.
#[must_use]
pub fn folder(bundle: &Path) -> PathBuf {
    beside(bundle, ".addenda")
}

/// The name of an addendum's file.
#[must_use]
pub fn name(number: u32) -> String {
    format!("{number:04}.json")
}

/// The name of the file with an addendum's signature.
#[must_use]
pub fn signature_name(number: u32) -> String {
    format!("{number:04}.sig.json")
}

/// What of the files in the folder says nothing yet, since a writer has only begun it, or was killed: those that have not got
/// their names, and the signature of the next addendum, which comes before it.
#[must_use]
pub fn unfinished(files: &[String]) -> BTreeSet<String> {
    let there: BTreeSet<&str> = files.iter().map(String::as_str).collect();
    let next = (1..=MOST as u32).find(|number| !there.contains(name(*number).as_str())).map(signature_name);
    let of_one = |name: &str| {
        let number = name.strip_suffix(".sig.json").or_else(|| name.strip_suffix(".json"));
        number.is_some_and(|number| number.len() == 4 && number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let begun = |file: &String| unfinished_name(file).is_some_and(of_one) || Some(file) == next.as_ref();
    files.iter().filter(|file| begun(file)).cloned().collect()
}

/// What the signature of an addendum says.
#[must_use]
pub fn statement(addendum: &Addendum, digest: &str) -> Statement<Addendum> {
    Statement::new(vec![Subject::new(&name(addendum.number), digest)], PREDICATE, addendum.clone())
}

/// Writes the next addendum of a sealed bundle, and gives its path.
pub fn add(
    bundle: &Path,
    (kind, status): (Kind, Status),
    note: &str,
    at: chrono::DateTime<chrono::Utc>,
    key: Option<&SigningKey>,
) -> Result<PathBuf, AddendumError> {
    let manifest = super::digest(bundle).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound if bundle.is_dir() => AddendumError::NotSealed(bundle.to_owned()),
        _ => FsError::new("read the seal of", bundle, e).into(),
    })?;
    let folder = folder(bundle);
    std::fs::create_dir_all(&folder).map_err(|e| FsError::new("create", &folder, e))?;
    // Two that add at the same moment come one after the other. Some file systems have no locks.
    let held = File::open(&folder).map_err(|e| FsError::new("open", &folder, e))?;
    if held.lock().is_ok() {
        sweep(&folder)?;
    }
    let (number, previous) = next(&folder)?;
    let addendum = Addendum {
        format: 1,
        number,
        kind,
        status,
        note: note.to_owned(),
        at: at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        stuckproof: env!("CARGO_PKG_VERSION").to_owned(),
        manifest: manifest.to_string(),
        previous: previous.to_string(),
    };
    let bytes = document(&addendum);
    let (own, signature_name) = (name(number), signature_name(number));
    let signature = key.map(|key| {
        let statement = statement(&addendum, &Hex::of(&bytes).to_string());
        document(&Envelope::sign(PAYLOAD_TYPE, &document(&statement), key))
    });
    let signature = signature.as_deref().map(|signature| (signature_name.as_str(), signature));
    let files: Vec<_> = signature.into_iter().chain([(own.as_str(), &*bytes)]).collect();
    write_all_atomic(&folder, &files)?;
    Ok(folder.join(own))
}

/// Takes away what killed writers have left. Only for whoever has the folder's lock: nobody else writes then.
fn sweep(folder: &Path) -> Result<(), FsError> {
    let listing = Folder::open(folder).and_then(|open| open.list());
    let files = listing.map_err(|e| FsError::new("list", folder, e))?.files;
    for left in unfinished(&files).iter().map(|file| folder.join(file)) {
        std::fs::remove_file(&left).map_err(|e| FsError::new("remove", &left, e))?;
    }
    Ok(())
}

/// The number that is free, and the digest of the addendum before it.
fn next(folder: &Path) -> Result<(u32, Hex), AddendumError> {
    let mut previous = Hex::ZERO;
    for number in 1..=MOST as u32 {
        let path = folder.join(name(number));
        if path.symlink_metadata().is_err() {
            // An addendum in a gap would break the chain of those behind it.
            let behind = (number + 1..=MOST as u32).any(|later| folder.join(name(later)).exists());
            return if behind { Err(AddendumError::Missing(path)) } else { Ok((number, previous)) };
        }
        let file = Folder::open(folder).and_then(|open| open.file(&name(number)));
        let digest = file.and_then(Hex::of_all).map_err(|e| FsError::new("read", &path, e))?;
        previous = digest.0;
    }
    Err(AddendumError::TooMany(folder.to_owned()))
}
