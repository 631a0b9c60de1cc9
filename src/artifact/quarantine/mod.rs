//! What a job that did not succeed has written: a folder beside the artifact's place, with a record and a text for whoever
//! finds it.

mod shelf;

pub use shelf::{QuarantineError, Shelved, find, open, purge, release};

use super::{copy, place};
use crate::clock::Anchor;
use crate::event::{ArtifactDeclared, ArtifactFacts, ArtifactKind, ArtifactSettled};
use crate::fsio::{self, FsError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The folder of all entries, beside the artifact's place.
pub const FOLDER: &str = "stuckproof-quarantine";
/// An entry's record.
pub const RECORD: &str = "record.json";
/// An entry's text.
const README: &str = "README.md";
/// How many files of one name an entry takes.
const MOST_NAMES: u32 = 1000;

/// `record.json` of an entry in the quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "quarantineRecord")]
pub struct Record {
    /// Version of this file's format: 1.
    pub format: u32,
    /// The job that wrote it.
    pub job: String,
    /// The artifact's number in the job.
    pub artifact: u32,
    /// What it was to become.
    pub kind: ArtifactKind,
    /// Where it was to go.
    pub path: String,
    /// Its name in the entry; other files in there were written beside it.
    pub name: String,
    /// When it was set aside, RFC 3339 in UTC.
    pub at: String,
    /// Why.
    pub reason: String,
    /// What it is, or null where the command wrote other files only.
    pub facts: Option<ArtifactFacts>,
}

/// The folder of the quarantine for what belongs at a path.
pub(super) fn folder_beside(target: &Path) -> PathBuf {
    place::folder_of(target).join(FOLDER)
}

/// An artifact's entry, which need not be there.
pub(super) struct Entry {
    folder: PathBuf,
    file: PathBuf,
}

impl Entry {
    pub(super) fn new(target: &Path, job: &str, artifact: u32) -> Self {
        let folder = folder_beside(target).join(format!("{job}-{artifact}"));
        Self { file: folder.join(place::name_of(target)), folder }
    }

    pub(super) fn text(&self) -> String {
        self.folder.to_string_lossy().into_owned()
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Whether anything was put into it.
    pub(super) fn exists(&self) -> bool {
        self.folder.is_dir()
    }

    /// Whether the artifact is in it.
    pub(super) fn holds(&self) -> bool {
        fs::symlink_metadata(&self.file).is_ok()
    }

    /// Takes a file or folder by a rename.
    pub(super) fn take(&self, path: &Path) -> io::Result<()> {
        self.make()?;
        fs::rename(path, self.free_name(path)?)
    }

    /// Takes a file by a second name, where there can be one, so that its path is not empty meanwhile.
    pub(super) fn take_or_link(&self, path: &Path) -> io::Result<()> {
        self.make()?;
        let inode = |path: &Path| fs::symlink_metadata(path).map(|facts| (facts.dev(), facts.ino())).ok();
        if inode(path) == inode(&self.file) {
            return Ok(());
        }
        let to = self.free_name(path)?;
        fs::hard_link(path, &to).or_else(|_| fs::rename(path, &to))
    }

    /// Makes the folder. A link that somebody has put in its place is not followed.
    fn make(&self) -> io::Result<()> {
        for folder in [place::folder_of(&self.folder), &self.folder] {
            match fs::create_dir(folder) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                other => other?,
            }
            if !fs::symlink_metadata(folder)?.is_dir() {
                return Err(io::Error::other(format!("{} is not a folder", folder.display())));
            }
        }
        Ok(())
    }

    fn free_name(&self, path: &Path) -> io::Result<PathBuf> {
        let first = self.folder.join(place::name_of(path));
        let taken = |path: &Path| {
            fs::symlink_metadata(path).is_ok()
                || [RECORD, README].iter().any(|own| place::name_of(path) == *own)
        };
        let others = (2..MOST_NAMES).map(|number| {
            let mut name = place::name_of(path).to_owned();
            name.push(format!(".{number}"));
            self.folder.join(name)
        });
        let free = std::iter::once(first).chain(others).find(|path| !taken(path));
        free.ok_or_else(|| io::Error::other("the quarantine is full of that name"))
    }

    /// Writes down what it is.
    pub(super) fn describe(
        &self,
        declared: &ArtifactDeclared,
        settled: &ArtifactSettled,
        job: &str,
    ) -> Result<(), FsError> {
        let now = Anchor::now();
        let record = Record {
            format: 1,
            job: job.to_owned(),
            artifact: declared.artifact,
            kind: declared.kind,
            path: declared.path.clone(),
            name: place::name_of(&self.file).to_string_lossy().into_owned(),
            at: now.rfc3339(now.mono),
            reason: settled.reason.clone(),
            facts: settled.partial.clone(),
        };
        let text = serde_json::to_vec_pretty(&record).unwrap_or_default();
        fsio::write_all_atomic(&self.folder, &[(RECORD, &text), (README, readme(&record).as_bytes())])
    }
}

fn readme(record: &Record) -> String {
    let what = match record.kind {
        ArtifactKind::Engine => "an engine",
        ArtifactKind::TimingCache => "a timing cache",
    };
    let digest = record.facts.as_ref().and_then(|facts| facts.sha256.as_deref()).unwrap_or("not computed");
    let bytes = record.facts.as_ref().map_or_else(|| "none".to_owned(), |facts| facts.bytes.to_string());
    format!(
        "# Set aside by stuckproof\n\n\
         `{name}` was to become {what} at `{path}`. It was set aside, since {reason}.\n\
         Do not deploy it: it may be cut off, and it can look whole.\n\n\
         - job: {job}\n- set aside: {at}\n- bytes: {bytes}\n- SHA-256: {digest}\n\n\
         What you can do:\n\n\
         - Look at the job's evidence: the bundle of job {job}.\n\
         - `stuckproof quarantine show` in this folder tells what it is.\n\
         - `stuckproof quarantine release --to PATH` takes it out, if you know that it is good.\n\
         - Remove this folder, or let `stuckproof quarantine purge` do it. Nothing else uses it.\n",
        name = record.name,
        path = record.path,
        reason = record.reason,
        job = record.job,
        at = record.at,
    )
}

/// Removes an entry.
fn remove(folder: &Path) -> io::Result<()> {
    copy::remove(folder)?;
    // The last one takes the folder of all with it.
    let _ = fs::remove_dir(place::folder_of(folder));
    Ok(())
}
