//! Timing caches: what is particular about them.
//!
//! Several jobs may use one at the same time. Each works on a copy of its own, in a folder of its own, and gives back what
//! it learned while it holds the lock of the cache's folder: alone where nobody has changed the cache meanwhile, else
//! combined with what is there by the library that made both. The kernel gives the lock back when its holder dies.

use super::fate::Written;
use super::open::Open;
use super::{copy, facts, place};
use crate::combine::{self, combine};
use crate::event::{
    ArtifactDeclared, ArtifactFacts, ArtifactKind, ArtifactMode, ArtifactOutcome, CachePolicy, EventKind,
    LibraryAttached, TimingCacheMode,
};
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longer than anybody takes to combine and publish.
const PATIENCE: Duration = Duration::from_mins(3);
const TICK: Duration = Duration::from_millis(5);
/// What builders say of a cache that they do not use.
const REFUSALS: [&str; 4] = [
    "The timing cache will not be used",
    "The incoming cache will not be used",
    "Timing cache header mismatch",
    "Detected invalid timing cache",
];

/// What the builders of a job have said that matters for its timing cache.
#[derive(Debug, Clone, Default)]
pub struct Said {
    library: Option<LibraryAttached>,
    attached: Option<bool>,
    refused: Option<String>,
}

impl Said {
    /// Takes the next event.
    pub fn see(&mut self, event: &EventKind) {
        match event {
            EventKind::LibraryAttached(library) => self.library = Some(library.clone()),
            EventKind::BuildDescribed(described) => {
                let now = described.facts.timing_cache_attached;
                self.attached = now.map(|now| now || self.attached == Some(true)).or(self.attached);
            }
            EventKind::Message(message) if REFUSALS.iter().any(|refusal| message.text.contains(refusal)) => {
                self.refused.get_or_insert_with(|| message.text.clone());
            }
            _ => {}
        }
    }

    fn has_no_cache(&self) -> bool {
        self.library.as_ref().is_some_and(|library| library.flavour == "tensorrt-rtx")
    }
}

/// Whether several jobs may have it in their care at once.
pub(super) fn is_shared(declared: &ArtifactDeclared) -> bool {
    declared.kind == ArtifactKind::TimingCache && declared.mode == ArtifactMode::Staged
}

