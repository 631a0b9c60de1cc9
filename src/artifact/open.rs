//! One artifact that is being settled: it is looked at, put where it belongs by renames, and looked at once more.

use super::cache::{self, Said};
use super::fate::Written;
use super::quarantine::Entry;
use super::settle::Journal;
use super::{copy, facts, look, place, work};
use crate::event::{
    ArtifactDeclared, ArtifactFacts, ArtifactKind, ArtifactMode, ArtifactOutcome, ArtifactSettled,
    CachePolicy, SettledBy,
};
use crate::fsio;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// An artifact that is being settled.
pub(super) struct Open<'a> {
    pub(super) declared: &'a ArtifactDeclared,
    pub(super) target: PathBuf,
    pub(super) written: PathBuf,
    pub(super) kept: PathBuf,
    pub(super) entry: Entry,
    /// Whether the work folder is there and this job's; nothing is touched otherwise.
    pub(super) ours: bool,
    pub(super) hurry: bool,
    /// What was accepted, once it is at its path.
    pub(super) published: Option<ArtifactFacts>,
    /// What the builders said of the timing cache.
    pub(super) said: &'a Said,
    /// Why what the command wrote to the timing cache is not wanted, once that is clear.
    pub(super) discarded: Option<String>,
    /// Why the timing cache that was there before was set aside, once it was.
    pub(super) set_aside: Option<String>,
    /// The lock of the timing cache's folder, from the check until the cache is at its path.
    pub(super) lock: Option<File>,
    pub(super) settled: ArtifactSettled,
}

impl<'a> Open<'a> {
    pub(super) fn new(declared: &'a ArtifactDeclared, said: &'a Said, job: &str, hurry: bool) -> Self {
        let work = Path::new(&declared.work);
        let target = PathBuf::from(&declared.target);
        let shared = cache::is_shared(declared);
        let expected = if shared { place::shared_work(&target, job) } else { place::work(&target) };
        let ours = work == expected && work::of_job(work, job).as_ref() == Some(declared);
        if ours {
            // From here on even a full disk has room. Where this fails, so will what needs it, and says so.
            let _ = fsio::release(work);
        }
        let settled = ArtifactSettled {
            artifact: declared.artifact,
            outcome: ArtifactOutcome::Failed,
            reason: String::new(),
            fault: None,
            previous_sha256: None,
            after: None,
            partial: None,
            quarantine: None,
            content: None,
            timing_cache: None,
            undeclared: Vec::new(),
            by: SettledBy::Runner,
        };
        Self {
            declared,
            written: PathBuf::from(&declared.written),
            kept: place::kept(work),
            entry: Entry::new(&target, job, declared.artifact),
            target,
            ours,
            hurry,
            published: None,
            said,
            discarded: None,
            set_aside: None,
            lock: None,
            settled,
        }
    }

    /// Whether what the command wrote may be published: its facts, with the digest; none where it wrote nothing new.
    pub(super) fn check(&mut self) -> Result<Option<ArtifactFacts>, String> {
        if !self.ours {
            return Err(self.not_ours());
        }
        let written = self.actual().to_owned();
        let failed = |e| format!("{} cannot be read: {e}", written.display());
        let engine = self.declared.kind == ArtifactKind::Engine;
        match self.look_at_written().map_err(failed)? {
            Written::Nothing if engine => Err(format!("the command wrote nothing to {}", written.display())),
            Written::Nothing | Written::Untouched => Ok(None),
            Written::New if self.is_cache() => self.check_cache(&written).map_err(failed),
            Written::New => {
                let facts = facts::of(&written).map_err(failed)?;
                let mut facts = facts.ok_or_else(|| format!("{} went away", written.display()))?;
                if facts.bytes == 0 {
                    return Err(format!("{} is empty", written.display()));
                }
                if engine {
                    self.settled.content = Some(look::content(&written).to_owned());
                }
                facts.sha256 = Some(facts::digest(&written).map_err(failed)?);
                copy::sync(&written).map_err(failed)?;
                Ok(Some(facts))
            }
        }
    }

