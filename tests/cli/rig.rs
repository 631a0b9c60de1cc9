//! What every test needs: a folder of its own, a runner in it, and patience.

use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The program under test.
pub const STUCKPROOF: &str = env!("CARGO_BIN_EXE_stuckproof");

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a CI host would set, and what a job around the tests would.
const FOREIGN: [&str; 10] = [
    "STUCKPROOF_HOST_ALLOWS",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "BUILDKITE",
    "TF_BUILD",
    "CIRCLECI",
    "JENKINS_URL",
    "CI",
    "STUCKPROOF_JOB",
    "STUCKPROOF_WIRE",
];

/// A folder with its own place for sockets, so that tests that run at the same time do not see each other's jobs.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("runtime")).unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program, in this folder.
    pub fn stuckproof(&self) -> Command {
        let mut command = Command::new(STUCKPROOF);
        self.furnish(&mut command);
        command
    }

    /// Gives a command this folder and a clean environment.
    pub fn furnish(&self, command: &mut Command) {
        for name in FOREIGN {
            command.env_remove(name);
        }
        command
            .current_dir(self.folder.path())
            .env("XDG_RUNTIME_DIR", self.path("runtime"))
            .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
            .env("STUCKPROOF_HISTORY", "none")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    /// `stuckproof run --bundle bundle OPTIONS -- sh -c SCRIPT`.
    pub fn run(&self, options: &[&str], script: &str) -> Command {
        let mut command = self.stuckproof();
        command.args(["run", "--bundle", "bundle"]).args(options).args(["--", "sh", "-c", script]);
        command
    }

    /// Runs a script to its end.
    pub fn ran(&self, options: &[&str], script: &str) -> Done {
        finish(self.run(options, script).spawn().unwrap())
    }

    /// Starts a script and waits until it has said `ready` and its start is on record.
    pub fn started(&self, options: &[&str], script: &str) -> Child {
        let child = self.run(options, script).spawn().unwrap();
        let log = self.path("bundle/stdout.log");
        wait_until("the script is ready", || fs::read_to_string(&log).is_ok_and(|t| t.contains("ready")));
        wait_until("its start is on record", || !self.events_of("commandStarted").is_empty());
        child
    }

    /// Runs another verb to its end.
    pub fn verb<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Done {
        finish(self.stuckproof().args(arguments).spawn().unwrap())
    }

    /// The lines of the log that are whole.
    pub fn events(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path("bundle/events.jsonl")).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events of one kind.
    pub fn events_of(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == kind).collect()
    }

    /// The only event of a kind.
    pub fn event(&self, kind: &str) -> Value {
        let mut events = self.events_of(kind);
        assert_eq!(events.len(), 1, "{kind}: {events:?}");
        events.remove(0)
    }

    /// A JSON file of the bundle.
    pub fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path("bundle").join(name)).unwrap()).unwrap()
    }

    /// The rungs that were climbed.
    pub fn rungs(&self) -> Vec<String> {
        self.events_of("ladderRung").iter().map(|r| r["rung"].as_str().unwrap().to_owned()).collect()
    }

    /// The name of the running job.
    pub fn job(&self) -> String {
        self.event("jobStarted")["job"].as_str().unwrap().to_owned()
    }
}

/// A program that ended.
#[derive(Debug)]
pub struct Done {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Done {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Fails unless it ended with this code.
    pub fn assert_code(&self, code: i32) {
        assert_eq!(self.code(), Some(code), "signal {:?}\n{}", self.status.signal(), self.stderr);
    }
}

/// Reads all output and waits for the end.
pub fn finish(mut child: Child) -> Done {
    let stdout = child.stdout.take().map(read_on_thread);
    let stderr = child.stderr.take().map(read_on_thread);
    let status = end_of(&mut child);
    let read = |thread: Option<std::thread::JoinHandle<Vec<u8>>>| thread.map(|t| t.join().unwrap());
    let stderr = String::from_utf8_lossy(&read(stderr).unwrap_or_default()).into_owned();
    Done { status, stdout: read(stdout).unwrap_or_default(), stderr }
}

fn read_on_thread(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// Waits for the end of a program that must end.
pub fn end_of(child: &mut Child) -> ExitStatus {
    let mut status = None;
    wait_until("the runner ends", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

/// Waits for a condition that must come.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal by its name.
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Whether a process lives.
pub fn lives(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// The names in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
