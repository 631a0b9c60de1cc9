//! What the tests of the real binary share: the rig, jobs under `stuckproof run`, and what their bundles say.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod bundle;
pub mod chance;
pub mod job;
pub mod marked;
pub mod noise;
pub mod tree;
pub mod without;
pub mod witness;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Long enough for anything that is not broken, on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// No signal follows a request: on a busy machine a step of twelve seconds can last longer than the usual grace.
pub const NO_SIGNALS: [&str; 2] = ["--grace", "none"];

/// `CLOCK_MONOTONIC` in nanoseconds: the outside clock.
pub fn now_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Waits until `condition` gives something. Panics with `what` when that takes too long.
pub fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < PATIENCE, "gave up waiting for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A part of the rig. A missing one fails the test.
fn part(path: &str) -> PathBuf {
    let full = repository().join(".rig").join(path);
    assert!(full.exists(), "{} is missing: run scripts/rig", full.display());
    full
}

/// A model of the rig, by its file name without `.onnx`.
pub fn model(name: &str) -> String {
    text(part(&format!("models/{name}.onnx")))
}

/// A compiled C++ client.
pub fn client(name: &str) -> String {
    text(part(&format!("clients/{name}")))
}

/// A program that has nothing to do with `TensorRT`.
pub fn program(name: &str) -> String {
    text(part(&format!("programs/{name}")))
}

/// A command of the rig's Python environment.
pub fn environment(name: &str) -> String {
    text(part(&format!("venv/bin/{name}")))
}

/// The command line of a Python client.
pub fn script(name: &str, arguments: &[&str]) -> Vec<String> {
    let path = repository().join("fixtures/clients/python").join(name);
    let start = [environment("python"), text(path)];
    start.into_iter().chain(arguments.iter().map(|&a| a.to_owned())).collect()
}

/// A path as text: every path here is.
pub fn text(path: impl Into<PathBuf>) -> String {
    path.into().into_os_string().into_string().expect("paths of the rig are UTF-8")
}

/// A command that knows nothing of the machine it runs on: no CI host, no job around it, no preload, no earlier
/// builds. What it unpacks or remembers stays out of the user's home.
pub fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    let foreign = |name: &str| {
        [
            "CI",
            "LD_PRELOAD",
            "ASAN_OPTIONS",
            "GITHUB_ACTIONS",
            "GITLAB_CI",
            "BUILDKITE",
            "TF_BUILD",
            "CIRCLECI",
        ]
        .contains(&name)
            || name.starts_with("JENKINS")
            || name.starts_with("STUCKPROOF_")
    };
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(foreign) {
            command.env_remove(name);
        }
    }
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("STUCKPROOF_HISTORY", "none");
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}
