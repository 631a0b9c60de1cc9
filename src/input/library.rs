//! The build-id of a library, which names one link of it.

use super::file::open;
use std::fmt::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The type of a segment that holds notes.
const NOTES: u32 = 4;
/// The type of the note that holds a build-id, in the name of GNU.
const BUILD_ID: u32 = 3;
/// More program headers, or longer notes, than any library has.
const MOST: usize = 1 << 16;

/// The build-id of a 64-bit little-endian ELF file, where it has one.
pub(super) fn build_id(path: &Path) -> Option<String> {
    let file = open(path).ok()?;
    let read = |at: u64, length: usize| {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
    };
    let header = read(0, 64)?;
    let little = header.starts_with(b"\x7fELF\x02\x01");
    let (table, size, count) = (u64_at(&header, 32)?, u16_at(&header, 54)?, u16_at(&header, 56)?);
    if !little || size < 56 {
        return None;
    }
    let table = read(table, usize::from(size) * usize::from(count))?;
    table.chunks_exact(usize::from(size)).filter(|entry| u32_at(entry, 0) == Some(NOTES)).find_map(|entry| {
        let length = usize::try_from(u64_at(entry, 32)?).ok().filter(|length| *length <= MOST)?;
        in_notes(&read(u64_at(entry, 8)?, length)?)
    })
}

fn in_notes(mut notes: &[u8]) -> Option<String> {
    loop {
        let (name, content) = (u32_at(notes, 0)? as usize, u32_at(notes, 4)? as usize);
        let kind = u32_at(notes, 8)?;
        // Both parts are padded to whole words.
        let start = 12 + name.next_multiple_of(4);
        let found = notes.get(start..start.checked_add(content)?)?;
        if kind == BUILD_ID && notes.get(12..12 + name)? == b"GNU\0" {
            return Some(hex(found));
        }
        notes = notes.get(start + content.next_multiple_of(4)..)?;
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to memory cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn library(notes: &[u8]) -> Vec<u8> {
        let mut elf = vec![0; 64 + 56];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[32] = 64;
        elf[54] = 56;
        elf[56] = 1;
        elf[64] = 4;
        elf[64 + 8] = 120;
        elf[64 + 32..64 + 40].copy_from_slice(&(notes.len() as u64).to_le_bytes());
        elf.extend_from_slice(notes);
        elf
    }

    fn id_of(elf: &[u8]) -> Option<String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), elf).unwrap();
        build_id(file.path())
    }

    #[test]
    fn the_note_is_found_behind_another() {
        let mut notes = b"\x04\0\0\0\x02\0\0\0\x01\0\0\0GNU\0\xaa\xaa\0\0".to_vec();
        notes.extend_from_slice(b"\x04\0\0\0\x03\0\0\0\x03\0\0\0GNU\0\x0a\xbc\xff\0");
        assert_eq!(id_of(&library(&notes)).as_deref(), Some("0abcff"));
        assert_eq!(id_of(b"no library"), None);
        assert_eq!(id_of(&library(&[])), None);
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(notes in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..120, byte: u8) {
            let mut elf = library(&notes);
            elf[at] = byte;
            id_of(&elf);
        }
    }
}
