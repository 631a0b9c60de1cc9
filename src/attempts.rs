//! A job that is tried several times: one folder with a complete bundle for each attempt, and what they came to together.
//!
//! `attempts.json` names them all, so that the last never hides the first; each attempt's log has its number and the digest of
//! the manifest before it. `junit.xml` and `summary.json` beside it are copies of the last attempt's: a CI job finds its
//! report where that of a single job would be.

use crate::cancel::Via;
use crate::event::CachePolicy;
use crate::evidence::{
    self, Bundle, Evidence, EvidenceError, JUNIT, JobState, RetryPolicy, SUMMARY, document,
};
use crate::fsio::{self, FsError};
use crate::resume;
use crate::shown::Clean;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The record's name in the folder.
pub const ATTEMPTS: &str = "attempts.json";

/// What the folder has of the last attempt.
pub const COPIED: [&str; 2] = [SUMMARY, JUNIT];

/// The version of the record's format.
const FORMAT: u32 = 1;
/// What ended the attempts where nobody was left to say it.
const LOST: &str = "the runner was lost before the next attempt began";
/// What ended them where there is none.
const NEVER: &str = "the runner was lost before the first attempt began";

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
    /// It holds several bundles, where one is wanted.
    #[error("{path} holds the attempts at one job, each with a bundle of its own; name one of them: {bundles}", path = .path.display())]
    Several {
        /// The folder.
        path: PathBuf,
        /// The bundles in it.
        bundles: String,
    },
    /// None has begun.
    #[error("no attempt at the job of {path} has begun, so there is no bundle in it; where nothing tries it any more, run the job again", path = .0.display())]
    Empty(PathBuf),
    /// One was taken away.
    #[error("{path} is missing, or what was in it, and the record of the attempts is left as it is; bring it back, then run `stuckproof finalize` on the folder around it", path = .0.display())]
    Missing(PathBuf),
    /// The folder is not at its place any more.
    #[error("{path} was moved or removed while the job was tried; where it was moved, run `stuckproof finalize` on it; where something cleans up there, give another --bundle", path = .0.display())]
    Gone(PathBuf),
    /// Its runner lives, and will say itself why there is no further attempt.
    #[error("the job in {path} is still being tried; wait for its end, or stop it with `stuckproof cancel {path}`", path = .0.display())]
    Running(PathBuf),
    /// The last attempt has no end.
    #[error("attempt {attempt} in {path} has no end yet; run `stuckproof finalize {path}` again when nothing of it lives", path = .path.display())]
    Unfinished {
        /// The folder.
        path: PathBuf,
        /// The attempt.
        attempt: u32,
    },
    /// An attempt's bundle cannot be read.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FsError),
}

