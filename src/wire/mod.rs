//! The wire between the attach library in the builder's process and the runner: mapped files in one folder.
//!
//! `cpp/wire.h` is the same format on the writing side and explains it. The runner never maps these files: it reads
//! them with `pread` and writes the cancel word with `pwrite`, which Linux keeps coherent with the builder's mapping, so
//! that a truncated or hostile file can never raise SIGBUS here and no `unsafe` is needed.

mod record;

pub use record::{Body, LibraryFacts, Method, ProcessKey, Record, Severity};
