//! Reading the segments of every process, as they grow and after their writers are gone.

use super::WireError;
use super::facts;
use super::layout::{
    Found, PAGE, SEGMENT_MAGIC, SLOT, SLOTS_PER_SEGMENT, Slot, TEXT_PER_SLOT, VERSION, kind, word,
};
use super::record::{Body, LibraryFacts, Method, ProcessKey, Record, Severity};
use crate::clock::Mono;
use rustix::fs::OFlags;
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Slots read at once.
const BATCH: usize = 4096;

/// Reads the wire's folder incrementally.
#[derive(Debug)]
pub struct Reader {
    dir: PathBuf,
    chains: BTreeMap<ProcessKey, Chain>,
    buffer: Vec<u8>,
}

/// Records that were reserved and could not be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unread {
    /// Runs of slots that were never committed: the process was ended while it wrote. Their callbacks never returned.
    pub unfinished: u64,
    /// Records that were committed and do not fit their check, or have lost a piece: the file was damaged.
    pub damaged: u64,
}

impl std::ops::AddAssign for Unread {
    fn add_assign(&mut self, other: Self) {
        self.unfinished += other.unfinished;
        self.damaged += other.damaged;
    }
}

/// One process's chain of segments.
#[derive(Debug, Default)]
struct Chain {
    /// The next slot to read, counted over all segments.
    next: u64,
    /// The segment that holds it, once opened.
    open: Option<(u64, File)>,
    names: HashMap<u32, Arc<str>>,
    counts: HashMap<u32, [u32; 5]>,
    /// Whether the slots just before `next` were empty.
    in_hole: bool,
}

/// Whether writers may still commit slots.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writers {
    Alive,
    Gone,
}

impl Reader {
    /// A reader of a wire's folder. Reads nothing yet.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), chains: BTreeMap::new(), buffer: vec![0; BATCH * SLOT] }
    }

    /// Appends what is new: in each process's own order, and by time across processes.
    ///
    /// # Errors
    /// When the folder or a segment cannot be read. What was appended before stays valid.
    pub fn poll(&mut self, out: &mut Vec<Record>) -> Result<(), WireError> {
        self.read(out, Writers::Alive).map(|_| ())
    }

    /// Appends what is left after all writers are gone, skipping slots that were reserved and never committed.
    ///
    /// Returns what could not be read.
    ///
    /// # Errors
    /// As [`Reader::poll`].
    pub fn finish(&mut self, out: &mut Vec<Record>) -> Result<Unread, WireError> {
        self.read(out, Writers::Gone)
    }

    fn read(&mut self, out: &mut Vec<Record>, writers: Writers) -> Result<Unread, WireError> {
        self.discover()?;
        let start = out.len();
        let mut unread = Unread::default();
        let mut busy = 0;
        for (key, chain) in &mut self.chains {
            let before = out.len();
            unread += chain.read(&self.dir, *key, &mut self.buffer, writers, out)?;
            busy += usize::from(out.len() > before);
        }
        if busy > 1 {
            merge_by_time(&mut out[start..]);
        }
        Ok(unread)
    }

    /// Learns of processes whose first segment has appeared.
    fn discover(&mut self) -> Result<(), WireError> {
        let failed = |source| WireError::Read { path: self.dir.clone(), source };
        for entry in std::fs::read_dir(&self.dir).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if let Some((key, _)) = name.to_str().and_then(parse_name) {
                self.chains.entry(key).or_default();
            }
        }
        Ok(())
    }
}

/// A stable sort by time that keeps each process's own order even where its threads' stamps cross.
fn merge_by_time(records: &mut [Record]) {
    let mut latest: HashMap<ProcessKey, Mono> = HashMap::new();
    let mut keyed: Vec<(Mono, Record)> = records
        .iter()
        .map(|record| {
            let at = latest.entry(record.process).or_default();
            *at = (*at).max(record.at);
            (*at, record.clone())
        })
        .collect();
    keyed.sort_by_key(|(at, _)| *at);
    for (place, (_, record)) in records.iter_mut().zip(keyed) {
        *place = record;
    }
}

impl Chain {
    fn read(
        &mut self,
        dir: &Path,
        key: ProcessKey,
        buffer: &mut [u8],
        writers: Writers,
        out: &mut Vec<Record>,
    ) -> Result<Unread, WireError> {
        let mut unread = Unread::default();
        loop {
            let filled = self.fill(dir, key, buffer)?;
            let step = self.decode(key, &buffer[..filled * SLOT], writers, out);
            unread += step.unread;
            self.next += step.consumed as u64;
            // A segment that could not be made ends the chain, unless a later one is there.
            let stuck = step.consumed == 0;
            if stuck && !(writers == Writers::Gone && self.skip_missing_segment(dir, key)) {
                return Ok(unread);
            }
        }
    }

