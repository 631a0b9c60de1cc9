//! The runner's side of the control page.

use super::WireError;
use super::layout::{CONTROL_MAGIC, PAGE, VERSION, control, word};
use crate::clock::{Anchor, Mono};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The control page of a job: the runner sets the cancel word here, and the attach libraries count what they lose.
#[derive(Debug)]
pub struct Control {
    file: File,
    path: PathBuf,
}

/// What the attach libraries could not store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Losses {
    /// Records.
    pub records: u64,
    /// The last error number, or 0.
    pub errno: i32,
    /// What failed, for a person.
    pub what: String,
}

impl Control {
    /// Makes the page in the wire's folder.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub fn create(dir: &Path, anchor: Anchor) -> Result<Self, WireError> {
        let path = dir.join("control");
        let failed = |source| WireError::Write { path: path.clone(), source };
        let mut page = vec![0; PAGE as usize];
        page[..8].copy_from_slice(&CONTROL_MAGIC.to_le_bytes());
        page[8..12].copy_from_slice(&VERSION.to_le_bytes());
        page[40..48].copy_from_slice(&anchor.mono.0.to_le_bytes());
        page[48..56].copy_from_slice(&anchor.wall_ns.to_le_bytes());
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        file.write_all_at(&page, 0).map_err(failed)?;
        Ok(Self { file, path })
    }

    /// Stores the stamp of the accepted request, then the cancel word, which every builder sees at its next step.
    ///
    /// The word is one aligned write into the page that the builders have mapped, and a request's number is below 256, so
    /// that a single byte changes: no builder can see half of it.
    ///
    /// # Errors
    /// When the page cannot be written.
    pub fn request(
        &self,
        request: u32,
        at: Mono,
        via: &str,
        pid: Option<u32>,
        uid: Option<u32>,
    ) -> Result<(), WireError> {
        let mut fields = [0; 40];
        fields[..8].copy_from_slice(&at.0.to_le_bytes());
        fields[8..12].copy_from_slice(&pid.unwrap_or(u32::MAX).to_le_bytes());
        fields[12..16].copy_from_slice(&uid.unwrap_or(u32::MAX).to_le_bytes());
        let name = &via.as_bytes()[..via.len().min(8)];
        let (anchor, via_at) = (16, 32);
        fields[via_at..via_at + name.len()].copy_from_slice(name);
        self.write(&fields[..anchor], control::REQUESTED_AT)?;
        self.write(&fields[via_at..], control::REQUESTED_AT + via_at as u64)?;
        self.write(&u64::from(request).to_le_bytes(), control::CANCEL)
    }

    /// What the attach libraries have lost so far.
    ///
    /// # Errors
    /// When the page cannot be read.
    pub fn losses(&self) -> Result<Losses, WireError> {
        let mut fields = [0; 24];
        self.file
            .read_exact_at(&mut fields, control::LOST)
            .map_err(|source| WireError::Read { path: self.path.clone(), source })?;
        let what = match word(&fields, 16) {
            1 => "an event segment could not be opened",
            2 => "an event segment could not be allocated on disk",
            3 => "an event segment could not be mapped",
            4 => "a process filled all its event segments",
            _ => "",
        };
        Ok(Losses {
            records: word(&fields, 0),
            errno: i32::try_from(word(&fields, 8)).unwrap_or(0),
            what: what.to_owned(),
        })
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), WireError> {
        self.file
            .write_all_at(bytes, at)
            .map_err(|source| WireError::Write { path: self.path.clone(), source })
    }
}
