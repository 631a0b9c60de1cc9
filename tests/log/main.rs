//! The log and what follows from it: reading, the tree, the state table, the evidence and its printing.

#[path = "../common/mod.rs"]
mod common;
mod diff;
mod explained;
mod files;
mod job;
mod junit;
mod lines;
mod names;
mod scale;
mod shown;
mod silences;
mod states;
mod streams;
mod validated;
mod waits;
