//! Reading an archive that may be a stranger's.
//!
//! The crate's own reader of archives understands long names, pax headers and sparse files, and skips what stands between
//! entries. Here all of that must not be there, so the blocks are read one by one and each header is compared with the one
//! that we would write.

use super::{ADDENDA, BLOCK, FRAME, LONGEST_ENTRY, MOST_ENTRIES, WINDOW, header, most_held, odd_root};
use crate::seal::odd_path;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use tar::{EntryType, Header};
use tempfile::{SpooledData, SpooledTempFile};
use thiserror::Error;

/// What is held in memory before a file without a name takes it.
const IN_MEMORY: usize = 4 << 20;

/// Why an archive is not read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The system does not let us.
    #[error("{0}")]
    Unreadable(String),
    /// It is none that stuckproof writes.
    #[error("{what}")]
    Broken {
        /// The entry, with what a terminal would obey left out; `None` where it is the whole archive.
        entry: Option<String>,
        /// What is wrong.
        what: String,
    },
}

/// What an archive holds, checked for its form.
#[derive(Debug)]
pub struct Packed {
    /// The name of its one folder.
    pub name: String,
    /// Where each entry's bytes are.
    entries: BTreeMap<String, Span>,
    held: Held,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    at: u64,
    length: u64,
}

#[derive(Debug)]
enum Held {
    Memory(Vec<u8>),
    Disk(File),
}

/// The bytes of one entry.
#[derive(Debug)]
pub struct Piece {
    archive: Arc<Packed>,
    left: Span,
}

impl Packed {
    /// Reads the archive at a path that the user gave.
    pub fn read(path: &Path) -> Result<Self, Refusal> {
        let unreadable = |e: io::Error| Refusal::Unreadable(format!("the archive cannot be read: {e}"));
        // A pipe would be waited for.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = File::options().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
        let facts = file.metadata().map_err(unreadable)?;
        if !facts.is_file() {
            return Err(Refusal::Unreadable("the archive is no plain file".to_owned()));
        }
        let mut compressed = BufReader::with_capacity(128 << 10, file);
        let start = compressed.fill_buf().map_err(unreadable)?;
        if !start.starts_with(&FRAME) {
            return Err(broken("it does not begin like an archive that `stuckproof pack` writes"));
        }
        let mut frame = zstd::Decoder::with_buffer(compressed).map_err(unreadable)?.single_frame();
        frame.window_log_max(WINDOW).map_err(unreadable)?;
        let mut reading = Reading {
            frame,
            most: most_held(facts.len()),
            declared: 0,
            roots: None,
            entries: BTreeMap::new(),
            held: SpooledTempFile::new(IN_MEMORY),
        };
        while reading.entry()? {}
        reading.finish()
    }

    /// The files in the bundle, or in the folder of its addenda, in their order.
    #[must_use]
    pub fn files(&self, folder: &str) -> Vec<String> {
        let inside = |path: &String| Some(path.strip_prefix(folder)?.strip_prefix('/')?.to_owned());
        self.entries.keys().filter_map(inside).collect()
    }

    /// The name of the folder of addenda, where there is one.
    #[must_use]
    pub fn addenda(&self) -> Option<String> {
        let name = format!("{}{ADDENDA}", self.name);
        let within = format!("{name}/");
        self.entries.keys().any(|path| path.starts_with(&within)).then_some(name)
    }

    /// The bytes of a file, and how many there are.
    #[must_use]
    pub fn file(self: &Arc<Self>, folder: &str, file: &str) -> Option<(Piece, u64)> {
        let span = *self.entries.get(&format!("{folder}/{file}"))?;
        Some((Piece { archive: Arc::clone(self), left: span }, span.length))
    }
}

impl Read for Piece {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Span { at, length } = self.left;
        let wanted = into.len().min(usize::try_from(length).unwrap_or(usize::MAX));
        let into = &mut into[..wanted];
        let read = match &self.archive.held {
            Held::Disk(file) => file.read_at(into, at)?,
            Held::Memory(bytes) => bytes.get(at as usize..).unwrap_or_default().read(into)?,
        };
        self.left = Span { at: at + read as u64, length: length - read as u64 };
        Ok(read)
    }
}

fn broken(what: impl Into<String>) -> Refusal {
    Refusal::Broken { entry: None, what: what.into() }
}

/// What the decoder says: of the disk, or of the bytes on it.
fn stream(error: &io::Error) -> Refusal {
    match error.kind() {
        _ if error.raw_os_error().is_some() => {
            Refusal::Unreadable(format!("the archive cannot be read: {error}"))
        }
        io::ErrorKind::UnexpectedEof => broken("it is cut off"),
        _ => broken(format!("its compressed stream is broken: {error}")),
    }
}

/// An archive that is being read.
struct Reading<R: BufRead> {
    frame: zstd::Decoder<'static, R>,
    /// How much it may hold.
    most: u64,
    /// How much it has said to hold so far.
    declared: u64,
    /// Its folder, and that of the addenda.
    roots: Option<[String; 2]>,
    entries: BTreeMap<String, Span>,
    held: SpooledTempFile,
}

impl<R: BufRead> Reading<R> {
    fn block(&mut self) -> Result<[u8; BLOCK], Refusal> {
        let mut block = [0; BLOCK];
        self.frame.read_exact(&mut block).map_err(|e| stream(&e))?;
        Ok(block)
    }

