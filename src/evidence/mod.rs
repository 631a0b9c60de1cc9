//! The evidence of a job: what follows from its log, and the files that hold it.
//!
//! `events.jsonl` is the source of truth. `evidence.json`, `phases.json`, `summary.json`, `inventory.json` and `junit.xml` are derived from
//! it and can be derived again; nothing in them comes from anywhere else, but for the GPU's name, which stands in `baseline.json`.

mod cache;
mod config;
mod derive;
mod gpu;
mod inventory;
mod junit;
mod lesson;
mod libraries;
mod model;
mod phases;
mod retry;
mod schema;
mod silence;
mod summary;

pub use inventory::{Artifact, Inventory};
pub use junit::{Finding, Findings, NAMES as CRITERIA, Whose, findings};
pub use lesson::lessons;
pub use model::*;
pub use phases::{BuildPhases, End, Phase, Phases};
pub use retry::Retry;
pub use schema::schema;
pub use silence::{Expected, Judged, Silences};
pub use summary::{CleanupStatus, Framework, Language, RetryPolicy, Summary};

use crate::baseline::Baseline;
use crate::digest::Hex;
use crate::event::{Ending, JobStarted, Line, LogFault, LogReader, plain};
use crate::fsio::{FsError, write_all_at_last, write_all_atomic, write_all_whole};
use derive::{Derived, derive};
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The log's name in a bundle.
pub const EVENTS: &str = "events.jsonl";
/// The phase tree's name in a bundle.
pub const PHASES: &str = "phases.json";
/// The evidence's name in a bundle.
pub const EVIDENCE: &str = "evidence.json";
/// The summary's name in a bundle.
pub const SUMMARY: &str = "summary.json";
/// The inventory's name in a bundle.
pub const INVENTORY: &str = "inventory.json";
/// The test report's name in a bundle.
pub const JUNIT: &str = "junit.xml";
/// Every file that follows from the log.
pub const DERIVED: [&str; 5] = [PHASES, EVIDENCE, SUMMARY, INVENTORY, JUNIT];

/// Why evidence cannot be read or written.
#[derive(Debug, Error)]
pub enum EvidenceError {
    /// There is no log where a bundle should be.
    #[error("{path} is no bundle: its events.jsonl cannot be opened: {source}; {hint}", path = .path.display(), hint = hint(.source))]
    NoLog {
        /// The folder.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// The log does not hold even its first line.
    #[error("the log in {path} ends before its first line does: the job was stopped while it began, and nothing was built; run it again", path = .path.display())]
    NoHeader {
        /// The folder.
        path: PathBuf,
    },
    /// The log is not as it was written.
    #[error("the log in {path} cannot be trusted: {fault}", path = .path.display())]
    Log {
        /// The folder.
        path: PathBuf,
        /// The first fault.
        fault: LogFault,
    },
    /// A derived file cannot be written.
    #[error(transparent)]
    Write(#[from] FsError),
}

/// What to do where no log is.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotADirectory => {
            "give a folder; what `stuckproof pack` made is unpacked first, with `tar --zstd -xf`"
        }
        _ => "give the folder that `stuckproof run` named last",
    }
}

/// A bundle as its log tells it.
#[derive(Debug)]
pub struct Bundle {
    /// The folder.
    pub path: PathBuf,
    /// The evidence.
    pub evidence: Evidence,
    /// The phase trees.
    pub phases: Phases,
    /// The eleven fields.
    pub summary: Summary,
    /// The artifacts.
    pub inventory: Inventory,
    /// What stood around the job, or why that is not known.
    pub baseline: Result<Baseline, String>,
    /// How the log ends.
    pub ending: Ending,
    /// The log's whole lines, also those that cannot be read.
    pub lines: u64,
    /// The digest of the log's last whole line: the head of its chain.
    pub head: Hex,
    /// Whether the end on record is the one that follows from the events; also true where there is no end.
    pub follows: bool,
    /// What is wrong with the log.
    pub faults: Vec<LogFault>,
}

