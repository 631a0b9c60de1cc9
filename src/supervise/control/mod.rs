//! The way into a running job: a socket that only its owner (and root) can use.
//!
//! One JSON line goes in, one comes back. `stuckproof cancel` and `stuckproof status` are its clients; editors and
//! services may speak it themselves.

mod client;
mod registry;
mod server;

pub use client::{ask, find};
pub use registry::{Entry, Registration, live_jobs};
pub use server::serve;

use crate::event::CancelSource;
use crate::fsio::FsError;
use crate::supervise::status::Live;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// A line longer than this is refused.
const LINE_LIMIT: usize = 64 * 1024;
/// A whole exchange may take this long.
const EXCHANGE: Duration = Duration::from_secs(2);

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "camelCase", deny_unknown_fields)]
pub enum Question {
    /// Stop the job.
    Cancel {
        /// What the client is; a program, when it does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        source: Option<Caller>,
        /// Why, in the client's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Tell how the job is.
    Status,
}

/// What a client may say that it is. `ctrl_c` and `ci` are for the runner alone to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "camelCase")]
pub enum Caller {
    /// An editor.
    Ide,
    /// A service.
    Service,
    /// Any other program.
    Api,
}

impl From<Caller> for CancelSource {
    fn from(caller: Caller) -> Self {
        match caller {
            Caller::Ide => Self::Ide,
            Caller::Service => Self::Service,
            Caller::Api => Self::Api,
        }
    }
}

/// What comes back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "camelCase")]
pub enum Reply {
    /// To [`Question::Cancel`].
    Cancel(Cancelled),
    /// To [`Question::Cancel`], when the job's end is on record. Nothing is changed, and the request is put on record beside the
    /// bundle once that is sealed.
    #[serde(rename_all = "camelCase")]
    TooLate {
        /// The job.
        job: String,
        /// What became of it; null in the moment in which that is written.
        ended: Option<String>,
    },
    /// To [`Question::Status`].
    Status(Box<Live>),
    /// The question could not be answered.
    Error {
        /// Why, for a person.
        message: String,
    },
}

/// What became of a request to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cancelled {
    /// The job.
    pub job: String,
    /// The request's number.
    pub request: u32,
    /// Whether it is the one that stops the job; otherwise a stop was under way and it was recorded.
    pub accepted: bool,
    /// Whether the command had ended already, so that there was nothing left to stop.
    pub late: bool,
}

/// Why a job could not be reached.
#[derive(Debug, Error)]
pub enum ControlError {
    /// There is none.
    #[error("no job of this user is running; start one with `stuckproof run -- COMMAND`")]
    NoJob,
    /// The name fits none.
    #[error("no running job is called {name} or begins with it, and no running job writes to that bundle{others}", others = list(.others, "; running: "))]
    UnknownJob {
        /// The name that was given.
        name: String,
        /// The jobs that are there.
        others: Vec<String>,
    },
    /// The name, or the lack of one, fits several.
    #[error("several jobs are meant; name one of them{jobs}", jobs = list(.0, ": "))]
    SeveralJobs(Vec<String>),
    /// The folder of sockets is unusable.
    #[error(transparent)]
    Folder(#[from] FsError),
    /// The socket's path does not fit into an address.
    #[error("the control socket's path {path} is longer than the {limit} bytes that an address holds; set XDG_RUNTIME_DIR to a shorter folder", path = .path.display())]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// The most it could have been.
        limit: usize,
    },
    /// The socket could not be made or reached.
    #[error(
        "cannot {action} the control socket of {job}: {source}; see `stuckproof status` whether the job still runs"
    )]
    Socket {
        /// What was tried.
        action: &'static str,
        /// The job.
        job: String,
        /// The system's answer.
        source: io::Error,
    },
    /// The runner answered with an error.
    #[error("the job answered: {0}")]
    Refused(String),
}

fn list(items: &[String], before: &str) -> String {
    if items.is_empty() { String::new() } else { format!("{before}{}", items.join(", ")) }
}
