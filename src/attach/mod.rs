//! The attach library: embedded in this program, unpacked to a private folder, and named in the child's environment.
//! Other embedded files go the same way.

mod environment;
mod unpack;

pub use environment::{Change, environment};
pub use unpack::{place, unpack};

use std::io;
use std::path::PathBuf;

/// Why an embedded file could not be put in place.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No folder would take it.
    #[error(
        "no private folder for what stuckproof unpacks: {}; set XDG_CACHE_HOME or TMPDIR to a folder of your own that allows \
         executable mappings",
        tried.join("; ")
    )]
    NoPlace {
        /// Each folder with what was wrong with it.
        tried: Vec<String>,
    },
    /// A file operation failed.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder or file belongs to, or can be changed by, somebody else.
    #[error("{} is not private: {why}; remove it, or set XDG_CACHE_HOME to a folder of your own", path.display())]
    NotPrivate {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}
