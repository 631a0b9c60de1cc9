//! The reader against segments written here, byte by byte.

use super::layout::{
    PAGE, SEGMENT_BYTES, SEGMENT_MAGIC, SLOT, SLOTS_PER_SEGMENT, TEXT_PER_SLOT, VERSION, check, kind,
};
use super::{Body, Control, ProcessKey, Reader, Record, Requested, Severity, Unread, WireError};
use crate::clock::{Anchor, Mono};
use crate::event::CancelSource;
use proptest::prelude::*;
use std::path::Path;

const KEY: ProcessKey = ProcessKey { pid: 41, registered: Mono(7) };

/// A chain of slots, before it is cut into segments.
#[derive(Debug, Default, Clone)]
struct Chain(Vec<[u8; SLOT]>);

impl Chain {
    fn slot(&mut self, kind: u8, flags: u8, span: u16, words: [u64; 7]) {
        let low = u32::from(kind) | u32::from(flags) << 8 | u32::from(span) << 16;
        let head = u64::from(low) | u64::from(check(low, &words)) << 32;
        let mut slot = [0; SLOT];
        for (place, word) in slot.chunks_exact_mut(8).zip(std::iter::once(head).chain(words)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        self.0.push(slot);
    }

    fn step(&mut self, at: u64, name: u32, step: u32) {
        self.slot(kind::STEP, 0, 1, [at, 1, u64::from(name), u64::from(step), 0, 0, 0]);
    }

    fn text(&mut self, kind: u8, name: u32, a: u32, text: &[u8]) {
        let pieces = text.len().div_ceil(TEXT_PER_SLOT);
        let words = [1, 1, u64::from(name), u64::from(a), text.len() as u64, 0, 0];
        self.slot(kind, 0, 1 + pieces as u16, words);
        for piece in text.chunks(TEXT_PER_SLOT) {
            let mut bytes = [0; TEXT_PER_SLOT];
            bytes[..piece.len()].copy_from_slice(piece);
            let words = std::array::from_fn(|i| super::layout::word(&bytes, 8 * i));
            self.slot(kind::CONTINUATION, 0, 1, words);
        }
    }

    fn hole(&mut self) {
        self.0.push([0; SLOT]);
    }

    fn write(&self, dir: &Path) {
        self.write_as(dir, KEY);
    }

    fn write_as(&self, dir: &Path, key: ProcessKey) {
        for (number, slots) in self.0.chunks(SLOTS_PER_SEGMENT as usize).enumerate() {
            let mut bytes = vec![0; SEGMENT_BYTES as usize];
            bytes[..8].copy_from_slice(&SEGMENT_MAGIC.to_le_bytes());
            bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
            for (place, slot) in bytes[PAGE as usize..].chunks_exact_mut(SLOT).zip(slots) {
                place.copy_from_slice(slot);
            }
            std::fs::write(dir.join(file_name(key, number)), bytes).unwrap();
        }
    }
}

fn file_name(key: ProcessKey, number: usize) -> String {
    format!("p{}-{}-{number:04}.seg", key.pid, key.registered.0)
}

fn finish(dir: &Path) -> (Vec<Record>, Unread) {
    let mut out = Vec::new();
    let torn = Reader::new(dir).finish(&mut out).unwrap();
    (out, torn)
}

fn steps(records: &[Record]) -> Vec<i32> {
    records
        .iter()
        .filter_map(|r| if let Body::Step { step, .. } = r.body { Some(step) } else { None })
        .collect()
}

#[test]
fn names_and_texts_arrive_whole_over_the_ends_of_batches_and_segments() {
    let dir = tempfile::tempdir().unwrap();
    let mut chain = Chain::default();
    chain.text(kind::NAME, 1, 0, "Timing tactics \u{2028}".as_bytes());
    let long = "é".repeat(8_000);
    let mut messages = 0;
    while chain.0.len() < 2 * SLOTS_PER_SEGMENT as usize + 100 {
        chain.text(kind::MESSAGE, 0, 1, long.as_bytes());
        chain.step(5, 1, messages);
        messages += 1;
    }
    chain.write(dir.path());
    let (records, torn) = finish(dir.path());
    assert_eq!((records.len(), torn), (2 * messages as usize, Unread::default()));
    for pair in records.chunks(2) {
        assert_eq!(
            pair[0].body,
            Body::Message { severity: Severity::Error, text: long.clone(), truncated: false }
        );
        assert!(matches!(&pair[1].body, Body::Step { name, .. } if &**name == "Timing tactics \u{2028}"));
    }
}

#[test]
fn a_reader_waits_at_a_hole_until_the_writers_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let mut chain = Chain::default();
    chain.step(1, 9, 0);
    chain.hole();
    chain.hole();
    chain.step(2, 9, 1);
    chain.write(dir.path());
    let mut reader = Reader::new(dir.path());
    let mut records = Vec::new();
    reader.poll(&mut records).unwrap();
    reader.poll(&mut records).unwrap();
    assert_eq!(steps(&records), [0]);
    let unfinished = Unread { unfinished: 1, damaged: 0 };
    assert_eq!(reader.finish(&mut records).unwrap(), unfinished, "a run of holes is one record");
    assert_eq!(steps(&records), [0, 1]);
    assert_eq!(reader.finish(&mut records).unwrap(), Unread::default(), "finishing twice finds nothing more");
    assert_eq!(records.len(), 2);
}

