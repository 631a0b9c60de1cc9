//! Changes to a file, as the bytes of a fuzzer say them.

use super::chance::Chance;

/// The bytes that are left.
pub struct Bytes<'a>(pub &'a [u8]);

/// One change: `what % 10` below 6 is one to the bytes of a file, the rest is for whoever reads it.
pub struct Change {
    pub what: u8,
    at: usize,
    length: usize,
    pub payload: Vec<u8>,
}

impl Bytes<'_> {
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let first = self.0.first().copied().unwrap_or_default();
        self.0 = &self.0[usize::from(!self.0.is_empty())..];
        first
    }

    pub fn change(&mut self) -> Change {
        let (what, at) = (self.byte(), usize::from(self.byte()) << 8 | usize::from(self.byte()));
        let length = usize::from(self.byte());
        let (payload, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        Change { what, at, length, payload: payload.to_vec() }
    }
}

impl Change {
    /// Makes it.
    pub fn make(&self, file: &mut Vec<u8>) {
        let at = self.at % (file.len() + 1);
        let end = (at + self.length).min(file.len());
        let payload = self.payload.iter().copied();
        match self.what % 10 {
            0 => file.truncate(at),
            1 => drop(file.drain(at..end)),
            2 => drop(file.splice(at..at, payload)),
            3 => drop(file.splice(at..end, payload)),
            4 => file.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << (self.length % 8)),
            _ => file.clone_from(&self.payload),
        }
    }
}

/// Appends a few changes, and none at all now and then: each with so many bytes before its length, and with a payload of
/// these letters.
pub fn seed(seed: &mut Vec<u8>, before: usize, letters: &[u8], chance: &mut Chance) {
    for _ in 0..chance.place(3) {
        let length = chance.place(12);
        seed.extend((0..before).map(|_| chance.place(256) as u8));
        seed.push(length as u8);
        seed.extend((0..length).map(|_| chance.one_of(letters)));
    }
}
