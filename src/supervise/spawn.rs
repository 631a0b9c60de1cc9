//! Starts the command.
//!
//! It leads a process group of its own. Where the runner has a controlling terminal, it leads a session as well: a
//! background group that opens `/dev/tty` would be stopped by the kernel and wait for ever, and without a terminal
//! it is told that there is none. A session, and the bond that ends the command with the keeper, can only be made by the
//! process itself, so a hidden verb of this program does that and then becomes the command.

use super::kin::Process;
use crate::exit;
use crate::sign::KEY_VARIABLE;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use thiserror::Error;

/// The hidden verb that takes a seat and becomes the command.
pub const EXEC_VERB: &str = "__exec";
/// Its option: lead a new session.
pub const EXEC_SESSION: &str = "--session";
/// Its option: lead a new session with the terminal on standard input.
pub const EXEC_TERMINAL: &str = "--terminal";
/// Its option: be killed when the parent, which is this process, ends.
pub const EXEC_BOUND: &str = "--bound";

/// What the command gets from us.
#[derive(Debug)]
pub struct Start<'a> {
    /// The command and its arguments; never empty.
    pub argv: &'a [OsString],
    /// Variables to set.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it sits.
    pub seat: Seat,
    /// Its standard input.
    pub stdin: OwnedFd,
    /// Its standard output.
    pub stdout: OwnedFd,
    /// Its standard error.
    pub stderr: OwnedFd,
}

/// The command's relation to terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Seat {
    /// A group of its own.
    Group,
    /// A session of its own, without a terminal.
    Session,
    /// A session of its own, with the terminal on its standard input.
    Terminal,
}

impl Seat {
    /// The seat for a command that was not promised a terminal.
    #[must_use]
    pub fn without_terminal() -> Self {
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
        let terminal = rustix::fs::open("/dev/tty", flags, rustix::fs::Mode::empty());
        if terminal.is_ok() { Self::Session } else { Self::Group }
    }

    /// The session of a command on it that runs as `pid` and was started from this session.
    #[must_use]
    pub fn session_of(self, pid: u32) -> u32 {
        match self {
            // One that began outside of this pid namespace is told as 0, for all of its processes.
            Self::Group => Process::of(std::process::id()).map_or(pid, |own| own.session),
            Self::Session | Self::Terminal => pid,
        }
    }

    fn option(self) -> Option<&'static str> {
        match self {
            Self::Group => None,
            Self::Session => Some(EXEC_SESSION),
            Self::Terminal => Some(EXEC_TERMINAL),
        }
    }
}

/// Why the command does not run.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// There is no such command.
    #[error(
        "cannot run {program}: not found; check the spelling, the PATH{interpreter}",
        interpreter = if *.exists { " and the interpreter in the file's first line" } else { "" }
    )]
    NotFound {
        /// The command.
        program: String,
        /// Whether the file itself exists.
        exists: bool,
    },
    /// There is, and it cannot be executed.
    #[error("cannot run {program}: {source}; is it a program, and may you execute it?")]
    NotExecutable {
        /// The command.
        program: String,
        /// The system's answer.
        source: io::Error,
    },
    /// It could not even be tried.
    #[error(
        "cannot start {program}: {source}; the machine is short of processes or memory, or a limit was reached"
    )]
    NoProcess {
        /// The command.
        program: String,
        /// The system's answer.
        source: io::Error,
    },
}

impl SpawnError {
    fn new(program: &OsStr, source: io::Error) -> Self {
        let exists = Path::new(program).exists();
        let program = program.to_string_lossy().into_owned();
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { program, exists },
            _ => Self::NotExecutable { program, source },
        }
    }

    /// The exit code that env(1) gives for it.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } => exit::NOT_FOUND,
            Self::NotExecutable { .. } => exit::NOT_EXECUTABLE,
            Self::NoProcess { .. } => exit::OWN_FAULT,
        }
    }
}

/// Starts it, in a group of its own and bound to the life of this process, and says which process it is. It must be
/// called on a thread that lives as long as the process: the bond is to the thread.
pub fn spawn(start: Start<'_>) -> Result<Pid, SpawnError> {
    let parent = std::process::id().to_string();
    let mut command = ourselves();
    command.arg(EXEC_VERB).args(start.seat.option()).args([EXEC_BOUND, &parent, "--"]).args(start.argv);
    command
        .env_remove(KEY_VARIABLE)
        .envs(start.environment)
        .stdin(start.stdin)
        .stdout(start.stdout)
        .stderr(start.stderr);
    if start.seat == Seat::Group {
        command.process_group(0);
    }
    // The keeper reaps it by its number; the handle would do nothing more.
    command.spawn().map(|child| Pid::from_child(&child)).map_err(|source| SpawnError::NoProcess {
        program: start.argv[0].to_string_lossy().into_owned(),
        source,
    })
}

/// This program, to be started once more.
#[must_use]
pub fn ourselves() -> Command {
    let own = Path::new("/proc/self/exe");
    if own.exists() {
        let mut command = Command::new(own);
        command.arg0("stuckproof");
        return command;
    }
    // Without /proc only the name is left by which this process was started.
    let named = std::env::args_os().next().unwrap_or_default();
    Command::new(find(&named).unwrap_or_else(|| named.into()))
}

/// The hidden verb: takes the seat, binds its life to that of `parent`, and becomes the command. It comes back only
/// when it cannot.
#[must_use]
pub fn become_command(argv: &[OsString], seat: Seat, parent: Option<u32>) -> SpawnError {
    let session = || if seat == Seat::Group { Ok(()) } else { rustix::process::setsid().map(drop) };
    let terminal = || match seat {
        Seat::Terminal => rustix::process::ioctl_tiocsctty(rustix::stdio::stdin()),
        Seat::Group | Seat::Session => Ok(()),
    };
    let seated = session().and_then(|()| terminal()).and_then(|()| parent.map_or(Ok(()), bind_to));
    match seated {
        Ok(()) => exec(argv),
        Err(e) => SpawnError::new(&argv[0], e.into()),
    }
}

/// Lets the kernel kill this process when its parent ends: a build never outlives both of its guards.
fn bind_to(parent: u32) -> rustix::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    let now = rustix::process::getppid().map(|p| p.as_raw_nonzero().get().unsigned_abs());
    // The parent ended before the bond was made.
    if now == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH) }
}

/// Becomes the command as it is, in this process's group and session. It comes back only when it cannot.
#[must_use]
pub fn exec(argv: &[OsString]) -> SpawnError {
    let mut error = Command::new(&argv[0]).args(&argv[1..]).exec();
    if is_plain_script(&error) {
        let script = as_script(argv);
        error = Command::new(&script[0]).args(&script[1..]).exec();
    }
    SpawnError::new(&argv[0], error)
}

/// Whether the kernel does not know what to do with an executable file: shells and env(1) take it for a script.
fn is_plain_script(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error())
}

fn as_script(argv: &[OsString]) -> Vec<OsString> {
    let script = find(&argv[0]).unwrap_or_else(|| PathBuf::from(&argv[0]));
    ["/bin/sh".into(), script.into_os_string()].into_iter().chain(argv[1..].iter().cloned()).collect()
}

/// The file that a command's name stands for.
fn find(program: &OsStr) -> Option<PathBuf> {
    if Path::new(program).components().count() > 1 {
        return Some(PathBuf::from(program));
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|file| file.is_file())
}
