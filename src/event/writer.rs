//! Writes the log.
//!
//! The frequent kinds are put together by hand, since a conversion must keep up with a million events a second; the
//! rare ones go through serde. Both give the same bytes that [`Line::to_json`](super::Line::to_json) gives.

use super::kinds::{
    CancelState, Event, EventKind, JobStarted, Message, PhaseFinished, PhaseStarted, StepCompleted,
};
use super::line::Line;
use super::text;
use crate::clock::{Anchor, Mono};
use crate::digest::Hex;
use crate::mask::Secrets;
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Bytes that are gathered before they go to the file.
const BATCH: usize = 128 << 10;
/// Bytes that a usual line needs at most.
const ROOM: usize = 512;

/// A field's name as it stands in a line, put together at compile time.
macro_rules! key {
    ($name:literal) => {
        concat!(",\"", $name, "\":").as_bytes()
    };
}

/// Why the log cannot be written.
#[derive(Debug, Error)]
pub enum LogError {
    /// The file cannot be made.
    #[error("the event log {path} cannot be created: {source}; choose another --bundle folder")]
    Create {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// The file cannot be written or synced.
    #[error("the event log {path} cannot be written: {source}; free space on its disk and run the job again")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// An earlier write failed. Nothing is written after that, so that the log stays a prefix of what happened.
    #[error("the event log {path} was given up after an earlier write error")]
    GivenUp {
        /// The file.
        path: PathBuf,
    },
    /// Something was to be written after the end.
    #[error("the event log {path} has ended; nothing may stand after its end")]
    Ended {
        /// The file.
        path: PathBuf,
    },
}

/// The log of one job, open for appending. What is appended reaches the file with [`flush`](Self::flush) and the disk
/// with [`sync`](Self::sync).
pub struct LogWriter {
    path: PathBuf,
    file: File,
    encoder: Encoder,
    buffer: Vec<u8>,
    secrets: Arc<Secrets>,
    has_masked: bool,
    given_up: bool,
    ended: bool,
}

impl LogWriter {
    /// Makes the log with its header. The file must not exist.
    pub fn create(path: &Path, header: &JobStarted) -> Result<Self, LogError> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(|source| LogError::Create { path: path.to_owned(), source })?;
        // Whoever finishes a log that was left takes this lock first. Some file systems have none.
        let _ = file.try_lock();
        Self::over(file, path, header)
    }

    /// Goes on with a log. `file` is open for appending and ends with the last line that `encoder` has followed.
    #[must_use]
    pub fn resume(file: File, path: &Path, encoder: Encoder) -> Self {
        Self {
            path: path.to_owned(),
            file,
            encoder,
            buffer: Vec::with_capacity(BATCH + (4 << 10)),
            secrets: Arc::default(),
            has_masked: false,
            given_up: false,
            ended: false,
        }
    }

    /// Masks these secrets in everything that is appended from here on.
    #[must_use]
    pub fn masking(mut self, secrets: Arc<Secrets>) -> Self {
        self.secrets = secrets;
        self
    }

    fn over(file: File, path: &Path, header: &JobStarted) -> Result<Self, LogError> {
        let mut writer = Self::resume(file, path, Encoder::new(header.anchor()));
        writer.append(&Event { at: header.anchor().mono, kind: EventKind::JobStarted(header.clone()) })?;
        Ok(writer)
    }

    /// The file, whose lock whoever shares the handle holds as well.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether anything that was appended held a secret.
    #[must_use]
    pub fn has_masked(&self) -> bool {
        self.has_masked
    }

    /// Whether an earlier write failed.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// Appends an event.
    pub fn append(&mut self, event: &Event) -> Result<(), LogError> {
        self.usable()?;
        if self.ended {
            return Err(LogError::Ended { path: self.path.clone() });
        }
        match event.kind.masked(&self.secrets) {
            Cow::Borrowed(_) => self.encoder.encode(event, &mut self.buffer),
            Cow::Owned(kind) => {
                self.has_masked = true;
                self.encoder.encode(&Event { at: event.at, kind }, &mut self.buffer);
            }
        }
        self.ended = matches!(event.kind, EventKind::JobEnded(_));
        if self.buffer.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    /// Hands everything to the kernel: it then survives the end of this process.
    pub fn flush(&mut self) -> Result<(), LogError> {
        self.usable()?;
        let written = self.file.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|source| self.give_up(source))
    }

    /// Flushes and waits for the disk.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.flush()?;
        self.file.sync_data().map_err(|source| self.give_up(source))
    }

    fn usable(&self) -> Result<(), LogError> {
        if self.given_up { Err(LogError::GivenUp { path: self.path.clone() }) } else { Ok(()) }
    }

    fn give_up(&mut self, source: io::Error) -> LogError {
        self.given_up = true;
        LogError::Write { path: self.path.clone(), source }
    }
}

