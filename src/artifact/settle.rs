//! What is done with the artifacts when the command has ended.
//!
//! The checks of all come first. If all pass, one line of the log accepts them, and from then on they are published
//! whatever happens; else nothing is published. The renames of all come before any digest of what was set aside, so that a
//! job that is being killed leaves nothing partial at a path.

use super::fate::{self, Fate, Written};
use super::quarantine::Entry;
use super::{copy, facts, look, place, work};
use crate::event::{
    AcceptedArtifact, ArtifactDeclared, ArtifactFacts, ArtifactKind, ArtifactMode, ArtifactOutcome, ArtifactSettled,
    ArtifactsAccepted, EngineValidated, EventKind, JobStarted, ValidationStatus,
};
use crate::fsio;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

/// The word for who settled, where the runner did.
pub const RUNNER: &str = "runner";
/// The same where the runner was lost.
pub const SUCCESSOR: &str = "successor";
/// How much is read of artifacts, for digests that nothing depends on, while a job is being stopped. It takes a fraction of
/// a second.
const HURRIED_BYTES: u64 = 128 << 20;

/// What the log says of the artifacts so far.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    job: String,
    began_wall_ns: u64,
    declared: Vec<ArtifactDeclared>,
    accepted: Option<ArtifactsAccepted>,
    settled: Vec<u32>,
    validated: Option<EngineValidated>,
}

/// How the artifacts are to be settled.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Whether they may be published, or why not.
    pub wish: Result<(), String>,
    /// Whether somebody is waiting for the job to stop.
    pub hurry: bool,
    /// Who settles.
    pub by: &'static str,
}

impl Journal {
    /// What the log of a job that has just begun says.
    #[must_use]
    pub fn new(header: &JobStarted) -> Self {
        Self { job: header.job.clone(), began_wall_ns: header.anchor_wall_ns, ..Self::default() }
    }

    /// Of one artifact that was never settled.
    pub(super) fn of(job: &str, declared: ArtifactDeclared) -> Self {
        Self { job: job.to_owned(), began_wall_ns: u64::MAX, declared: vec![declared], ..Self::default() }
    }

    /// Takes the next event.
    pub fn see(&mut self, event: &EventKind) {
        match event {
            EventKind::ArtifactDeclared(declared) => self.declared.push(declared.clone()),
            EventKind::ArtifactsAccepted(accepted) => self.accepted = Some(accepted.clone()),
            EventKind::ArtifactSettled(settled) => self.settled.push(settled.artifact),
            EventKind::EngineValidated(validated) => self.validated = Some(validated.clone()),
            _ => {}
        }
    }

    /// Whether the job has no artifact.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.declared.is_empty()
    }

    /// The place of the first engine, for the user's own check.
    #[must_use]
    pub fn engine(&self) -> Option<&Path> {
        let engine = self.declared.iter().find(|declared| declared.kind == ArtifactKind::Engine)?;
        Some(Path::new(&engine.written))
    }

    /// Whether the user's own check lets a job that succeeded publish.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn may_publish(&self) -> Result<(), String> {
        let wanted = self.declared.iter().any(|declared| declared.must_validate);
        match self.validated.as_ref().map(|validated| validated.status) {
            _ if !wanted => Ok(()),
            Some(ValidationStatus::Pass) => Ok(()),
            Some(ValidationStatus::Fail) => Err("the check of the engine failed".to_owned()),
            _ => Err("the check of the engine did not come to its end".to_owned()),
        }
    }
}

