//! The command's process group: who is in it, and how it is signalled.

use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::fs;
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

    /// The leader is gone; its number alone names nobody any more.
    pub fn leader_reaped(&mut self) {
        self.reaped = true;
    }

    /// The group's number, which is its leader's process.
    #[must_use]
    pub fn id(self) -> u32 {
        self.leader.as_raw_nonzero().get().unsigned_abs()
    }

    /// Asks every process to end. A stopped one is woken, or it would never hear of it.
    ///
    /// # Errors
    /// When no process may be signalled, as when all of them changed their user.
    pub fn terminate(self) -> io::Result<()> {
        self.send(Signal::TERM)?;
        self.send(Signal::CONT)
    }

    /// Ends every process.
    ///
    /// # Errors
    /// As for [`terminate`](Self::terminate).
    pub fn kill(self) -> io::Result<()> {
        self.send(Signal::KILL)
    }

    fn send(self, signal: Signal) -> io::Result<()> {
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

    /// Whether no process is left. It must not be asked before the leader was reaped.
    #[must_use]
    pub fn is_empty(self) -> bool {
        // The quick look counts processes that ended and that a parent outside the group has not reaped.
        rustix::process::test_kill_process_group(self.leader) == Err(Errno::SRCH) || self.members().is_empty()
    }

    /// The living processes of the group, as `name pid`.
    #[must_use]
    pub fn members(self) -> Vec<String> {
        let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
        let pids = processes.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        pids.filter_map(|pid| self.member(pid)).collect()
    }

    fn member(self, pid: u32) -> Option<String> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let process = Stat::parse(&stat)?;
        let alive = !matches!(process.state, "Z" | "X");
        (alive && process.group == i64::from(self.id())).then(|| format!("{} {pid}", process.name))
    }
}

/// The fields of `/proc/<pid>/stat` that matter here.
struct Stat<'a> {
    name: &'a str,
    state: &'a str,
    group: i64,
}

impl<'a> Stat<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        // The name stands in parentheses and may hold anything, parentheses and blanks included.
        let (before, after) = line.rsplit_once(") ")?;
        let (_, name) = before.split_once(" (")?;
        let mut fields = after.split(' ');
        let state = fields.next()?;
        let group = fields.nth(1)?.parse().ok()?;
        Some(Self { name, state, group })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = Stat::parse("42 (a ) S 1 (b)) R 1 77 77 0 -1").unwrap();
        assert_eq!((stat.name, stat.state, stat.group), ("a ) S 1 (b)", "R", 77));
    }

    #[test]
    fn this_process_is_found_in_its_group() {
        let group = Group::led_by(rustix::process::getpgrp());
        assert!(!group.is_empty());
        let own = format!(" {}", std::process::id());
        assert!(group.members().iter().any(|m| m.ends_with(&own)));
    }
}
