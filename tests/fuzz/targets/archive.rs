//! A packed bundle that a stranger has changed: its compressed bytes, or the archive in them.

use super::bundle::sealed;
use super::chance::Chance;
use super::changes::{self, Bytes};
use std::fs;
use std::io::{self, Write};
use std::sync::LazyLock;
use stuckproof::archive;
use stuckproof::verify::{Answer, Wanted, verify_packed};

/// What was packed.
struct Original {
    packed: Vec<u8>,
    /// The archive without its compression.
    plain: Vec<u8>,
    wanted: Wanted,
}

static ORIGINAL: LazyLock<Original> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (bundle, wanted) = sealed(folder.path());
    let packed = archive::write(&bundle, super::seeds::JOB, Vec::new()).expect("an archive");
    let plain = zstd::decode_all(&*packed).expect("it is compressed");
    Original { packed, plain, wanted }
});

/// Compresses as `pack` does, so that what is in it is reached.
fn compressed(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut frame = zstd::Encoder::new(Vec::new(), 1)?;
    frame.include_checksum(true)?;
    frame.include_contentsize(false)?;
    frame.window_log(21)?;
    frame.write_all(plain)?;
    frame.finish()
}

/// The first byte says what the changes are made to.
pub fn run(bytes: &[u8]) {
    let original = &*ORIGINAL;
    let mut bytes = Bytes(bytes);
    let inside = bytes.byte() % 4 != 0;
    let mut changed = if inside { original.plain.clone() } else { original.packed.clone() };
    while !bytes.is_over() {
        bytes.change().make(&mut changed);
    }
    let packed = if inside { compressed(&changed).expect("memory can be written") } else { changed };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("it.tar.zst");
    fs::write(&path, &packed).expect("the folder can be written");
    let report = verify_packed(&path, &original.wanted);
    let good = matches!(report.answer(), Answer::Valid | Answer::NotSucceeded);
    let same = zstd::decode_all(&*packed).is_ok_and(|plain| plain == original.plain);
    assert!(same || !good, "{:?}", report.manifest);
    assert!(good || packed != original.packed, "{:?}", report.faults);
}

/// A seed: what is changed, and a few changes.
pub fn seed(chance: &mut Chance) -> Vec<u8> {
    let mut seed = vec![chance.place(4) as u8];
    changes::seed(&mut seed, 3, b"\0/.0123\x28\xB5\x2F\xFDustar", chance);
    seed
}
