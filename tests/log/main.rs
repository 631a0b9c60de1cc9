//! The log and what follows from it: reading, the tree, the state table, the evidence and its printing.

mod job;
mod lines;
mod names;
mod shown;
mod states;
mod streams;
mod waits;
