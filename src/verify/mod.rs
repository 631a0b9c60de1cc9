//! `stuckproof verify`: whether a bundle is what was sealed, and whether what was sealed is right.
//!
//! A bundle is data from a stranger. It is read once, without following a link out of it and with bounds on everything;
//! what stands in it is compared with what follows from its log, byte for byte. Three answers are kept apart: it is
//! valid, it is not, and nobody can tell from here.

mod differ;
mod fault;
mod files;
mod record;
mod signature;
mod source;
mod tried;

pub use fault::{Fault, Rule, Weight};
pub use signature::Wanted;
pub use tried::{Tried, verify_attempts};

use crate::evidence::{Bundle, JobState};
use crate::seal::addendum::Addendum;
use fault::Faults;
use source::Source;
use std::path::{Path, PathBuf};

/// What became of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is what was sealed, and it says that the job succeeded.
    Valid,
    /// It is what was sealed, and it says that the job did not succeed.
    NotSucceeded,
    /// It is not what was sealed, or was never right.
    Invalid,
    /// Nobody can tell from here.
    CannotTell,
}

impl Answer {
    /// The exit code.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::NotSucceeded => 1,
            Self::Invalid => 2,
            Self::CannotTell => 3,
        }
    }

    /// The one of two that a person must know of first.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        let badness = |answer: Self| match answer {
            Self::Valid => 0,
            Self::NotSucceeded => 1,
            Self::CannotTell => 2,
            Self::Invalid => 3,
        };
        if badness(other) > badness(self) { other } else { self }
    }
}

/// What was found of a bundle.
#[derive(Debug)]
pub struct Report {
    /// The folder, or the archive.
    pub path: PathBuf,
    /// Everything that is wrong.
    pub faults: Vec<Fault>,
    /// What follows from the log, where it could be read.
    pub bundle: Option<Bundle>,
    /// SHA-256 of the manifest.
    pub manifest: Option<String>,
    /// The identity of the allowed signer that signed it.
    pub signer: Option<String>,
    /// Facts that came after the seal.
    pub addenda: Vec<Addendum>,
}

impl Report {
    /// The answer.
    #[must_use]
    pub fn answer(&self) -> Answer {
        let any = |weight| self.faults.iter().any(|fault| fault.weight == weight);
        let state = self.bundle.as_ref().map(|bundle| bundle.evidence.state);
        match state {
            _ if any(Weight::Invalid) => Answer::Invalid,
            _ if any(Weight::CannotTell) => Answer::CannotTell,
            Some(JobState::Succeeded) => Answer::Valid,
            Some(_) => Answer::NotSucceeded,
            None => Answer::CannotTell,
        }
    }
}

/// Verifies the bundle in a folder, or in an archive.
#[must_use]
pub fn verify(path: &Path, wanted: &Wanted) -> Report {
    verify_in(path, wanted, Source::open)
}

/// Verifies the bundle in an archive, whatever that is called.
#[must_use]
pub fn verify_packed(path: &Path, wanted: &Wanted) -> Report {
    verify_in(path, wanted, Source::packed)
}

fn verify_in(path: &Path, wanted: &Wanted, open: fn(&Path, &mut Faults) -> Option<Source>) -> Report {
    let mut report = Report {
        path: path.to_owned(),
        faults: Vec::new(),
        bundle: None,
        manifest: None,
        signer: None,
        addenda: Vec::new(),
    };
    let mut faults = Faults::default();
    if let Some(source) = open(path, &mut faults) {
        report.fill(&source, wanted, &mut faults);
    }
    report.faults = faults.list;
    report
}

impl Report {
    fn fill(&mut self, source: &Source, wanted: &Wanted, faults: &mut Faults) {
        let listing = match source.list() {
            Ok(listing) => listing,
            Err(e) => {
                return faults.cannot_tell(
                    Rule::Readable,
                    ".",
                    "",
                    format!("the folder cannot be read: {e}"),
                );
            }
        };
        let Some(sealed) = files::manifest(source, &listing, faults) else {
            // Without a manifest only this much can be said.
            for odd in &listing.odd {
                faults.invalid(Rule::PlainFiles, &odd.name, "", odd.what.in_words());
            }
            return;
        };
        let version = &sealed.manifest.stuckproof;
        faults.foreign = (version != env!("CARGO_PKG_VERSION")).then(|| version.chars().take(40).collect());
        source.check_name(&sealed.manifest.job, faults);
        files::closed_world(&sealed.manifest, &listing, faults);
        let held = files::digests(source, &sealed.manifest, &listing, faults);
        self.bundle = record::check(&self.path, source, &sealed, &held, faults);
        self.signer = signature::check(source, &listing, &sealed, self.bundle.as_ref(), wanted, faults);
        self.addenda = signature::addenda(source, &sealed, wanted, faults);
        self.manifest = Some(sealed.digest);
    }
}
