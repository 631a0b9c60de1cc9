//! Event segments as the attach library writes them, written here a second time from the words of `cpp/wire.h`.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use stuckproof::event::BuildFacts;
use stuckproof::wire::{Body, LibraryFacts, Method, ProcessKey, Record, Severity};

const SLOT: usize = 64;
const PAGE: usize = 4096;
const SEGMENT: usize = 1 << 20;
/// Slots in a segment.
pub const SLOTS: usize = (SEGMENT - PAGE) / SLOT;

/// The slots of one process.
#[derive(Default)]
pub struct Chain {
    slots: Vec<[u8; SLOT]>,
    names: HashMap<String, u32>,
}

/// The fields of a slot.
#[derive(Default, Clone, Copy)]
struct Fields {
    name: u32,
    parent: u32,
    a: i32,
    b: u32,
    rest: [u64; 3],
    flags: u8,
}

impl Chain {
    /// The slots of these records.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut chain = Self::default();
        records.into_iter().for_each(|record| chain.tell(record));
        chain
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// A slot that was reserved and never written.
    pub fn hole(&mut self) {
        self.slots.push([0; SLOT]);
    }

    /// A slot that holds something else than was written.
    pub fn noise(&mut self) {
        self.slots.push([0x5a; SLOT]);
    }

    /// Adds a record.
    pub fn tell(&mut self, record: &Record) {
        let put = |chain: &mut Self, kind, fields: Fields| chain.slot(record, kind, 1, &fields);
        match &record.body {
            Body::Library(facts) => self.text(record, 2, Fields::default(), &library(facts)),
            Body::Refused { reason } => self.text(record, 3, Fields::default(), reason),
            Body::BuildStart { method, chained } => {
                let fields = Fields { a: number(*method), flags: (*chained).into(), ..Fields::default() };
                put(self, 4, fields);
            }
            Body::BuildFacts(facts) => self.text(record, 12, Fields::default(), &words(facts)),
            Body::PhaseStart { name, parent, steps } => {
                let name = self.name(record, name);
                let parent = parent.as_ref().map_or(0, |parent| self.name(record, parent));
                put(self, 5, Fields { name, parent, a: *steps, ..Fields::default() });
            }
            Body::Step { name, step, answered } => {
                let name = self.name(record, name);
                put(self, 6, Fields { name, a: *step, b: *answered, ..Fields::default() });
            }
            Body::PhaseFinish { name } => {
                let name = self.name(record, name);
                put(self, 7, Fields { name, ..Fields::default() });
            }
            Body::ApplicationFalse { name, step } => {
                let name = self.name(record, name);
                put(self, 8, Fields { name, a: *step, ..Fields::default() });
            }
            Body::BuildReturn { engine, bytes, messages } => {
                let [internal, errors, warnings, infos, verbose] = messages.map(u64::from);
                let counts = [internal | errors << 32, warnings | infos << 32, verbose];
                put(self, 11, Fields { rest: counts, ..Fields::default() });
                let rest = [bytes.unwrap_or(0), 0, 0];
                let flags = bytes.is_some().into();
                put(self, 9, Fields { a: (*engine).into(), rest, flags, ..Fields::default() });
            }
            Body::Message { severity, text, truncated } => {
                let fields = Fields { a: level(*severity), flags: (*truncated).into(), ..Fields::default() };
                self.text(record, 10, fields, text);
            }
        }
    }

    /// Writes the segments, and the next one where the last is half full, as it is made ahead of need.
    pub fn write(&self, folder: &Path, key: ProcessKey) {
        let count = (self.slots.len() + SLOTS / 2) / SLOTS + 1;
        for number in 0..count {
            let mut bytes = vec![0; PAGE];
            bytes[..8].copy_from_slice(b"SPPSSEG1");
            bytes[8..12].copy_from_slice(&1_u32.to_le_bytes());
            bytes[12..16].copy_from_slice(&(number as u32).to_le_bytes());
            bytes[16..20].copy_from_slice(&key.pid.to_le_bytes());
            bytes[24..32].copy_from_slice(&key.registered.0.to_le_bytes());
            bytes[32..40].copy_from_slice(&(SLOTS as u64).to_le_bytes());
            let end = self.slots.len().min((number + 1) * SLOTS);
            bytes.extend(self.slots[(number * SLOTS).min(end)..end].iter().flatten());
            let mut file = File::create(folder.join(segment(key, number))).expect("a segment");
            file.write_all(&bytes).and_then(|()| file.set_len(SEGMENT as u64)).expect("a segment");
        }
    }

