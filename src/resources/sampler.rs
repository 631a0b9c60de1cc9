//! The thread that samples. It hands each sample on, and writes some of them down.

use super::RESOURCES;
use super::gpu::Gpus;
use super::model::{Header, Sample};
use super::schedule::{is_due, until_next};
use super::tree::Tree;
use crate::clock::Mono;
use crate::event::plain;
use crate::fsio::{FsError, create_append_only};
use serde::Serialize;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thiserror::Error;

/// How long the end of a job waits for a sample that is being taken.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// Why nothing is sampled.
#[derive(Debug, Error)]
pub enum StartError {
    /// The file cannot be made.
    #[error(transparent)]
    File(#[from] FsError),
    /// There is no thread left.
    #[error("cannot start a thread: {0}; the machine is short of processes")]
    Thread(io::Error),
}

/// A sampler at work.
#[derive(Debug)]
pub struct Sampler {
    stop: SyncSender<()>,
    over: Receiver<()>,
    record: Arc<Mutex<Record>>,
}

impl Sampler {
    /// Starts to sample what descends from `root`, into the file in `bundle`. Each sample is also handed to `hand_on`.
    ///
    /// # Errors
    /// When the file or the thread cannot be made.
    pub fn start(
        bundle: &Path,
        job: &str,
        root: u32,
        hand_on: impl FnMut(Sample) + Send + 'static,
    ) -> Result<Self, StartError> {
        let path = bundle.join(RESOURCES);
        let file = create_append_only(&path)?;
        let cpus = std::thread::available_parallelism().map_or(0, |cpus| cpus.get() as u64);
        let header = Header { format: 1, job: job.to_owned(), cpus, root_pid: root };
        let record = Arc::new(Mutex::new(Record { path, file, fault: None, closed: false }));
        let (stop, stopped) = mpsc::sync_channel(1);
        let (done, over) = mpsc::sync_channel(1);
        let own = Arc::clone(&record);
        let work = move || {
            sample(Tree::below(root), &header, &own, &stopped, hand_on);
            // A job that has given up on the last look is not told any more.
            let _ = done.send(());
        };
        let thread = std::thread::Builder::new().name("stuckproof-resources".to_owned());
        thread.spawn(work).map_err(StartError::Thread)?;
        Ok(Self { stop, over, record })
    }

    /// Ends it. Nothing is written after this. The error says what is missing in the file.
    ///
    /// # Errors
    /// When a line could not be written.
    pub fn stop(self) -> Result<(), String> {
        let _ = self.stop.try_send(());
        let answered = self.over.recv_timeout(LAST_LOOK).is_ok();
        locked(&self.record).close()?;
        if answered {
            Ok(())
        } else {
            Err(format!("{RESOURCES} may lack its last line: /proc did not answer"))
        }
    }
}

fn sample(
    mut tree: Tree,
    header: &Header,
    record: &Mutex<Record>,
    stopped: &Receiver<()>,
    mut hand_on: impl FnMut(Sample),
) {
    locked(record).put(header);
    let gpus = Gpus::watch();
    let start = Mono::now();
    let (mut line, mut percent) = (start, Vec::new());
    loop {
        let before = own_cpu();
        let now = Mono::now();
        let written = is_due(now.since(start), now.since(line));
        let (seen, family) = tree.look(written);
        let gpus = gpus.now(&family, &mut percent);
        let cost = own_cpu().saturating_sub(before);
        let cost_us = u64::try_from(cost.as_micros()).unwrap_or(u64::MAX);
        let seen = Sample { t: now.0, gpus, cost_us, ..seen };
        if written {
            locked(record).put(&seen);
            percent.clear();
            line = now;
        }
        hand_on(seen);
        if stopped.recv_timeout(until_next(cost)) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

fn locked(record: &Mutex<Record>) -> MutexGuard<'_, Record> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The processor time of this thread.
fn own_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The file, and the first thing that went wrong with it.
#[derive(Debug)]
struct Record {
    path: PathBuf,
    file: File,
    fault: Option<FsError>,
    /// A bundle that is sealed must not change, whatever a late look still brings.
    closed: bool,
}

impl Record {
    /// Writes one line. After a fault no line follows, so that none is ever torn in the middle of the file.
    fn put(&mut self, line: &impl Serialize) {
        if self.closed || self.fault.is_some() {
            return;
        }
        let mut json = plain(serde_json::to_vec(line).expect("numbers and texts serialise"));
        json.push(b'\n');
        self.fault = self.file.write_all(&json).map_err(|e| FsError::new("write", &self.path, e)).err();
    }

    fn close(&mut self) -> Result<(), String> {
        self.closed = true;
        let told = |fault: &FsError| Err(format!("what the job used is not on record to its end: {fault}"));
        self.fault.as_ref().map_or(Ok(()), told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(folder: &Path) -> Vec<String> {
        std::fs::read_to_string(folder.join(RESOURCES)).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_short_job_has_a_header_and_a_sample() {
        let folder = tempfile::tempdir().unwrap();
        let (tell, told) = mpsc::channel();
        let sampler =
            Sampler::start(folder.path(), "j", std::process::id(), move |s| tell.send(s).unwrap()).unwrap();
        let sample = told.recv().unwrap();
        sampler.stop().unwrap();
        let lines = lines(folder.path());
        assert_eq!(serde_json::from_str::<Header>(&lines[0]).unwrap().job, "j");
        assert_eq!(serde_json::from_str::<Sample>(&lines[1]).unwrap(), sample);
    }

    #[test]
    fn a_full_disk_is_told_and_sampling_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(RESOURCES);
        let file = File::options().write(true).open("/dev/full").unwrap();
        let mut record = Record { path, file, fault: None, closed: false };
        record.put(&Sample::default());
        record.put(&Sample::default());
        let fault = record.close().unwrap_err();
        assert!(fault.contains("free some space"), "{fault}");
    }

    #[test]
    fn nothing_is_written_to_a_closed_record() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(RESOURCES);
        let file = create_append_only(&path).unwrap();
        let mut record = Record { path, file, fault: None, closed: false };
        record.put(&Sample::default());
        record.close().unwrap();
        record.put(&Sample::default());
        assert_eq!(lines(folder.path()).len(), 1);
    }

    #[test]
    fn a_bundle_that_has_vanished_does_not_end_the_sampling() {
        let folder = tempfile::tempdir().unwrap();
        let (tell, told) = mpsc::channel();
        let hand_on = move |sample| drop(tell.send(sample));
        let sampler = Sampler::start(folder.path(), "j", std::process::id(), hand_on).unwrap();
        drop(folder);
        told.recv().unwrap();
        told.recv().unwrap();
        sampler.stop().unwrap();
    }

    #[test]
    fn without_a_bundle_nothing_starts() {
        let error = Sampler::start(Path::new("/nowhere"), "j", 1, |_| {}).unwrap_err();
        assert!(error.to_string().contains("/nowhere"), "{error}");
    }
}
