//! The runner's side of the control page.

use super::WireError;
use super::layout::{CONTROL_MAGIC, PAGE, VERSION, control, word};
use crate::clock::{Anchor, Mono};
use crate::event::CancelSource;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The sources in the order of their numbers in the page, from 1.
const SOURCES: [CancelSource; 5] =
    [CancelSource::CtrlC, CancelSource::Ci, CancelSource::Ide, CancelSource::Service, CancelSource::Api];

/// The control page of a job: the runner sets the cancel word here, and the attach libraries count what they lose.
#[derive(Debug)]
pub struct Control {
    file: File,
    path: PathBuf,
}

/// The accepted request, as the page holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested {
    /// Its number, from 1 to 255.
    pub request: u32,
    /// When it arrived.
    pub at: Mono,
    /// Who asked.
    pub source: CancelSource,
    /// How it came. Of a longer name the page keeps the first eight bytes.
    pub via: String,
    /// The sender's process, where the kernel told it.
    pub pid: Option<u32>,
    /// The sender's user, where the kernel told it.
    pub uid: Option<u32>,
}

/// The loss of the runner itself among the places of `cpp/wire.h`, which are the attach libraries'.
const LOG: u64 = 5;

/// What the attach libraries could not store, or the runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Losses {
    /// Records.
    pub records: u64,
    /// The last error number, or 0.
    pub errno: i32,
    /// What failed, for a person.
    pub what: String,
}

impl Losses {
    /// What was lost, for a person; nothing where nothing was.
    #[must_use]
    pub fn in_words(&self) -> Option<String> {
        let lost = self.records > 0 || self.errno != 0;
        lost.then(|| format!("{}: {}", self.what, std::io::Error::from_raw_os_error(self.errno)))
    }
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

    /// Opens the page of a job that was begun by another process.
    ///
    /// # Errors
    /// When the file cannot be opened, or is no control page of this version.
    pub fn open(dir: &Path) -> Result<Self, WireError> {
        let path = dir.join("control");
        let safe = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = OpenOptions::new().read(true).write(true).custom_flags(safe).open(&path);
        let page =
            Self { file: file.map_err(|source| WireError::Read { path: path.clone(), source })?, path };
        let head: [u8; 16] = page.read(0)?;
        let known = word(&head, 0) == CONTROL_MAGIC && word(&head, 8) as u32 == VERSION;
        if known { Ok(page) } else { Err(WireError::Foreign { path: page.path }) }
    }

    /// Stores the stamp of the accepted request, then the cancel word, which every builder sees at its next step.
    ///
    /// The word is one aligned write into the page that the builders have mapped, and a request's number is below 256, so
    /// that a single byte changes: no builder can see half of it.
    ///
    /// # Errors
    /// When the page cannot be written.
    pub fn request(&self, requested: &Requested) -> Result<(), WireError> {
        let mut stamp = [0; 16];
        stamp[..8].copy_from_slice(&requested.at.0.to_le_bytes());
        stamp[8..12].copy_from_slice(&requested.pid.unwrap_or(u32::MAX).to_le_bytes());
        stamp[12..].copy_from_slice(&requested.uid.unwrap_or(u32::MAX).to_le_bytes());
        let mut via = [0; 8];
        let name = &requested.via.as_bytes()[..requested.via.len().min(via.len())];
        via[..name.len()].copy_from_slice(name);
        let source =
            SOURCES.iter().position(|&source| source == requested.source).map_or(0, |place| place + 1);
        self.write(&(source as u32).to_le_bytes(), control::SOURCE)?;
        self.write(&stamp, control::REQUESTED_AT)?;
        self.write(&via, control::VIA)?;
        self.write(&u64::from(requested.request).to_le_bytes(), control::CANCEL)
    }

