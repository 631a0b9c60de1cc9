//! Where a bundle's bytes come from: a folder, or an archive.

use super::fault::{Faults, Rule};
use crate::archive::{self, Packed, Refusal};
use crate::seal::{Folder, Listing, addendum};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A bundle, or the folder of its addenda.
pub(super) enum Source {
    Folder { place: PathBuf, folder: Folder },
    Packed { archive: Arc<Packed>, folder: String },
}

/// The bytes of one file.
pub(super) struct Content {
    pub(super) length: u64,
    bytes: Box<dyn Read>,
}

impl Source {
    /// Opens the bundle at a path that the user gave; `None` where it cannot be, which is told.
    pub(super) fn open(path: &Path, faults: &mut Faults) -> Option<Self> {
        if archive::is_packed(path) {
            return Self::packed(path, faults);
        }
        match Self::folder(path) {
            Ok(folder) => Some(folder),
            Err(e) => {
                faults.cannot_tell(Rule::Readable, ".", "", format!("the folder cannot be opened: {e}"));
                None
            }
        }
    }

    /// Opens a folder.
    pub(super) fn folder(path: &Path) -> io::Result<Self> {
        Ok(Self::Folder { place: path.to_owned(), folder: Folder::open(path)? })
    }

    /// Opens an archive, whatever its name is.
    pub(super) fn packed(path: &Path, faults: &mut Faults) -> Option<Self> {
        match Packed::read(path) {
            Ok(archive) => Some(Self::Packed { folder: archive.name.clone(), archive: Arc::new(archive) }),
            Err(Refusal::Unreadable(what)) => {
                faults.cannot_tell(Rule::Readable, ".", "", what);
                None
            }
            Err(Refusal::Broken { entry, what }) => {
                faults.invalid(Rule::Archive, entry.as_deref().unwrap_or("."), "", what);
                None
            }
        }
    }

    /// The folder of the addenda, where there is one, with its name.
    pub(super) fn addenda(&self) -> Option<(String, io::Result<Self>)> {
        match self {
            Self::Folder { place, .. } => {
                let place = addendum::folder(place);
                place.symlink_metadata().ok()?;
                let shown = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
                Some((shown, Self::folder(&place)))
            }
            Self::Packed { archive, .. } => {
                let folder = archive.addenda()?;
                Some((folder.clone(), Ok(Self::Packed { archive: Arc::clone(archive), folder })))
            }
        }
    }

    /// Whether it is in an archive.
    pub(super) fn is_packed(&self) -> bool {
        matches!(self, Self::Packed { .. })
    }

    /// An archive's folder has the job's name, so that one bundle has one archive.
    pub(super) fn check_name(&self, job: &str, faults: &mut Faults) {
        if let Self::Packed { folder, .. } = self
            && folder != job
        {
            faults.invalid(Rule::Archive, folder, "", "the archive's folder does not have the job's name");
        }
    }

    /// Everything in the folder.
    pub(super) fn list(&self) -> io::Result<Listing> {
        match self {
            Self::Folder { folder, .. } => folder.list(),
            Self::Packed { archive, folder } => Ok(Listing { files: archive.files(folder), odd: Vec::new() }),
        }
    }

    /// A plain file by its path in the folder.
    pub(super) fn file(&self, path: &str) -> io::Result<Content> {
        match self {
            Self::Folder { folder, .. } => {
                let file = folder.file(path)?;
                Ok(Content { length: file.metadata()?.len(), bytes: Box::new(file) })
            }
            Self::Packed { archive, folder } => {
                let (piece, length) =
                    archive.file(folder, path).ok_or(io::Error::from(io::ErrorKind::NotFound))?;
                Ok(Content { length, bytes: Box::new(piece) })
            }
        }
    }
}

impl Read for Content {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(into)
    }
}
