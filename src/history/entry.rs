//! What is remembered of a build.

use crate::digest;
use crate::event::{BuildFacts, LibraryAttached};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The format that this version writes.
pub(super) const FORMAT: u32 = 1;
/// Characters of a library's flavour or version that count.
const LONGEST_NAME: usize = 200;
/// No number of milliseconds in an entry is larger: a year.
const LONGEST: u64 = 366 * 24 * 3_600_000;

/// What makes two builds alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Key {
    /// SHA-256 over the library's flavour and version and all that the builder said of the build.
    pub shape: String,
    /// The GPU, or that it is not known.
    pub sku: String,
    /// `none` where the library has no timing cache, else `cold` or `attached`.
    pub cache: String,
}

impl Key {
    /// The key of a build that its builder has described.
    #[must_use]
    pub fn of(library: &LibraryAttached, facts: &BuildFacts, sku: Option<&str>) -> Self {
        let cache = match facts.timing_cache_attached {
            None => "none",
            Some(false) => "cold",
            Some(true) => "attached",
        };
        // No library has a longer name, and each build of a job would digest it again.
        let start = |text: &str| text.chars().take(LONGEST_NAME).collect::<String>();
        let (flavour, version) = (start(&library.flavour), start(&library.version));
        let said = json!({ "flavour": flavour, "version": version, "facts": facts });
        Self {
            shape: digest::sha256_hex(said.to_string().as_bytes()),
            sku: sku.unwrap_or("unknown").to_owned(),
            cache: cache.to_owned(),
        }
    }
}

/// How a build ended, as far as it teaches anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It returned an engine: its times are those of a whole build.
    Succeeded,
    /// It did not.
    NotSucceeded,
    /// It had stalled when this was written. Where this stays, the job was killed with its runner.
    Stalled,
}

/// One build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    /// Version of this file's format: 1.
    pub format: u32,
    /// The job; its name begins with the time.
    pub job: String,
    /// The build in it.
    pub build: u32,
    /// What it is like.
    pub key: Key,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub total_ms: u64,
    /// The longest that it was idle in one silence that ended by itself.
    pub longest_idle_ms: u64,
    /// Its longest silences.
    pub silences: Vec<EntrySilence>,
    /// Its longest phases.
    pub phases: Vec<EntryPhase>,
    /// The phases in which it stalled.
    pub stalled_in: Vec<String>,
}

/// A time without a callback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntrySilence {
    /// The phase that was open, or null outside of any.
    pub key: Option<String>,
    /// How long.
    pub ms: u64,
}

/// A phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryPhase {
    /// Its key.
    pub key: String,
    /// Its name, for people.
    pub name: String,
    /// When it began, after the build's start.
    pub start_ms: u64,
    /// How long it took.
    pub ms: u64,
}

impl Entry {
    /// Why this cannot be an entry that was written for a build of this shape, if it cannot.
    pub(super) fn fault(&self, shape: &str) -> Option<&'static str> {
        let times =
            self.silences.iter().map(|s| s.ms).chain(self.phases.iter().flat_map(|p| [p.start_ms, p.ms]));
        let mut times = times.chain([self.total_ms, self.longest_idle_ms]);
        if self.format != FORMAT {
            Some("is of another version")
        } else if self.key.shape != shape {
            Some("belongs to another configuration")
        } else if times.any(|ms| ms > LONGEST) {
            Some("holds times that no build has")
        } else {
            None
        }
    }
}
