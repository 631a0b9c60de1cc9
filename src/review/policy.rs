//! What a release asks of its evidence, as a TOML file; `docs/policy.md` explains each key.

use crate::evidence::JobState;
use crate::sign::{KeyError, PublicKey};
use crate::units::duration;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// Why a policy cannot be used.
#[derive(Debug, Error)]
pub enum PolicyError {
    /// It cannot be read.
    #[error("the policy {path} cannot be read: {source}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: std::io::Error,
    },
    /// It is no policy.
    #[error("the policy {path} is wrong: {why}; docs/policy.md lists every key", path = .path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A key that it names cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// A policy. What is not said has the default, which asks for a real, observed success.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// States that will do.
    pub states: Vec<JobState>,
    /// Whether a build must have been observed.
    pub observed: bool,
    /// Whether the simulated builder will do.
    pub simulated: bool,
    /// The numbers of the criteria that must hold, or not apply, in every build.
    pub criteria: Vec<usize>,
    /// The longest that an acknowledgement may have taken, milliseconds.
    pub max_cancel_latency_ms: Option<f64>,
    /// SKUs that will do; any where none is listed.
    pub gpu_skus: Vec<String>,
    /// Beginnings of `tensorrtVersion` that will do; any where none is listed.
    pub tensorrt_versions: Vec<String>,
    /// How old a job may be.
    pub max_age: Option<String>,
    /// Whether the engine must have passed a validation, in the job or by an addendum.
    pub validated: bool,
    /// Public keys that may sign, as paths from the policy's folder. Where any is listed, a signature is needed.
    pub signers: Vec<PathBuf>,
    /// Fields of `baseline.json` that must be those of the reference bundle, as JSON pointers.
    pub drift: Vec<String>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            states: vec![JobState::Succeeded],
            observed: true,
            simulated: false,
            criteria: vec![1, 2, 3, 4, 5],
            max_cancel_latency_ms: None,
            gpu_skus: Vec::new(),
            tensorrt_versions: Vec::new(),
            max_age: None,
            validated: false,
            signers: Vec::new(),
            drift: ["/gpu/driverVersion", "/gpu/cudaDriverVersion", "/machine/architecture"]
                .map(str::to_owned)
                .to_vec(),
        }
    }
}

impl Policy {
    /// Reads a policy.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| PolicyError::Read { path: path.to_owned(), source })?;
        let wrong = |why: String| PolicyError::Wrong { path: path.to_owned(), why };
        let mut policy: Self = toml::from_str(&text).map_err(|e| wrong(e.to_string()))?;
        if let Some(number) = policy.criteria.iter().find(|number| !(1..=8).contains(*number)) {
            return Err(wrong(format!("there is no criterion {number}")));
        }
        policy.max_age().map_err(wrong)?;
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        for signer in &mut policy.signers {
            *signer = folder.join(&signer);
        }
        Ok(policy)
    }

    /// How old a job may be.
    pub(super) fn max_age(&self) -> Result<Option<Duration>, String> {
        self.max_age.as_deref().map(duration::parse).transpose()
    }

    /// The keys that may sign.
    pub(super) fn keys(&self) -> Result<Vec<PublicKey>, KeyError> {
        self.signers.iter().map(|path| PublicKey::load(path)).collect()
    }
}
