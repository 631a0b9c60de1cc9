//! The user's own check of the engine (`--validate`): a shell command in a group of its own, whose words go into the
//! bundle.

use super::group::Group;
use super::spawn::{self, Seat, SpawnError, Start};
use super::waiter;
use crate::event::CommandExited;
use crate::fsio::{FsError, create_append_only};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use thiserror::Error;

/// What stands for the engine in it.
const PLACEHOLDER: &str = "{engine}";

/// Why it did not run.
#[derive(Debug, Error)]
pub enum CheckError {
    /// Its log cannot be made.
    #[error(transparent)]
    Log(#[from] FsError),
    /// Its streams cannot be made.
    #[error("its streams cannot be opened: {0}")]
    Streams(#[from] io::Error),
    /// It cannot be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

/// A check that runs. It ends when this process does.
pub(super) struct Check {
    group: Group,
    command: rustix::process::Pid,
}

impl Check {
    /// Starts it; the engine's path stands quoted in the place of `{engine}`. Without a log nothing is kept of its words.
    pub(super) fn start(command: &str, engine: &Path, log: Option<&Path>) -> Result<Self, CheckError> {
        let log = match log {
            Some(log) => OwnedFd::from(create_append_only(log)?),
            None => File::options().write(true).open("/dev/null")?.into(),
        };
        let argv = [OsString::from("sh"), "-c".into(), with_engine(command, engine)];
        let start = Start {
            argv: &argv,
            environment: Vec::new(),
            seat: Seat::Group,
            stdin: File::open("/dev/null")?.into(),
            stdout: log.try_clone()?,
            stderr: log,
        };
        let command = spawn::spawn(start)?;
        Ok(Self { group: Group::led_by(command), command })
    }

    /// How it ended, if it has; an error when nobody can tell any more.
    pub(super) fn end(&self) -> io::Result<Option<CommandExited>> {
        if let Some(exited) = waiter::look_for_end(self.command) {
            return Ok(Some(exited));
        }
        match rustix::process::test_kill_process(self.command) {
            Err(Errno::SRCH) => Err(io::Error::other("its end was not seen")),
            _ => Ok(None),
        }
    }

    /// Signals all of it. One that is gone needs none.
    pub(super) fn send(&self, signal: Signal) {
        let _ = self.group.send(signal);
    }

    /// Ends what it has left behind.
    pub(super) fn leave(self) {
        self.send(Signal::KILL);
        let _ =
            rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(self.command), WaitOptions::empty()));
    }
}

fn with_engine(command: &str, engine: &Path) -> OsString {
    let quoted = quoted(engine.as_os_str());
    OsString::from_vec(
        command.split(PLACEHOLDER).map(str::as_bytes).collect::<Vec<_>>().join(quoted.as_bytes()),
    )
}

/// A word that the shell takes as it is.
fn quoted(word: &OsStr) -> OsString {
    let parts: Vec<&[u8]> = word.as_bytes().split(|&byte| byte == b'\'').collect();
    OsString::from_vec([&b"'"[..], &parts.join(&b"'\\''"[..]), b"'"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reaches_the_shell_as_it_is() {
        let odd = Path::new("/a b/it's $HOME;`x`\n.engine");
        let line = with_engine("printf '%s|' {engine} --load={engine}", odd);
        let said = std::process::Command::new("sh").arg("-c").arg(line).output().unwrap().stdout;
        let odd = odd.to_str().unwrap();
        assert_eq!(String::from_utf8(said).unwrap(), format!("{odd}|--load={odd}|"));
    }
}
