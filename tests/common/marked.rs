//! Processes that are found wherever they went, by a variable in their environment.

use super::now_ns;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// The variable.
const NAME: &str = "MARKED_BY_A_TEST";

/// A mark that no other process has. Whoever still carries it when this is dropped is killed.
pub struct Mark {
    entry: String,
}

/// A living process, as `/proc` shows it.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its command line, with blanks.
    pub line: String,
    /// Its parent.
    pub parent: u32,
    /// Its group.
    pub group: u32,
}

/// A process that cannot be taken for another.
pub struct Handle(OwnedFd);

/// The keeper of a runner.
pub fn keeper_of(runner: u32) -> Option<Handle> {
    let entries = fs::read_dir("/proc").expect("there is a /proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let keeper = pids.filter_map(Process::of).find(|p| p.parent == runner && p.line.contains(" __keep "))?;
    Handle::of(keeper.pid)
}

impl Mark {
    /// A new one.
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { entry: format!("{NAME}={}-{}-{number}", std::process::id(), now_ns()) }
    }

    /// Puts it on a command, and so on everything that comes from it.
    pub fn put_on(&self, command: &mut Command) {
        command.env(NAME, &self.entry[NAME.len() + 1..]);
    }

    /// Who carries it. A zombie has no environment any more.
    pub fn living(&self) -> Vec<Process> {
        let entries = fs::read_dir("/proc").expect("there is a /proc").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| self.is_on(*pid)).filter_map(Process::of).collect()
    }

    fn is_on(&self, pid: u32) -> bool {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|&byte| byte == 0).any(|entry| entry == self.entry.as_bytes())
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // More than once: some fork as fast as they are killed.
        for _ in 0..100 {
            let living = self.living();
            if living.is_empty() {
                return;
            }
            for handle in living.iter().filter_map(|process| Handle::of(process.pid)) {
                handle.kill();
            }
        }
    }
}

impl Process {
    /// Looks at a process; none when it is gone or a zombie.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let alive = !matches!(*fields.first()?, "Z" | "X");
        let number = |at: usize| fields.get(at)?.parse().ok();
        alive.then_some(Self { pid, line, parent: number(1)?, group: number(2)? })
    }
}

impl Handle {
    /// None when there is no such process.
    pub fn of(pid: u32) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        pidfd_open(pid, PidfdFlags::empty()).ok().map(Self)
    }

    /// Whether it has ended, a zombie included.
    pub fn has_ended(&self) -> bool {
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&now)) == Ok(1)
    }

    /// Kills it; false when it had ended before.
    pub fn kill(&self) -> bool {
        !self.has_ended() && pidfd_send_signal(&self.0, Signal::KILL).is_ok()
    }
}
