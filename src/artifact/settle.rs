//! What is done with the artifacts when the command has ended.
//!
//! The checks of all come first. If all pass, one line of the log accepts them, and from then on they are published
//! whatever happens; else nothing is published. The renames of all come before any digest of what was set aside, so that a
//! job that is being killed leaves nothing partial at a path.

use super::cache::Said;
use super::open::Open;
use super::quarantine;
use super::{copy, work};
use crate::event::{
    AcceptedArtifact, ArtifactDeclared, ArtifactKind, ArtifactSettled, ArtifactsAccepted, EngineValidated,
    EventKind, JobStarted, SettledBy, ValidationStatus,
};
use std::fs;
use std::io;
use std::path::Path;

/// How much is read of artifacts, for digests that nothing depends on, while a job is being stopped. It takes a fraction of
/// a second.
const HURRIED_BYTES: u64 = 128 << 20;

/// What the log says of the artifacts so far.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    pub(super) job: String,
    pub(super) began_wall_ns: u64,
    pub(super) declared: Vec<ArtifactDeclared>,
    accepted: Option<ArtifactsAccepted>,
    settled: Vec<u32>,
    validated: Option<EngineValidated>,
    said: Said,
}

/// How the artifacts are to be settled.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Whether they may be published, or why not.
    pub wish: Result<(), String>,
    /// Whether somebody is waiting for the job to stop.
    pub hurry: bool,
    /// Who settles.
    pub by: SettledBy,
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

    /// Takes what the builders said, where that was heard elsewhere.
    #[must_use]
    pub fn hearing(mut self, said: &Said) -> Self {
        self.said = said.clone();
        self
    }

    /// Takes the next event.
    pub fn see(&mut self, event: &EventKind) {
        self.said.see(event);
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

    /// Whether the user's own check is on record.
    #[must_use]
    pub fn is_validated(&self) -> bool {
        self.validated.is_some()
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
        .map(|declared| Open::new(declared, &journal.said, &journal.job, terms.hurry))
        .collect();
    let accepted = match (&journal.accepted, &terms.wish) {
        (Some(accepted), _) => Some(accepted.clone()),
        (None, Ok(())) => {
            accept(&mut open).filter(|accepted| put(EventKind::ArtifactsAccepted(accepted.clone())))
        }
        (None, Err(_)) => None,
    };
    for artifact in &mut open {
        artifact.act(accepted.as_ref(), &terms.wish);
    }
    let mut budget = if terms.hurry { HURRIED_BYTES } else { u64::MAX };
    for mut artifact in open {
        artifact.look(journal, &mut budget);
        put(EventKind::ArtifactSettled(ArtifactSettled { by: terms.by, ..artifact.settled }));
    }
}

/// Takes the work folders away. What is on record as settled needs them no more.
pub fn clear(journal: &Journal) -> io::Result<()> {
    for declared in &journal.declared {
        let folder = Path::new(&declared.work);
        if work::of_job(folder, &journal.job).is_some() && journal.settled.contains(&declared.artifact) {
            copy::remove(folder)?;
            // It is there for the next job to make, unless there is something in it.
            let _ = fs::remove_dir(quarantine::folder_beside(Path::new(&declared.target)));
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
