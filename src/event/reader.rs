//! Reads a log, whole or cut anywhere.

use super::kinds::EventKind;
use super::line::{BadLine, Line};
use crate::digest::Hex;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use thiserror::Error;

/// The longest line that is read; a command line of two mebibytes with every byte escaped still fits.
const LONGEST_LINE: u64 = 32 << 20;

/// What is wrong with a log. A line that is merely cut off is no fault.
#[derive(Debug, Error)]
pub enum LogFault {
    /// The file cannot be read.
    #[error(
        "line {line} of the log cannot be read: {source}; copy the bundle to a healthy disk and try again"
    )]
    Io {
        /// The line.
        line: u64,
        /// The system's word.
        source: io::Error,
    },
    /// A whole line that is not an event.
    #[error("line {line} of the log is no event ({why}); the log was changed after it was written")]
    Unreadable {
        /// The line.
        line: u64,
        /// What the parser said.
        why: String,
    },
    /// An event that this version does not know.
    #[error(
        "line {line} of the log holds the unknown event {name:?}; read the bundle with the stuckproof that wrote it"
    )]
    UnknownEvent {
        /// The line.
        line: u64,
        /// The event's name.
        name: String,
    },
    /// A line longer than any that is written.
    #[error("line {line} of the log is longer than 32 MiB; the log was changed after it was written")]
    TooLong {
        /// The line.
        line: u64,
    },
    /// A number is missing or doubled.
    #[error(
        "line {line} of the log has seq {found} where {expected} belongs; a line was removed, added or moved"
    )]
    Sequence {
        /// The line.
        line: u64,
        /// What belongs there.
        expected: u64,
        /// What stands there.
        found: u64,
    },
    /// The digest of the line before does not match.
    #[error("line {line} of the log does not follow from the line before it; one of the two was changed")]
    Chain {
        /// The line.
        line: u64,
    },
    /// The first line is no header, or a later one is.
    #[error("line {line} of the log breaks its order: the header is the first line and stands nowhere else")]
    Header {
        /// The line.
        line: u64,
    },
    /// Something stands after the end.
    #[error("line {line} of the log stands after its end; it was added later")]
    AfterEnd {
        /// The line.
        line: u64,
    },
}

/// How the bytes end, as far as they were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// With `jobEnded`.
    Ended,
    /// After a whole line, before the job's end.
    Open,
    /// Inside a line.
    Torn {
        /// Bytes of the unfinished line.
        bytes: usize,
    },
}

/// Reads a log event by event. After the last whole line [`read`](Self::read) gives `None`; where the file grows, later
/// calls go on from there.
pub struct LogReader<R> {
    source: R,
    partial: Vec<u8>,
    /// The last whole line.
    text: Vec<u8>,
    pending: Option<Line>,
    line: u64,
    seq: u64,
    prev: Hex,
    ended: bool,
    broken: bool,
    whole: u64,
}

impl LogReader<BufReader<File>> {
    /// Opens the log at `path`, which must be a file: a pipe in its place would be waited for.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
        }
        Ok(Self::new(BufReader::with_capacity(256 << 10, File::open(path)?)))
    }
}

impl<R: BufRead> LogReader<R> {
    /// Reads from `source`, which stands at the log's first byte.
    pub fn new(source: R) -> Self {
        Self {
            source,
            partial: Vec::new(),
            text: Vec::new(),
            pending: None,
            line: 0,
            seq: 0,
            prev: Hex::ZERO,
            ended: false,
            broken: false,
            whole: 0,
        }
    }

    /// The next line, or `None` after the last whole one.
    ///
    /// A line that can be read but breaks the chain or the order of numbers gives its fault first and itself on the
    /// next call, so that a strict caller stops at the first error and a tolerant one loses nothing.
    pub fn read(&mut self) -> Result<Option<Line>, LogFault> {
        if let Some(line) = self.pending.take() {
            return Ok(Some(line));
        }
        if self.broken || !self.fill()? {
            return Ok(None);
        }
        std::mem::swap(&mut self.partial, &mut self.text);
        self.partial.clear();
        let bytes = std::mem::take(&mut self.text);
        let result = self.take(&bytes);
        self.text = bytes;
        result.map(Some)
    }

    /// How the bytes end. Only meaningful after [`read`](Self::read) gave `None`.
    pub fn ending(&self) -> Ending {
        match self.partial.len() {
            0 if self.ended => Ending::Ended,
            0 => Ending::Open,
            bytes => Ending::Torn { bytes },
        }
    }

    /// The bytes of the last whole line, without its newline.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// How many whole lines were read.
    pub fn lines(&self) -> u64 {
        self.line
    }

    /// The digest of the last whole line: the head of the chain.
    pub fn head(&self) -> Hex {
        self.prev
    }

    /// The bytes of all lines that were read whole, their newlines included.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// Reads up to the next newline, which is dropped; false where none has come yet.
    fn fill(&mut self) -> Result<bool, LogFault> {
        let room = LONGEST_LINE.saturating_sub(self.partial.len() as u64);
        let read = (&mut self.source).take(room).read_until(b'\n', &mut self.partial);
        if let Err(source) = read {
            self.broken = true;
            return Err(LogFault::Io { line: self.line + 1, source });
        }
        if self.partial.last() == Some(&b'\n') {
            self.whole += self.partial.len() as u64;
            self.partial.pop();
            return Ok(true);
        }
        if self.partial.len() as u64 >= LONGEST_LINE {
            self.broken = true;
            return Err(LogFault::TooLong { line: self.line + 1 });
        }
        Ok(false)
    }

    /// Makes an event of a whole line and checks its place.
    fn take(&mut self, bytes: &[u8]) -> Result<Line, LogFault> {
        self.line += 1;
        let line = self.line;
        let before = std::mem::replace(&mut self.prev, Hex::of(bytes));
        let expected = self.seq.saturating_add(1);
        self.seq = expected;
        if self.ended {
            return Err(LogFault::AfterEnd { line });
        }
        let read = Line::parse(bytes).map_err(|bad| match bad {
            BadLine::Json(error) => LogFault::Unreadable { line, why: error.to_string() },
            BadLine::UnknownEvent(name) => LogFault::UnknownEvent { line, name },
        })?;
        self.seq = read.seq;
        self.ended = matches!(read.event.kind, EventKind::JobEnded(_));
        let fault = if matches!(read.event.kind, EventKind::JobStarted(_)) != (line == 1) {
            Some(LogFault::Header { line })
        } else if read.seq != expected {
            Some(LogFault::Sequence { line, expected, found: read.seq })
        } else if read.prev.as_bytes() != before.as_bytes() {
            Some(LogFault::Chain { line })
        } else {
            None
        };
        match fault {
            None => Ok(read),
            Some(fault) => {
                self.pending = Some(read);
                Err(fault)
            }
        }
    }
}
