//! What stood around a build when it began: machine, container, limits, GPUs, CI job, environment, `TensorRT` files.
//!
//! It is read before the command starts, for as long as that takes a machine that answers: what cannot be read is recorded as
//! such with its reason, and a driver that does not answer costs the job a fifth of a second and no more.

mod cgroup;
mod ci;
mod environment;
mod gpu;
mod libraries;
mod machine;
mod model;
mod sku;
mod visible;

pub use model::*;

use crate::clock::Mono;
use crate::event::{JobStarted, plain};
use crate::fsio::{FsError, write_all_at_last, write_all_atomic};
use crate::mask::Secrets;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The file's name in a bundle.
pub const BASELINE: &str = "baseline.json";

/// How long the rest waits for the GPU before it is written without it.
const GPU_PATIENCE: Duration = Duration::from_millis(200);
/// How long the command waits for the rest: a machine that is busy with other work is slow to tell, and a file system that does
/// not answer must not keep a build from its start.
const START_PATIENCE: Duration = Duration::from_secs(2);
/// How long the end of a job waits for a driver that has not answered yet.
const END_PATIENCE: Duration = Duration::from_millis(300);
/// More than any baseline has; a longer file is not read.
const LONGEST: u64 = 8 << 20;

/// Reasons for what is missing, by the field's path.
#[derive(Debug, Default)]
struct Nulls(BTreeMap<String, String>);

impl Nulls {
    fn put(&mut self, field: &str, why: impl Display) {
        self.0.insert(field.to_owned(), why.to_string());
    }

    /// The value, or the reason on record.
    fn keep<T>(&mut self, field: &str, read: Result<T, impl Display>) -> Option<T> {
        read.map_err(|why| self.put(field, why)).ok()
    }
}

/// A recording that goes on beside the job.
#[derive(Debug)]
pub struct Recording {
    taken: Receiver<()>,
    over: Receiver<()>,
    file: Arc<File>,
}

/// The file, until it is closed.
#[derive(Debug)]
struct File {
    bundle: PathBuf,
    secrets: Arc<Secrets>,
    state: Mutex<State>,
}

/// Whether more may be written, and what could not be.
#[derive(Debug, Default)]
struct State {
    closed: bool,
    unwritten: Option<Vec<u8>>,
}

/// Begins to record the baseline of a job.
///
/// # Errors
/// When the machine has no thread left.
pub fn begin(bundle: &Path, header: &JobStarted, secrets: &Arc<Secrets>) -> io::Result<Recording> {
    let secrets = Arc::clone(secrets);
    let file = Arc::new(File { bundle: bundle.to_owned(), secrets, state: Mutex::default() });
    let (tell_gpu, gpu) = mpsc::channel();
    thread("stuckproof-gpu", move || drop(tell_gpu.send(gpu::read())))?;
    let (tell_taken, taken) = mpsc::channel();
    let (tell_over, over) = mpsc::channel();
    let (header, own) = (header.clone(), Arc::clone(&file));
    thread("stuckproof-baseline", move || {
        record(&header, &own, &gpu, &tell_taken);
        // Nobody listens any more where the job has ended before.
        let _ = tell_over.send(());
    })?;
    Ok(Recording { taken, over, file })
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Writes the baseline as soon as everything is known, or without the GPU and again with it.
fn record(header: &JobStarted, file: &File, gpu: &Receiver<(Gpu, Nulls)>, taken: &Sender<()>) {
    let (mut baseline, nulls) = gather(header);
    let unanswered = || {
        let mut nulls = Nulls::default();
        nulls.put("gpu", "the driver had not answered before the job ended");
        (Gpu::default(), nulls)
    };
    let early = gpu.recv_timeout(GPU_PATIENCE).ok();
    let late = early.is_none();
    let now = Mono::now();
    // What is left is to write it, which the command need not wait for.
    let _ = taken.send(());
    file.write(header, now, &mut baseline, &nulls, early.unwrap_or_else(unanswered));
    if late && let Ok(found) = gpu.recv() {
        file.write(header, Mono::now(), &mut baseline, &nulls, found);
    }
}

fn gather(header: &JobStarted) -> (Baseline, Nulls) {
    let mut nulls = Nulls::default();
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let tensorrt_files = libraries::find(&header.argv, &variable);
    if tensorrt_files.is_empty() {
        nulls.put(
            "tensorrtFiles",
            "none lies on LD_LIBRARY_PATH, in the usual folders or in the command's Python",
        );
    }
    let ci = header.ci_host.as_deref().map(|host| ci::read(host, &variable, &mut nulls));
    if ci.is_none() {
        nulls.put("ci", "no CI host was recognised");
    }
    let baseline = Baseline {
        format: 1,
        job: header.job.clone(),
        at: String::new(),
        t_ns: 0,
        machine: machine::read(&mut nulls),
        container: machine::container(&mut nulls),
        limits: cgroup::read(&mut nulls),
        gpu: Gpu::default(),
        ci,
        environment: environment::read(),
        tensorrt_files,
        nulls: BTreeMap::new(),
    };
    (baseline, nulls)
}

impl File {
    fn write(
        &self,
        header: &JobStarted,
        now: Mono,
        baseline: &mut Baseline,
        nulls: &Nulls,
        (gpu, gpu_nulls): (Gpu, Nulls),
    ) {
        (baseline.at, baseline.t_ns) = (header.anchor().rfc3339(now), now.0);
        baseline.gpu = gpu;
        baseline.nulls = nulls.0.clone();
        baseline.nulls.extend(gpu_nulls.0);
        let masked = self.secrets.document(baseline.clone());
        let json = serde_json::to_vec_pretty(&masked).expect("plain data serialises");
        let mut json = plain(json);
        json.push(b'\n');
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.closed {
            // What cannot be written is tried once more at the end.
            let written = write_all_atomic(&self.bundle, &[(BASELINE, &json)]);
            state.unwritten = written.is_err().then_some(json);
        }
    }

    /// Nothing is written after this but what could not be written before: a disk that was full may have room now.
    fn close(&self) -> Result<(), FsError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.closed = true;
        match state.unwritten.take() {
            Some(json) => write_all_at_last(&self.bundle, &[(BASELINE, &json)]),
            None => Ok(()),
        }
    }
}

