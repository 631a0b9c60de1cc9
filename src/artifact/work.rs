//! The folder beside an artifact by which one job claims it.
//!
//! It gets its name by a rename that fails where a folder with something in it has that name already, so of two jobs that
//! start in the same moment one gets it. The file in it that names its job is locked as long as the runner lives.

use super::settle::{self, Journal, Terms};
use super::{ArtifactError, copy, place};
use crate::event::ArtifactDeclared;
use crate::fsio::{self, FsError, Lock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Whose folder it is.
const OWNER: &str = "owner.json";
/// What is in our care, as the job's log has it.
const ARTIFACT: &str = "artifact.json";
/// How long another job may take to put a lost job's folder in order.
const PATIENCE: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(5);
/// More than either of the two ever has.
const MOST_BYTES: u64 = 1 << 20;

/// The job that a folder belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The job.
    pub job: String,
    /// Its runner.
    pub pid: u32,
    /// Its bundle, absolute.
    pub bundle: PathBuf,
}

/// An artifact that is ours. Until the job begins, dropping it gives everything back.
#[derive(Debug)]
pub struct Claimed {
    folder: PathBuf,
    armed: bool,
    /// Where that lay which was taken away from its path.
    taken_from: Option<PathBuf>,
    _lock: Lock,
}

impl Claimed {
    /// Claims what lies at `target`, by this folder.
    pub(super) fn claim(target: &Path, folder: PathBuf, owner: &Owner) -> Result<Self, ArtifactError> {
        let mut hidden = folder.clone().into_os_string();
        hidden.push(format!("-{}", owner.pid));
        let hidden = PathBuf::from(hidden);
        fs::create_dir(&hidden).map_err(|e| FsError::new("create", &hidden, e))?;
        let named = Self::name(&hidden, &folder, target, owner);
        if named.is_err() {
            // What matters is why it has not got its name.
            let _ = fs::remove_dir_all(&hidden);
        }
        let claimed = Self { folder, armed: true, taken_from: None, _lock: named? };
        fsio::reserve(&claimed.folder)?;
        Ok(claimed)
    }

    fn name(hidden: &Path, folder: &Path, target: &Path, owner: &Owner) -> Result<Lock, ArtifactError> {
        let text = serde_json::to_vec(owner).unwrap_or_default();
        let lock = Lock::publish(&hidden.join(OWNER), &text)?;
        match fs::rename(hidden, folder) {
            Ok(()) => Ok(lock),
            Err(e) if matches!(e.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists) => {
                Err(taken(folder, target))
            }
            Err(e) => Err(FsError::new("claim", folder, e).into()),
        }
    }

    /// The folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes down what is in our care, before anything is changed.
    pub(super) fn describe(&self, declared: &ArtifactDeclared) -> Result<(), FsError> {
        let text = serde_json::to_vec(declared).unwrap_or_default();
        fsio::write_all_atomic(&self.folder, &[(ARTIFACT, &text)])
    }

    /// Takes what lies at the path into the folder, so that the command finds nothing there.
    pub(super) fn take_away(&mut self, target: &Path) -> io::Result<()> {
        fs::rename(target, place::kept(&self.folder))?;
        self.taken_from = Some(target.to_owned());
        fsio::sync_folder(place::folder_of(target)).map_err(io::Error::other)
    }