/// Settles every artifact that is not settled yet, and puts on record what became of it. The call says whether the line
/// is on record; that of the acceptance must be on disk when it returns.
pub fn settle(journal: &Journal, terms: &Terms, put: &mut dyn FnMut(EventKind) -> bool) {
    let mut open: Vec<Open> = journal
        .declared
        .iter()
        .filter(|declared| !journal.settled.contains(&declared.artifact))
        .map(|declared| Open::new(declared, &journal.job, terms.hurry))
        .collect();
    let accepted = match (&journal.accepted, &terms.wish) {
        (Some(accepted), _) => Some(accepted.clone()),
        (None, Ok(())) => accept(&mut open).filter(|accepted| put(EventKind::ArtifactsAccepted(accepted.clone()))),
        (None, Err(_)) => None,
    };
    for artifact in &mut open {
        artifact.act(accepted.as_ref(), &terms.wish);
    }
    let mut budget = if terms.hurry { HURRIED_BYTES } else { u64::MAX };
    for mut artifact in open {
        artifact.look(journal, &mut budget);
        put(EventKind::ArtifactSettled(ArtifactSettled { by: terms.by.to_owned(), ..artifact.settled }));
    }
}

/// Takes the work folders away. What is on record as settled needs them no more.
pub fn clear(journal: &Journal) -> io::Result<()> {
    for declared in &journal.declared {
        let folder = Path::new(&declared.work);
        if work::of_job(folder, &journal.job).is_some() && journal.settled.contains(&declared.artifact) {
            copy::remove(folder)?;
            // It is there for the next job to make, unless there is something in it.
            let _ = fs::remove_dir(super::quarantine::folder_beside(Path::new(&declared.target)));
        }
    }
    Ok(())
}

/// Checks what the command has written. All pass, or nothing is published; those that do not are told why.
fn accept(open: &mut [Open]) -> Option<ArtifactsAccepted> {
    let mut accepted = Some(Vec::new());
    for artifact in open {
        match artifact.check() {
            Ok(facts) => {
                if let (Some(list), Some(facts)) = (&mut accepted, facts) {
                    list.push(AcceptedArtifact { artifact: artifact.settled.artifact, facts });
                }
            }
            Err(fault) => {
                artifact.settled.fault = Some(fault);
                accepted = None;
            }
        }
    }
    accepted.map(|artifacts| ArtifactsAccepted { artifacts })
}

/// An artifact that is being settled.
struct Open<'a> {
    declared: &'a ArtifactDeclared,
    target: PathBuf,
    written: PathBuf,
    kept: PathBuf,
    entry: Entry,
    /// Whether the work folder is there and this job's; nothing is touched otherwise.
    ours: bool,
    hurry: bool,
    /// What was accepted, once it is at its path.
    published: Option<ArtifactFacts>,
    settled: ArtifactSettled,
}