#[test]
fn a_missing_segment_is_stepped_over_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut chain = Chain::default();
    for step in 0..3 * SLOTS_PER_SEGMENT as u32 {
        chain.step(u64::from(step), 1, step);
    }
    chain.write(dir.path());
    std::fs::remove_file(dir.path().join(file_name(KEY, 1))).unwrap();
    let (records, _) = finish(dir.path());
    assert_eq!(records.len(), 2 * SLOTS_PER_SEGMENT as usize);
}

#[test]
fn processes_are_merged_by_time_and_keep_their_own_order() {
    let dir = tempfile::tempdir().unwrap();
    let (mut one, mut two) = (Chain::default(), Chain::default());
    for (at, step) in [(10, 0), (30, 1), (25, 2), (50, 3)] {
        one.step(at, 1, step);
    }
    for (at, step) in [(20, 100), (28, 101), (40, 102)] {
        two.step(at, 1, step);
    }
    one.write(dir.path());
    two.write_as(dir.path(), ProcessKey { pid: 42, registered: Mono(8) });
    assert_eq!(steps(&finish(dir.path()).0), [0, 100, 101, 1, 2, 102, 3]);
}

#[test]
fn foreign_files_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["control", "p1-2-x.seg", "px-2-0000.seg", "p1-2-0000.seg.bak", "notes.txt"] {
        std::fs::write(dir.path().join(name), "not a segment").unwrap();
    }
    std::fs::write(dir.path().join("p5-6-0000.seg"), "too short to be one").unwrap();
    assert_eq!(finish(dir.path()), (Vec::new(), Unread::default()));
}

#[test]
fn a_request_reads_back_from_the_page_that_another_process_opens() {
    let dir = tempfile::tempdir().unwrap();
    let anchor = Anchor { mono: Mono(5), wall_ns: 6 };
    let page = Control::create(dir.path(), anchor).unwrap();
    let read = || Control::open(dir.path()).unwrap();
    assert_eq!(read().requested().unwrap(), None);
    assert_eq!((read().anchor().unwrap(), read().processes().unwrap()), (anchor, 0));
    for (request, source, via, kept) in [
        (1, CancelSource::CtrlC, "SIGINT", "SIGINT"),
        (2, CancelSource::Ci, "deadline", "deadline"),
        (3, CancelSource::Ide, "control socket", "control "),
        (4, CancelSource::Service, "SIGTERM", "SIGTERM"),
        (255, CancelSource::Api, "cancel file", "cancel f"),
    ] {
        let sender = (request % 2 == 0).then_some(request);
        let at = Mono(u64::from(request) << 40);
        let asked = Requested { request, at, source, via: via.to_owned(), pid: sender, uid: sender };
        page.request(&asked).unwrap();
        assert_eq!(read().requested().unwrap(), Some(Requested { via: kept.to_owned(), ..asked }));
    }
}

