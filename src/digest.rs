//! Digests.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The SHA-256 of some bytes, 64 hexadecimal digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
