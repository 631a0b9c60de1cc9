//! Writing an archive.

use super::{ADDENDA, LONGEST_ENTRY, WINDOW, header, odd_root};
use crate::seal::{Folder, addendum};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// How hard to compress: zstd's own middle.
const LEVEL: i32 = 3;

/// Why a bundle cannot be put into an archive.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// The job's name is none for a folder.
    #[error("the job's name {why}, so that nobody could unpack a folder of that name")]
    Name {
        /// What is wrong with it.
        why: &'static str,
    },
    /// Something has no place in an archive.
    #[error("{path} {why}, so it has no place in an archive", path = .path.display())]
    Odd {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The system refused.
    #[error("{path} cannot be packed: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
}

/// Writes a bundle and its addenda as an archive whose one folder is called `name`.
pub fn write<W: Write>(bundle: &Path, name: &str, out: W) -> Result<W, ArchiveError> {
    if let Some(why) = odd_root(name) {
        return Err(ArchiveError::Name { why });
    }
    let beside = addendum::folder(bundle);
    let mut entries = BTreeMap::new();
    let own = Part::open(bundle, name.to_owned(), &mut entries)?;
    let added = match beside.symlink_metadata() {
        Ok(_) => Some(Part::open(&beside, format!("{name}{ADDENDA}"), &mut entries)?),
        Err(_) => None,
    };
    let is_added = |root: &String| *root != own.root;
    let files = entries.values().filter(|(root, _)| is_added(root)).map(|(_, file)| file.clone());
    let unfinished = addendum::unfinished(&files.collect::<Vec<_>>());
    entries.retain(|_, (root, file)| !(is_added(root) && unfinished.contains(file)));
    let failed = |source| ArchiveError::Io { path: bundle.to_owned(), source };
    let mut frame = zstd::Encoder::new(out, LEVEL).map_err(failed)?;
    // The frame's beginning is the same whatever the library would choose.
    frame.include_checksum(true).map_err(failed)?;
    frame.include_contentsize(false).map_err(failed)?;
    frame.window_log(WINDOW).map_err(failed)?;
    let mut tar = tar::Builder::new(frame);
    for (path, (root, file)) in &entries {
        let part = if *root == own.root { &own } else { added.as_ref().unwrap_or(&own) };
        part.append(path, file, &mut tar)?;
    }
    tar.into_inner().and_then(zstd::Encoder::finish).map_err(failed)
}

/// Where entries come from.
struct Part<'a> {
    place: &'a Path,
    folder: Folder,
    root: String,
}

impl<'a> Part<'a> {
    /// Opens the folder and puts its files among the entries, by their paths in the archive.
    fn open(
        place: &'a Path,
        root: String,
        entries: &mut BTreeMap<String, (String, String)>,
    ) -> Result<Self, ArchiveError> {
        let listed = Folder::open(place).and_then(|folder| Ok((folder.list()?, folder)));
        let (listing, folder) =
            listed.map_err(|source| ArchiveError::Io { path: place.to_owned(), source })?;
        if let Some(odd) = listing.odd.first() {
            return Err(ArchiveError::Odd { path: place.join(&odd.name), why: odd.what.in_words() });
        }
        entries
            .extend(listing.files.into_iter().map(|file| (format!("{root}/{file}"), (root.clone(), file))));
        Ok(Self { place, folder, root })
    }

    fn append(&self, path: &str, file: &str, tar: &mut tar::Builder<impl Write>) -> Result<(), ArchiveError> {
        let place = self.place.join(file);
        let odd = |why: &str| ArchiveError::Odd { path: place.clone(), why: why.to_owned() };
        let failed = |source| ArchiveError::Io { path: place.clone(), source };
        let open = self.folder.file(file).map_err(failed)?;
        let size = open.metadata().map_err(failed)?.len();
        if size > LONGEST_ENTRY {
            return Err(odd("is longer than 8 GiB"));
        }
        let header = header(path, size).map_err(|_| odd("has a path that is too long for a tar header"))?;
        let mut content = open.take(size);
        tar.append(&header, &mut content).map_err(failed)?;
        if content.limit() == 0 { Ok(()) } else { Err(odd("became shorter while it was packed")) }
    }
}
