//! The wire between the attach library in the builder's process and the runner: mapped files in one folder.
//!
//! `cpp/wire.h` is the same format on the writing side and explains it. The runner never maps these files: it reads
//! them with `pread` and writes the cancel word with `pwrite`, which Linux keeps coherent with the builder's mapping, so
//! that a truncated or hostile file can never raise SIGBUS here and no `unsafe` is needed.

mod control;
mod facts;
mod layout;
mod reader;
mod record;
mod survey;
#[cfg(test)]
mod tests;

pub use control::{Control, Losses, Requested};
pub use reader::{Reader, Unread};
pub use record::{Body, LibraryFacts, Method, ProcessKey, Record, Severity};
pub use survey::damage;

use std::io;
use std::path::PathBuf;

/// What is said of records that are whole but do not fit their check.
pub const DAMAGED: &str = "records of the attach library were damaged on disk";

/// Why the wire could not be used.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// A file of the wire could not be written.
    #[error("cannot write {}: {source}; check that the folder is writable and its disk is not full", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of the wire does not hold what its writer puts there.
    #[error("{} is damaged, or was not written by this version of stuckproof", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A file of the wire could not be read.
    #[error("cannot read {}: {source}; what the builder told from here on may be missing", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