    fn name(&mut self, record: &Record, name: &str) -> u32 {
        if let Some(&number) = self.names.get(name) {
            return number;
        }
        let number = self.names.len() as u32 + 1;
        self.names.insert(name.to_owned(), number);
        self.text(record, 1, Fields { name: number, ..Fields::default() }, name);
        number
    }

    fn text(&mut self, record: &Record, kind: u8, fields: Fields, text: &str) {
        let pieces = text.len().div_ceil(SLOT - 8);
        let rest = [text.len() as u64, 0, 0];
        self.slot(record, kind, 1 + pieces as u16, &Fields { rest, ..fields });
        for piece in text.as_bytes().chunks(SLOT - 8) {
            let mut bytes = [0; SLOT - 8];
            bytes[..piece.len()].copy_from_slice(piece);
            let words = std::array::from_fn(|i| word(&bytes, 8 * i));
            self.put(255, 0, 1, words);
        }
    }

    fn slot(&mut self, record: &Record, kind: u8, span: u16, fields: &Fields) {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let [c, d, e] = fields.rest;
        let words = [
            record.at.0,
            pair(record.build, record.tid),
            pair(fields.name, fields.parent),
            pair(fields.a.cast_unsigned(), fields.b),
            c,
            d,
            e,
        ];
        self.put(kind, fields.flags, span, words);
    }

    fn put(&mut self, kind: u8, flags: u8, span: u16, words: [u64; 7]) {
        let low = u32::from(kind) | u32::from(flags) << 8 | u32::from(span) << 16;
        let head = u64::from(low) | u64::from(check(low, &words)) << 32;
        let mut slot = [0; SLOT];
        for (place, word) in slot.chunks_exact_mut(8).zip(std::iter::once(head).chain(words)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        self.slots.push(slot);
    }
}

/// A segment's name.
pub fn segment(key: ProcessKey, number: usize) -> String {
    format!("p{}-{}-{number:04}.seg", key.pid, key.registered.0)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The check of a slot.
fn check(low: u32, words: &[u64; 7]) -> u32 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut even = u64::from(low);
    let mut odd = ODD;
    for i in [0, 2, 4] {
        even = (even ^ words[i]).wrapping_mul(ODD);
        odd = (odd ^ words[i + 1]).wrapping_mul(ODD);
        even ^= even >> 29;
        odd ^= odd >> 29;
    }
    even = (even ^ words[6]).wrapping_mul(ODD);
    ((even ^ (odd >> 17) ^ (odd << 47)).wrapping_mul(ODD) >> 32) as u32
}

fn library(facts: &LibraryFacts) -> String {
    let LibraryFacts { flavour, version, path, python, messages_unobserved, proven, simulated } = facts;
    let [python, simulated] = [python, simulated].map(|&yes| if yes { "1" } else { "0" });
    let facts = [
        ["flavour", flavour],
        ["version", version],
        ["path", path],
        ["python", python],
        ["messages", messages_unobserved],
        ["proven", proven],
        ["simulated", simulated],
    ];
    facts.as_flattened().join("\0") + "\0"
}

/// The facts that the stories here have.
fn words(facts: &BuildFacts) -> String {
    let numbers = facts.config.iter().map(|(name, value)| (name.as_str(), *value));
    let pairs = numbers.chain([("networkFlags", facts.network_flags), ("layers", facts.layers)]);
    pairs.fold(String::new(), |text, (key, value)| text + key + "\0" + &value.to_string() + "\0")
}

fn number(method: Method) -> i32 {
    match method {
        Method::SerializedNetwork => 1,
        Method::EngineWithConfig => 2,
        Method::ToStream => 3,
        Method::WithKernelText => 4,
    }
}

fn level(severity: Severity) -> i32 {
    match severity {
        Severity::InternalError => 0,
        Severity::Error => 1,
        Severity::Warning => 2,
        Severity::Info => 3,
        Severity::Verbose => 4,
    }
}
