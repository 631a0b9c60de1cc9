//! The simulated builder: its tables against the official headers, every key of a script, every ending, and its own
//! code under the sanitizers.

#[path = "../common/mod.rs"]
mod common;

mod caches;
mod endings;
mod keys;
mod record;
mod sanitizers;
mod scene;
mod tables;
