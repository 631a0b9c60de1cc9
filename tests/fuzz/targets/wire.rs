//! Segments as a builder's process may leave them, and the log that is made of them.

use super::chance::Chance;
use super::seeds::{COMMAND, START};
use super::segments::{Chain, segment};
use std::fs;
use std::path::Path;
use stuckproof::clock::{Anchor, Mono};
use stuckproof::event::{Encoder, Event, LogReader, Tree};
use stuckproof::observe::Tracker;
use stuckproof::wire::{Control, ProcessKey, Reader, Record, damage};

/// The first byte says how many slots are holes, the next ones what the rest is: records, then the bytes of a second
/// process's segment and of the control page, as they are.
pub fn run(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (own, rest) = bytes.split_at(bytes.len() / 2);
    written(own).write(folder.path(), key(COMMAND));
    let (other, page) = rest.split_at(rest.len() / 2);
    // A header that fits, so that the bytes are looked at.
    let mut raw = Chain::default();
    raw.hole();
    raw.write(folder.path(), key(COMMAND + 1));
    overwrite(&folder.path().join(segment(key(COMMAND + 1), 0)), 4096, other);
    fs::write(folder.path().join("control"), page).expect("the folder can be written");
    read(folder.path());
}

fn key(pid: u32) -> ProcessKey {
    ProcessKey { pid, registered: Mono(START) }
}

fn overwrite(path: &Path, at: usize, bytes: &[u8]) {
    let mut whole = fs::read(path).expect("a segment");
    let end = whole.len().min(at + bytes.len());
    whole[at..end].copy_from_slice(&bytes[..end - at]);
    fs::write(path, whole).expect("the folder can be written");
}

/// Whole records, chosen by the bytes.
fn written(bytes: &[u8]) -> Chain {
    let mut chain = Chain::default();
    let mut at = START;
    for choice in bytes.chunks(2) {
        let (what, which) = (choice[0], choice.get(1).copied().unwrap_or_default());
        at += u64::from(which) * 1_000_000;
        match what {
            250..=252 => chain.hole(),
            253..=255 => chain.noise(),
            _ => {
                let build = u32::from(which >> 6);
                let body = super::seeds::body(what, which);
                chain.tell(&Record { process: key(COMMAND), at: Mono(at), build, tid: COMMAND, body });
            }
        }
    }
    chain
}

/// Reads the wire twice, in pieces and at once, and makes a log of it.
fn read(folder: &Path) {
    let mut records = Vec::new();
    let mut reader = Reader::new(folder);
    reader.poll(&mut records).expect("plain files");
    reader.finish(&mut records).expect("plain files");
    let mut at_once = Vec::new();
    Reader::new(folder).finish(&mut at_once).expect("plain files");
    assert!(at_once.len() >= records.len().min(1), "what was read once can be read again");
    if let Ok(control) = Control::open(folder) {
        let anchor = control.anchor().unwrap_or(Anchor { mono: Mono(START), wall_ns: 0 });
        let _ = (control.requested().is_ok(), control.losses().is_ok(), damage(folder, anchor).is_ok());
    }
    let (mut tracker, mut events) = (Tracker::new(), vec![super::seeds::begin()]);
    let mut made = Vec::new();
    for record in &records {
        tracker.ingest(record, &mut made);
        events.append(&mut made);
    }
    let _ = tracker.open_branch(Mono(u64::MAX));
    tracker.close(Mono(u64::MAX), "the end", &mut events);
    balanced(&events);
}

/// Every phase ends once, and the log that the events make has no fault.
fn balanced(events: &[Event]) {
    let tree = Tree::of(events);
    for build in tree.builds() {
        assert!(build.phases.iter().all(|phase| phase.end != stuckproof::event::PhaseEnd::Open));
    }
    let mut encoder = Encoder::new(Anchor { mono: Mono(START), wall_ns: 0 });
    let mut log = Vec::new();
    for event in events {
        encoder.encode(event, &mut log);
    }
    let mut reader = LogReader::new(&log[..]);
    for event in events {
        assert_eq!(&reader.read().expect("no fault").expect("a line").event, event);
    }
}

/// A seed with a bit of everything.
pub fn seed(chance: &mut Chance) -> Vec<u8> {
    (0..chance.place(400)).map(|_| chance.place(256) as u8).collect()
}
