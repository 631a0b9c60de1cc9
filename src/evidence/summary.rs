//! `summary.json`: the eleven fields of the Stuck-Build Acceptance Test, and why those that are null are null.

use super::inventory::{self, Inventory};
use super::libraries::Libraries;
use super::model::{Build, Evidence};
use super::{cache, config};
use crate::event::{CancelSource, LibraryAttached, TimingCacheMode, ValidationStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The Stuck-Build Acceptance Test summary: these eleven fields, no others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Summary {
    /// The framework.
    pub framework: Framework,
    /// The library that the process really mapped, with its flavour, or that none was observed.
    pub tensorrt_version: String,
    /// What drove the builder.
    pub language: Language,
    /// SHA-256 of the canonical builder inputs, or null with the reason in evidence.json.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub build_config_hash: Option<String>,
    /// The GPU, or null with the reason in evidence.json.
    pub gpu_sku: Option<String>,
    /// What happened to the timing cache, or null with the reason in evidence.json.
    pub timing_cache_mode: Option<TimingCacheMode>,
    /// Who asked first; null when nobody did.
    pub cancel_source: Option<CancelSource>,
    /// Requested to acknowledged, milliseconds; null when there was no acknowledgement.
    pub cancel_latency_ms: Option<f64>,
    /// What became of partial output, or null with the reason in evidence.json.
    pub cleanup_status: Option<CleanupStatus>,
    /// The recommendation; null after a success, or with the reason in evidence.json.
    pub retry_policy: Option<RetryPolicy>,
    /// Validation of the engine, kept apart from the build.
    pub validation_status: ValidationStatus,
}

/// The name of the framework.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Framework {
    /// Its only value.
    #[serde(rename = "Optijara Stuck-Build Acceptance Test")]
    StuckBuildAcceptanceTest,
}

/// What drove the builder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// A Python interpreter.
    Python,
    /// Anything else.
    Cpp,
}

/// What became of partial output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CleanupStatus {
    /// Removed or published.
    Cleaned,
    /// Set aside.
    Quarantined,
    /// Something was left.
    Failed,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryPolicy {
    /// Build again without a timing cache.
    RetryCold,
    /// Build again with the timing cache.
    RetryWithCache,
    /// Go back to a known engine.
    Rollback,
    /// A person must look.
    Investigate,
}

impl RetryPolicy {
    /// As the summary says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RetryCold => "retry_cold",
            Self::RetryWithCache => "retry_with_cache",
            Self::Rollback => "rollback",
            Self::Investigate => "investigate",
        }
    }
}

/// What stands for the version where no library was observed.
const NONE_OBSERVED: &str = "none observed";

/// The longest name of a library, characters.
const LONGEST_NAME: usize = 200;

/// Why there is nothing to say about artifacts.
const NO_ARTIFACT: &str = "no artifact was declared";

/// The summary of a job: it describes the decisive build.
pub(super) fn of(
    evidence: &Evidence,
    inventory: &Inventory,
    validation: ValidationStatus,
    gpu_sku: Option<&String>,
) -> Summary {
    let library = decisive_library(evidence);
    let accepted = evidence.requests.iter().find(|request| request.accepted);
    let latency = match decisive(evidence) {
        Some(build) => build.request_to_ack_ms,
        None => evidence.times.request_to_ack_ms,
    };
    Summary {
        framework: Framework::StuckBuildAcceptanceTest,
        tensorrt_version: library.map_or_else(|| NONE_OBSERVED.to_owned(), library_name),
        language: language(evidence, library),
        build_config_hash: decisive(evidence).and_then(|build| build.config_hash.clone()),
        gpu_sku: gpu_sku.cloned(),
        timing_cache_mode: cache::mode(evidence, inventory, library).ok(),
        cancel_source: accepted.map(|request| request.source),
        cancel_latency_ms: latency,
        cleanup_status: inventory::cleanup(inventory),
        retry_policy: evidence.retry.policy,
        validation_status: validation,
    }
}

