//! `stuckproof review`: whether bundles are what a release asks for.
//!
//! Every bundle is verified first; what does not verify is not looked at any further. What a rule asks for and the
//! evidence does not tell counts against the bundle, and a review of nothing is no pass.

mod policy;
mod rules;

pub use policy::{Policy, PolicyError};

use crate::archive::is_packed;
use crate::attempts::{self, ATTEMPTS};
use crate::digest::Hex;
use crate::sign::KeyError;
use crate::verify::{Answer, Wanted, verify, verify_attempts};
use rules::Asked;
use serde::Serialize;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use thiserror::Error;

/// Why there is no review.
#[derive(Debug, Error)]
pub enum ReviewError {
    /// Nothing was found.
    #[error("there is no bundle in what was given, so nothing was reviewed and nothing passes")]
    Nothing,
    /// A path cannot be listed.
    #[error("{path} cannot be read: {source}", path = .path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// The reference has no baseline that can be used.
    #[error("the reference {path} cannot be used: {why}", path = .path.display())]
    Reference {
        /// The bundle.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// What became of one rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// The rule: a key of the policy, or `verify`.
    pub rule: &'static str,
    /// What it was asked of, where a rule is asked several times: the criterion, the field, the engine; else empty.
    pub item: String,
    /// Whether it holds.
    pub passed: bool,
    /// What was found.
    pub found: String,
}

/// What became of one bundle.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// The bundle.
    pub bundle: PathBuf,
    /// The job's name, where it could be read.
    pub job: Option<String>,
    /// What `verify` answered.
    pub answer: Answer,
    /// The rules that were looked at.
    pub decisions: Vec<Decision>,
    /// Digests of the engines that it published.
    pub engines: Vec<String>,
}

/// What became of all.
#[derive(Debug, Clone, Serialize)]
pub struct Review {
    /// The bundles in their order.
    pub bundles: Vec<Verdict>,
    /// The engines that are about to ship: whether a bundle that passed has published them.
    pub subjects: Vec<Decision>,
}

impl Verdict {
    /// Whether every rule holds.
    #[must_use]
    pub fn passed(&self) -> bool {
        !self.decisions.is_empty() && self.decisions.iter().all(|decision| decision.passed)
    }
}

impl Decision {
    /// Whether a person is to read it: what does not hold, and what other attempts at a job came to.
    #[must_use]
    pub fn is_told(&self) -> bool {
        !self.passed || self.rule == rules::ATTEMPTS
    }
}

impl Review {
    /// Whether every bundle and every subject passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        !self.bundles.is_empty()
            && self.bundles.iter().all(Verdict::passed)
            && self.subjects.iter().all(|subject| subject.passed)
    }

    /// The exit code: 0 passed, 1 a rule does not hold, 2 a bundle is invalid, 3 nobody can tell of one.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        let worst = self.bundles.iter().map(|verdict| verdict.answer).fold(Answer::Valid, Answer::worse);
        match worst {
            Answer::Invalid | Answer::CannotTell => worst.exit_code(),
            Answer::Valid | Answer::NotSucceeded => u8::from(!self.passed()),
        }
    }
}

/// The bundles that paths name: bundles, packed or not, folders of bundles, and `@FILE` with a path a line.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, ReviewError> {
    let mut found = Vec::new();
    for path in paths {
        match path.to_str().and_then(|text| text.strip_prefix('@')) {
            Some(list) => {
                let list = Path::new(list);
                let text = std::fs::read_to_string(list)
                    .map_err(|source| ReviewError::Path { path: list.to_owned(), source })?;
                found.extend(text.lines().filter(|line| !line.is_empty()).map(PathBuf::from));
            }
            None if is_bundle(path) || is_packed(path) => found.push(path.clone()),
            None => {
                let failed = |source| ReviewError::Path { path: path.clone(), source };
                let mut inside = Vec::new();
                for entry in std::fs::read_dir(path).map_err(failed)? {
                    let entry = entry.map_err(failed)?.path();
                    let beside = entry.extension().is_some_and(|extension| extension == "addenda");
                    if entry.is_dir() && !beside || is_packed(&entry) {
                        inside.push(entry);
                    }
                }
                inside.sort_unstable();
                found.extend(inside);
            }
        }
    }
    if found.is_empty() { Err(ReviewError::Nothing) } else { Ok(found) }
}

/// Whether this is one job: a bundle, or the folder of all attempts at it.
fn is_bundle(path: &Path) -> bool {
    ["manifest.json", "events.jsonl", ATTEMPTS].iter().any(|name| path.join(name).symlink_metadata().is_ok())
}

/// Reviews bundles on all processors. `now` is what ages are counted to.
pub fn review(
    bundles: &[PathBuf],
    policy: &Policy,
    reference: Option<&Path>,
    subjects: &[PathBuf],
    now: chrono::DateTime<chrono::Utc>,
) -> Result<Review, ReviewError> {
    if bundles.is_empty() {
        return Err(ReviewError::Nothing);
    }
    let wanted = Wanted { signers: policy.keys()?, unsigned_will_do: false };
    let reference = reference.map(|path| baseline(path, &wanted)).transpose()?;
    let asked = Asked { policy, reference: reference.as_ref(), now };
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(bundles.len())));
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(bundles.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = bundles.get(place) else { return };
                    let verdict = if attempts::are_in(path) {
                        rules::judge_last(verify_attempts(path, &wanted), &asked)
                    } else {
                        rules::judge(verify(path, &wanted), &asked)
                    };
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((place, verdict));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_unstable_by_key(|(place, _)| *place);
    let bundles: Vec<Verdict> = done.into_iter().map(|(_, verdict)| verdict).collect();
    let subjects = subjects.iter().map(|path| subject(path, &bundles)).collect();
    Ok(Review { bundles, subjects })
}

/// Whether a bundle that passed has published this engine.
fn subject(path: &Path, bundles: &[Verdict]) -> Decision {
    let shown = path.display();
    let (passed, found) = match File::open(path).and_then(Hex::of_all) {
        Err(e) => (false, format!("{shown} cannot be read: {e}")),
        Ok((digest, _)) => {
            let digest = digest.to_string();
            let publishers = bundles.iter().filter(|bundle| bundle.engines.contains(&digest));
            match publishers.clone().find(|bundle| bundle.passed()).or_else(|| publishers.clone().next()) {
                Some(bundle) if bundle.passed() => {
                    (true, format!("{shown} is of {}", bundle.bundle.display()))
                }
                Some(bundle) => {
                    (false, format!("{shown} is of {}, which did not pass", bundle.bundle.display()))
                }
                None => (false, format!("{shown} is of none of the bundles")),
            }
        }
    };
    Decision { rule: "subject", item: shown.to_string(), passed, found }
}

/// The baseline of a reference, which must verify itself.
fn baseline(path: &Path, wanted: &Wanted) -> Result<Value, ReviewError> {
    let wrong = |why: String| ReviewError::Reference { path: path.to_owned(), why };
    let path = &attempts::last_of(path).map_err(|e| wrong(e.to_string()))?;
    let report = verify(path, wanted);
    match report.faults.first() {
        Some(fault) => Err(wrong(format!("{}: {}", fault.file, fault.what))),
        None => rules::baseline(&report).map_err(wrong),
    }
}
