//! The event log of a job: what an event is, how a line is written and read, and the phase tree that follows from it.
//!
//! The log is the source of truth: `evidence.json`, `summary.json` and `phases.json` are all derived from it, so that
//! what a kill leaves behind can be finished later by the same code.

mod cancellability;
mod kinds;
mod line;
mod masked;
mod reader;
mod silence;
mod text;
mod tree;
mod writer;

pub use cancellability::{Cancellability, Waits};
pub use kinds::*;
pub use line::{Line, event_schema};
pub use reader::{Ending, LogFault, LogReader};
pub use silence::{BuildExpected, Likeness, SilenceJudged, SilenceVerdict};
pub use text::plain;
pub use tree::{BuildTree, PhaseEnd, PhaseInstance, Silence, Tree};
pub use writer::{Encoder, LogError, LogWriter};