impl<'a> Open<'a> {
    fn new(declared: &'a ArtifactDeclared, job: &str, hurry: bool) -> Self {
        let work = Path::new(&declared.work);
        let target = PathBuf::from(&declared.target);
        let ours = work == place::work(&target) && work::of_job(work, job).as_ref() == Some(declared);
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
            undeclared: Vec::new(),
            by: String::new(),
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
            settled,
        }
    }

    /// Whether what the command wrote may be published: its facts, with the digest; none where it wrote nothing new.
    fn check(&mut self) -> Result<Option<ArtifactFacts>, String> {
        if !self.ours {
            return Err(self.not_ours());
        }
        let written = self.actual().to_owned();
        let failed = |e| format!("{} cannot be read: {e}", written.display());
        let engine = self.declared.kind == ArtifactKind::Engine;
        match self.look_at_written().map_err(failed)? {
            Written::Nothing if engine => Err(format!("the command wrote nothing to {}", written.display())),
            Written::Nothing | Written::Untouched => Ok(None),
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
    fn look_at_written(&self) -> io::Result<Written> {
        let Some(written) = facts::of(self.actual())? else { return Ok(Written::Nothing) };
        let untouched = match (self.declared.mode, &self.declared.previous) {
            (ArtifactMode::InPlace, Some(previous)) => written.stamp == previous.stamp,
            (ArtifactMode::Staged, Some(previous)) if self.declared.kind == ArtifactKind::TimingCache => {
                written.bytes == previous.bytes && facts::digest(&self.written)? == facts::digest(&self.target)?
            }
            (ArtifactMode::Staged, _) if self.declared.folder && written.files == 0 => return Ok(Written::Nothing),
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
    fn link_is_gone(&self) -> bool {
        let path = Path::new(&self.declared.path);
        path != self.target && fs::symlink_metadata(path).is_ok_and(|facts| !facts.is_symlink())
    }

    /// Does what is to be done: renames only.
    fn act(&mut self, accepted: Option<&ArtifactsAccepted>, wish: &Result<(), String>) {
        if !self.ours {
            let why = self.not_ours();
            return self.fail(&why);
        }
        let own = accepted.and_then(|all| all.artifacts.iter().find(|own| own.artifact == self.declared.artifact));
        let done = self.try_to_act(accepted.is_some(), own, wish);
        if let Err(e) = done {
            self.fail(&format!("{} could not be put in order: {e}", self.target.display()));
        }
    }

    fn try_to_act(
        &mut self,
        accepted: bool,
        own: Option<&AcceptedArtifact>,
        wish: &Result<(), String>,
    ) -> io::Result<()> {
        let written = self.look_at_written()?;
        let previous = self.declared.previous.is_some();
        let reason = || match (accepted, wish) {
            (true, _) => "the job succeeded".to_owned(),
            (false, Err(why)) => why.clone(),
            (false, Ok(())) => "a part of the job could not be accepted".to_owned(),
        };
        self.settled.reason = reason();
        match (fate::of(self.declared.mode, written, own.is_some(), previous), own) {
            (Fate::Publish, Some(own)) => self.publish(own),
            (Fate::PutBack, _) => self.put_back(),
            (Fate::SetAside, _) => self.set_aside(),
            (Fate::Leave | Fate::Publish, _) => self.leave(accepted),
        }
    }

    /// Puts what was accepted at the path. Where that is there already, somebody has done it before.
    fn publish(&mut self, own: &AcceptedArtifact) -> io::Result<()> {
        self.settled.outcome = ArtifactOutcome::Published;
        self.published = Some(own.facts.clone());
        let is_there = |path: &Path| fs::symlink_metadata(path).is_ok_and(|facts| facts.ino() == own.facts.inode);
        if self.declared.mode == ArtifactMode::InPlace {
            self.settled.previous_sha256 = self.digest_of_previous(&self.kept);
            return copy::remove(&self.kept);
        }
        if is_there(&self.written) {
            self.settled.previous_sha256 = self.digest_of_previous(&self.target);
            if self.declared.folder && self.target.exists() {
                exchange(&self.written, &self.target)?;
            } else {
                fs::rename(&self.written, &self.target)?;
            }
            fsio::sync_folder(place::folder_of(&self.target)).map_err(io::Error::other)?;
        } else if !is_there(&self.target) {
            "it was published, and was replaced since".clone_into(&mut self.settled.reason);
        }
        self.keep_neighbours()
    }

    /// What is at the path is what was there before, or what an earlier attempt to settle has put back.
    fn leave(&mut self, accepted: bool) -> io::Result<()> {
        let changed = match &self.declared.previous {
            Some(previous) => facts::of(&self.target)?.is_none_or(|now| now.stamp != previous.stamp),
            None => self.target.exists(),
        };
        let restored = self.declared.mode == ArtifactMode::InPlace && changed;
        self.settled.outcome = match &self.declared.previous {
            Some(_) if restored => ArtifactOutcome::Restored,
            Some(_) => ArtifactOutcome::Kept,
            None if self.entry.holds() => ArtifactOutcome::Quarantined,
            None => ArtifactOutcome::Absent,
        };
        if changed && !restored {
            self.settled.reason =
                format!("{}, and something else than this job's own place has written to the path", self.settled.reason);
        } else if accepted {
            self.settled.reason = "the command has not written it".to_owned();
        }
        copy::remove(&self.kept)?;
        self.keep_neighbours()
    }

    /// Puts what the command wrote into the quarantine.
    fn set_aside(&mut self) -> io::Result<()> {
        let previous = self.declared.previous.is_some();
        self.settled.outcome = if previous { ArtifactOutcome::Kept } else { ArtifactOutcome::Quarantined };
        if self.declared.mode == ArtifactMode::InPlace {
            self.mend_link()?;
        }
        match facts::of(&self.written)? {
            Some(facts) if facts.bytes > 0 => self.entry.take(&self.written)?,
            Some(_) => copy::remove(&self.written)?,
            None => {}
        }
        if !previous && !self.entry.holds() {
            self.settled.outcome = ArtifactOutcome::Absent;
        }
        if self.declared.mode == ArtifactMode::InPlace {
            fsio::sync_folder(place::folder_of(&self.target)).map_err(io::Error::other)?;
        }
        self.keep_neighbours()
    }

    /// The same, and what was there before comes back. Where an earlier attempt has done that, the copy is gone.
    fn put_back(&mut self) -> io::Result<()> {
        self.mend_link()?;
        if self.kept.symlink_metadata().is_err() {
            return self.leave(false);
        }
        self.settled.outcome = ArtifactOutcome::Restored;
        let now = facts::of(&self.target)?;
        if now.as_ref().map(|now| &now.stamp) == self.declared.previous.as_ref().map(|before| &before.stamp) {
            // The command wrote beside it only.
            return copy::remove(&self.kept);
        }
        if now.is_some_and(|now| now.bytes > 0) {
            // A second name, so that the path is never without a file. Folders have one name only.
            self.entry.take_or_link(&self.target)?;
        } else if self.declared.folder {
            copy::remove(&self.target)?;
        }
        fs::rename(&self.kept, &self.target)?;
        fsio::sync_folder(place::folder_of(&self.target)).map_err(io::Error::other)
    }

    /// Where the command has put a file in the place of the link by which it was given the path: the link comes back.
    fn mend_link(&mut self) -> io::Result<()> {
        if self.link_is_gone() {
            let path = Path::new(&self.declared.path);
            self.entry.take(path)?;
            symlink(&self.target, path)?;
        }
        Ok(())
    }

    /// Whatever else the command wrote to its place is not thrown away.
    fn keep_neighbours(&mut self) -> io::Result<()> {
        if self.declared.mode == ArtifactMode::InPlace {
            return Ok(());
        }
        let own = place::name_of(&self.target);
        for entry in fs::read_dir(place::folder_of(&self.written)).into_iter().flatten() {
            let path = entry?.path();
            // After an exchange, that is what was there before.
            if place::name_of(&path) != own {
                self.entry.take(&path)?;
            }
        }
        Ok(())
    }

    fn not_ours(&self) -> String {
        format!("{} is not there, or is another job's: nothing was touched", self.declared.work)
    }

    fn fail(&mut self, why: &str) {
        self.settled.outcome = ArtifactOutcome::Failed;
        why.clone_into(&mut self.settled.reason);
        self.settled.fault.get_or_insert_with(|| why.to_owned());
    }

    /// Looks at the result, as far as the budget of bytes allows, and describes what was set aside.
    fn look(&mut self, journal: &Journal, budget: &mut u64) {
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
            (Some(now), Some(own)) if (now.inode, now.bytes, &now.modified) == (own.inode, own.bytes, &own.modified) => {
                Some(ArtifactFacts { sha256: own.sha256, ..now })
            }
            _ => seen(path, budget),
        };
        let same = matches!(self.settled.outcome, ArtifactOutcome::Kept | ArtifactOutcome::Restored);
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
    fn digest_of_previous(&self, path: &Path) -> Option<String> {
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

/// Gives two folders each other's name at once; where the file system cannot do that, the old one makes room first.
fn exchange(new: &Path, old: &Path) -> io::Result<()> {
    let here = rustix::fs::CWD;
    match rustix::fs::renameat_with(here, new, here, old, rustix::fs::RenameFlags::EXCHANGE) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            let aside = new.with_extension("old");
            fs::rename(old, &aside)?;
            fs::rename(new, old)?;
            copy::remove(&aside)
        }
        other => Ok(other?),
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
