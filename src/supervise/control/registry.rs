//! Which jobs of this user are running: one file and one socket each in a private folder.
//!
//! The file is locked as long as its runner lives, so that what a killed runner left behind is told from what lives
//! by the kernel, and a process number that was used again fools nobody.

use super::ControlError;
use crate::fsio::{self, FsError, Lock};
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// An address holds this many bytes, its closing zero not counted.
const ADDRESS_LIMIT: usize = 107;

/// A running job, as its file tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// The job.
    pub job: String,
    /// Its runner.
    pub pid: u32,
    /// Its bundle, absolute.
    pub bundle: PathBuf,
    /// When it started, RFC 3339.
    pub started: String,
}

impl Entry {
    fn file(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.json", self.job))
    }

    /// The job's socket in a folder.
    #[must_use]
    pub fn socket(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.sock", self.job))
    }
}

/// A job's place in the folder; dropping it takes the job out.
#[derive(Debug)]
pub struct Registration {
    file: PathBuf,
    socket: PathBuf,
    _lock: Lock,
}

impl Registration {
    /// Makes the job known and opens its socket.
    pub fn new(entry: &Entry) -> Result<(Self, UnixListener), ControlError> {
        let folder = fsio::runtime_folder()?;
        let (file, socket) = (entry.file(&folder), entry.socket(&folder));
        if socket.as_os_str().len() > ADDRESS_LIMIT {
            return Err(ControlError::PathTooLong { path: socket, limit: ADDRESS_LIMIT });
        }
        let text = serde_json::to_vec(entry).unwrap_or_default();
        // The file first: a socket without one could never be told from a leftover.
        let registration = Self { _lock: Lock::publish(&file, &text)?, file, socket };
        let listener = UnixListener::bind(&registration.socket).map_err(|source| ControlError::Socket {
            action: "make",
            job: entry.job.clone(),
            source,
        })?;
        Ok((registration, listener))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // A leftover is harmless: the next look at the folder removes it.
        let _ = fs::remove_file(&self.socket);
        let _ = fs::remove_file(&self.file);
    }
}

/// The running jobs of this user, oldest first. What dead runners left is removed on the way.
pub fn live_jobs() -> Result<Vec<Entry>, ControlError> {
    let folder = fsio::runtime_folder()?;
    let names = fs::read_dir(&folder).map_err(|e| FsError::new("list", &folder, e))?;
    let files = names.flatten().map(|n| n.path()).filter(|p| p.extension().is_some_and(|e| e == "json"));
    let mut jobs: Vec<Entry> = files.filter_map(|file| live_entry(&file, &folder)).collect();
    jobs.sort_by(|a, b| (&a.started, &a.job).cmp(&(&b.started, &b.job)));
    Ok(jobs)
}

fn live_entry(file: &Path, folder: &Path) -> Option<Entry> {
    let entry: Option<Entry> = fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok());
    if Lock::held(file).unwrap_or(false) {
        return entry;
    }
    let _ = fs::remove_file(file);
    if let Some(entry) = entry {
        let _ = fs::remove_file(entry.socket(folder));
    }
    None
}