    /// Takes the next entry; `false` where the end comes in its place.
    fn entry(&mut self) -> Result<bool, Refusal> {
        let block = self.block()?;
        if block == [0; BLOCK] {
            return Ok(false);
        }
        let (path, length) = self.accept(Header::from_byte_slice(&block))?;
        let at = self.declared;
        self.declared += length;
        self.content(length)?;
        self.entries.insert(path, Span { at, length });
        Ok(true)
    }

    /// The path and the size of an entry whose header is as we write it.
    fn accept(&mut self, found: &Header) -> Result<(String, u64), Refusal> {
        let shown = String::from_utf8_lossy(&found.path_bytes()).chars().take(200).collect::<String>();
        let shown = shown.replace(char::is_control, "\u{fffd}");
        let wrong = |what: &str| Refusal::Broken { entry: Some(shown.clone()), what: what.to_owned() };
        if self.entries.len() >= MOST_ENTRIES {
            return Err(broken(format!("it has more than {MOST_ENTRIES} entries")));
        }
        if let Some(what) = odd_kind(found.entry_type()) {
            return Err(wrong(what));
        }
        let path = String::from_utf8(found.path_bytes().into_owned());
        let path = path.map_err(|_| wrong("has a name that is not UTF-8"))?;
        self.check_path(&path).map_err(|what| wrong(&what))?;
        let length = found.entry_size().map_err(|_| wrong("has a size that is no number"))?;
        if length > LONGEST_ENTRY || self.declared.saturating_add(length) > self.most {
            return Err(wrong(&format!(
                "holds {length} bytes, and no more than {} are read from an archive of this length: it looks like a bomb",
                self.most
            )));
        }
        let ours = header(&path, length).map_err(|_| wrong("has a name that is too long"))?;
        if ours.as_bytes() != found.as_bytes() {
            return Err(wrong("has a header that is not in the form in which stuckproof writes it"));
        }
        Ok((path, length))
    }

    /// Whether a path is in the one folder, or in that of its addenda, and comes after the one before it.
    fn check_path(&mut self, path: &str) -> Result<(), String> {
        if path.starts_with('/') {
            return Err("has an absolute path".to_owned());
        }
        let (root, file) = path.split_once('/').unwrap_or((path, ""));
        for part in [root, file] {
            if let Some(why) = odd_path(part) {
                return Err(format!("has a path that {why}"));
            }
        }
        let roots = self.roots.get_or_insert_with(|| {
            let name = root.strip_suffix(ADDENDA).unwrap_or(root);
            [name.to_owned(), format!("{name}{ADDENDA}")]
        });
        if let Some(why) = odd_root(&roots[0]) {
            return Err(format!("is in a folder whose name {why}"));
        }
        if !roots.iter().any(|known| known == root) {
            return Err(format!("is not in {}, the archive's one folder", roots[0]));
        }
        match self.entries.last_key_value() {
            Some((last, _)) if last == path => Err("stands twice in the archive".to_owned()),
            Some((last, _)) if last.as_str() > path => Err("stands out of order".to_owned()),
            _ => Ok(()),
        }
    }

    /// Keeps the bytes of an entry, and reads over the zeros behind them.
    fn content(&mut self, length: u64) -> Result<(), Refusal> {
        let mut left = length;
        let mut chunk = [0; 16 << 10];
        while left > 0 {
            let wanted = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let piece = &mut chunk[..wanted];
            self.frame.read_exact(piece).map_err(|e| stream(&e))?;
            self.held.write_all(piece).map_err(|e| {
                Refusal::Unreadable(format!(
                    "there is no room for what the archive holds in the folder for temporary files: {e}"
                ))
            })?;
            left -= wanted as u64;
        }
        let padding = &mut chunk[..(BLOCK - (length % BLOCK as u64) as usize) % BLOCK];
        self.frame.read_exact(padding).map_err(|e| stream(&e))?;
        if padding.iter().any(|byte| *byte != 0) {
            return Err(broken("something stands between two of its entries"));
        }
        Ok(())
    }

    /// Takes the second block of zeros, and makes sure that nothing is behind it.
    fn finish(mut self) -> Result<Packed, Refusal> {
        if self.block()? != [0; BLOCK] {
            return Err(broken("its end is not in the form in which stuckproof writes it"));
        }
        if self.frame.read(&mut [0]).map_err(|e| stream(&e))? != 0 {
            return Err(broken("something stands behind its end"));
        }
        if !self.frame.finish().fill_buf().map_err(|e| stream(&e))?.is_empty() {
            return Err(broken("something stands behind its one compressed frame"));
        }
        let Some([name, _]) = self.roots else { return Err(broken("there is nothing in it")) };
        let held = match self.held.into_inner() {
            SpooledData::InMemory(bytes) => Held::Memory(bytes.into_inner()),
            SpooledData::OnDisk(file) => Held::Disk(file),
        };
        Ok(Packed { name, entries: self.entries, held })
    }
}

/// What an entry is, where that is no plain file.
fn odd_kind(kind: EntryType) -> Option<&'static str> {
    Some(match kind {
        EntryType::Regular => return None,
        EntryType::Link => "is a hard link",
        EntryType::Symlink => "is a symbolic link",
        EntryType::Char | EntryType::Block | EntryType::Fifo => "is a device or a pipe",
        EntryType::Directory => "is an entry for a folder, which packed bundles do not have",
        EntryType::GNUSparse => "is a sparse file",
        EntryType::GNULongName | EntryType::GNULongLink | EntryType::XHeader | EntryType::XGlobalHeader => {
            "changes the header of another entry (pax or GNU)"
        }
        _ => "is no plain file",
    })
}
