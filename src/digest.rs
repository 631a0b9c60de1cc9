//! SHA-256 and its text form.

use sha2::{Digest, Sha256};
use std::io::{self, Read};

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

    /// The digest of everything that can be read.
    ///
    /// # Errors
    /// When reading fails.
    pub fn of_reader(mut reader: impl Read) -> io::Result<Self> {
        let mut hash = Sha256::new();
        let mut chunk = vec![0; 1 << 20];
        loop {
            match reader.read(&mut chunk) {
                Ok(0) => return Ok(Self::from(hash)),
                Ok(n) => hash.update(&chunk[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// The digits.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 64] {
        &self.0
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
    }
}
