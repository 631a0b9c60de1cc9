//! How long the machine itself makes everybody wait, while a test measures how long stuckproof does.
//!
//! A bound in milliseconds says nothing on a machine whose cores and disk are taken by others. A thread on each core
//! does what any program must: it sleeps for a millisecond, and one of them also writes a few bytes and syncs them. What
//! that took beyond its own time is the noise of that moment, and a bound may be late by so much.

use super::now_ns;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const NAP: Duration = Duration::from_millis(1);
/// What is said of a moment holds a little before and after it.
const AROUND_NS: u64 = 200_000_000;
/// Another thread of the same core may be one turn behind the one that measured.
const TURNS: f64 = 2.0;

/// One wait: when it began and ended, and how much of it was noise, nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Wait {
    from: u64,
    to: u64,
    noise: u64,
}

/// Threads that measure.
pub struct Listener {
    on: Arc<AtomicBool>,
    with_disk: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Wait>>>,
}

/// What was measured.
pub struct Noise(Vec<Wait>);

impl Listener {
    /// Begins to measure; syncs go to a file of this name.
    pub fn start(file: &str) -> Self {
        let mut disk = Some(File::create(file).expect("the file can be made"));
        let (on, with_disk) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicBool::new(true)));
        let listen_on = |core| {
            let (on, with_disk) = (Arc::clone(&on), Arc::clone(&with_disk));
            let file = disk.take();
            std::thread::spawn(move || listen(core, file, &on, &with_disk))
        };
        let threads = cores().into_iter().map(listen_on).collect();
        Self { on, with_disk, threads }
    }

    /// Leaves the disk alone from now on.
    pub fn leave_disk(&self) {
        self.with_disk.store(false, Ordering::Relaxed);
    }

    /// Ends.
    pub fn stop(self) -> Noise {
        self.on.store(false, Ordering::Relaxed);
        Noise(self.threads.into_iter().flat_map(|t| t.join().expect("a listener does not panic")).collect())
    }
}

impl Noise {
    /// How much later than on a quiet machine something may come that happens in this time, milliseconds.
    pub fn between(&self, from: u64, to: u64) -> f64 {
        let near = |wait: &&Wait| wait.to + AROUND_NS >= from && wait.from <= to + AROUND_NS;
        TURNS * self.0.iter().filter(near).map(|wait| wait.noise).max().unwrap_or(0) as f64 / 1e6
    }
}

/// The cores that this process may use.
fn cores() -> Vec<usize> {
    let allowed = sched_getaffinity(None).expect("our own affinity");
    (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect()
}

fn listen(core: usize, mut file: Option<File>, on: &AtomicBool, with_disk: &AtomicBool) -> Vec<Wait> {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).expect("a core that we may use");
    let mut waits = Vec::new();
    while on.load(Ordering::Relaxed) {
        let from = now_ns();
        std::thread::sleep(NAP);
        if let Some(file) = file.as_mut().filter(|_| with_disk.load(Ordering::Relaxed)) {
            file.write_all(b"noise\n").and_then(|()| file.sync_data()).expect("the file can be written");
        }
        let to = now_ns();
        waits.push(Wait { from, to, noise: (to - from).saturating_sub(NAP.as_nanos() as u64) });
    }
    waits
}
