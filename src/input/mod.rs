//! The files that a build is made from: which they are, what they are, and what is in them.
//!
//! A file is looked at before the command starts and read beside the command, on a thread that gives way to it. What it
//! finds are events, so that everything else follows from the log.

mod file;
mod library;
mod named;
mod onnx;
mod reading;

pub use file::InputError;
pub use reading::Reading;

use crate::clock::Mono;
use crate::event::{Event, EventKind, InputIdentified, InputKind};
use file::Known;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The inputs of a job, each looked at once.
#[derive(Debug, Default)]
pub struct Inputs {
    known: Vec<Known>,
}

impl Inputs {
    /// Looks at the files that the user declared and at the ONNX files that the command names.
    ///
    /// # Errors
    /// When a declared one cannot be read.
    pub fn find(declared: &[PathBuf], argv: &[OsString]) -> Result<(Self, Vec<Event>), InputError> {
        let mut inputs = Self::default();
        let mut events = Vec::new();
        for path in declared {
            file::check(path)?;
            events.extend(inputs.add(path, InputKind::Declared, None));
        }
        for path in named::onnx_files(argv) {
            events.extend(inputs.add(&path, InputKind::Argument, None));
        }
        Ok((inputs, events))
    }

    /// Looks at a file, unless it is one that is known, and says what it saw.
    fn add(&mut self, path: &Path, kind: InputKind, of: Option<u32>) -> Option<Event> {
        let found = file::identify(path);
        if let Ok(identity) = &found
            && self.known.iter().any(|known| known.identity.as_ref() == Ok(identity))
        {
            return None;
        }
        Some(self.note(path, kind, of, found))
    }

    /// Puts on record why there is something that cannot be looked at.
    fn refuse(&mut self, path: &Path, kind: InputKind, of: u32, why: String) -> Event {
        self.note(path, kind, Some(of), Err(why))
    }

    fn note(
        &mut self,
        path: &Path,
        kind: InputKind,
        of: Option<u32>,
        found: Result<file::Identity, String>,
    ) -> Event {
        let input = u32::try_from(self.known.len()).unwrap_or(u32::MAX).saturating_add(1);
        let seen = found.as_ref().ok();
        let event = InputIdentified {
            input,
            kind,
            path: path.to_string_lossy().into_owned(),
            of,
            bytes: seen.map(|identity| identity.bytes),
            modified_ns: seen.map(|identity| identity.modified_ns),
            inode: seen.map(|identity| identity.inode),
            build_id: (kind == InputKind::Library).then(|| library::build_id(path)).flatten(),
            reason: found.as_ref().err().cloned(),
        };
        self.known.push(Known { input, path: path.to_owned(), identity: found });
        Event { at: Mono::now(), kind: EventKind::InputIdentified(event) }
    }
}
