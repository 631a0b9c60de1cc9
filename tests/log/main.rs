//! The log and what follows from it: reading, the tree, the state table, the evidence and its printing.

mod job;
mod shown;
