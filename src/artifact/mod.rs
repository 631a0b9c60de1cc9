//! The files that a job is about: engines and timing caches.
//!
//! A job that declares one takes it into its care. Before anything runs, its path is claimed by a folder beside it
//! (`work`), which no second job can make; in there the command's own place is made, or a copy of what an earlier job left
//! (`prepare`). After the command's end each artifact is settled ([`settle()`]): published whole, or what was there before
//! is there again and what the command wrote lies in the quarantine ([`quarantine`]). Everything is done by renames within
//! one file system, and every step can be done again: whoever comes after a kill finds out from what is on disk how far it
//! was, and goes on.

mod act;
mod cache;
mod copy;
mod error;
mod facts;
mod fate;
mod look;
mod open;
mod place;
mod prepare;
pub mod quarantine;
mod settle;
mod work;

pub use cache::Said;
pub use error::ArtifactError;
pub use place::{own_place, placeholders};
pub use prepare::{Prepared, Wishes, name_plainly, prepare};
pub use settle::{Journal, Terms, clear, settle};
pub use work::{Claimed, Owner, abandon};
