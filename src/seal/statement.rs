//! What a signature says: an in-toto Statement about the manifest, with the job's outcome as its predicate.

use super::{MANIFEST, Manifest};
use crate::event::{ArtifactKind, ArtifactOutcome};
use crate::evidence::{Bundle, CRITERIA, Finding, Findings, JobState, Summary, findings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The type of the payload in the envelope.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// The type of an in-toto Statement.
pub(super) const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// The type of our predicate.
const PREDICATE: &str = "urn:stuckproof:acceptance:v1";

/// An in-toto Statement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "statement")]
pub struct Statement<P> {
    /// `https://in-toto.io/Statement/v1`
    #[serde(rename = "_type")]
    pub kind: String,
    /// What it is about: the manifest, and each engine of which the bundle knows the digest.
    pub subject: Vec<Subject>,
    /// The type of the predicate.
    pub predicate_type: String,
    /// What is said of it.
    pub predicate: P,
}

/// A file that a statement is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// Its digest.
    pub digest: SubjectDigest,
}

/// The digest of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubjectDigest {
    /// SHA-256, 64 hexadecimal digits.
    pub sha256: String,
}

/// The outcome of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Predicate {
    /// The job's name.
    pub job: String,
    /// Version of the stuckproof that sealed the bundle.
    pub stuckproof: String,
    /// The job's state.
    pub state: JobState,
    /// Its cause; null after a success.
    pub cause: Option<String>,
    /// Whether any builder was observed.
    pub observed: bool,
    /// The exit code that the runner gave.
    pub exit_code: Option<u8>,
    /// The eleven fields.
    pub summary: Summary,
    /// The same in the words of in-toto's test results.
    pub test_result: TestResult,
}

/// The criteria as tests. A criterion that does not apply or was not judged is in neither list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TestResult {
    /// `PASSED` when the job succeeded and no criterion failed, else `FAILED`.
    pub result: String,
    /// What the tests ran on.
    pub configuration: Vec<Subject>,
    /// Criteria that hold.
    pub passed_tests: Vec<String>,
    /// Criteria that do not.
    pub failed_tests: Vec<String>,
}

impl Subject {
    /// A file with its digest.
    #[must_use]
    pub fn new(name: &str, sha256: &str) -> Self {
        Self { name: name.to_owned(), digest: SubjectDigest { sha256: sha256.to_owned() } }
    }
}

impl<P> Statement<P> {
    pub(super) fn new(subject: Vec<Subject>, predicate_type: &str, predicate: P) -> Self {
        Self { kind: STATEMENT.to_owned(), subject, predicate_type: predicate_type.to_owned(), predicate }
    }
}

/// The statement about a sealed bundle; `digest` is that of its manifest.
#[must_use]
pub fn statement(bundle: &Bundle, manifest: &Manifest, digest: &str) -> Statement<Predicate> {
    let own = Subject::new(MANIFEST, digest);
    let evidence = &bundle.evidence;
    let predicate = Predicate {
        job: evidence.job.clone(),
        stuckproof: manifest.stuckproof.clone(),
        state: evidence.state,
        cause: evidence.cause.clone(),
        observed: evidence.observed,
        exit_code: evidence.exit_code,
        summary: bundle.summary.clone(),
        test_result: test_result(bundle, own.clone()),
    };
    Statement::new(std::iter::once(own).chain(engines(bundle)).collect(), PREDICATE, predicate)
}

/// The engines that the job has published.
fn engines(bundle: &Bundle) -> impl Iterator<Item = Subject> {
    let published = bundle.inventory.artifacts.iter().filter(|artifact| {
        artifact.kind == ArtifactKind::Engine && artifact.outcome == Some(ArtifactOutcome::Published)
    });
    published.filter_map(|artifact| {
        let name = Path::new(&artifact.path).file_name()?.to_string_lossy();
        Some(Subject::new(&name, artifact.after.as_ref()?.sha256.as_ref()?))
    })
}

fn test_result(bundle: &Bundle, subject: Subject) -> TestResult {
    let found = findings(bundle);
    let named = |wanted: fn(&Finding) -> bool| found.iter().flat_map(move |on| names(on, wanted)).collect();
    let passed_tests = named(|finding| matches!(finding, Finding::Held));
    let failed_tests: Vec<String> = named(|finding| matches!(finding, Finding::Failed(_)));
    let passed = bundle.evidence.state == JobState::Succeeded && failed_tests.is_empty();
    TestResult {
        result: if passed { "PASSED" } else { "FAILED" }.to_owned(),
        configuration: vec![subject],
        passed_tests,
        failed_tests,
    }
}

fn names(on: &Findings, wanted: fn(&Finding) -> bool) -> impl Iterator<Item = String> {
    let whose = on.whose;
    let those = CRITERIA.iter().zip(&on.findings).filter(move |(_, finding)| wanted(finding));
    those.map(move |(name, _)| format!("{whose}: {name}"))
}
