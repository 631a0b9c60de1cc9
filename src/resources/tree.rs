//! What the processes below one process use, as `/proc` tells it.
//!
//! A machine can have thousands of processes that are none of the job's: those are listed each time, but looked at only
//! when their number is new, and all of them once in a while, since a number can be given to another process.

use super::model::Sample;
use super::starving::Starving;
use crate::procfs::Stat;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

/// Threads that one sample looks at, at most.
const THREADS: u32 = 512;
/// Threads whose wait is read, at most.
const WAITS: u32 = 64;
/// Every so many samples, strangers are looked at again.
const ANEW: u32 = 30;

/// The processes below one process, over time.
#[derive(Debug)]
pub struct Tree {
    root: u32,
    strangers: BTreeSet<u32>,
    looks: u32,
    /// The processor time so far: it never falls, whatever ends unseen.
    cpu: Duration,
    starving: Starving,
    tick: Duration,
    page: u64,
}

impl Tree {
    /// Everything that descends from `root`.
    #[must_use]
    pub fn below(root: u32) -> Self {
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        Self {
            root,
            strangers: BTreeSet::new(),
            looks: 0,
            cpu: Duration::ZERO,
            starving: Starving::default(),
            tick: Duration::from_secs(1) / u32::try_from(ticks).unwrap_or(u32::MAX),
            page: rustix::param::page_size() as u64,
        }
    }

    /// Looks at them, and gives their numbers as well. `waits` says whether to find out what they wait in.
    pub fn look(&mut self, waits: bool) -> (Sample, BTreeSet<u32>) {
        let mut sample = Sample::default();
        let family = self.family();
        let mut ticks = stat(self.root).map_or(0, |root| root.reaped_ticks);
        let mut io = Some(0_u64);
        for (pid, process) in &family {
            ticks = ticks.saturating_add(process.own_ticks).saturating_add(process.reaped_ticks);
            if !process.lives() {
                sample.zombies += 1;
                continue;
            }
            sample.processes += 1;
            sample.rss_bytes =
                sample.rss_bytes.saturating_add(process.resident_pages.saturating_mul(self.page));
            io = io.zip(io_bytes(*pid)).map(|(sum, bytes)| sum.saturating_add(bytes));
            look_at_threads(*pid, process, waits, &mut sample, &mut self.starving);
        }
        self.cpu = self.cpu.max(self.tick.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX)));
        sample.cpu_ms = ms(self.cpu);
        sample.starved_ms = self.starving.so_far().map(ms);
        sample.io_bytes = io.filter(|_| sample.processes > 0);
        (sample, family.into_keys().collect())
    }

    fn family(&mut self) -> BTreeMap<u32, Stat> {
        let all: BTreeSet<u32> = numbers("/proc").collect();
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(ANEW) {
            self.strangers.clear();
        }
        self.strangers.retain(|pid| all.contains(pid));
        let mut unknown: Vec<(u32, Stat)> = all
            .difference(&self.strangers)
            .filter(|pid| **pid != self.root)
            .filter_map(|pid| Some((*pid, stat(*pid)?)))
            .collect();
        let mut family = BTreeMap::new();
        loop {
            let known = |parent: u32| parent == self.root || family.contains_key(&parent);
            let (children, others): (Vec<_>, Vec<_>) =
                unknown.into_iter().partition(|(_, process)| known(process.parent));
            if children.is_empty() {
                self.strangers.extend(others.iter().map(|(pid, _)| *pid));
                return family;
            }
            family.extend(children);
            unknown = others;
        }
    }
}

fn look_at_threads(pid: u32, process: &Stat, waits: bool, sample: &mut Sample, starving: &mut Starving) {
    sample.threads += process.threads;
    let seen = |sample: &Sample| sample.running + sample.sleeping + sample.blocked + sample.stopped;
    let folder = format!("/proc/{pid}/task");
    let mut looked_at = 0;
    for tid in numbers(&folder) {
        if seen(sample) >= THREADS {
            break;
        }
        let own = format!("{folder}/{tid}");
        let line = fs::read_to_string(format!("{own}/stat")).ok();
        let Some(thread) = line.and_then(|line| Stat::parse(&line)) else { continue };
        looked_at += 1;
        starving.look(&own, tid, thread.started);
        match thread.state {
            'R' => sample.running += 1,
            'D' => sample.blocked += 1,
            'T' | 't' => sample.stopped += 1,
            _ => sample.sleeping += 1,
        }
        if waits && thread.state != 'R' && seen(sample) <= WAITS {
            note_wait(&format!("{own}/wchan"), &mut sample.waits);
        }
    }
    let missed = process.threads.saturating_sub(looked_at);
    sample.unread = sample.unread.saturating_add(u32::try_from(missed).unwrap_or(u32::MAX));
}

/// The kernel answers `0` where it hides the place.
fn note_wait(file: &str, waits: &mut BTreeMap<String, u32>) {
    let Ok(place) = fs::read_to_string(file) else { return };
    if !matches!(place.as_str(), "" | "0") {
        *waits.entry(place.chars().take(64).collect()).or_default() += 1;
    }
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn stat(pid: u32) -> Option<Stat> {
    Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The entries of a folder that are numbers.
fn numbers(folder: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn io_bytes(pid: u32) -> Option<u64> {
    parse_io(&fs::read_to_string(format!("/proc/{pid}/io")).ok()?)
}

fn parse_io(text: &str) -> Option<u64> {
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse::<u64>().ok();
    Some(field("rchar:")?.saturating_add(field("wchar:")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    fn below_us() -> Tree {
        Tree::below(std::process::id())
    }

    fn shell(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).spawn().unwrap()
    }

    fn until(mut what: impl FnMut() -> bool) {
        let start = std::time::Instant::now();
        while !what() {
            assert!(start.elapsed() < Duration::from_mins(1), "it did not come to pass");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_busy_child_uses_the_processor_and_an_ended_one_is_not_forgotten() {
        let mut tree = below_us();
        let mut child = shell("while :; do :; done");
        until(|| tree.look(false).0.cpu_ms >= 50);
        let (busy, family) = tree.look(false);
        assert!(family.contains(&child.id()) && busy.running >= 1 && busy.rss_bytes > 0, "{busy:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        let (ended, family) = tree.look(false);
        assert!(!family.contains(&child.id()) && ended.cpu_ms >= busy.cpu_ms, "{ended:?}");
    }

    #[test]
    fn sleeping_stopped_and_ended_processes_are_told_apart() {
        let mut tree = below_us();
        let mut child = shell("exec sleep 100");
        until(|| tree.look(true).0.sleeping == 1);
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        until(|| tree.look(true).0.stopped == 1);
        child.kill().unwrap();
        until(|| tree.look(true).0.zombies == 1);
        child.wait().unwrap();
    }

    #[test]
    fn a_number_that_was_a_strangers_is_looked_at_again() {
        let mut tree = below_us();
        let mut child = shell("exec sleep 100");
        tree.strangers.insert(child.id());
        assert!(!tree.look(false).1.contains(&child.id()));
        until(|| tree.look(false).1.contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn damaged_files_give_nothing() {
        assert_eq!(parse_io("rchar: 5\nwchar: 7\nsyscr: 1\n"), Some(12));
        assert_eq!(parse_io("rchar: 5\nwchar: x\n"), None);
        assert_eq!(parse_io(""), None);
        assert_eq!(numbers("/nowhere").count(), 0);
    }
}
