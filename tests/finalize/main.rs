//! Bundles whose runner was lost: what is on disk is finished, whatever is on disk.

mod cases;
mod cli;
#[path = "../common/mod.rs"]
mod common;
mod damage;
mod scene;
mod secrets;
mod segments;
