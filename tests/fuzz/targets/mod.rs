//! What is fuzzed: functions that take any bytes and hold what must hold for them. The ordinary tests call them with the
//! seeds and with some changes to these; `fuzz/` calls the same ones for as long as one likes.
#![allow(dead_code, reason = "each fuzz target is a program of its own and calls one of them")]

pub mod archive;
pub mod bundle;
#[path = "../../common/chance.rs"]
pub mod chance;
mod changes;
pub mod control;
pub mod log;
pub mod seeds;
#[path = "../../finalize/segments.rs"]
mod segments;
pub mod wire;

/// A target.
pub type Target = fn(&[u8]);

/// Every target by its name.
pub const ALL: [(&str, Target); 5] = [
    ("archive", archive::run),
    ("bundle", bundle::run),
    ("control", control::run),
    ("log", log::run),
    ("wire", wire::run),
];
