//! A job that is tried several times: one folder with a complete bundle for each attempt, and what they came to together.
//!
//! `attempts.json` names them all, so that the last never hides the first. `junit.xml` and `summary.json` beside it are
//! copies of the last attempt's: a CI job finds its report where that of a single job would be.

use crate::cancel::Via;
use crate::evidence::{self, Evidence, EvidenceError, JUNIT, JobState, RetryPolicy, SUMMARY};
use crate::fsio::{self, FsError};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The record's name in the folder.
pub const ATTEMPTS: &str = "attempts.json";

/// The version of the record's format.
const FORMAT: u32 = 1;
/// What ended the attempts where nobody was left to say it.
const LOST: &str = "the runner was lost before the next attempt began";

/// Why the attempts cannot be told of.
#[derive(Debug, Error)]
pub enum AttemptsError {
    /// The record is not one.
    #[error("{path} cannot be read: {source}; it was changed or is of another version, so look at the attempts' own folders", path = .path.display())]
    Foreign {
        /// The record.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// An attempt's bundle cannot be read.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FsError),
}

/// All attempts, as `attempts.json` has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attempts {
    /// The version of this format.
    pub format: u32,
    /// How often the job may be tried again.
    pub retries: u32,
    /// The attempts in order.
    pub attempts: Vec<Attempt>,
    /// Why there is no further one; null as long as there may be.
    pub ended: Option<String>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// Its bundle's name in the folder.
    pub bundle: String,
    /// The policy by which it was made; null for the first.
    pub policy: Option<RetryPolicy>,
    /// The name of its job.
    pub job: String,
    /// What became of it.
    pub state: JobState,
    /// The cause of a failure.
    pub cause: Option<String>,
    /// The exit code of its job; null before its end.
    pub exit_code: Option<u8>,
    /// What it recommends, and why.
    pub recommended: Option<RetryPolicy>,
    /// The reasons.
    pub reasons: Vec<String>,
}

/// The name of an attempt's bundle.
#[must_use]
pub fn bundle_name(attempt: u32) -> String {
    format!("attempt-{attempt}")
}

/// Whether a folder holds attempts.
#[must_use]
pub fn are_in(folder: &Path) -> bool {
    folder.join(ATTEMPTS).symlink_metadata().is_ok_and(|facts| facts.is_file())
}

/// Reads the record of a folder.
pub fn load(folder: &Path) -> Result<Attempts, AttemptsError> {
    let path = folder.join(ATTEMPTS);
    let text = fs::read(&path).map_err(|e| FsError::new("read", &path, e))?;
    serde_json::from_slice(&text).map_err(|source| AttemptsError::Foreign { path, source })
}

/// Writes the record anew from the attempts' bundles, and copies the last one's report and summary.
pub fn write(folder: &Path, retries: u32, ended: Option<String>) -> Result<Attempts, AttemptsError> {
    let mut attempts: Vec<Attempt> = Vec::new();
    for number in 1.. {
        let name = bundle_name(number);
        let bundle = folder.join(&name);
        if !bundle.join(evidence::EVENTS).exists() {
            break;
        }
        let policy = attempts.last().and_then(|before| before.recommended);
        attempts.push(Attempt::of(number, name, policy, evidence::load(&bundle)?.evidence));
    }
    let record = Attempts { format: FORMAT, retries, attempts, ended };
    let mut json = serde_json::to_vec_pretty(&record).unwrap_or_default();
    json.push(b'\n');
    let copies = record.attempts.last().map(|last| copies(&folder.join(&last.bundle))).transpose()?;
    let copies = copies.unwrap_or_default();
    let copies = copies.iter().map(|(name, bytes)| (*name, bytes.as_slice()));
    let files: Vec<(&str, &[u8])> = copies.chain([(ATTEMPTS, json.as_slice())]).collect();
    fsio::write_all_atomic(folder, &files)?;
    Ok(record)
}

/// Brings a folder up to date whose runner was lost, once the bundles in it are finished.
pub fn conclude(folder: &Path) -> Result<Attempts, AttemptsError> {
    let Attempts { retries, ended, .. } = load(folder)?;
    write(folder, retries, Some(ended.unwrap_or_else(|| LOST.to_owned())))
}

fn copies(bundle: &Path) -> Result<Vec<(&'static str, Vec<u8>)>, FsError> {
    let mut copies = Vec::new();
    for name in [SUMMARY, JUNIT] {
        let path = bundle.join(name);
        match fs::read(&path) {
            Ok(bytes) => copies.push((name, bytes)),
            // Its runner was lost while it began.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(FsError::new("read", &path, e)),
        }
    }
    Ok(copies)
}

/// By which policy the job is to be tried again, or why it is not.
///
/// A stop that somebody asked for is meant for the job and not for one attempt at it. A build that stalled, or that a limit
/// on its phases stopped, is what retries are for.
pub fn again(evidence: &Evidence) -> Result<RetryPolicy, String> {
    let own = [Via::Stall, Via::PhaseLimit].map(Via::name);
    if let Some(asked) = evidence.requests.iter().find(|request| !own.contains(&request.via.as_str())) {
        return Err(format!("a stop was asked for ({})", asked.via));
    }
    match evidence.retry.policy {
        Some(policy @ (RetryPolicy::RetryCold | RetryPolicy::RetryWithCache)) => Ok(policy),
        Some(policy) => Err(format!("the recommendation is {}", policy.name())),
        None => Err(evidence.retry.reasons.join(", and ")),
    }
}

impl Attempt {
    fn of(attempt: u32, bundle: String, policy: Option<RetryPolicy>, evidence: Evidence) -> Self {
        Self {
            attempt,
            bundle,
            policy,
            job: evidence.job,
            state: evidence.state,
            cause: evidence.cause,
            exit_code: evidence.exit_code,
            recommended: evidence.retry.policy,
            reasons: evidence.retry.reasons,
        }
    }
}
