//! Whether the host's signal can reach this process: a shell that waits for its command does not pass a signal on.

use super::Host;
use crate::supervise::signals::ignored_at_start;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fs;

/// The shells, by the names of their programs.
const SHELLS: [&str; 12] =
    ["sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "fish", "pwsh", "busybox", "rbash"];

/// Programs that pass a signal on to the one that they start; what stands above them counts.
const CARRIERS: [&str; 5] = ["timeout", "time", "sudo", "tini", "dumb-init"];

/// A process above this one.
#[derive(Debug, PartialEq, Eq)]
struct Parent {
    pid: u32,
    /// The file name of its program.
    program: String,
    /// Whether it has a handler for SIGTERM.
    traps: bool,
    above: u32,
}

/// What to say where a shell stands between the host and this process, and how to mend it.
pub fn warning(host: Host) -> Option<String> {
    if !host.signals_one() {
        return None;
    }
    let mut shell = Parent::of(std::os::unix::process::parent_id())?;
    while CARRIERS.contains(&shell.program.as_str()) {
        shell = Parent::of(shell.above)?;
    }
    swallows(&shell, ignored_at_start(SIGINT)).then(|| in_words(host, &shell))
}

/// Whether a signal to this parent stays there. A shell with a trap that has put us into the background (which shows in
/// the SIGINT that it made us ignore) can pass it on.
fn swallows(parent: &Parent, in_background: bool) -> bool {
    SHELLS.contains(&parent.program.as_str()) && !(parent.traps && in_background)
}

fn in_words(host: Host, shell: &Parent) -> String {
    format!(
        "a shell ({}, process {}) stands between {} and stuckproof and will not pass its signal on, so that a stop does not \
         reach the build; begin the last line of the script with `exec stuckproof run …`, or rely on --deadline",
        shell.program,
        shell.pid,
        host.title()
    )
}

impl Parent {
    fn of(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        // A script has its own name, but its program is the shell; that of another user cannot be read.
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
        let program = program
            .as_ref()
            .and_then(|path| path.file_name())
            .map(|name| name.to_string_lossy().into_owned());
        Some(Self::parse(pid, program, &status))
    }

    fn parse(pid: u32, program: Option<String>, status: &str) -> Self {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.map(str::trim).unwrap_or_default().to_owned()
        };
        let caught = u64::from_str_radix(&field("SigCgt:"), 16).unwrap_or(0);
        Self {
            pid,
            program: program.unwrap_or_else(|| field("Name:")),
            traps: caught >> (SIGTERM - 1) & 1 == 1,
            above: field("PPid:").parse().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(program: &str, caught: &str) -> Parent {
        let status = format!("Name:\tstep.sh\nPPid:\t7\nSigIgn:\t0000000000000006\nSigCgt:\t{caught}\n");
        Parent::parse(42, Some(program.to_owned()), &status)
    }

    #[test]
    fn a_shell_swallows_unless_it_was_told_to_pass_on() {
        let (quiet, trapping) = ("0000000000010000", "0000000000014002");
        assert!(swallows(&parent("bash", quiet), false));
        assert!(swallows(&parent("bash", trapping), false), "the trap runs only after the command");
        assert!(!swallows(&parent("bash", trapping), true));
        assert!(swallows(&parent("bash", quiet), true));
        for other in ["Runner.Worker", "python3.11", "systemd", "step.sh"] {
            assert!(!swallows(&parent(other, quiet), false), "{other}");
        }
    }

    #[test]
    fn a_parent_is_read() {
        let found = parent("dash", "0000000000014002");
        assert_eq!((found.pid, found.above, found.traps), (42, 7, true));
        assert_eq!(Parent::parse(42, None, "Name:\tzsh\n").program, "zsh");
    }
}