impl Drop for LogWriter {
    /// Keeps what was gathered when the runner leaves by an error; whoever needs to know whether it reached the file
    /// calls [`flush`](Self::flush) before.
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

impl JobStarted {
    /// The pair of clocks that dates every event of the job.
    #[must_use]
    pub fn anchor(&self) -> Anchor {
        Anchor { mono: Mono(self.anchor_mono_ns), wall_ns: self.anchor_wall_ns }
    }
}

/// Turns events into lines, each with its number, its digest of the line before and its cancellation state.
pub struct Encoder {
    seq: u64,
    prev: Hex,
    wall: WallText,
    requested: Option<Mono>,
    acknowledged: Option<Mono>,
}

impl Encoder {
    /// An encoder that stands before the first line.
    #[must_use]
    pub fn new(anchor: Anchor) -> Self {
        Self { seq: 0, prev: Hex::ZERO, wall: WallText::new(anchor), requested: None, acknowledged: None }
    }

    /// Takes the place after a line that was written before; `digest` is that of its bytes.
    pub fn follow(&mut self, line: &Line, digest: Hex) {
        self.cancel_state(&line.event);
        self.seq = line.seq;
        self.prev = digest;
    }

    /// Appends the event's line and a newline to `out`.
    pub fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        out.reserve(ROOM);
        let start = out.len();
        self.seq = self.seq.wrapping_add(1);
        let cancel = self.cancel_state(event);
        out.extend_from_slice(b"{\"seq\":");
        number(self.seq, out);
        out.extend_from_slice(b",\"prev\":\"");
        out.extend_from_slice(self.prev.as_bytes());
        out.extend_from_slice(b"\",\"t\":");
        number(event.at.0, out);
        out.extend_from_slice(b",\"wall\":\"");
        self.wall.write(event.at, out);
        out.extend_from_slice(b"\",\"event\":\"");
        out.extend_from_slice(event.kind.name().as_bytes());
        out.extend_from_slice(match cancel {
            CancelState::Running => b"\",\"cancel\":\"running\"",
            CancelState::Cancelling => b"\",\"cancel\":\"cancelling\"",
            CancelState::Acknowledged => b"\",\"cancel\":\"acknowledged\"",
        });
        fields(&event.kind, out);
        self.prev = Hex::of(&out[start..]);
        out.push(b'\n');
    }

    /// Appends a line that was read as it would be written in its place, with the number and the digest that it has.
    pub fn rewrite(&mut self, line: &Line, out: &mut Vec<u8>) {
        self.seq = line.seq.wrapping_sub(1);
        // What is no digest is never written.
        self.prev = Hex::parse(&line.prev).unwrap_or(Hex::ZERO);
        self.encode(&line.event, out);
    }

    /// The state at the event's own time; records reach the log late, so that the order of lines does not tell it.
    fn cancel_state(&mut self, event: &Event) -> CancelState {
        match &event.kind {
            EventKind::CancelRequested(request) if request.accepted => {
                self.requested.get_or_insert(event.at);
            }
            EventKind::CancelAcknowledged(_) => {
                self.acknowledged.get_or_insert(event.at);
            }
            _ => {}
        }
        if self.acknowledged.is_some_and(|at| event.at >= at) {
            CancelState::Acknowledged
        } else if self.requested.is_some_and(|at| event.at >= at) {
            CancelState::Cancelling
        } else {
            CancelState::Running
        }
    }
}

/// The wall clock as text; the seconds are formatted once and reused.
struct WallText {
    anchor: Anchor,
    second: u64,
    prefix: String,
}

impl WallText {
    fn new(anchor: Anchor) -> Self {
        Self { anchor, second: u64::MAX, prefix: String::new() }
    }

    fn write(&mut self, at: Mono, out: &mut Vec<u8>) {
        let ns = self.anchor.wall_ns(at).min(i64::MAX.unsigned_abs());
        let second = ns / 1_000_000_000;
        if second != self.second {
            self.prefix = self.anchor.rfc3339(at);
            self.prefix.truncate("2026-01-02T03:04:05.".len());
            self.second = second;
        }
        out.extend_from_slice(self.prefix.as_bytes());
        let micros = (ns % 1_000_000_000 / 1_000) as usize;
        for pair in [micros / 10_000, micros / 100 % 100, micros % 100] {
            out.extend_from_slice(&PAIRS[pair]);
        }
        out.push(b'Z');
    }
}

/// The event's own fields and the closing brace.
fn fields(kind: &EventKind, out: &mut Vec<u8>) {
    match kind {
        EventKind::StepCompleted(step) => step_fields(step, out),
        EventKind::PhaseStarted(phase) => phase_started_fields(phase, out),
        EventKind::PhaseFinished(phase) => phase_finished_fields(phase, out),
        EventKind::Message(message) => message_fields(message, out),
        rare => {
            if !rare.has_build() {
                out.extend_from_slice(b",\"build\":null");
            }
            out.push(b',');
            let json = rare.fields().expect("plain structs of numbers, strings and lists always serialise");
            out.extend_from_slice(&json[1..]);
            return;
        }
    }
    out.push(b'}');
}

