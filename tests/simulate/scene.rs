//! Scripts under `stuckproof run`.

use crate::common::job::{self, Ended, Job, Place};
use crate::common::text;
use std::path::{Path, PathBuf};

/// A script of `fixtures/simulate`.
pub fn fixture(name: &str) -> String {
    text(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/simulate/{name}.toml")))
}

/// A place with a script in it.
pub struct Scene {
    pub place: Place,
}

impl Scene {
    pub fn new() -> Self {
        Self { place: Place::new() }
    }

    /// Where the engine goes.
    pub fn engine(&self) -> PathBuf {
        self.place.file("engine").into()
    }

    /// Where the timing cache is.
    pub fn cache(&self) -> PathBuf {
        self.place.file("cache").into()
    }

    /// The command that plays a script of the fixtures, or one that is written here.
    pub fn command(&self, script: &str) -> Vec<String> {
        let path = if script.contains('\n') {
            let path = self.place.file("script.toml");
            std::fs::write(&path, script).expect("the script can be written");
            path
        } else {
            fixture(script)
        };
        let program = env!("CARGO_BIN_EXE_stuckproof");
        let mut command = vec![program.to_owned(), "simulate".to_owned(), path];
        let files = [("--engine", self.engine()), ("--timing-cache", self.cache())];
        command.extend(files.into_iter().flat_map(|(option, path)| [option.to_owned(), text(path)]));
        command
    }

    /// Runs it to its end.
    pub fn run(self, options: &[&str], script: &str) -> Ended {
        self.start(options, script).end()
    }

    /// Runs it, and asks for a stop once a phase has begun.
    pub fn cancel(self, options: &[&str], script: &str) -> Ended {
        let job = self.start(options, script);
        job.wait_for_event("phaseStarted");
        job.signal(rustix::process::Signal::INT);
        job.end()
    }

    /// Starts it.
    pub fn start(self, options: &[&str], script: &str) -> Job {
        let command = self.command(script);
        job::start(self.place, options, &command)
    }
}

/// A script of one build that does these things, in TensorRT 11.4 unless it says otherwise.
pub fn script(head: &str, build: &str, acts: &str) -> String {
    let version = if head.contains("version") { "" } else { "flavour = \"tensorrt\"\nversion = \"11.4\"\n" };
    format!("{version}{head}\n[[build]]\n{build}\ndo = [\n{acts}\n]\n")
}
