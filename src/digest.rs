//! SHA-256 and its text form.

use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// Bytes that are read at once: enough for the speed of the digest, little enough for the cache.
const CHUNK: usize = 256 << 10;

/// The two digits of every byte.
const PAIRS: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [DIGITS[byte >> 4], DIGITS[byte & 15]];
        byte += 1;
    }
    pairs
};

/// A SHA-256 digest as 64 lowercase hex digits, without an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hex([u8; 64]);

impl Hex {
    /// 64 zeros: what stands where there is nothing to digest.
    pub const ZERO: Self = Self([b'0'; 64]);

    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::from(Sha256::new_with_prefix(bytes))
    }

    /// The digest of everything that a source gives, and its length. The memory is that of one chunk.
    pub fn of_all(mut source: impl Read) -> io::Result<(Self, u64)> {
        let mut sum = Sum::default();
        let mut chunk = vec![0; CHUNK];
        loop {
            match source.read(&mut chunk) {
                Ok(0) => return Ok((sum.hex(), sum.bytes())),
                Ok(read) => sum.add(&chunk[..read]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// A digest that is written as digests are written here.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: [u8; 64] = text.as_bytes().try_into().ok()?;
        digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')).then_some(Self(digits))
    }

    /// The digits.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

/// A digest of bytes that come piece by piece.
#[derive(Debug, Clone, Default)]
pub struct Sum {
    state: Sha256,
    bytes: u64,
}

impl Sum {
    /// Takes the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.state.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// The digest of what has come so far.
    #[must_use]
    pub fn hex(&self) -> Hex {
        Hex::from(self.state.clone())
    }

    /// How much has come so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl From<Sha256> for Hex {
    /// The digest of everything that was put in.
    fn from(digest: Sha256) -> Self {
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(digest.finalize()) {
            pair.copy_from_slice(&PAIRS[usize::from(byte)]);
        }
        Self(text)
    }
}

impl std::fmt::Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|&digit| std::fmt::Write::write_char(f, char::from(digit)))
    }
}

/// The SHA-256 of some bytes, 64 hexadecimal digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    Hex::of(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_the_standard_ones() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_hex(b"abc"), abc);
        assert_eq!(Hex::of(b"abc").as_bytes().as_slice(), abc.as_bytes());
        assert_eq!(Hex::ZERO.to_string(), "0".repeat(64));
        assert_eq!(Hex::parse(abc), Some(Hex::of(b"abc")));
        assert_eq!(Hex::parse(&abc.to_uppercase()), None);
        assert_eq!(Hex::of_all(&b"abc"[..]).unwrap(), (Hex::of(b"abc"), 3));
    }
}
