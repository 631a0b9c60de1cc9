//! The command's process group, and how it is signalled.

use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::io;

/// The process group that the command leads.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    leader: Pid,
    reaped: bool,
}

impl Group {
    /// The group of a command that was started as the leader of its own.
    #[must_use]
    pub fn led_by(leader: Pid) -> Self {
        Self { leader, reaped: false }
    }

    /// The leader is gone, or may be gone at any moment; its number alone names nobody any more.
    pub fn leader_reaped(&mut self) {
        self.reaped = true;
    }

    /// Whether the leader's number may name somebody else by now.
    #[must_use]
    pub fn is_reaped(self) -> bool {
        self.reaped
    }

    /// The group's number, which is its leader's process.
    #[must_use]
    pub fn id(self) -> u32 {
        self.leader.as_raw_nonzero().get().unsigned_abs()
    }

    /// Signals every process of it.
    ///
    /// # Errors
    /// When no process may be signalled, as when all of them changed their user.
    pub fn send(self, signal: Signal) -> io::Result<()> {
        let mut sent = rustix::process::kill_process_group(self.leader, signal);
        if sent == Err(Errno::SRCH) && !self.reaped {
            // A command that is to lead a session of its own becomes a leader only a moment after its start.
            sent = rustix::process::kill_process(self.leader, signal);
        }
        match sent {
            // All are gone, which is what was wanted.
            Err(Errno::SRCH) => Ok(()),
            other => Ok(other?),
        }
    }

    /// Whether the kernel knows no process of it. One that has ended and that nobody has reaped is known.
    #[must_use]
    pub fn is_unknown(self) -> bool {
        rustix::process::test_kill_process_group(self.leader) == Err(Errno::SRCH)
    }
}
