//! The processes of a job, as `/proc` tells them: everything that descends from one process of ours.
//!
//! Orphans of the job become children of the keeper, or of the runner where the keeper was lost, so that nothing leaves
//! this tree by forking twice or by making a session of its own.

use crate::event::LeftoverFound;
use crate::procfs::Stat;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal};
use std::collections::BTreeSet;
use std::fs;
use std::io;

/// A look at a tree that changes meanwhile is repeated this often.
const LOOKS: usize = 4;

/// So many numbers back from the last one are looked at for a process that was made just now.
const NEWEST: u32 = 8;

/// A living process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name, as the kernel keeps it.
    pub name: String,
    /// Its group.
    pub group: u32,
    /// Its session.
    pub session: u32,
    parent: u32,
    /// When it started, in ticks since the machine did: with its number this names it for good.
    started: u64,
}

impl Process {
    /// Looks at a process; none when it has ended.
    #[must_use]
    pub fn of(pid: u32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(pid: u32, line: &str) -> Option<Self> {
        let stat = Stat::parse(line).filter(Stat::lives)?;
        let Stat { name, parent, group, session, started, .. } = stat;
        Some(Self { pid, name, group, session, parent, started })
    }

    /// When it started, in ticks since the machine did.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Its name and number, for people.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("{} {}", self.name, self.pid)
    }

    /// As evidence tells it, with what became of it.
    #[must_use]
    pub fn as_leftover(&self, action: &str) -> LeftoverFound {
        LeftoverFound {
            pid: self.pid,
            name: self.name.clone(),
            session: self.session,
            action: action.to_owned(),
        }
    }

    /// Signals it; one that has ended meanwhile needs none.
    ///
    /// # Errors
    /// When it may not be signalled.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
        let handle = rustix::process::pidfd_open(pid, PidfdFlags::empty());
        // The handle names one process, but its number may have been somebody else's by the time it was made.
        if Self::of(self.pid).is_none_or(|now| now.started != self.started) {
            return Ok(());
        }
        let sent = match handle {
            Ok(handle) => rustix::process::pidfd_send_signal(&handle, signal),
            // An old kernel, or a container that knows no such call.
            Err(Errno::NOSYS | Errno::PERM) => rustix::process::kill_process(pid, signal),
            Err(e) => Err(e),
        };
        match sent {
            Err(Errno::SRCH) => Ok(()),
            other => Ok(other?),
        }
    }
}

/// Where the processes of a job are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kin {
    root: u32,
    since: u64,
}

impl Kin {
    /// Everything that descends from `root`, itself not included.
    #[must_use]
    pub fn of(root: u32) -> Self {
        Self { root, since: 0 }
    }

    /// What started at `since` or later, in ticks since the machine did, and descends from `root`: a process may have
    /// had other children before it became a runner.
    #[must_use]
    pub fn of_since(root: u32, since: u64) -> Self {
        Self { root, since }
    }

    /// The process that they all descend from.
    #[must_use]
    pub fn root(self) -> u32 {
        self.root
    }

    /// The living ones; none of them can be found without `/proc`, which is told as `None`.
    #[must_use]
    pub fn living(self) -> Option<Vec<Process>> {
        let mut all = everybody()?;
        for _ in 1..LOOKS {
            let pids: BTreeSet<u32> = all.iter().map(|p| p.pid).collect();
            if all.iter().all(|p| p.parent == 0 || pids.contains(&p.parent)) {
                break;
            }
            // A parent ended between two looks: its children have another by now.
            all = everybody()?;
        }
        let mut found = descendants(self.root, all);
        found.retain(|p| p.started >= self.since);
        Some(found)
    }

    /// Whether the process that they all descend from lives. What was seen of them before holds only if it does.
    #[must_use]
    pub fn has_root(self) -> bool {
        Process::of(self.root).is_some()
    }

    /// Of the processes that were made last, the children of the root. This is quick enough to meet one that lives only
    /// until it has forked the next.
    #[must_use]
    pub fn newest(self) -> Vec<Process> {
        let last = last_made().unwrap_or(0);
        let newest = (last.saturating_sub(NEWEST)..=last).filter_map(Process::of);
        newest.filter(|p| p.parent == self.root && p.started >= self.since).collect()
    }
}

/// The number of the process that was made last; it is what `/proc/loadavg` ends with.
fn last_made() -> Option<u32> {
    fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next_back()?.parse().ok()
}

fn everybody() -> Option<Vec<Process>> {
    // Without its own entry it is no /proc of this system.
    fs::metadata("/proc/self/stat").ok()?;
    let entries = fs::read_dir("/proc").ok()?;
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    Some(pids.filter_map(Process::of).collect())
}

fn descendants(root: u32, mut all: Vec<Process>) -> Vec<Process> {
    let mut family = BTreeSet::from([root]);
    let mut found = Vec::new();
    loop {
        let (children, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|p| family.contains(&p.parent));
        if children.is_empty() {
            return found;
        }
        family.extend(children.iter().map(|p| p.pid));
        found.extend(children.into_iter().filter(|p| p.pid != root));
        all = others;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_everything_below_and_nothing_beside() {
        let process = |pid, parent| Process {
            pid,
            parent,
            name: String::new(),
            group: 1,
            session: 1,
            started: u64::from(pid),
        };
        let all =
            vec![process(9, 7), process(1, 0), process(5, 3), process(7, 5), process(4, 1), process(3, 1)];
        let found: Vec<u32> = descendants(3, all).into_iter().map(|p| p.pid).collect();
        assert_eq!(found, [5, 7, 9]);
    }

    #[test]
    fn a_child_is_among_the_newest_when_it_is_made() {
        let kin = Kin::of(std::process::id());
        // Other processes are made meanwhile, but hardly ever as many each time.
        let met = (0..100).any(|_| {
            let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
            let met = kin.newest().iter().any(|p| p.pid == child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            met
        });
        assert!(met);
    }

    #[test]
    fn a_child_is_found_and_signalled_and_then_gone() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let kin = Kin::of(std::process::id());
        let found = kin.living().unwrap().into_iter().find(|p| p.pid == child.id()).unwrap();
        assert!(Kin::of_since(std::process::id(), found.started() + 1).living().unwrap().is_empty());
        found.signal(Signal::KILL).unwrap();
        child.wait().unwrap();
        assert!(kin.living().unwrap().iter().all(|p| p.pid != child.id()));
        found.signal(Signal::KILL).unwrap();
    }
}