#[test]
fn a_page_that_no_runner_wrote_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("control");
    assert!(matches!(Control::open(dir.path()), Err(WireError::Read { .. })));
    std::fs::write(&path, [7; PAGE as usize]).unwrap();
    assert!(matches!(Control::open(dir.path()), Err(WireError::Foreign { .. })));
    std::fs::remove_file(&path).unwrap();
    Control::create(dir.path(), Anchor { mono: Mono(5), wall_ns: 6 }).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[17] = 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(matches!(Control::open(dir.path()).unwrap().requested(), Err(WireError::Foreign { .. })));
}

fn some_chain() -> impl Strategy<Value = Chain> {
    let slot = prop_oneof![
        4 => (1u32..5, 0u32..100).prop_map(|(name, step)| (0, name, step, Vec::new())),
        1 => (1u32..5, prop::collection::vec(any::<u8>(), 0..200)).prop_map(|(name, text)| (1, name, 0, text)),
        1 => (0u32..5, prop::collection::vec(any::<u8>(), 0..300)).prop_map(|(a, text)| (2, 0, a, text)),
    ];
    prop::collection::vec(slot, 0..60).prop_map(|slots| {
        let mut chain = Chain::default();
        for (what, name, number, text) in slots {
            match what {
                0 => chain.step(1, name, number),
                1 => chain.text(kind::NAME, name, 0, &text),
                _ => chain.text(kind::MESSAGE, 0, number, &text),
            }
        }
        chain
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever moment the writer died at, what is read is a prefix of what would have been read.
    #[test]
    fn any_prefix_of_the_slots_reads_to_a_prefix_of_the_records(chain in some_chain(), cut in any::<prop::sample::Index>()) {
        let dir = tempfile::tempdir().unwrap();
        chain.write(dir.path());
        let (whole, torn) = finish(dir.path());
        prop_assert_eq!(torn, Unread::default());
        let mut shorter = chain.clone();
        shorter.0.truncate(cut.index(chain.0.len() + 1));
        std::fs::remove_dir_all(dir.path()).unwrap();
        std::fs::create_dir(dir.path()).unwrap();
        shorter.write(dir.path());
        let (part, _) = finish(dir.path());
        prop_assert!(whole.starts_with(&part));
    }

    /// A flipped byte costs the record it stands in, and nothing else but the name it may have told.
    #[test]
    fn a_flipped_byte_is_noticed(chain in some_chain(), at in any::<prop::sample::Index>(), flip in 1u8..) {
        prop_assume!(!chain.0.is_empty());
        let dir = tempfile::tempdir().unwrap();
        chain.write(dir.path());
        let (whole, _) = finish(dir.path());
        let mut bent = chain.clone();
        let place = at.index(bent.0.len() * SLOT);
        bent.0[place / SLOT][place % SLOT] ^= flip;
        bent.write(dir.path());
        let (part, torn) = finish(dir.path());
        prop_assert!(torn != Unread::default());
        prop_assert!(part.len() < whole.len() || whole.iter().zip(&part).all(|(a, b)| a.at == b.at));
    }

    /// No bytes can make the reader panic, loop or invent a record out of noise.
    #[test]
    fn noise_is_survived(noise in prop::collection::vec(any::<u8>(), 0..20_000), header in any::<bool>()) {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes = vec![0; PAGE as usize];
        if header {
            bytes[..8].copy_from_slice(&SEGMENT_MAGIC.to_le_bytes());
            bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        }
        bytes.extend(noise);
        std::fs::write(dir.path().join(file_name(KEY, 0)), bytes).unwrap();
        prop_assert_eq!(finish(dir.path()).0, Vec::new());
    }
}