impl Recording {
    /// Waits until the surroundings are known, the GPUs perhaps excepted, so that they were before the first phase.
    pub fn wait(&self) {
        let _ = self.taken.recv_timeout(START_PATIENCE);
    }

    /// The job has ended: waits a moment for what is missing. Nothing is written to the bundle after this.
    ///
    /// # Errors
    /// When the bundle could not be written.
    pub fn finish(self) -> Result<(), FsError> {
        // A recording that is not over by then has written what it had, or nothing: a reader of the bundle is told so.
        let _ = self.over.recv_timeout(END_PATIENCE);
        self.file.close()
    }
}

/// The reason where a bundle has no baseline.
#[must_use]
pub fn missing() -> String {
    "the job's surroundings are not recorded: there is no baseline.json".to_owned()
}

/// Reads the baseline in a bundle; the error is the reason for there being none.
pub fn load(bundle: &Path) -> Result<Baseline, String> {
    let path = bundle.join(BASELINE);
    // A pipe in its place would be waited for.
    if path.metadata().is_ok_and(|facts| !facts.is_file()) {
        return Err("baseline.json is not a file".to_owned());
    }
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(missing());
        }
        Err(e) => return Err(format!("baseline.json cannot be opened: {e}")),
    };
    let mut json = Vec::new();
    let read = file.take(LONGEST).read_to_end(&mut json);
    read.map_err(|e| format!("baseline.json cannot be read: {e}"))?;
    parse(&json)
}

/// The baseline in the bytes of its file; the error is the reason for there being none.
pub fn parse(json: &[u8]) -> Result<Baseline, String> {
    let json = &json[..json.len().min(LONGEST as usize)];
    serde_json::from_slice(json).map_err(|e| format!("baseline.json is not what was written: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> JobStarted {
        JobStarted {
            format: 1,
            job: "j".to_owned(),
            stuckproof: String::new(),
            argv: vec!["true".to_owned()],
            cwd: String::new(),
            host: String::new(),
            runner_pid: 1,
            ci_host: None,
            host_profile: Box::default(),
            anchor_mono_ns: 0,
            anchor_wall_ns: 0,
            grace_ms: None,
            kill_after_ms: 0,
            deadline_ms: None,
            deadline_from: None,
            phase_limit_ms: None,
            attempt: None,
            environment_changes: Vec::new(),
            bundle: String::new(),
            wire: String::new(),
            streams: String::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_driver_that_does_not_answer_leaves_a_baseline_that_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let file =
            File { bundle: folder.path().to_owned(), secrets: Arc::default(), state: Mutex::default() };
        let (tell_gpu, gpu) = mpsc::channel();
        let (tell_taken, taken) = mpsc::channel();
        std::thread::scope(|scope| {
            let file = &file;
            let recording = scope.spawn(move || record(&header(), file, &gpu, &tell_taken));
            let start = std::time::Instant::now();
            while !folder.path().join(BASELINE).exists() {
                assert!(start.elapsed() < Duration::from_secs(30), "nothing was written");
                std::thread::sleep(Duration::from_millis(5));
            }
            let early = load(folder.path()).unwrap();
            assert_eq!(early.gpu.usable, None);
            assert!(early.nulls["gpu"].contains("not answered"), "{:?}", early.nulls);
            let found = Gpu { usable: Some(true), ..Gpu::default() };
            tell_gpu.send((found, Nulls::default())).unwrap();
            recording.join().unwrap();
            assert_eq!(taken.iter().count(), 1, "the command did not wait for the driver");
        });
        let late = load(folder.path()).unwrap();
        assert_eq!(late.gpu.usable, Some(true));
        assert!(!late.nulls.contains_key("gpu"));
    }

    #[test]
    fn nothing_is_written_after_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = File {
            bundle: folder.path().to_owned(),
            secrets: Arc::default(),
            state: Mutex::new(State { closed: true, unwritten: None }),
        };
        let (mut baseline, nulls) = gather(&header());
        file.write(&header(), Mono::now(), &mut baseline, &nulls, (Gpu::default(), Nulls::default()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_bundle_that_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let recording = begin(&folder.path().join("missing"), &header(), &Arc::default()).unwrap();
        assert!(recording.finish().is_err());
    }

    #[test]
    fn a_baseline_that_cannot_be_used_gives_its_reason() {
        let folder = tempfile::tempdir().unwrap();
        assert!(load(folder.path()).unwrap_err().contains("there is no baseline.json"));
        std::fs::write(folder.path().join(BASELINE), "{}").unwrap();
        assert!(load(folder.path()).unwrap_err().contains("not what was written"));
        std::fs::remove_file(folder.path().join(BASELINE)).unwrap();
        let pipe = folder.path().join(BASELINE);
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        assert!(load(folder.path()).unwrap_err().contains("not a file"), "a pipe is not waited for");
    }
}
