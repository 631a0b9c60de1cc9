//! Runs one command as a job: starts it, watches it, stops it when asked, and keeps the record.
//!
//! Threads that wait and one loop that acts. Each source of news (signals, the control socket, the cancel file, the
//! reaper, the pumps) has a thread that sleeps in the kernel; requests to stop go from there through the one
//! [`Cancellation`](crate::cancel::Cancellation), which writes the cancel word at once, and everything else happens in
//! the loop of `Running`, which may wait for a disk. So no disk ever stands between a signal and a builder.

mod bundle;
mod check;
pub mod control;
mod core_dump;
mod family;
mod finished;
mod group;
mod header;
mod heartbeat;
mod host;
mod interim;
mod job;
mod keep;
mod keeper;
mod kin;
mod ladder;
mod late;
mod limits;
mod lookup;
mod misuse;
mod oom;
mod pause;
mod phase_limit;
mod prepare;
mod recorder;
mod running;
mod settling;
mod signalled;
mod signals;
mod silence;
mod sources;
mod spawn;
mod stage;
mod status;
mod streams;
mod terminal;
mod voice;
mod waiter;

pub use bundle::{BundleError, DEFAULT_FOLDER, create_empty, new_job, runner_lives};
pub use finished::{Finished, Left};
pub use heartbeat::Heartbeat;
pub use host::{Host, HostRow, Patience, host_names, host_report, markdown as host_table, rows as host_rows};
pub use interim::WriteInterim;
pub use job::Job;
pub use keep::{settle_output, settle_validation};
pub use keeper::{KEEPER_VERB, Orphaned, keep};
pub use late::{LateRequest, PutBeside};
pub use prepare::PrepareError;
pub use recorder::Unlogged;
pub use signalled::Signalled;
pub use silence::{LiveExpected, LiveSilence};
pub use sources::SourceError;
pub use spawn::{EXEC_VERB, Seat, SpawnError, become_command, exec};
pub use status::{Live, LiveBuild, LivePhase, LiveRequest};

use crate::artifact::Wishes;
use crate::event::NthAttempt;
use crate::history::History;
use crate::mask::Rules;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What the user wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The command and its arguments; at least one.
    pub argv: Vec<OsString>,
    /// The bundle's folder; one named after the job when there is none.
    pub bundle: Option<PathBuf>,
    /// The host around the job, by its name; the one that is recognised when there is none.
    pub host: Option<String>,
    /// How long the host waits after its first signal, where the user knows it.
    pub host_allows: Option<Duration>,
    /// Ask for a stop this long after the command's start.
    pub deadline: Deadline,
    /// Ask for a stop when a phase is open for longer than this.
    pub max_phase: Option<Duration>,
    /// From the request to SIGTERM.
    pub grace: Grace,
    /// From SIGTERM to SIGKILL; the host's own when there is none.
    pub kill_after: Option<Duration>,
    /// Ask for a stop when this file exists.
    pub cancel_file: Option<PathBuf>,
    /// Ask for a stop when standard input ends.
    pub cancel_on_stdin_close: bool,
    /// Give the command a terminal.
    pub tty: bool,
    /// Bytes of each output stream that the bundle keeps; none where it keeps no output at all.
    pub output_cap: Option<u64>,
    /// Files that the builds are made from, besides the ONNX files that the command names.
    pub inputs: Vec<PathBuf>,
    /// Which variables hold secrets.
    pub masking: Rules,
    /// After a success too, end processes that moved to a session of their own.
    pub kill_daemons: bool,
    /// The files that the job is about.
    pub artifacts: Wishes,
    /// A silent build that has been idle for so long is stalled.
    pub stall_after: Duration,
    /// What to do then.
    pub on_stall: OnStall,
    /// When to say something in a silent log.
    pub heartbeat: Heartbeat,
    /// Earlier builds; none where the user wants none.
    pub history: Option<History>,
    /// Which attempt this is, where the job may be tried again.
    pub attempt: Option<NthAttempt>,
}

/// What to do when a build stalls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnStall {
    /// Say it and put it on record.
    Report,
    /// Ask it to stop as well.
    Cancel,
}

/// When a job is asked to stop by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deadline {
    /// In time before the limit of a host that saves nothing at that limit.
    Host,
    /// This long after the command's start.
    After(Duration),
    /// Never.
    Never,
}

/// How long a builder may take to answer before the command is signalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grace {
    /// As long as the host allows.
    Host,
    /// This long.
    Limit(Duration),
    /// As long as it takes.
    Unlimited,
}