/// Writes a truthful `evidence.json`, `summary.json` and `junit.xml` for a job that has just begun, so that a kill leaves
/// those and not nothing. The report fails until the end is known.
pub fn provisional(bundle: &Path, header: &JobStarted) -> Result<(), FsError> {
    let Derived { evidence, summary, inventory } = derive::provisional(header);
    let phases = Phases { format: 1, finished: false, builds: Vec::new() };
    let missing = crate::baseline::missing();
    let source = junit::Source {
        evidence: &evidence,
        phases: &phases,
        inventory: &inventory,
        baseline: Err(&missing),
    };
    let (junit, evidence) = (junit::report(&source), document(&evidence));
    // The other two follow from the header, which is what must outlive a power cut.
    write_all_whole(bundle, &[(SUMMARY, &document(&summary)), (JUNIT, &junit)])?;
    write_all_atomic(bundle, &[(EVIDENCE, &evidence)])
}

/// Derives the evidence from the bundle's log and writes `phases.json`, `evidence.json`, `summary.json`,
/// `inventory.json` and `junit.xml`.
///
/// A file that holds this already is left alone. A log that ends early makes evidence that is not finished; one that was
/// changed is an error.
pub fn write(bundle: &Path) -> Result<Bundle, EvidenceError> {
    write_with(bundle, write_all_at_last)
}

/// The same while the job goes on: the room that is reserved for its end stays reserved.
pub fn write_so_far(bundle: &Path) -> Result<Bundle, EvidenceError> {
    write_with(bundle, write_all_atomic)
}

fn write_with(
    bundle: &Path,
    write_all: impl Fn(&Path, &[(&str, &[u8])]) -> Result<(), FsError>,
) -> Result<Bundle, EvidenceError> {
    let mut derived = load(bundle)?;
    if let Some(fault) = derived.faults.drain(..).next() {
        return Err(EvidenceError::Log { path: bundle.to_owned(), fault });
    }
    let files = files(&derived);
    let differs = |(name, bytes): &&(&str, Vec<u8>)| {
        !std::fs::read(bundle.join(name)).is_ok_and(|old| old == bytes.as_slice())
    };
    let files: Vec<_> = files.iter().filter(differs).map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    write_all(bundle, &files)?;
    Ok(derived)
}

/// The derived files of a bundle with their bytes, as [`write()`] writes them.
#[must_use]
pub fn files(bundle: &Bundle) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        (PHASES, compact(&bundle.phases)),
        (EVIDENCE, document(&bundle.evidence)),
        (SUMMARY, document(&bundle.summary)),
        (INVENTORY, document(&bundle.inventory)),
        (JUNIT, junit::report(&bundle.report_source())),
    ]
}

impl Bundle {
    fn report_source(&self) -> junit::Source<'_> {
        junit::Source {
            evidence: &self.evidence,
            phases: &self.phases,
            inventory: &self.inventory,
            baseline: self.baseline.as_ref(),
        }
    }
}

/// Reads a bundle from its log, finished or not. Faults of the log are listed, not fatal.
pub fn load(bundle: &Path) -> Result<Bundle, EvidenceError> {
    let log = LogReader::open(&bundle.join(EVENTS))
        .map_err(|source| EvidenceError::NoLog { path: bundle.to_owned(), source })?;
    read(bundle, log, crate::baseline::load(bundle), |_, _| {})
}

/// The same from a log and a baseline that the caller has opened. `see` gets each line that can be read, and its bytes.
pub fn read<R: BufRead>(
    bundle: &Path,
    log: LogReader<R>,
    baseline: Result<Baseline, String>,
    see: impl FnMut(&Line, &[u8]),
) -> Result<Bundle, EvidenceError> {
    derive(bundle, log, baseline, see)
}

/// A document as every bundle holds it: JSON for people, without a character that no reader bears.
///
/// # Panics
/// When the value is not made of numbers, strings, lists and string-keyed maps.
#[must_use]
pub fn document(value: &impl serde::Serialize) -> Vec<u8> {
    finish(serde_json::to_vec_pretty(value))
}

fn compact(value: &impl serde::Serialize) -> Vec<u8> {
    finish(serde_json::to_vec(value))
}

fn finish(json: serde_json::Result<Vec<u8>>) -> Vec<u8> {
    let mut json = plain(json.expect("numbers, strings, lists and string-keyed maps serialise"));
    json.push(b'\n');
    json
}
