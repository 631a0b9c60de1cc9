//! What the builders left behind: the records of the wire, the control page, and what is missing of both.

use super::log::DAMAGED;
use crate::baseline::BASELINE;
use crate::event::{EvidenceLost, JobStarted};
use crate::evidence::{EVIDENCE, INVENTORY, JUNIT, PHASES, SUMMARY};
use crate::fsio::{self, FsError};
use crate::seal::{MANIFEST, SIGNATURE};
use crate::wire::{self, Control, Reader, Record, Requested, WireError};
use std::path::{Path, PathBuf};

/// Everything that is on the wire of a job whose processes are gone.
#[derive(Debug, Default)]
pub(super) struct Remains {
    /// Every record, in the order of time.
    pub(super) records: Vec<Record>,
    /// Records that a process was writing when it was ended.
    pub(super) unfinished: u64,
    /// What the control page says.
    pub(super) page: Page,
    /// What is missing.
    pub(super) losses: Vec<EvidenceLost>,
}

/// What a control page says of the accepted request.
#[derive(Debug, Default)]
pub(super) enum Page {
    /// It cannot be read.
    #[default]
    Unreadable,
    /// There was none.
    NoRequest,
    /// This one.
    Request(Requested),
}

impl Remains {
    /// Reads them; what cannot be read is a loss.
    pub(super) fn gather(bundle: &Path, header: &JobStarted) -> Self {
        let mut remains = Self::default();
        let Some(wire) = folder(bundle, &header.job) else {
            remains.lose(
                0,
                "the wire is not there: what the builders told after the log's last line is unknown",
            );
            return remains;
        };
        if let Err(e) = remains.read(&wire, header) {
            remains.lose(0, &in_words(&e));
        }
        remains
    }

    fn read(&mut self, wire: &Path, header: &JobStarted) -> Result<(), WireError> {
        let unread = Reader::new(wire).finish(&mut self.records)?;
        self.unfinished = unread.unfinished;
        if unread.damaged > 0 {
            self.lose(unread.damaged, wire::DAMAGED);
        }
        for damage in wire::damage(wire, header.anchor())? {
            self.lose(0, &damage);
        }
        let control = Control::open(wire)?;
        let losses = control.losses()?;
        if let Some(what) = losses.in_words() {
            self.lose(losses.records, &what);
        }
        self.page = control.requested()?.map_or(Page::NoRequest, Page::Request);
        Ok(())
    }

    fn lose(&mut self, records: u64, reason: &str) {
        self.losses.push(EvidenceLost { records, reason: reason.to_owned() });
    }
}

/// What cannot be read, without the folder: the same remains give the same words wherever they lie.
fn in_words(error: &WireError) -> String {
    let (WireError::Read { path, .. } | WireError::Write { path, .. } | WireError::Foreign { path }) = error;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match error {
        WireError::Read { source, .. } | WireError::Write { source, .. } => {
            format!("the wire's file {name} cannot be read: {source}")
        }
        WireError::Foreign { .. } => format!("the wire's file {name} is damaged"),
    }
}

/// The wire's folder: in the bundle, or where jobs of this user have theirs when the bundle cannot be mapped. A path that
/// stands in the bundle is never followed.
pub(super) fn folder(bundle: &Path, job: &str) -> Option<PathBuf> {
    let is_folder = |path: &PathBuf| path.symlink_metadata().is_ok_and(|facts| facts.is_dir());
    let inside = bundle.join("wire");
    if is_folder(&inside) {
        return Some(inside);
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if job.is_empty() || !job.chars().all(plain) {
        return None;
    }
    Some(fsio::runtime_folder().ok()?.join(format!("{job}.wire"))).filter(is_folder)
}

/// Takes away files that a killed process had not written whole. Their whole ones are there by now.
pub(super) fn sweep(bundle: &Path) -> Result<(), FsError> {
    let failed = |e| FsError::new("tidy up", bundle, e);
    for entry in std::fs::read_dir(bundle).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_str().is_some_and(is_part) {
            std::fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    Ok(())
}

/// Whether a file is what a killed process leaves of one of ours.
fn is_part(name: &str) -> bool {
    let ours = [EVIDENCE, SUMMARY, PHASES, INVENTORY, JUNIT, BASELINE, DAMAGED, MANIFEST, SIGNATURE];
    let (whole, pid) = name.split_once(".part-").unwrap_or_default();
    let of_ours = ours.contains(&whole) && !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    of_ours || ["stdout.log.part", "stderr.log.part"].contains(&name)
}

/// Takes the wire away, once everything in it is in the log. A file that is not ours stays, and its folder with it.
pub(super) fn remove(bundle: &Path, job: &str) -> Result<(), FsError> {
    let Some(wire) = folder(bundle, job) else { return Ok(()) };
    let failed = |e| FsError::new("remove", &wire, e);
    for entry in std::fs::read_dir(&wire).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let ours = ["control", "runner.lock"].iter().any(|known| name == *known)
            || Path::new(&name).extension().is_some_and(|extension| extension == "seg");
        if ours {
            std::fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    match std::fs::remove_dir(&wire) {
        Err(e) if e.kind() != std::io::ErrorKind::DirectoryNotEmpty => Err(failed(e)),
        _ => Ok(()),
    }
}
