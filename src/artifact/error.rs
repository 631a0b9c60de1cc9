//! What can go wrong before anything runs, and what to do about it.

use super::work::Owner;
use crate::fsio::FsError;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why an artifact cannot be taken into our care. Nothing was run and nothing was changed.
#[derive(Debug, Error)]
pub enum ArtifactError {
    /// A name that the record cannot hold.
    #[error("{path} cannot be an artifact: its name is not UTF-8, and the record could not name it; give it another name", path = .path.display())]
    Name {
        /// The path.
        path: PathBuf,
    },
    /// The folder is not there, or cannot be entered.
    #[error("cannot use {path} as an artifact: {source}; make the folder first, or give another path", path = .path.display())]
    Folder {
        /// The path.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A folder where a file is meant, or the other way round.
    #[error("{path} is meant to be {meant}, and there is {found}; give another path, or move that away", path = .path.display())]
    Kind {
        /// The path.
        path: PathBuf,
        /// What is there.
        found: &'static str,
        /// What is meant.
        meant: &'static str,
    },
    /// Two artifacts of one job.
    #[error("{path} was given twice, perhaps by two names; give it once", path = .path.display())]
    Twice {
        /// The path.
        path: PathBuf,
    },
    /// Another job has it.
    #[error("job {job} (process {pid}) is building {path}; wait for its end, stop it with `stuckproof cancel {job}`, or give another path", path = .path.display(), job = .owner.job, pid = .owner.pid)]
    Busy {
        /// The path.
        path: PathBuf,
        /// The other job.
        owner: Owner,
    },
    /// Another job had it, and has not put it in order.
    #[error("job {job} was lost while it was building {path}; put that in order with `stuckproof finalize {bundle}`, then run this again", path = .path.display(), job = .owner.job, bundle = .owner.bundle.display())]
    Left {
        /// The path.
        path: PathBuf,
        /// The other job.
        owner: Owner,
        /// Its folder beside the artifact.
        work: PathBuf,
    },
    /// Somebody else's folder has the name that we need.
    #[error("{work} is in the way of building {path}, and does not say whose it is; move it away", path = .path.display(), work = .work.display())]
    Foreign {
        /// The path.
        path: PathBuf,
        /// The folder.
        work: PathBuf,
    },
    /// What a lost job has left could not be put in order.
    #[error("what an earlier job left in {work} cannot be put in order: {why}; look at it yourself", work = .work.display())]
    Unsettled {
        /// The folder.
        work: PathBuf,
        /// Why.
        why: String,
    },
    /// No room.
    #[error("the disk of {path} has {free} bytes left, and at least {needed} are needed; free some space, or give another path", path = .path.display())]
    Space {
        /// The path.
        path: PathBuf,
        /// What is left.
        free: u64,
        /// What is needed.
        needed: u64,
    },
    /// A policy that a command which writes to the cache itself cannot have.
    #[error(
        "the policies readonly and off for the timing cache need a place of the job's own: write {{timing_cache}} into the command where the \
         cache's path belongs, or leave --timing-cache-policy away"
    )]
    Policy,
    /// A placeholder without an artifact.
    #[error(
        "the command contains {placeholder}, and no such artifact was given; add the option, or correct the number"
    )]
    Placeholder {
        /// As it stands in the command.
        placeholder: String,
    },
    /// What is there cannot be examined or copied.
    #[error("cannot {action} {path}: {source}; nothing was run", path = .path.display())]
    Content {
        /// What was tried.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Our folder beside the artifact cannot be made.
    #[error(transparent)]
    Work(#[from] FsError),
}

impl ArtifactError {
    pub(super) fn folder(path: &Path, source: io::Error) -> Self {
        Self::Folder { path: path.to_owned(), source }
    }
}
