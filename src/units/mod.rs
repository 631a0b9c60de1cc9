//! Spans of time and sizes as people write them.

pub mod duration;
pub mod size;