    /// The job's record tells of it now: it stays until it is settled.
    pub fn begin(&mut self) {
        self.armed = false;
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        let back = |target: &PathBuf| fs::rename(place::kept(&self.folder), target).is_ok();
        if self.armed && self.taken_from.as_ref().is_none_or(back) {
            // Nothing was run. A leftover is cleared by the next job at this path.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Whether a job may have a timing cache. Jobs with copies of their own share it; one that writes to the cache itself has it
/// alone. The lock of the cache's folder is held meanwhile, so that nobody claims it in between.
///
/// # Errors
/// The job that has it, or had it and is lost.
pub(super) fn admit(target: &Path, shared: bool) -> Result<(), ArtifactError> {
    let alone = place::work(target);
    if shared && alone.symlink_metadata().is_ok() {
        return Err(taken(&alone, target));
    }
    for (folder, owner) in sharers(target) {
        let path = target.to_owned();
        match Lock::held(&folder.join(OWNER))? {
            true if shared => {}
            true => return Err(ArtifactError::Busy { path, owner }),
            // What shares the cache is in nobody's way, and its bundle finds it. Without a bundle nobody would.
            false if shared && owner.bundle.exists() => {}
            false => return Err(ArtifactError::Left { path, owner, work: folder }),
        }
    }
    Ok(())
}

/// The folders of jobs that have copies of a timing cache of their own, or had them.
fn sharers(target: &Path) -> Vec<(PathBuf, Owner)> {
    let entries = fs::read_dir(place::folder_of(target)).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let owner = owner(&entry.path())?;
            (entry.path() == place::shared_work(target, &owner.job)).then(|| (entry.path(), owner))
        })
        .collect();
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found
}

fn taken(folder: &Path, target: &Path) -> ArtifactError {
    let path = target.to_owned();
    match (owner(folder), Lock::held(&folder.join(OWNER))) {
        (Some(owner), Ok(false)) => ArtifactError::Left { path, owner, work: folder.to_owned() },
        (Some(owner), _) => ArtifactError::Busy { path, owner },
        (None, _) => ArtifactError::Foreign { path, work: folder.to_owned() },
    }
}

/// The job that a folder belongs to.
pub(super) fn owner(folder: &Path) -> Option<Owner> {
    read(&folder.join(OWNER))
}

/// What of a job lies in a folder; none where the folder is not there or is another job's.
pub(super) fn of_job(folder: &Path, job: &str) -> Option<ArtifactDeclared> {
    owner(folder).filter(|owner| owner.job == job)?;
    read(&folder.join(ARTIFACT))
}

/// Clears what a job has left of which no bundle tells any more. What it found is back, and what it wrote is in the
/// quarantine.
///
/// # Errors
/// When the folder's job lives, or something could not be put in order.
pub fn abandon(folder: &Path) -> Result<(), ArtifactError> {
    let failed = |why: &str| ArtifactError::Unsettled { work: folder.to_owned(), why: why.to_owned() };
    let owner = owner(folder).ok_or_else(|| failed("it does not say whose it is"))?;
    let Some(_claim) = lock(folder) else {
        // Another job may have put it in order meanwhile.
        return if folder.exists() {
            Err(failed("its job lives, or another job puts it in order just now"))
        } else {
            Ok(())
        };
    };
    if let Some(declared) = of_job(folder, &owner.job) {
        let journal = Journal::of(&owner.job, declared);
        let terms = Terms {
            wish: Err("its job ended, and no bundle tells of it any more".to_owned()),
            hurry: false,
            by: crate::event::SettledBy::Successor,
        };
        let mut fault = None;
        settle::settle(&journal, &terms, &mut |kind| {
            if let crate::event::EventKind::ArtifactSettled(settled) = kind {
                fault = settled.fault;
            }
            true
        });
        if let Some(fault) = fault {
            return Err(failed(&fault));
        }
    }
    Ok(copy::remove(folder).map_err(|e| FsError::new("remove", folder, e))?)
}

/// Takes the lock of a folder whose runner is gone. Whoever else has it puts the folder in order, which takes a moment.
fn lock(folder: &Path) -> Option<File> {
    let began = Instant::now();
    let file = File::open(folder.join(OWNER)).ok()?;
    while file.try_lock().is_err() {
        if began.elapsed() >= PATIENCE {
            return None;
        }
        std::thread::sleep(TICK);
    }
    Some(file)
}

/// Reads a small file of ours, which is a file and no link.
fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    if !fs::symlink_metadata(path).is_ok_and(|facts| facts.is_file() && facts.len() <= MOST_BYTES) {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(MOST_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(job: &str) -> Owner {
        Owner { job: job.to_owned(), pid: std::process::id(), bundle: "/bundle".into() }
    }

    #[test]
    fn one_of_many_gets_it_and_the_others_are_told_who() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("engine");
        let jobs: Vec<_> = (0..8)
            .map(|n| {
                let target = target.clone();
                let owner = Owner { pid: n, ..owner(&format!("job-{n}")) };
                std::thread::spawn(move || Claimed::claim(&target, place::work(&target), &owner))
            })
            .collect();
        let claims: Vec<_> = jobs.into_iter().map(|job| job.join().unwrap()).collect();
        assert_eq!(claims.iter().filter(|claim| claim.is_ok()).count(), 1);
        for refused in claims.iter().filter_map(|claim| claim.as_ref().err()) {
            assert!(matches!(refused, ArtifactError::Busy { .. }), "{refused}");
        }
        drop(claims);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was run, nothing is left");
    }

    #[test]
    fn what_a_dead_job_left_is_told_from_what_lives() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("engine");
        let mut claim = Claimed::claim(&target, place::work(&target), &owner("dead")).unwrap();
        claim.begin();
        drop(claim);
        let left = Claimed::claim(&target, place::work(&target), &owner("next")).unwrap_err();
        assert!(matches!(&left, ArtifactError::Left { owner, .. } if owner.job == "dead"), "{left}");
        abandon(&place::work(&target)).unwrap();
        Claimed::claim(&target, place::work(&target), &owner("next")).unwrap();
    }

    #[test]
    fn a_foreign_folder_of_that_name_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("engine");
        fs::create_dir(place::work(&target)).unwrap();
        fs::write(place::work(&target).join("precious"), "x").unwrap();
        let foreign = Claimed::claim(&target, place::work(&target), &owner("j")).unwrap_err();
        assert!(matches!(foreign, ArtifactError::Foreign { .. }), "{foreign}");
        assert!(abandon(&place::work(&target)).is_err());
        assert!(place::work(&target).join("precious").exists());
    }
}
