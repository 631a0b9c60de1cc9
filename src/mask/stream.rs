//! Masks what goes through it, however long it is.

use super::{MASK, Secrets};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Bytes that are read at once.
const CHUNK: usize = 256 * 1024;

/// Copies the part `wanted` of a file with the secrets masked, and says whether there were any. What stands around that
/// part, within `known`, is looked at as well: a secret may lie across its border.
pub fn copy(
    secrets: &Secrets,
    file: &File,
    known: Range<u64>,
    wanted: Range<u64>,
    out: &mut impl Write,
) -> io::Result<bool> {
    let margin = secrets.longest() as u64;
    let start = wanted.start.saturating_sub(margin).max(known.start);
    let end = wanted.end.saturating_add(margin).min(known.end);
    let pending = Vec::new();
    let mut filter =
        Filter { secrets, wanted, at: start, pending, done: start, run: None, shown: false, hits: 0 };
    let mut chunk = vec![0; CHUNK];
    let mut read = start;
    while read < end {
        let length = usize::try_from(end - read).unwrap_or(usize::MAX).min(CHUNK);
        file.read_exact_at(&mut chunk[..length], read)?;
        read += length as u64;
        filter.pending.extend_from_slice(&chunk[..length]);
        filter.settle(read == end, out)?;
    }
    Ok(filter.hits > 0)
}

/// The bytes that were read and not yet judged.
struct Filter<'a> {
    secrets: &'a Secrets,
    wanted: Range<u64>,
    /// The place of the first pending byte.
    at: u64,
    pending: Vec<u8>,
    /// Up to here everything was written or masked.
    done: u64,
    /// Where the last secret ends, or several that overlap.
    run: Option<u64>,
    /// Whether a mask was written for it.
    shown: bool,
    hits: u64,
}

impl Filter<'_> {
    /// Writes everything before which no secret can begin any more that is not whole.
    fn settle(&mut self, end: bool, out: &mut impl Write) -> io::Result<()> {
        let held = if end { 0 } else { self.secrets.longest().saturating_sub(1) };
        let settled = self.at + self.pending.len().saturating_sub(held) as u64;
        let found = self.secrets.find(&self.pending);
        let at = self.at;
        for (from, to) in found.iter().map(|(from, to)| (at + *from as u64, at + *to as u64)) {
            if from >= settled {
                break;
            }
            if self.run.is_none_or(|end| from > end) {
                self.pass(self.done..from, out)?;
                self.shown = false;
            }
            self.run = self.run.max(Some(to));
            self.done = self.done.max(to);
            self.hide(from..to, out)?;
        }
        self.pass(self.done..settled, out)?;
        self.done = self.done.max(settled);
        self.pending.drain(..usize::try_from(settled - self.at).expect("it was in memory"));
        self.at = settled;
        Ok(())
    }

    fn pass(&self, range: Range<u64>, out: &mut impl Write) -> io::Result<()> {
        let range = range.start.max(self.wanted.start)..range.end.min(self.wanted.end);
        if range.is_empty() {
            return Ok(());
        }
        let place = |at: u64| usize::try_from(at - self.at).expect("it is in memory");
        out.write_all(&self.pending[place(range.start)..place(range.end)])
    }

    /// Writes one mask for what is wanted of a secret.
    fn hide(&mut self, range: Range<u64>, out: &mut impl Write) -> io::Result<()> {
        let inside = range.start < self.wanted.end && range.end > self.wanted.start;
        if inside && !std::mem::replace(&mut self.shown, true) {
            self.hits += 1;
            out.write_all(MASK.as_bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::OsString;

    fn copied(secrets: &Secrets, text: &[u8], wanted: Range<u64>) -> Vec<u8> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let mut out = Vec::new();
        copy(secrets, &file, 0..text.len() as u64, wanted, &mut out).unwrap();
        out
    }

    #[test]
    fn a_secret_over_the_border_of_chunks_is_found() {
        let secrets = Secrets::new([OsString::from("planted-secret")]);
        for before in CHUNK - 20..CHUNK + 2 {
            let mut text = vec![b'.'; before];
            text.extend_from_slice(b"planted-secret after");
            let out = copied(&secrets, &text, 0..text.len() as u64);
            assert!(out.ends_with(b".(masked) after") && out.len() == before + 14, "{before}");
        }
    }

    #[test]
    fn a_part_of_a_secret_at_the_border_of_what_is_wanted_is_masked() {
        let secrets = Secrets::new([OsString::from("planted-secret")]);
        let text = b"head planted-secret middle planted-secret tail";
        assert_eq!(copied(&secrets, text, 0..9), b"head (masked)");
        assert_eq!(copied(&secrets, text, 18..25), b"(masked) middl");
        assert_eq!(copied(&secrets, text, 19..27), b" middle ");
    }

    proptest! {
        /// In small steps it does what masking does to the whole text at once.
        #[test]
        fn steps_make_no_difference(
            text in "[ab]{0,200}",
            values in proptest::collection::vec("[ab]{8,12}", 1..6),
            step in 1_usize..40,
        ) {
            let secrets = Secrets::new(values.iter().map(OsString::from));
            let mut whole = text.clone();
            secrets.hide(&mut whole);
            let wanted = 0..text.len() as u64;
            let pending = Vec::new();
            let mut filter =
                Filter { secrets: &secrets, wanted, at: 0, pending, done: 0, run: None, shown: false, hits: 0 };
            let mut out = Vec::new();
            for part in text.as_bytes().chunks(step) {
                filter.pending.extend_from_slice(part);
                filter.settle(false, &mut out).unwrap();
            }
            filter.settle(true, &mut out).unwrap();
            prop_assert_eq!(String::from_utf8(out).unwrap(), whole);
        }
    }
}
