//! What a job's processes use: processor, memory, threads and GPUs, sampled at a low rate into `resources.jsonl`.
//!
//! The file is a raw record, like the log: a header line, then one line a sample. A sample is also what the verdict on a
//! silence rests on, so more samples are taken than are written once a job is long.

mod gpu;
mod model;
mod sampler;
mod schedule;
mod starving;
mod tree;

pub use model::{GpuUse, Header, Sample, gpu_work};
pub use sampler::{Sampler, StartError};
pub use schedule::until_next;
pub use tree::Tree;

/// The file's name in a bundle.
pub const RESOURCES: &str = "resources.jsonl";
