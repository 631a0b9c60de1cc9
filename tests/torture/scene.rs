//! A job whose runner, keeper and command are known, and whose every process is found.

use crate::common::bundle::Bundle;
use crate::common::job::{Job, Place, stuckproof};
use crate::common::marked::{Handle, Mark, Process};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

/// How long those that outlive the runner may take: the keeper's own ladder, on a machine that is busy.
const BOUND: Duration = Duration::from_secs(30);
/// How long a process of the job may be seen after whoever ends it has ended.
const LEFT_BEHIND: Duration = Duration::from_secs(1);

/// Who can be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// `stuckproof run`
    Runner,
    /// The process between it and the command.
    Keeper,
    /// The command.
    Builder,
}

/// A job.
pub struct Scene {
    job: Job,
    mark: Mark,
}

/// The processes of a job at one moment; those that were there.
pub struct Cast {
    runner: Option<Handle>,
    keeper: Option<Handle>,
    builder: Option<Handle>,
}

impl Scene {
    /// Starts `stuckproof run`.
    pub fn start(place: Place, options: &[&str], wrapped: &[String]) -> Self {
        let mark = Mark::new();
        let mut command = place.run(options, wrapped);
        mark.put_on(&mut command);
        Self { job: Job::start(place, command), mark }
    }

    /// The job.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Looks who is there.
    pub fn cast(&self) -> Cast {
        let runner = self.job.pid().as_raw_nonzero().get().unsigned_abs();
        let all = self.mark.living();
        let keeper = all.iter().find(|p| p.parent == runner && p.line.contains(" __keep "));
        let leads = |p: &&Process| Some(p.parent) == keeper.map(|k| k.pid) && p.group == p.pid;
        let builder = all.iter().find(leads);
        Cast {
            runner: Handle::of(runner),
            keeper: keeper.and_then(|p| Handle::of(p.pid)),
            builder: builder.and_then(|p| Handle::of(p.pid)),
        }
    }

    /// Waits until whoever of the runner and the keeper lives has done its work. Fails when that takes too long, or when
    /// a process of the job lives on.
    pub fn settle(self, cast: &Cast) -> Place {
        let Self { job, mark } = self;
        let start = Instant::now();
        let ended = job.end();
        match &cast.keeper {
            Some(keeper) => wait_within(BOUND, "the keeper's end", || keeper.has_ended()),
            None => wait_within(BOUND, "the end of everything", || mark.living().is_empty()),
        }
        assert!(start.elapsed() < BOUND, "it took {:?}", start.elapsed());
        wait_within(LEFT_BEHIND, "nothing of the job lives", || mark.living().is_empty());
        ended.place
    }
}

impl Cast {
    /// Whether the command runs.
    pub fn has_builder(&self) -> bool {
        self.builder.is_some()
    }

    /// Kills one; false when it was not there any more, or not yet.
    pub fn kill(&self, target: Target) -> bool {
        let handle = match target {
            Target::Runner => &self.runner,
            Target::Keeper => &self.keeper,
            Target::Builder => &self.builder,
        };
        handle.as_ref().is_some_and(Handle::kill)
    }
}

/// Waits for a condition that must come within a time.
pub fn wait_within(limit: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < limit, "waited in vain for {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// `stuckproof finalize`.
pub fn finalize(bundle: &Path) -> Output {
    stuckproof().arg("finalize").arg(bundle).output().expect("stuckproof starts")
}

/// Finishes a bundle, and once more, which must change nothing, and reads it.
pub fn finished(bundle: &Path) -> Bundle {
    for _ in 0..2 {
        let before = Bundle::is_finished(bundle).then(|| files(bundle));
        let done = finalize(bundle);
        assert!(done.status.success(), "{done:?}");
        assert!(before.is_none_or(|before| before == files(bundle)), "a finished bundle was changed");
    }
    Bundle::load_whoever_finished(bundle)
}

/// Every file below a folder, with what it holds.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).expect("a file"));
        }
    }
    found
}