    /// The accepted request, once its cancel word is written.
    ///
    /// # Errors
    /// When the page cannot be read, or holds what no runner has written.
    pub fn requested(&self) -> Result<Option<Requested>, WireError> {
        let page: [u8; 64] = self.read(0)?;
        let number = word(&page, control::CANCEL as usize);
        if number == 0 {
            return Ok(None);
        }
        let sender = word(&page, control::SENDER as usize);
        let known = |half: u64| Some(half as u32).filter(|&half| half != u32::MAX);
        let via = &page[control::VIA as usize..];
        let end = via.iter().position(|&byte| byte == 0).unwrap_or(via.len());
        let source = (word(&page, control::SOURCE as usize) as u32).checked_sub(1);
        let source = source.and_then(|place| SOURCES.get(place as usize));
        match (u8::try_from(number), source) {
            (Ok(number), Some(&source)) => Ok(Some(Requested {
                request: number.into(),
                at: Mono(word(&page, control::REQUESTED_AT as usize)),
                source,
                via: String::from_utf8_lossy(&via[..end]).into_owned(),
                pid: known(sender & u64::from(u32::MAX)),
                uid: known(sender >> 32),
            })),
            _ => Err(WireError::Foreign { path: self.path.clone() }),
        }
    }

    /// The two clocks that the job was begun with.
    ///
    /// # Errors
    /// When the page cannot be read.
    pub fn anchor(&self) -> Result<Anchor, WireError> {
        let clocks: [u8; 16] = self.read(control::ANCHOR)?;
        Ok(Anchor { mono: Mono(word(&clocks, 0)), wall_ns: word(&clocks, 8) })
    }

    /// How many processes have opened a first segment.
    ///
    /// # Errors
    /// When the page cannot be read.
    pub fn processes(&self) -> Result<u64, WireError> {
        let count: [u8; 8] = self.read(control::PROCESSES)?;
        Ok(word(&count, 0))
    }

    /// Notes that the log cannot be written any more: the page has its room on the disk even when that is full, so that
    /// whoever finishes the bundle later can tell. Where a loss stands already, that one stays.
    ///
    /// # Errors
    /// When the page cannot be read or written.
    pub fn log_lost(&self, errno: i32) -> Result<(), WireError> {
        if self.losses()?.errno != 0 {
            return Ok(());
        }
        self.write(&LOG.to_le_bytes(), control::LOST + 16)?;
        self.write(&u64::from(errno.unsigned_abs().max(1)).to_le_bytes(), control::LOST + 8)
    }

    /// What was lost so far.
    ///
    /// # Errors
    /// When the page cannot be read.
    pub fn losses(&self) -> Result<Losses, WireError> {
        let fields: [u8; 24] = self.read(control::LOST)?;
        let what = match word(&fields, 16) {
            1 => "an event segment could not be opened",
            2 => "an event segment could not be allocated on disk",
            3 => "an event segment could not be mapped",
            4 => "a process filled all its event segments",
            LOG => "the event log could not be written to its end",
            _ => "",
        };
        Ok(Losses {
            records: word(&fields, 0),
            errno: i32::try_from(word(&fields, 8)).unwrap_or(0),
            what: what.to_owned(),
        })
    }

    fn read<const N: usize>(&self, at: u64) -> Result<[u8; N], WireError> {
        let mut bytes = [0; N];
        let read = self.file.read_exact_at(&mut bytes, at);
        read.map(|()| bytes).map_err(|source| WireError::Read { path: self.path.clone(), source })
    }

    fn write(&self, bytes: &[u8], at: u64) -> Result<(), WireError> {
        self.file
            .write_all_at(bytes, at)
            .map_err(|source| WireError::Write { path: self.path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_log_is_told_unless_a_loss_stands_already() {
        let dir = tempfile::tempdir().unwrap();
        let page = Control::create(dir.path(), Anchor::now()).unwrap();
        assert_eq!(page.losses().unwrap().in_words(), None);
        page.log_lost(28).unwrap();
        page.log_lost(5).unwrap();
        let said = Control::open(dir.path()).unwrap().losses().unwrap().in_words().unwrap();
        assert!(said.starts_with("the event log could not be written to its end: No space left"), "{said}");
        page.write(&2_u64.to_le_bytes(), control::LOST + 16).unwrap();
        page.log_lost(28).unwrap();
        assert!(page.losses().unwrap().what.contains("segment"), "the builders' loss stays");
    }
}
