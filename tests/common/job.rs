//! A job under `stuckproof run`.

use super::bundle::Bundle;
use super::{command, now_ns, text, wait_for};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;
use tempfile::TempDir;

/// A folder with a job's bundle and whatever else the test needs. It goes when this is dropped.
pub struct Place {
    folder: TempDir,
}

/// A job that runs.
pub struct Job {
    place: Place,
    child: Child,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

/// A job that has ended.
pub struct Ended {
    /// Where its files are.
    pub place: Place,
    /// How the runner ended.
    pub status: ExitStatus,
    /// What it passed on.
    pub stdout: String,
    /// What it passed on, with its own lines.
    pub stderr: String,
    /// When the runner's end was noticed.
    pub exited_ns: u64,
}

impl Place {
    /// An empty folder.
    pub fn new() -> Self {
        Self {
            folder: tempfile::Builder::new()
                .prefix("stuckproof-test-")
                .tempdir()
                .expect("a temporary folder"),
        }
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> String {
        text(self.folder.path().join(name))
    }

    /// Where the bundle is.
    pub fn bundle(&self) -> PathBuf {
        self.folder.path().join("bundle")
    }

    /// `stuckproof run` with options, ready to be started.
    pub fn run(&self, options: &[&str], wrapped: &[String]) -> Command {
        let mut run = stuckproof();
        run.arg("run").arg("--bundle").arg(self.bundle()).args(options).arg("--").args(wrapped);
        run.stdin(Stdio::null());
        run
    }
}

/// The binary.
pub fn stuckproof() -> Command {
    command(env!("CARGO_BIN_EXE_stuckproof"))
}

/// Runs a command without stuckproof.
pub fn alone(wrapped: &[String]) -> Output {
    let mut bare = command(&wrapped[0]);
    bare.args(&wrapped[1..]).stdin(Stdio::null()).output().expect("the command starts")
}

/// Runs a job to its end.
pub fn run(options: &[&str], wrapped: &[String]) -> Ended {
    let place = Place::new();
    let command = place.run(options, wrapped);
    Job::start(place, command).end()
}

/// Starts a job.
pub fn start(place: Place, options: &[&str], wrapped: &[String]) -> Job {
    let command = place.run(options, wrapped);
    Job::start(place, command)
}

impl Job {
    /// Starts a prepared command.
    pub fn start(place: Place, mut command: Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("stuckproof starts");
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        Self { place, child, stdout, stderr }
    }

    /// Where its files are.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The runner's process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Signals the runner, and only it.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the runner can be signalled");
    }

    /// Closes the runner's standard input, where it was given a pipe.
    pub fn close_stdin(&mut self) {
        drop(self.child.stdin.take().expect("stdin is a pipe"));
    }

    /// Waits for the first event of a kind in the log.
    pub fn wait_for_event(&self, kind: &str) -> serde_json::Value {
        let bundle = self.place.bundle();
        wait_for(&format!("an event {kind}"), || {
            Bundle::lines_so_far(&bundle, &[&format!("\"event\":\"{kind}\"")]).into_iter().next()
        })
    }

    /// Waits for the end of a runner that was killed, and gives the place of its files.
    pub fn end_of_the_killed(self) -> Place {
        let ended = self.end();
        assert_eq!(ended.status.code(), None, "it was ended by a signal: {}", ended.stderr);
        ended.place
    }

    /// Waits for the runner's end.
    pub fn end(mut self) -> Ended {
        let pid = pidfd_open(self.pid(), PidfdFlags::empty()).expect("the runner is our child");
        drop(self.child.stdin.take());
        wait_for("the runner's end", || has_ended(&pid).then_some(()));
        let exited_ns = now_ns();
        let status = self.child.wait().expect("the runner is our child");
        let text = |stream: Option<JoinHandle<Vec<u8>>>| {
            let bytes = stream.expect("streams are pipes").join().expect("the reader does not panic");
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (stdout, stderr) = (text(self.stdout.take()), text(self.stderr.take()));
        Ended { place: self.place, status, stdout, stderr, exited_ns }
    }
}

impl Ended {
    /// The bundle.
    pub fn bundle(&self) -> Bundle {
        Bundle::load(&self.place.bundle())
    }

    /// The runner's exit code.
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| panic!("the runner was ended by a signal: {}", self.status))
    }

    /// What came on stderr besides the runner's own lines.
    pub fn foreign_stderr(&self) -> String {
        self.stderr
            .lines()
            .filter(|line| !line.starts_with("stuckproof: "))
            .fold(String::new(), |all, line| all + line + "\n")
    }

    /// The bundle's place as the last line on stderr says it.
    pub fn announced(&self) -> Option<&Path> {
        self.stderr.lines().last()?.strip_prefix("stuckproof: evidence: ").map(Path::new)
    }
}

/// Starts to wait for the end of a process that is not our child, and gives the moment of it.
pub fn watch_end(pid: u32) -> JoinHandle<u64> {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a process id")).expect("a process id");
    let fd = pidfd_open(pid, PidfdFlags::empty()).expect("the process lives");
    std::thread::spawn(move || {
        let mut polled = [PollFd::new(&fd, PollFlags::IN)];
        while poll(&mut polled, None).is_err() {}
        now_ns()
    })
}

fn has_ended(pid: &rustix::fd::OwnedFd) -> bool {
    let none = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(pid, PollFlags::IN)], Some(&none)) == Ok(1)
}

fn collect(mut stream: impl std::io::Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("the stream can be read");
        bytes
    })
}
