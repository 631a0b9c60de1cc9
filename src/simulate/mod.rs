//! The simulated builder: a script, and a library and a program that play it.
//!
//! Both are C++ (`cpp/simulate`), embedded like the attach library and built apart from its slot tables, so that what
//! `stuckproof run` records of them went through everything that a real builder goes through.

mod act;
mod plan;
mod record;
mod script;

pub use plan::Plan;
pub use record::script_of;

use crate::attach::{self, AttachError};
use rustix::fs::MemfdFlags;
use script::Script;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The library and the program, built by `build.rs`.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/simulated.so"));
static PLAYER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/simulated-player"));
static PYTHON: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/simulated-python.so"));

/// What the command line gives to a script.
#[derive(Debug, Default)]
pub struct Options {
    /// Where the engine goes, for every `write` without a path.
    pub engine: Option<PathBuf>,
    /// The timing cache, for every `timing_cache` without a path.
    pub timing_cache: Option<PathBuf>,
}

/// Why a script is not played.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    /// The script cannot be read.
    #[error("cannot read the script {}: {source}", path.display())]
    Read {
        /// The script.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is no script.
    #[error("{} is no script: {why}see docs/simulate.md for what one looks like", path.display())]
    Script {
        /// The script.
        path: PathBuf,
        /// What the parser said.
        why: String,
    },
    /// A version whose tables are not known.
    #[error(
        "version {version:?} cannot be played; there are TensorRT 9.1 to 9.3, 10.0 to 10.16 and 11.0 to 11.4, and \
         TensorRT-RTX 1.3 to 1.7"
    )]
    Version {
        /// What the script says.
        version: String,
    },
    /// A method that the version lacks.
    #[error("this version has no method {method:?}; use \"serialized\", or another version")]
    Method {
        /// The method.
        method: &'static str,
    },
    /// A configuration's number that does not exist.
    #[error("a configuration has no {name:?}; it has {known}")]
    Config {
        /// What the script says.
        name: String,
        /// What there is.
        known: String,
    },
    /// A layer kind that is no number.
    #[error(
        "{kind:?} is no kind of layer; write TensorRT's number of it, for example \"0\" for a convolution"
    )]
    Layer {
        /// What the script says.
        kind: String,
    },
    /// A shape with too many extents.
    #[error("{shape:?} has more than the eight extents that TensorRT knows")]
    Shape {
        /// What the script says.
        shape: Vec<i64>,
    },
    /// An act that does nothing, or two things.
    #[error("each table in `do` has exactly one of {known}")]
    Kind {
        /// What there is.
        known: String,
    },
    /// A key that does not belong to what the act does.
    #[error("`{key}` does not belong to `{kind}`; remove it")]
    Key {
        /// The key.
        key: &'static str,
        /// What the act does.
        kind: &'static str,
    },
    /// A name that is empty.
    #[error("a name, a path or the device is empty; give it a value or leave it out")]
    Empty,
    /// A path that is not text.
    #[error("{} is not UTF-8; give the file another name", path.display())]
    NotText {
        /// The path.
        path: PathBuf,
    },
    /// A file with neither a path in the script nor on the command line.
    #[error("the script names no path here; write one into it, or give --{}", option.replace('_', "-"))]
    NoPath {
        /// The option.
        option: &'static str,
    },
    /// The bytes of an engine that is never serialised.
    #[error("the method \"engine\" gives no bytes to write; say how many with `bytes`")]
    NoBytes,
    /// The library and the program could not be put in place.
    #[error(transparent)]
    Place(#[from] AttachError),
    /// The program could not be started.
    #[error("cannot start the simulated builder: {0}")]
    Start(io::Error),
    /// A log from which no script can be made.
    #[error("no script can be made of {}: {why}", path.display())]
    Log {
        /// The log.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Becomes the program that plays the script. Returns only to say why not.
#[must_use]
pub fn play(path: &Path, options: &Options) -> SimulateError {
    match prepared(path, options) {
        Ok((mut player, plan)) => {
            let failed = player.exec();
            // The program reads its plan through this handle.
            drop(plan);
            SimulateError::Start(failed)
        }
        Err(e) => e,
    }
}

/// Reads a script, checks it, and puts it into the lines of a plan.
pub fn plan(path: &Path, options: &Options) -> Result<Plan, SimulateError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| SimulateError::Read { path: path.to_owned(), source })?;
    let script: Script = toml::from_str(&text)
        .map_err(|e| SimulateError::Script { path: path.to_owned(), why: e.to_string() })?;
    Plan::of(&script, options)
}

fn prepared(path: &Path, options: &Options) -> Result<(Command, OwnedFd), SimulateError> {
    let plan = plan(path, options)?;
    let library = attach::place(&plan.library, LIBRARY)?;
    let held = in_memory(&plan.text).map_err(SimulateError::Start)?;
    let mut player = Command::new(attach::place("stuckproof-player", PLAYER)?);
    player.arg(format!("/proc/self/fd/{}", held.as_raw_fd())).arg(library);
    if plan.python {
        player.arg(attach::place("libsimulatedpython.so", PYTHON)?);
    }
    if plan.linked {
        // The call must be bound when it is made, after the library was loaded.
        player.env_remove("LD_BIND_NOW");
    }
    Ok((player, held))
}

/// A file that goes with the process, and that the program inherits.
fn in_memory(text: &str) -> io::Result<OwnedFd> {
    let held = rustix::fs::memfd_create("stuckproof-plan", MemfdFlags::empty())?;
    let mut file = std::fs::File::from(held);
    file.write_all(text.as_bytes())?;
    Ok(file.into())
}
