//! Earlier builds, and what they make expect of a new one.
//!
//! The store is a folder that people may copy, merge and cache: one small file a build, each written whole, none ever
//! changed by another job. Files of two stores put into one folder are the store of both. A file that is damaged, foreign
//! or of a newer version is passed over, with a note.

mod entry;
mod expect;
mod paths;
mod store;

pub use entry::{Entry, EntryPhase, EntrySilence, Key, Outcome};
pub use expect::Expectation;
pub use paths::Paths;
pub use store::History;
