//! Tells stuck from slow.
//!
//! Pure: it is given callbacks, samples and what earlier builds make expect, each with its time, and gives verdicts. A
//! silence by itself says nothing; a job is *idle* when its processes use hardly any processor, read and write hardly
//! anything, and no GPU works for it. Idle time is counted by samples and not by the clock, so that a machine that was
//! suspended, a frozen container or a sampler that starved make nobody idle.

mod detector;
mod window;
mod words;

pub use detector::{Detector, Expected, Facts, Limits, Place};
pub use words::{in_words, why};
