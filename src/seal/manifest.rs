//! `manifest.json`: every file of a bundle with its digest, and the head of the log's chain.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a sealed bundle consists of: these files and no others, besides the manifest itself and its signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "manifest")]
pub struct Manifest {
    /// Version of this file's format: 1.
    pub format: u32,
    /// The job's name.
    pub job: String,
    /// Version of the stuckproof that sealed the bundle and derived its files.
    pub stuckproof: String,
    /// The head of the log's chain.
    pub chain: Chain,
    /// Every file, in the order of the bytes of its path.
    pub files: Vec<Entry>,
}

/// The end of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Chain {
    /// The number of its last line.
    pub seq: u64,
    /// SHA-256 of its last line, without its newline.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub head: String,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// Its path in the bundle, with `/` between folders.
    pub path: String,
    /// Its bytes.
    pub size: u64,
    /// SHA-256 of its bytes.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub sha256: String,
}
