//! Starts the command.
//!
//! It leads a process group of its own. Where the runner has a controlling terminal, it leads a session as well: a
//! background group that opens `/dev/tty` would be stopped by the kernel and wait for ever, and without a terminal
//! it is told that there is none. A new session can only be made by the process itself, so a hidden verb of this
//! program does that and then becomes the command.

use crate::exit;
use rustix::process::Pid;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use thiserror::Error;

/// The hidden verb that makes a session and becomes the command.
pub const EXEC_VERB: &str = "__exec";
/// Its option: standard input becomes the session's terminal.
pub const EXEC_TERMINAL: &str = "--terminal";

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
    pub stdin: Input,
    /// Its standard output.
    pub stdout: OwnedFd,
    /// Its standard error.
    pub stderr: OwnedFd,
}

/// The command's standard input.
#[derive(Debug)]
pub enum Input {
    /// Ours.
    Inherited,
    /// Nothing.
    Empty,
    /// This.
    From(OwnedFd),
}

/// The command's relation to terminals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
        }
    }
}

/// Starts it and says which process it is.
pub fn spawn(start: &Start<'_>) -> Result<Pid, SpawnError> {
    let program = &start.argv[0];
    let child = match start.attempt(start.argv) {
        Err(e) if is_plain_script(&e) => start.attempt(&as_script(start.argv)),
        other => other,
    };
    // The waiter reaps it by its number; the handle would do nothing more.
    child.map(|c| Pid::from_child(&c)).map_err(|e| SpawnError::new(program, e))
}

impl Start<'_> {
    fn attempt(&self, argv: &[OsString]) -> io::Result<Child> {
        let mut command = match self.seat {
            Seat::Group => {
                let mut command = Command::new(&argv[0]);
                command.args(&argv[1..]).process_group(0);
                command
            }
            Seat::Session | Seat::Terminal => {
                let mut command = Command::new("/proc/self/exe");
                let option = (self.seat == Seat::Terminal).then_some(EXEC_TERMINAL);
                command.arg0("stuckproof").arg(EXEC_VERB).args(option).arg("--").args(argv);
                command
            }
        };
        let stdin = match &self.stdin {
            Input::Inherited => Stdio::inherit(),
            Input::Empty => Stdio::null(),
            Input::From(fd) => fd.try_clone()?.into(),
        };
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        command.envs(environment).stdin(stdin);
        command.stdout(self.stdout.try_clone()?).stderr(self.stderr.try_clone()?).spawn()
    }
}

/// The hidden verb: leads a new session, takes the terminal on standard input if told so, and becomes the command. It
/// comes back only when it cannot.
#[must_use]
pub fn become_command(argv: &[OsString], terminal: bool) -> SpawnError {
    let seated = rustix::process::setsid().and_then(|_| {
        if terminal { rustix::process::ioctl_tiocsctty(rustix::stdio::stdin()) } else { Ok(()) }
    });
    match seated {
        Ok(()) => exec(argv),
        Err(e) => SpawnError::new(&argv[0], e.into()),
    }
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
