//! What is done with one artifact: renames, each of which can be done again by whoever comes after a kill.

use super::fate::{self, Fate};
use super::open::Open;
use super::{cache, copy, facts, place};
use crate::event::{
    AcceptedArtifact, ArtifactFacts, ArtifactMode, ArtifactOutcome, ArtifactsAccepted, CachePolicy,
};
use crate::fsio;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

impl Open<'_> {
    /// Does what is to be done: renames only.
    pub(super) fn act(&mut self, accepted: Option<&ArtifactsAccepted>, wish: &Result<(), String>) {
        if !self.ours {
            let why = self.not_ours();
            return self.fail(&why);
        }
        let own =
            accepted.and_then(|all| all.artifacts.iter().find(|own| own.artifact == self.declared.artifact));
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
        self.settled.reason = match (accepted, wish) {
            (true, _) => "the job succeeded".to_owned(),
            (false, Err(why)) => why.clone(),
            (false, Ok(())) => "a part of the job could not be accepted".to_owned(),
        };
        match (fate::of(self.declared.mode, written, own.is_some(), previous), own) {
            (Fate::Publish, Some(own)) => self.publish(own)?,
            (Fate::PutBack, _) => self.put_back()?,
            (Fate::SetAside, _) if accepted && self.is_cache() => self.discard()?,
            (Fate::SetAside, _) => self.set_aside()?,
            (Fate::Leave | Fate::Publish, _) => self.leave(accepted)?,
        }
        if self.settled.outcome != ArtifactOutcome::Published {
            self.set_suspect_aside()?;
        }
        if let Some(why) = &self.set_aside {
            self.settled.reason.clone_from(why);
            if self.settled.outcome != ArtifactOutcome::Published {
                self.settled.outcome = ArtifactOutcome::Quarantined;
            }
        }
        self.settled.timing_cache = self.cache_mode(written);
        Ok(())
    }

    /// A timing cache that is not wanted although the job succeeded.
    fn discard(&mut self) -> io::Result<()> {
        let why = self.discarded.take();
        if self.declared.policy == Some(CachePolicy::Reuse) {
            self.set_aside()?;
        } else {
            copy::remove(&self.written)?;
            self.leave(true)?;
        }
        self.settled.reason = why.unwrap_or_default();
        Ok(())
    }

    /// Puts what was accepted at the path. Where that is there already, somebody has done it before.
    fn publish(&mut self, own: &AcceptedArtifact) -> io::Result<()> {
        if self.is_overtaken(&own.facts)? {
            self.set_aside()?;
            "another job has published since".clone_into(&mut self.settled.reason);
            return Ok(());
        }
        self.set_suspect_aside()?;
        self.settled.outcome = ArtifactOutcome::Published;
        self.published = Some(own.facts.clone());
        let is_there =
            |path: &Path| fs::symlink_metadata(path).is_ok_and(|facts| facts.ino() == own.facts.inode);
        if self.declared.mode == ArtifactMode::InPlace {
            self.settled.previous_sha256 = self.digest_of_previous(&self.kept);
            return copy::remove(&self.kept);
        }
        if is_there(&self.written) {
            self.settled.previous_sha256 = self.digest_of_previous(&self.target);
            if self.declared.folder && self.target.exists() {
                copy::exchange(&self.written, &self.target)?;
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
        if accepted {
            "the command has not written it".clone_into(&mut self.settled.reason);
        }
        self.settled.outcome = match &self.declared.previous {
            Some(_) if self.declared.mode == ArtifactMode::InPlace && !self.is_untouched()? => {
                return self.check_restored();
            }
            Some(_) => ArtifactOutcome::Kept,
            None if self.entry.holds() => ArtifactOutcome::Quarantined,
            None => ArtifactOutcome::Absent,
        };
        copy::remove(&self.kept)?;
        self.keep_neighbours()?;
        self.check_path()
    }

    /// Whether what is at the path is the very file that was there before, or nothing as before.
    fn is_untouched(&self) -> io::Result<bool> {
        let now = facts::of(&self.target)?;
        let before = self.declared.previous.as_ref();
        Ok(now.as_ref().map(|now| &now.stamp) == before.map(|before| &before.stamp))
    }

    /// Where the copy is gone, an earlier attempt has put it back: it has the size and the time of what was there before.
    fn check_restored(&mut self) -> io::Result<()> {
        let same = |now: &ArtifactFacts, before: &ArtifactFacts| {
            (now.bytes, &now.modified) == (before.bytes, &before.modified)
        };
        match (facts::of(&self.target)?, &self.declared.previous) {
            (Some(now), Some(before)) if same(&now, before) => {
                self.settled.outcome = ArtifactOutcome::Restored;
            }
            _ => self
                .fail("the copy of what was there before is gone, and what is there now is something else"),
        }
        Ok(())
    }

    /// Where the command had a place of its own, nobody else had any business at the path; what is there now is nobody
    /// knows what.
    fn check_path(&mut self) -> io::Result<()> {
        let alone = self.declared.mode == ArtifactMode::Staged && !cache::is_shared(self.declared);
        if alone && !self.is_untouched()? {
            let why = format!("{} was changed past this job's own place for it", self.target.display());
            self.fail(&why);
        }
        Ok(())
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
        self.keep_neighbours()?;
        self.check_path()
    }

    /// The same, and what was there before comes back. Where an earlier attempt has done that, the copy is gone.
    fn put_back(&mut self) -> io::Result<()> {
        self.mend_link()?;
        if self.kept.symlink_metadata().is_err() {
            return self.leave(false);
        }
        self.settled.outcome = ArtifactOutcome::Restored;
        if self.is_untouched()? {
            // The command wrote beside it only.
            return copy::remove(&self.kept);
        }
        if facts::of(&self.target)?.is_some_and(|now| now.bytes > 0) {
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
}