    /// What the command has left, as far as it is still where the command wrote it.
    pub(super) fn look_at_written(&self) -> io::Result<Written> {
        let Some(written) = facts::of(self.actual())? else { return Ok(Written::Nothing) };
        let untouched = match (self.declared.mode, &self.declared.previous) {
            (ArtifactMode::InPlace, Some(previous)) => written.stamp == previous.stamp,
            (ArtifactMode::Staged, Some(previous)) if self.is_cache() => {
                written.bytes == previous.bytes
                    && Some(facts::digest(&self.written)?) == previous.sha256
                    && self.declared.policy != Some(CachePolicy::Refresh)
            }
            (ArtifactMode::Staged, _) if self.declared.folder && written.files == 0 => {
                return Ok(Written::Nothing);
            }
            _ => false,
        };
        Ok(if untouched { Written::Untouched } else { Written::New })
    }

    /// Where the command has really written: where it put a file in the place of a link, that.
    fn actual(&self) -> &Path {
        let replaced = self.declared.mode == ArtifactMode::InPlace && self.link_is_gone();
        if replaced { Path::new(&self.declared.path) } else { &self.written }
    }

    /// Whether the path was a link, and the command has put a file in its place.
    pub(super) fn link_is_gone(&self) -> bool {
        let path = Path::new(&self.declared.path);
        path != self.target && fs::symlink_metadata(path).is_ok_and(|facts| !facts.is_symlink())
    }

    pub(super) fn not_ours(&self) -> String {
        format!("{} is not there, or is another job's: nothing was touched", self.declared.work)
    }

    pub(super) fn fail(&mut self, why: &str) {
        self.settled.outcome = ArtifactOutcome::Failed;
        why.clone_into(&mut self.settled.reason);
        self.settled.fault.get_or_insert_with(|| why.to_owned());
    }

    /// Looks at the result, as far as the budget of bytes allows, and describes what was set aside.
    pub(super) fn look(&mut self, journal: &Journal, budget: &mut u64) {
        if let Some(fault) = &self.settled.fault
            && self.settled.outcome != ArtifactOutcome::Failed
        {
            self.settled.reason.clone_from(fault);
        }
        if !self.ours {
            return;
        }
        let path = if self.link_is_gone() { Path::new(&self.declared.path) } else { &self.target };
        let accepted = self.published.take();
        self.settled.after = match (facts::of(path).ok().flatten(), accepted) {
            (Some(now), Some(own))
                if (now.inode, now.bytes, &now.modified) == (own.inode, own.bytes, &own.modified) =>
            {
                Some(ArtifactFacts { sha256: own.sha256, ..now })
            }
            _ => seen(path, budget),
        };
        let same = matches!(self.settled.outcome, ArtifactOutcome::Kept | ArtifactOutcome::Restored)
            && !cache::is_shared(self.declared);
        if let Some(after) = self.settled.after.as_ref().filter(|_| same) {
            self.settled.previous_sha256.clone_from(&after.sha256);
        }
        self.settled.undeclared = self.undeclared(journal);
        if self.entry.exists() {
            self.settled.quarantine = Some(self.entry.text());
            self.settled.partial = seen(self.entry.file(), budget);
            let described = self.entry.describe(self.declared, &self.settled, &journal.job);
            if let Err(e) = described {
                self.settled.reason =
                    format!("{}; the quarantine could not be described: {e}", self.settled.reason);
            }
        }
    }

    /// The digest of what was there before, which is about to go, unless somebody is waiting.
    pub(super) fn digest_of_previous(&self, path: &Path) -> Option<String> {
        let previous = self.declared.previous.as_ref()?;
        let now = facts::of(path).ok().flatten().filter(|now| !self.hurry && now.bytes == previous.bytes)?;
        let copied = self.declared.mode == ArtifactMode::InPlace;
        (copied || now.stamp == previous.stamp).then(|| facts::digest(path).ok()).flatten()
    }

    fn undeclared(&self, journal: &Journal) -> Vec<String> {
        let targets: Vec<&Path> =
            journal.declared.iter().flat_map(|d| [Path::new(&d.target), Path::new(&d.path)]).collect();
        look::undeclared(place::folder_of(&self.target), journal.began_wall_ns, &targets)
    }
}

/// The facts of what is at a path, with the digest where there is time for it.
fn seen(path: &Path, budget: &mut u64) -> Option<ArtifactFacts> {
    let mut facts = facts::of(path).ok().flatten()?;
    if facts.bytes <= *budget {
        *budget -= facts.bytes;
        facts.sha256 = facts::digest(path).ok();
    }
    Some(facts)
}
