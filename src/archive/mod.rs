//! A sealed bundle as one file: `JOB.tar.zst`, with the folder of its addenda.
//!
//! There is one form. Every header follows from an entry's path and size, the entries are in the order of their bytes, and
//! the compressed stream is one frame; so the same bundle gives the same bytes, and whatever another tool would hide in an
//! archive (links, devices, sparse files, long names, bytes behind the end) is no archive of ours. The reader writes nothing
//! under a name that an archive gives: what it holds goes to memory, or to a file without a name.

mod read;
mod write;

pub use read::{Packed, Piece, Refusal};
pub use write::{ArchiveError, write};

use crate::seal::{MOST_FILES, addendum, odd_path};
use std::io;
use std::path::Path;
use tar::{EntryType, Header};

/// What names of packed bundles end in.
pub const SUFFIX: &str = ".tar.zst";

/// How the one frame begins: zstd's number; what it says of itself, a checksum and neither a dictionary nor a length; and its
/// window. Frames to be skipped, in which anything could hide, begin otherwise.
const FRAME: [u8; 6] = [0x28, 0xB5, 0x2F, 0xFD, 0x04, ((WINDOW - 10) << 3) as u8];
/// The window, as a power of two: 2 MiB, which is what a reader keeps in memory.
const WINDOW: u32 = 21;
/// Bytes of a block: a header, or a piece of what follows it.
const BLOCK: usize = 512;
/// What the folder of addenda has behind the bundle's name.
const ADDENDA: &str = ".addenda";
/// More entries than any bundle has with its addenda.
const MOST_ENTRIES: usize = MOST_FILES + 2 * addendum::MOST;
/// The longest entry whose size a header of ours can say.
const LONGEST_ENTRY: u64 = 0o777_7777_7777;
/// How much an archive of any length may hold: more than a bundle with all the output that is kept unless asked otherwise.
const ALWAYS: u64 = 256 << 20;
/// How much more it may hold for each byte that it has.
const RATIO: u64 = 250;
/// More than any archive may hold.
const MOST_BYTES: u64 = 16 << 30;

/// Whether a path names a packed bundle.
#[must_use]
pub fn is_packed(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(SUFFIX.as_bytes()))
        && !path.is_dir()
}

/// How much an archive of this length may hold. Beyond it, it is taken for a bomb.
fn most_held(length: u64) -> u64 {
    ALWAYS.saturating_add(length.saturating_mul(RATIO)).min(MOST_BYTES)
}

/// The one form of an entry's header.
fn header(path: &str, size: u64) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(path)?;
    header.set_entry_type(EntryType::Regular);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    Ok(header)
}

/// Why a name cannot be that of the one folder in an archive.
fn odd_root(name: &str) -> Option<&'static str> {
    match odd_path(name) {
        None if name.contains('/') => Some("is no single name"),
        None if name.ends_with(ADDENDA) => Some("ends like a folder of addenda"),
        odd => odd,
    }
}
