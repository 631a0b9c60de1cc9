//! The log of a bundle that is to be finished: its whole lines, and the place after them.

use super::ResumeError;
use crate::event::{Encoder, Event, EventKind, JobStarted, Line, LogFault, LogReader, LogWriter};
use crate::evidence::{EVENTS, EVIDENCE};
use crate::fsio::{FsError, write_all_atomic};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where the part of a log goes that cannot be trusted.
pub(super) const DAMAGED: &str = "events.damaged.jsonl";
/// The one version of the log's format.
const FORMAT: u32 = 1;
/// A runner that was killed a moment ago may not have let go of its log yet.
const LET_GO: Duration = Duration::from_secs(2);

/// A log, locked for as long as this lives.
pub(super) struct Log {
    bundle: PathBuf,
    file: File,
    reader: LogReader<BufReader<File>>,
    header: JobStarted,
    encoder: Encoder,
    /// The bytes that stay; 0 where not even the first line can be read.
    whole: u64,
    fault: Option<LogFault>,
    ended: bool,
}

impl Log {
    /// Locks the log and reads its first line. Where there is none that can be read, the header comes from the
    /// provisional evidence.
    pub(super) fn open(bundle: &Path) -> Result<Self, ResumeError> {
        let path = bundle.join(EVENTS);
        let failed = |source| FsError::new("open", &path, source);
        let file = open_file(&path)?;
        lock(&file, bundle)?;
        let mut reader =
            LogReader::new(BufReader::with_capacity(256 << 10, file.try_clone().map_err(failed)?));
        let (first, fault) = match reader.read() {
            Ok(line) => (line, None),
            Err(LogFault::Io { source, .. }) => return Err(failed(source).into()),
            Err(fault) => (None, Some(fault)),
        };
        let whole = if first.is_some() { reader.whole() } else { 0 };
        // A first line that only breaks the chain still says what was run.
        let doubtful = if fault.is_some() { reader.read().ok().flatten() } else { None };
        let header = first.as_ref().and_then(header_of).or_else(|| provisional_header(bundle));
        let header = header.or_else(|| doubtful.as_ref().and_then(header_of));
        let header = header.ok_or_else(|| ResumeError::NoHeader(bundle.to_owned()))?;
        if header.format != FORMAT {
            return Err(ResumeError::Format { path: bundle.to_owned(), format: header.format });
        }
        let mut encoder = Encoder::new(header.anchor());
        if let Some(line) = first {
            encoder.follow(&line, reader.head());
        }
        Ok(Self { bundle: bundle.to_owned(), file, reader, header, encoder, whole, fault, ended: false })
    }

    /// What was run.
    pub(super) fn header(&self) -> &JobStarted {
        &self.header
    }

    /// Whether the log has its end. Only meaningful after [`read`](Self::read).
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Reads the lines after the first, up to the last whole one or to the first that cannot be trusted.
    pub(super) fn read(&mut self, mut see: impl FnMut(&Event)) -> Result<(), ResumeError> {
        if self.whole == 0 {
            return Ok(());
        }
        loop {
            match self.reader.read() {
                Ok(Some(line)) => {
                    self.encoder.follow(&line, self.reader.head());
                    self.whole = self.reader.whole();
                    self.ended = matches!(line.event.kind, EventKind::JobEnded(_));
                    see(&line.event);
                }
                Ok(None) => return Ok(()),
                Err(LogFault::Io { source, .. }) => {
                    return Err(FsError::new("read", &self.bundle.join(EVENTS), source).into());
                }
                Err(fault) => {
                    self.fault = Some(fault);
                    return Ok(());
                }
            }
        }
    }

    /// A handle that keeps the lock when this has become a writer and the writer is gone.
    pub(super) fn lock_again(&self) -> Result<File, FsError> {
        self.file.try_clone().map_err(|e| FsError::new("open", &self.bundle.join(EVENTS), e))
    }

    /// Cuts off what is not whole, sets aside what cannot be trusted, and goes on writing. The text says what was set
    /// aside, also where an earlier attempt to finish did it.
    pub(super) fn go_on(mut self) -> Result<(LogWriter, Option<String>), ResumeError> {
        let path = self.bundle.join(EVENTS);
        let length = self.file.metadata().map_err(|e| FsError::new("examine", &path, e))?.len();
        if self.fault.is_some() || (self.whole == 0 && length > 0) {
            self.set_aside(&path)?;
        }
        if length > self.whole {
            self.file.set_len(self.whole).map_err(|e| FsError::new("shorten", &path, e))?;
        }
        let damaged = self.bundle.join(DAMAGED).symlink_metadata().is_ok() || self.whole == 0;
        let lost = damaged
            .then(|| format!("a part of the log was damaged; what could be saved of it is in {DAMAGED}"));
        let mut writer = LogWriter::resume(self.file, &path, self.encoder);
        if self.whole == 0 {
            let at = self.header.anchor().mono;
            writer.append(&Event { at, kind: EventKind::JobStarted(self.header) })?;
        }
        Ok((writer, lost))
    }

    /// Copies everything after the whole lines to a file of its own.
    fn set_aside(&mut self, path: &Path) -> Result<(), ResumeError> {
        let failed = |e| FsError::new("read", path, e);
        let mut rest = Vec::new();
        self.file.seek(SeekFrom::Start(self.whole)).map_err(failed)?;
        self.file.read_to_end(&mut rest).map_err(failed)?;
        Ok(write_all_atomic(&self.bundle, &[(DAMAGED, &rest)])?)
    }
}

/// Opens the log of a bundle, which is a file there and no link out of it. A bundle without one gets an empty one, if it
/// is a bundle.
fn open_file(path: &Path) -> Result<File, ResumeError> {
    let bundle = path.parent().unwrap_or_else(|| Path::new("."));
    let safe = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).append(true).custom_flags(safe).create(provisional_header(bundle).is_some());
    let file = match options.open(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && bundle.is_dir() => {
            return Err(ResumeError::NoHeader(bundle.to_owned()));
        }
        opened => opened.map_err(|e| FsError::new("open", path, e))?,
    };
    if file.metadata().is_ok_and(|facts| facts.is_file()) {
        Ok(file)
    } else {
        let what = std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a file");
        Err(FsError::new("open", path, what).into())
    }
}

/// Whether somebody writes the log at this moment.
pub(super) fn is_held(bundle: &Path) -> bool {
    let held = |file: File| matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    File::open(bundle.join(EVENTS)).is_ok_and(held)
}

/// Takes the log's lock, which its writer holds while it lives.
fn lock(file: &File, bundle: &Path) -> Result<(), ResumeError> {
    let until = Instant::now() + LET_GO;
    loop {
        match file.try_lock() {
            // Some file systems have no locks; there only the runner's own tells that it lives.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => return Err(ResumeError::Busy(bundle.to_owned())),
        }
    }
}

fn header_of(line: &Line) -> Option<JobStarted> {
    match &line.event.kind {
        EventKind::JobStarted(header) => Some(header.clone()),
        _ => None,
    }
}

/// The header as the provisional evidence holds it.
fn provisional_header(bundle: &Path) -> Option<JobStarted> {
    let path = bundle.join(EVIDENCE);
    if !path.symlink_metadata().is_ok_and(|facts| facts.is_file()) {
        return None;
    }
    let mut evidence: serde_json::Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    serde_json::from_value(evidence.get_mut("header")?.take()).ok()
}