    /// Reads slots from `next` on, over the ends of segments, until the buffer is full or there is no more; returns how
    /// many.
    fn fill(&mut self, dir: &Path, key: ProcessKey, buffer: &mut [u8]) -> Result<usize, WireError> {
        let mut filled = 0;
        while filled < BATCH {
            let at = self.next + filled as u64;
            let (number, within) = (at / SLOTS_PER_SEGMENT, at % SLOTS_PER_SEGMENT);
            if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
                self.open = open_segment(dir, key, number)?.map(|file| (number, file));
            }
            let Some((_, file)) = &self.open else { break };
            let wanted = usize::try_from(SLOTS_PER_SEGMENT - within).unwrap_or(BATCH).min(BATCH - filled);
            let place = &mut buffer[filled * SLOT..(filled + wanted) * SLOT];
            let bytes = read_at(file, place, PAGE + within * SLOT as u64)
                .map_err(|source| WireError::Read { path: dir.to_owned(), source })?;
            filled += bytes / SLOT;
            if bytes / SLOT < wanted {
                break;
            }
        }
        Ok(filled)
    }

    fn skip_missing_segment(&mut self, dir: &Path, key: ProcessKey) -> bool {
        let number = self.next / SLOTS_PER_SEGMENT;
        let later = std::fs::read_dir(dir)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str().and_then(parse_name))
            .filter(|(other, n)| *other == key && *n > number)
            .map(|(_, n)| n)
            .min();
        if let Some(later) = later {
            self.next = later * SLOTS_PER_SEGMENT;
        }
        later.is_some()
    }

    fn decode(&mut self, key: ProcessKey, slots: &[u8], writers: Writers, out: &mut Vec<Record>) -> Step {
        let count = slots.len() / SLOT;
        let mut step = Step::default();
        while step.consumed < count {
            let at = step.consumed;
            let slot = match Slot::read(&slots[at * SLOT..(at + 1) * SLOT]) {
                // A writer may be between reserving and committing: wait for it, until there are no writers.
                Found::Empty | Found::Torn if writers == Writers::Alive => return step,
                Found::Empty => {
                    self.in_hole = true;
                    step.consumed += 1;
                    continue;
                }
                Found::Torn => {
                    step.unread.damaged += 1;
                    step.consumed += 1;
                    continue;
                }
                Found::Whole(slot) => slot,
            };
            // Empty slots are an unfinished record only if something was committed after them; else they are the unused end.
            step.unread.unfinished += u64::from(std::mem::take(&mut self.in_hole));
            let span = usize::from(slot.span.max(1));
            if at + span > count {
                // The text goes on past this batch: let the next one begin here, unless there is no more to come.
                if at == 0 && writers == Writers::Gone {
                    step.unread.damaged += 1;
                    step.consumed += 1;
                }
                return step;
            }
            if slot.kind != kind::CONTINUATION {
                let text = text_of(&slot, &slots[(at + 1) * SLOT..(at + span) * SLOT]);
                self.take(key, &slot, text, &mut step, out);
            }
            step.consumed += span;
        }
        step
    }

    fn take(
        &mut self,
        key: ProcessKey,
        slot: &Slot,
        text: Option<String>,
        step: &mut Step,
        out: &mut Vec<Record>,
    ) {
        match self.body(slot, text) {
            Some(Decoded::Body(body)) => out.push(Record {
                process: key,
                at: Mono(slot.mono()),
                build: slot.build(),
                tid: slot.tid(),
                body,
            }),
            Some(Decoded::Internal) => {}
            None => step.unread.damaged += 1,
        }
    }

    fn name(&self, number: u32) -> Arc<str> {
        self.names.get(&number).cloned().unwrap_or_else(|| format!("(name {number} was lost)").into())
    }

    fn body(&mut self, slot: &Slot, text: Option<String>) -> Option<Decoded> {
        let body = match slot.kind {
            kind::NAME => {
                self.names.insert(slot.name(), text?.into());
                return Some(Decoded::Internal);
            }
            kind::MESSAGE_COUNTS => {
                let [c, d, e] = slot.rest();
                let counts = [c as u32, (c >> 32) as u32, d as u32, (d >> 32) as u32, e as u32];
                self.counts.insert(slot.build(), counts);
                return Some(Decoded::Internal);
            }
            kind::LIBRARY => Body::Library(library(&text?)),
            kind::REFUSED => Body::Refused { reason: text? },
            kind::BUILD_START => Body::BuildStart { method: method(slot.a())?, chained: slot.flags & 1 != 0 },
            kind::BUILD_FACTS => Body::BuildFacts(Box::new(facts::decode(&text?, slot.flags & 1 != 0))),
            kind::PHASE_START => Body::PhaseStart {
                name: self.name(slot.name()),
                parent: (slot.parent() != 0).then(|| self.name(slot.parent())),
                steps: slot.a(),
            },
            kind::STEP => Body::Step { name: self.name(slot.name()), step: slot.a(), answered: slot.b() },
            kind::PHASE_FINISH => Body::PhaseFinish { name: self.name(slot.name()) },
            kind::APPLICATION_FALSE => {
                Body::ApplicationFalse { name: self.name(slot.name()), step: slot.a() }
            }
            kind::BUILD_RETURN => Body::BuildReturn {
                engine: slot.a() != 0,
                bytes: (slot.flags & 1 != 0).then(|| slot.rest()[0]),
                messages: self.counts.remove(&slot.build()).unwrap_or_default(),
            },
            kind::MESSAGE => {
                Body::Message { severity: severity(slot.a())?, text: text?, truncated: slot.flags & 1 != 0 }
            }
            _ => return None,
        };
        Some(Decoded::Body(body))
    }
}

