//! The simulated builder: its tables against the official headers, every key of a script, every ending, and its own
//! code under the sanitizers.

#[path = "../common/mod.rs"]
mod common;

mod caches;
mod combine;
mod endings;
mod keys;
mod policies;
mod record;
mod remembers;
mod sanitizers;
mod scene;
mod tables;