fn step_fields(step: &StepCompleted, out: &mut Vec<u8>) {
    field(key!("build"), step.build, out);
    field(key!("phase"), step.phase, out);
    field(key!("parent"), step.parent, out);
    field(key!("name"), step.name.as_str(), out);
    field(key!("step"), step.step, out);
    field(key!("steps"), step.steps, out);
    field(key!("answered"), step.answered, out);
    field(key!("pid"), step.pid, out);
    field(key!("tid"), step.tid, out);
}

fn phase_started_fields(phase: &PhaseStarted, out: &mut Vec<u8>) {
    field(key!("build"), phase.build, out);
    field(key!("phase"), phase.phase, out);
    field(key!("parent"), phase.parent, out);
    if let Some(unknown) = &phase.unknown_parent {
        field(key!("unknownParent"), unknown.as_str(), out);
    }
    field(key!("name"), phase.name.as_str(), out);
    field(key!("steps"), phase.steps, out);
    field(key!("pid"), phase.pid, out);
    field(key!("tid"), phase.tid, out);
}

fn phase_finished_fields(phase: &PhaseFinished, out: &mut Vec<u8>) {
    field(key!("build"), phase.build, out);
    field(key!("phase"), phase.phase, out);
    field(key!("parent"), phase.parent, out);
    field(key!("name"), phase.name.as_str(), out);
    field(key!("reported"), phase.reported, out);
    field(key!("steps"), phase.steps, out);
    field(key!("pid"), phase.pid, out);
    field(key!("tid"), phase.tid, out);
}

fn message_fields(message: &Message, out: &mut Vec<u8>) {
    field(key!("build"), message.build, out);
    field(key!("phase"), message.phase, out);
    field(key!("severity"), message.severity.as_str(), out);
    field(key!("code"), message.code, out);
    field(key!("text"), message.text.as_str(), out);
    field(key!("truncated"), message.truncated, out);
    field(key!("pid"), message.pid, out);
    field(key!("tid"), message.tid, out);
}

#[inline]
fn field(key: &[u8], value: impl Put, out: &mut Vec<u8>) {
    out.extend_from_slice(key);
    value.put(out);
}

/// A value that can stand in a line.
trait Put {
    fn put(self, out: &mut Vec<u8>);
}

impl Put for u64 {
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        number(self, out);
    }
}

impl Put for u32 {
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        number(u64::from(self), out);
    }
}

impl Put for i32 {
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        if self < 0 {
            out.push(b'-');
        }
        number(u64::from(self.unsigned_abs()), out);
    }
}

impl Put for bool {
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self { b"true" } else { b"false" });
    }
}

impl Put for &str {
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        text::string(self, out);
    }
}

impl<T: Put> Put for Option<T> {
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.put(out),
            None => out.extend_from_slice(b"null"),
        }
    }
}

/// The two digits of every number below a hundred.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

fn number(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    while value >= 10 {
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[(value % 100) as usize]);
        value /= 100;
    }
    if value > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EvidenceLost;

    fn header() -> JobStarted {
        let header = serde_json::json!({
            "format": 1, "job": "j", "stuckproof": "0", "argv": [], "cwd": "/", "host": "h", "runnerPid": 1,
            "ciHost": null, "hostProfile": {"name": "none", "chosenBy": "nothing else fitted", "ladder": "", "allowsMs": null, "provisionalMs": 5000,
                "graceMs": null, "killAfterMs": 1, "completeMs": null},
            "anchorMonoNs": 1, "anchorWallNs": 1, "graceMs": null, "killAfterMs": 1,
            "deadlineMs": null, "deadlineFrom": null, "phaseLimitMs": null, "attempt": null, "warnings": [], "environmentChanges": [], "bundle": "", "wire": "", "streams": "merged"
        });
        serde_json::from_value(header).expect("every field is there")
    }

    #[test]
    fn after_a_write_error_the_log_is_given_up() {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let mut writer =
            LogWriter::over(full, Path::new("events.jsonl"), &header()).expect("nothing is written yet");
        let error = writer.flush().expect_err("the device is full");
        assert!(
            matches!(&error, LogError::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull)
        );
        assert!(error.to_string().contains("free space"), "{error}");
        let lost = EventKind::EvidenceLost(EvidenceLost { records: 1, reason: String::new() });
        let after = writer.append(&Event { at: Mono(2), kind: lost });
        assert!(matches!(after, Err(LogError::GivenUp { .. })));
        assert!(matches!(writer.sync(), Err(LogError::GivenUp { .. })));
    }
}
