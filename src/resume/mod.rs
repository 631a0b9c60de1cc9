//! Finishes a bundle whose runner was lost, from what is on disk: the log, the wire and the control page.
//!
//! The log's whole lines stay as they are. What the builders wrote to the wire after the last of them is appended, then
//! what the caller knows, then the end with its verdict; the other files are derived from the log as ever. Nothing here
//! reads a clock: the end gets the last moment that is on record, so the same remains always finish to the same bytes.
//!
//! Artifacts that the runner has not settled are settled here, by the same rules: published where the log has accepted them
//! or the job succeeded, else put back or aside. Only folders beside them that name this job are touched.
//!
//! Where a part of the record is missing or damaged, the job is failed for it, whatever the rest says.

mod ending;
mod gather;
mod living;
mod log;
mod output;
mod replay;
mod seen;

use crate::artifact;
use crate::clock::Mono;
use crate::event::{CommandExited, Event, EvidenceLost, HostReported, LogError};
use crate::evidence::{self, EVENTS, EVIDENCE, Evidence, EvidenceError};
use crate::exit;
use crate::fsio::{self, FsError};
use crate::mask::Secrets;
use crate::seal::{self, Folder, MANIFEST, SealError};
use crate::sign::SigningKey;
use ending::{Ending, Written};
use gather::Remains;
use log::Log;
use replay::Replay;
use seen::Seen;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// What the caller knows of the job besides what is on disk.
#[derive(Debug, Clone)]
pub struct Known<'a> {
    /// How and when the command ended, if the caller saw it; also where the log may have it already, since a log's last
    /// line alone makes no success.
    pub exited: Option<(Mono, CommandExited)>,
    /// What the caller did or found itself: rungs of the ladder, leftovers, pauses. What the log tells already is left out.
    pub events: Vec<Event>,
    /// What the host says of its job, where it says anything.
    pub host: Option<HostReported>,
    /// Why the runner did not finish the job, for the phases that are closed here.
    pub reason: &'a str,
    /// What counts as the command's exit code where its end is not on record.
    pub exit_code: u8,
    /// Who finishes the bundle: `runner`, `keeper`, `finalize`.
    pub by: &'a str,
    /// Bytes of each output stream that the bundle keeps; an output that is settled on record is left as it is.
    pub output_cap: u64,
    /// What no file of the bundle may hold.
    pub secrets: Arc<Secrets>,
}