/// All attempts, as `attempts.json` has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "attempts")]
pub struct Attempts {
    /// Version of this file's format: 1.
    pub format: u32,
    /// How often the job may be tried again.
    pub retries: u32,
    /// The attempts in order.
    pub attempts: Vec<Attempt>,
    /// Why there is no further one; null as long as there may be.
    pub ended: Option<String>,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// Its bundle's name in the folder.
    pub bundle: String,
    /// The policy by which it was made; null for the first.
    pub policy: Option<RetryPolicy>,
    /// What it might do with the declared timing cache; null where none is declared.
    pub timing_cache_policy: Option<CachePolicy>,
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

/// The bundle that stands for what a folder holds: that of the last attempt, or the folder itself where it holds none.
pub fn last_of(folder: &Path) -> Result<PathBuf, AttemptsError> {
    if !are_in(folder) {
        return Ok(folder.to_owned());
    }
    match load(folder)?.attempts.len() {
        0 => Err(AttemptsError::Empty(folder.to_owned())),
        last => Ok(folder.join(bundle_name(u32::try_from(last).unwrap_or(u32::MAX)))),
    }
}

/// Whether a runner that lives makes the attempts in a folder. A file system without locks does not tell.
#[must_use]
pub fn are_being_made(folder: &Path) -> bool {
    let held = |folder: File| matches!(folder.try_lock_shared(), Err(TryLockError::WouldBlock));
    are_in(folder) && File::open(folder).is_ok_and(held)
}

/// Refuses a folder of attempts where one bundle is wanted, and names those that are in it.
pub fn refuse(folder: &Path) -> Result<(), AttemptsError> {
    if !are_in(folder) {
        return Ok(());
    }
    let record = load(folder)?;
    if record.attempts.is_empty() {
        return Err(AttemptsError::Empty(folder.to_owned()));
    }
    let bundles = record.attempts.iter().map(|one| folder.join(&one.bundle).display().to_string());
    let bundles = Clean::line(&bundles.collect::<Vec<_>>().join(", ")).to_string();
    Err(AttemptsError::Several { path: folder.to_owned(), bundles })
}

/// Keeps others from making or concluding the attempts in a folder as long as this lives. A file system without locks lets
/// them.
pub fn hold(folder: &Path) -> Result<File, AttemptsError> {
    let held = File::open(folder).map_err(|e| FsError::new("open", folder, e))?;
    match held.try_lock() {
        Err(TryLockError::WouldBlock) => Err(AttemptsError::Running(folder.to_owned())),
        _ => Ok(held),
    }
}

/// The number of the attempt whose bundle would have this name.
#[must_use]
pub fn number_of(name: &OsStr) -> Option<u32> {
    name.to_str()?.strip_prefix("attempt-")?.parse().ok()
}

/// Reads the bundles of the attempts that have begun, in their order. None of those that lie there or are on record is left
/// out: the record must not forget one.
fn begun(folder: &Path) -> Result<Vec<Bundle>, AttemptsError> {
    let there =
        (1..).map(|number| folder.join(bundle_name(number))).take_while(|bundle| resume::has_begun(bundle));
    let bundles: Vec<Bundle> = there.map(|bundle| evidence::load(&bundle)).collect::<Result<_, _>>()?;
    let entries = fs::read_dir(folder).map_err(|e| FsError::new("list", folder, e))?.flatten();
    let begun = entries.filter(|entry| resume::has_begun(&entry.path()));
    let last = begun.filter_map(|entry| number_of(&entry.file_name())).max().unwrap_or(0);
    let on_record = load(folder).map_or(0, |record| record.attempts.len());
    let last = usize::try_from(last).unwrap_or(usize::MAX).max(on_record);
    if bundles.len() < last {
        let missing = u32::try_from(bundles.len()).unwrap_or(u32::MAX).saturating_add(1);
        return Err(AttemptsError::Missing(folder.join(bundle_name(missing))));
    }
    Ok(bundles)
}

/// Writes the record anew from the attempts' bundles, and copies the last one's report and summary.
pub fn write(folder: &Path, retries: u32, ended: Option<String>) -> Result<Attempts, AttemptsError> {
    if !folder.is_dir() {
        return Err(AttemptsError::Gone(folder.to_owned()));
    }
    write_of(folder, &begun(folder)?, retries, ended)
}

fn write_of(
    folder: &Path,
    bundles: &[Bundle],
    retries: u32,
    ended: Option<String>,
) -> Result<Attempts, AttemptsError> {
    let record = Attempts::of(retries, ended, bundles);
    let copies = bundles.last().map(|last| copies(&last.path)).transpose()?.unwrap_or_default();
    let copies = copies.iter().map(|(name, bytes)| (*name, bytes.as_slice()));
    let json = document(&record);
    let files: Vec<(&str, &[u8])> = copies.chain([(ATTEMPTS, json.as_slice())]).collect();
    fsio::write_all_atomic(folder, &files)?;
    Ok(record)
}

/// Brings a folder up to date whose runner was lost, once the bundles in it are finished.
pub fn conclude(folder: &Path) -> Result<Attempts, AttemptsError> {
    let _held = hold(folder)?;
    let Attempts { retries, ended, .. } = load(folder)?;
    // The record may know less than lies there: it is written after an attempt's log has begun.
    let bundles = begun(folder)?;
    if let Some((attempt, _)) = (1..).zip(&bundles).find(|(_, bundle)| !bundle.evidence.finished) {
        return Err(AttemptsError::Unfinished { path: folder.to_owned(), attempt });
    }
    let ended = ended.unwrap_or_else(|| over(retries, &bundles));
    write_of(folder, &bundles, retries, Some(ended))
}

/// Why no further attempt follows where the runner cannot say it any more: what it would have said, or that it was lost.
fn over(retries: u32, bundles: &[Bundle]) -> String {
    let Some(Bundle { evidence, .. }) = bundles.last() else { return NEVER.to_owned() };
    let lost = evidence.requests.iter().any(|request| request.via == Via::RunnerLost.name());
    match again(evidence) {
        Err(why) if !lost => why,
        _ if bundles.len() as u64 > u64::from(retries) => limit_reached(retries),
        _ => LOST.to_owned(),
    }
}

/// Why the last attempt that is allowed is the last.
#[must_use]
pub fn limit_reached(retries: u32) -> String {
    format!("the limit is reached: --retry {retries}")
}

fn copies(bundle: &Path) -> Result<Vec<(&'static str, Vec<u8>)>, FsError> {
    let mut copies = Vec::new();
    for name in COPIED {
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

impl Attempts {
    /// What follows from the attempts' bundles, in their order.
    #[must_use]
    pub fn of(retries: u32, ended: Option<String>, bundles: &[impl std::borrow::Borrow<Bundle>]) -> Self {
        let mut attempts: Vec<Attempt> = Vec::new();
        for (number, bundle) in (1..).zip(bundles) {
            let policy = attempts.last().and_then(|before| before.recommended);
            attempts.push(Attempt::of(number, policy, bundle.borrow()));
        }
        Self { format: FORMAT, retries, attempts, ended }
    }

    /// The attempts before this one.
    #[must_use]
    pub fn before(&self, attempt: u32) -> Vec<&Attempt> {
        self.attempts.iter().filter(|earlier| earlier.attempt < attempt).collect()
    }
}

impl Attempt {
    fn of(attempt: u32, policy: Option<RetryPolicy>, bundle: &Bundle) -> Self {
        let Evidence { job, state, cause, exit_code, retry, .. } = &bundle.evidence;
        Self {
            attempt,
            bundle: bundle_name(attempt),
            policy,
            timing_cache_policy: bundle.inventory.artifacts.iter().find_map(|artifact| artifact.policy),
            job: job.clone(),
            state: *state,
            cause: cause.clone(),
            exit_code: *exit_code,
            recommended: retry.policy,
            reasons: retry.reasons.clone(),
        }
    }

    /// What became of it, in a few words.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("attempt {}: {}", self.attempt, came_to(self.state, self.cause.as_deref()))
    }
}

/// What became of a job, in a few words.
#[must_use]
pub fn came_to(state: JobState, cause: Option<&str>) -> String {
    let state = serde_json::to_value(state).unwrap_or_default();
    let cause = cause.map(|cause| format!(" ({cause})")).unwrap_or_default();
    format!("{}{cause}", state.as_str().unwrap_or_default())
}