/// Why each null of the summary is null.
pub(super) fn nulls(
    evidence: &Evidence,
    inventory: &Inventory,
    summary: &Summary,
    no_sku: Option<&String>,
) -> BTreeMap<String, String> {
    let retry = evidence.retry.reasons.first().map_or("", String::as_str);
    let undeclared = inventory.artifacts.is_empty();
    let cleanup = if undeclared { NO_ARTIFACT } else { "the job has not ended" };
    let cleaned = match (undeclared, evidence.times.request_to_ack_ms) {
        (true, _) => NO_ARTIFACT,
        (false, None) => "no acknowledgement of a request is on record",
        (false, Some(_)) if evidence.finished => "the runner was lost, and nobody timed it",
        (false, Some(_)) => "the job has not ended",
    };
    let cache = cache::mode(evidence, inventory, decisive_library(evidence)).err().unwrap_or_default();
    let no_hash = match decisive(evidence).and_then(|build| build.facts.as_ref()) {
        None => "no builder was seen that could be asked".to_owned(),
        Some(_) => config::contents(&evidence.inputs)
            .err()
            .unwrap_or_else(|| "the library that built is not known".to_owned()),
    };
    let output = if evidence.finished {
        "the bundle keeps no output of the command"
    } else {
        "nobody has masked the secrets in the output yet"
    };
    let latency = match summary.cancel_source {
        None => "nobody asked for a stop",
        Some(_) => "no acknowledgement of the request is on record",
    };
    [
        ("buildConfigHash", summary.build_config_hash.is_none(), no_hash.as_str()),
        ("gpuSku", no_sku.is_some(), no_sku.map_or("", String::as_str)),
        ("timingCacheMode", summary.timing_cache_mode.is_none(), cache),
        ("cancelSource", summary.cancel_source.is_none(), "nobody asked for a stop"),
        ("cancelLatencyMs", summary.cancel_latency_ms.is_none(), latency),
        ("cleanupStatus", summary.cleanup_status.is_none(), cleanup),
        ("retryPolicy", summary.retry_policy.is_none(), retry),
        ("times.ackToCleanedMs", evidence.times.ack_to_cleaned_ms.is_none(), cleaned),
        ("output", evidence.output.is_none(), output),
    ]
    .into_iter()
    .filter(|(_, null, _)| *null)
    .map(|(field, _, why)| (field.to_owned(), why.to_owned()))
    .collect()
}

/// A library as people name it, for example `TensorRT-RTX 1.7.1.116`, or `TensorRT 10.13.2.6 (simulated)`. The name
/// stands in every build, so that one without end is cut; `libraries` has it all.
pub(super) fn library_name(library: &LibraryAttached) -> String {
    let flavour = match library.flavour.as_str() {
        "tensorrt-rtx" => "TensorRT-RTX",
        "tensorrt" => "TensorRT",
        other => other,
    };
    let simulated = if library.simulated { " (simulated)" } else { "" };
    cut(&format!("{flavour} {}{simulated}", library.version), LONGEST_NAME)
}

/// A text that stands in many places at once, up to so many characters.
pub(super) fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// What is to be said of a library that is not the real one, or was not tested as such.
pub(super) fn provenance(library: &LibraryAttached) -> Option<String> {
    let why = match library {
        LibraryAttached { simulated: true, .. } => {
            "is stuckproof's simulated builder: no GPU worked, and what it wrote is no engine."
        }
        LibraryAttached { proven, .. } if proven == "headers" => {
            "was attached by its published headers; this version was not proven on the real library."
        }
        _ => return None,
    };
    Some(format!("{} {why}", library_name(library)))
}

fn decisive(evidence: &Evidence) -> Option<&Build> {
    evidence.builds.iter().find(|build| Some(build.build) == evidence.decisive_build)
}

/// The library of the decisive build's process; without builds the last that was observed.
fn decisive_library(evidence: &Evidence) -> Option<&LibraryAttached> {
    match decisive(evidence) {
        Some(build) => Libraries::of(&evidence.libraries).in_process(build.pid),
        None => evidence.libraries.last(),
    }
}

/// Whether Python drove the builder; where none was observed, the command's name must do.
fn language(evidence: &Evidence, library: Option<&LibraryAttached>) -> Language {
    let python = match library {
        Some(library) => library.python,
        None => evidence.header.argv.first().is_some_and(|program| python_by_name(program)),
    };
    if python { Language::Python } else { Language::Cpp }
}

fn python_by_name(program: &str) -> bool {
    let path = Path::new(program);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("python") || path.extension().is_some_and(|extension| extension == "py")
}
