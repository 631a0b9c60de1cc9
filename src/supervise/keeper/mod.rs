//! The keeper: our own program once more, between the runner and the command.
//!
//! It is the command's parent and the reaper of every orphan of the job, in a process group of its own, so that no
//! signal to the runner's group or to the command's reaches it. The runner gives it the orders, hears from it what
//! becomes of the command, and tells it when the job is finished. When the runner dies before that, the keeper stops the
//! build, ends what is left, and hands on what it saw, for the bundle to be finished.
//!
//! The other way round, the kernel kills the command when the keeper dies, and the runner, which inherits the orphans
//! then, ends the rest.

mod channel;
mod guard;
mod handle;
mod takeover;

pub use channel::{Orders, Report};
pub use guard::keep;
pub use handle::{Keeper, OnDuty, Told};
pub use takeover::Orphaned;

/// The hidden verb that makes a process the keeper.
pub const KEEPER_VERB: &str = "__keep";