/// Locks the folder that a cache lies in.
pub(super) fn lock(target: &Path) -> io::Result<File> {
    let folder = File::open(place::folder_of(target))?;
    let began = Instant::now();
    loop {
        match folder.try_lock() {
            Ok(()) => return Ok(folder),
            Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => std::thread::sleep(TICK),
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("somebody else has locked its folder for minutes"));
            }
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

impl Open<'_> {
    /// Whether what was there before is not to be used again, and why.
    pub(super) fn suspect(&self) -> Option<String> {
        let previous = self.declared.previous.as_ref().filter(|_| self.is_cache())?;
        let used = self.declared.policy == Some(CachePolicy::Reuse) && !self.said.has_no_cache();
        if used && previous.bytes == 0 {
            return Some("the timing cache was empty".to_owned());
        }
        let refused = self.said.refused.as_ref().filter(|_| used)?;
        Some(format!("the builder refused the timing cache: {}", refused.lines().next().unwrap_or_default()))
    }

    pub(super) fn is_cache(&self) -> bool {
        self.declared.kind == ArtifactKind::TimingCache
    }

    /// Whether what the command wrote may become the cache: its facts, or none where it is discarded.
    pub(super) fn check_cache(&mut self, written: &Path) -> io::Result<Option<ArtifactFacts>> {
        if let Some(why) = self.discards(written)? {
            self.discarded = Some(why);
            return Ok(None);
        }
        if is_shared(self.declared) {
            self.lock = Some(lock(&self.target)?);
            if self.declared.policy == Some(CachePolicy::Reuse)
                && self.has_changed()?
                && let Err(why) = self.combine(written)
            {
                self.discarded = Some(format!(
                    "another job has changed it meanwhile, and the two were not combined: {why}"
                ));
                return Ok(None);
            }
        }
        let Some(mut facts) = facts::of(written)? else { return Ok(None) };
        facts.sha256 = Some(facts::digest(written)?);
        copy::sync(written)?;
        Ok(Some(facts))
    }

    /// Why nothing that the command wrote is wanted.
    fn discards(&self, written: &Path) -> io::Result<Option<String>> {
        let why = match self.declared.policy {
            Some(CachePolicy::Readonly) => "the policy is readonly",
            Some(CachePolicy::Off) => "the policy is off",
            _ if facts::of(written)?.is_none_or(|facts| facts.bytes == 0) => {
                "what the command wrote is empty"
            }
            _ => return Ok(None),
        };
        Ok(Some(why.to_owned()))
    }

    /// Whether the cache is another one than the one that was copied for the command.
    fn has_changed(&self) -> io::Result<bool> {
        let now = facts::of(&self.target)?;
        let before = self.declared.previous.as_ref();
        Ok(now.is_some_and(|now| before.is_none_or(|before| before.stamp != now.stamp)))
    }

    fn combine(&self, written: &Path) -> Result<(), String> {
        let library = self.said.library.as_ref().ok_or("no library is known that could combine them")?;
        let out = written.with_file_name("combined");
        combine(&combine::program()?, library, &self.target, written, &out)?;
        std::fs::rename(&out, written).map_err(|e| e.to_string())
    }

    /// Whether another job has published after what was accepted here: then whoever settles for a lost runner comes too
    /// late. The lock is held from here on.
    pub(super) fn is_overtaken(&mut self, accepted: &ArtifactFacts) -> io::Result<bool> {
        if self.lock.is_some() || !is_shared(self.declared) {
            return Ok(false);
        }
        self.lock = Some(lock(&self.target)?);
        Ok(facts::of(&self.target)?.is_some_and(|now| now.modified > accepted.modified))
    }

    /// Puts a cache that is not to be used again into the quarantine, where it is still what was there before.
    pub(super) fn set_suspect_aside(&mut self) -> io::Result<()> {
        let Some(why) = self.suspect() else { return Ok(()) };
        if is_shared(self.declared) && self.lock.is_none() {
            self.lock = Some(lock(&self.target)?);
        }
        let copied = self.declared.mode == ArtifactMode::InPlace && self.kept.exists();
        let there = if copied { &self.kept } else { &self.target };
        let now = facts::of(there)?;
        let before = self.declared.previous.as_ref();
        let same = |now: &ArtifactFacts, before: &ArtifactFacts| {
            (now.bytes, &now.modified) == (before.bytes, &before.modified)
        };
        if now.zip(before).is_some_and(|(now, before)| same(&now, before)) {
            // The copy of what was there goes by its own name.
            let named = there.with_file_name(place::name_of(&self.target));
            if &named != there {
                std::fs::rename(there, &named)?;
            }
            self.entry.take(&named)?;
        } else if !self.entry.exists() {
            // Somebody has replaced it, and it is no longer the one that was refused.
            return Ok(());
        }
        self.set_aside = Some(why);
        Ok(())
    }

    fn is_same_again(&self) -> bool {
        let digest = |facts: Option<&ArtifactFacts>| facts.and_then(|facts| facts.sha256.clone());
        let published = digest(self.published.as_ref());
        published.is_some() && published == digest(self.declared.previous.as_ref())
    }

    /// What the builder did with the cache.
    pub(super) fn cache_mode(&self, written: Written) -> Option<TimingCacheMode> {
        if !self.is_cache() {
            return None;
        }
        let read = matches!(self.declared.policy, Some(CachePolicy::Reuse | CachePolicy::Readonly));
        let there = self.declared.previous.as_ref().is_some_and(|previous| previous.bytes > 0);
        let published = self.settled.outcome == ArtifactOutcome::Published;
        Some(match written {
            _ if self.said.has_no_cache() => TimingCacheMode::Cold,
            _ if self.set_aside.is_some() => TimingCacheMode::Quarantined,
            _ if !read || !there || self.said.attached == Some(false) => TimingCacheMode::Cold,
            _ if self.said.refused.is_some() => TimingCacheMode::Discarded,
            Written::Nothing | Written::Untouched => TimingCacheMode::Reused,
            // A command may write the same again.
            Written::New if self.is_same_again() => TimingCacheMode::Reused,
            Written::New if published => TimingCacheMode::Updated,
            Written::New => TimingCacheMode::Discarded,
        })
    }
}