/// Why a bundle cannot be finished.
#[derive(Debug, Error)]
pub enum ResumeError {
    /// Somebody writes the log.
    #[error("the job of {path} is still being recorded; wait for its end, or stop it with `stuckproof cancel`", path = .0.display())]
    Busy(PathBuf),
    /// Processes of the job live.
    #[error("processes of the job in {path} still live: {processes}; end them first, then finish the bundle", path = .path.display(), processes = .processes.join(", "))]
    Lives {
        /// The bundle.
        path: PathBuf,
        /// The processes, by name and number.
        processes: Vec<String>,
    },
    /// Neither the log nor `evidence.json` tells what was run.
    #[error("nothing in {path} tells what was run: events.jsonl has no first line and evidence.json no header; the job was stopped while it began, or this is no bundle", path = .0.display())]
    NoHeader(PathBuf),
    /// The log is of another version.
    #[error("the log in {path} has format {format}, and this version knows 1 only; finish it with the stuckproof that wrote it", path = .path.display())]
    Format {
        /// The bundle.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// The log has an end that is not its own.
    #[error("the end of the log in {path} does not follow from its events; it was changed after it was written, so it is left as it is", path = .0.display())]
    ForeignEnd(PathBuf),
    /// A file of the bundle cannot be used.
    #[error(transparent)]
    File(#[from] FsError),
    /// The log cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The evidence cannot be derived or written.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    /// The bundle cannot be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// Whether a bundle tells what was run. Before it does, nothing was: the command starts when the log's first line is on disk.
#[must_use]
pub fn has_begun(bundle: &Path) -> bool {
    let there = |name: &str| bundle.join(name).symlink_metadata().is_ok();
    if there(EVIDENCE) || there(MANIFEST) {
        return true;
    }
    match Folder::open(bundle).and_then(|folder| folder.file(EVENTS)) {
        // What cannot be read is for whoever loads it to tell.
        Ok(log) => BufReader::new(log).bytes().any(|byte| byte.map_or(true, |byte| byte == b'\n')),
        Err(e) => e.kind() != io::ErrorKind::NotFound,
    }
}

/// Finishes the bundle in a folder that nobody else takes care of any more, from nothing but what is on disk, what the
/// host says, and the secrets that it must not hold.
///
/// # Errors
/// As [`finish`], and when processes of the job still live, which could go on to tell of a build.
pub fn finish_abandoned(
    bundle: &Path,
    host: Option<HostReported>,
    secrets: &Arc<Secrets>,
    key: Option<&SigningKey>,
) -> Result<Evidence, ResumeError> {
    if let Ok(read) = evidence::load(bundle)
        && !read.evidence.finished
    {
        let job = &read.evidence.job;
        let wire = gather::folder(bundle, job);
        let processes = living::of_job(job, read.evidence.command.pid, wire.as_deref());
        if !processes.is_empty() {
            // Where somebody takes care of it, that is the better answer.
            if log::is_held(bundle) {
                return Err(ResumeError::Busy(bundle.to_owned()));
            }
            return Err(ResumeError::Lives { path: bundle.to_owned(), processes });
        }
    }
    let nothing = Known {
        exited: None,
        events: Vec::new(),
        host,
        reason: "the runner was lost",
        exit_code: exit::OWN_FAULT,
        by: "finalize",
        output_cap: u64::MAX,
        secrets: Arc::clone(secrets),
    };
    finish(bundle, &nothing, key)
}

/// Finishes the bundle in a folder and seals it, with a signature where there is a key. One that has its end but no seal
/// gets its derived files again where they are missing or differ. In a sealed one nothing changes, but that its seal is
/// signed where it has no signature yet.
///
/// # Errors
/// When somebody else writes the bundle, when nothing in it tells what was run, and when it cannot be written.
pub fn finish(bundle: &Path, known: &Known, key: Option<&SigningKey>) -> Result<Evidence, ResumeError> {
    if seal::is_sealed(bundle) {
        return sealed(bundle, key);
    }
    let mut log = Log::open(bundle)?;
    // Whoever held the log until now may have sealed it.
    if seal::is_sealed(bundle) {
        return sealed(bundle, key);
    }
    fsio::release(bundle)?;
    let job = log.header().job.clone();
    let mut remains = Remains::gather(bundle, log.header());
    let mut replay = Replay::new(std::mem::take(&mut remains.records));
    let mut seen = Seen::new(log.header());
    log.read(|event| {
        seen.see(event);
        replay.see(event);
    })?;
    let _locked = log.lock_again()?;
    let Written { secret, journal } = if log.is_ended() {
        seen.check_end(bundle)?;
        Written { secret: false, journal: seen.journal }
    } else {
        let (writer, damaged) = log.go_on()?;
        remains.losses.extend(damaged.map(|reason| EvidenceLost { records: 0, reason }));
        let output = output::settle(bundle, known, &seen);
        let writer = writer.masking(Arc::clone(&known.secrets));
        Ending::new(writer, seen, replay.rest()).write(known, remains, output)?
    };
    let written = evidence::write(bundle)?;
    gather::sweep(bundle)?;
    artifact::clear(&journal).map_err(|e| FsError::new("tidy up beside the artifacts of", bundle, e))?;
    // A wire that something was lost from is kept for a closer look, unless it holds a secret.
    if written.evidence.lost.is_empty() || secret {
        gather::remove(bundle, &job)?;
    }
    seal::seal(&written, key)?;
    Ok(written.evidence)
}

fn sealed(bundle: &Path, key: Option<&SigningKey>) -> Result<Evidence, ResumeError> {
    let found = evidence::load(bundle)?;
    if key.is_some() {
        seal::seal(&found, key)?;
    }
    Ok(found.evidence)
}