/// How far one batch was decoded.
#[derive(Default)]
struct Step {
    consumed: usize,
    unread: Unread,
}

/// What a slot means.
enum Decoded {
    /// Something to tell.
    Body(Body),
    /// Something that the reader itself needed.
    Internal,
}

/// The text that follows a leading slot, or nothing where a piece of it is torn.
fn text_of(slot: &Slot, pieces: &[u8]) -> Option<String> {
    let mut text = Vec::with_capacity(pieces.len());
    for piece in pieces.chunks_exact(SLOT) {
        match Slot::read(piece) {
            Found::Whole(piece) if piece.kind == kind::CONTINUATION => text.extend(piece.text()),
            _ => return None,
        }
    }
    let bytes = slot.text_bytes();
    (bytes <= pieces.len() / SLOT * TEXT_PER_SLOT)
        .then(|| String::from_utf8_lossy(&text[..bytes]).into_owned())
}

fn library(text: &str) -> LibraryFacts {
    let mut facts = LibraryFacts::default();
    let mut parts = text.split('\0');
    while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
        match key {
            "flavour" => value.clone_into(&mut facts.flavour),
            "version" => value.clone_into(&mut facts.version),
            "path" => value.clone_into(&mut facts.path),
            "python" => facts.python = value == "1",
            "messages" => value.clone_into(&mut facts.messages_unobserved),
            "proven" => value.clone_into(&mut facts.proven),
            "simulated" => facts.simulated = value == "1",
            _ => {}
        }
    }
    facts
}

fn method(number: i32) -> Option<Method> {
    Some(match number {
        1 => Method::SerializedNetwork,
        2 => Method::EngineWithConfig,
        3 => Method::ToStream,
        4 => Method::WithKernelText,
        _ => return None,
    })
}

fn severity(number: i32) -> Option<Severity> {
    Some(match number {
        0 => Severity::InternalError,
        1 => Severity::Error,
        2 => Severity::Warning,
        3 => Severity::Info,
        4 => Severity::Verbose,
        _ => return None,
    })
}

/// The process and the number of a segment, from `p<pid>-<registered>-<number>.seg`.
pub(super) fn parse_name(name: &str) -> Option<(ProcessKey, u64)> {
    let mut parts = name.strip_prefix('p')?.strip_suffix(".seg")?.split('-');
    let pid = parts.next()?.parse().ok()?;
    let registered = Mono(parts.next()?.parse().ok()?);
    let number: u32 = parts.next()?.parse().ok()?;
    parts.next().is_none().then_some((ProcessKey { pid, registered }, number.into()))
}

/// The path of a segment.
pub(super) fn segment_path(dir: &Path, key: ProcessKey, number: u64) -> PathBuf {
    dir.join(format!("p{}-{}-{number:04}.seg", key.pid, key.registered.0))
}

/// Opens a segment whose header is complete; nothing where it is not there or not one of this version.
pub(super) fn open_segment(dir: &Path, key: ProcessKey, number: u64) -> Result<Option<File>, WireError> {
    let path = segment_path(dir, key, number);
    // A link could lead out of the folder, and a pipe in a segment's place would be waited for.
    let safe = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(safe).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(WireError::Read { path, source }),
    };
    if !file.metadata().is_ok_and(|facts| facts.is_file()) {
        return Ok(None);
    }
    let mut header = [0; 16];
    let bytes = read_at(&file, &mut header, 0).map_err(|source| WireError::Read { path, source })?;
    let known =
        bytes == header.len() && word(&header, 0) == SEGMENT_MAGIC && word(&header, 8) as u32 == VERSION;
    Ok(known.then_some(file))
}

/// Reads until the buffer is full or the file ends.
pub(super) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
