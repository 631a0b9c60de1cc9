//! The files that a job is about: whatever ends the job, what was at their paths is there byte for byte or replaced by a
//! whole new one, and nothing partial is.

#[path = "../common/mod.rs"]
mod common;
mod endings;
mod forms;
mod full;
mod held;
mod kills;
mod refused;
mod requests;
mod retry;
mod scene;
mod shelf;
