//! A script, as people write it. `docs/simulate.md` is the reference.

use crate::units::{duration, size};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A whole script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    pub flavour: Flavour,
    pub version: String,
    #[serde(default)]
    pub call: Call,
    #[serde(default)]
    pub language: Language,
    #[serde(default = "device")]
    pub device: String,
    #[serde(default)]
    pub at_once: bool,
    #[serde(default)]
    pub ignore_sigterm: bool,
    #[serde(default)]
    pub crash_at_exit: bool,
    pub exit_code: Option<u8>,
    #[serde(default)]
    pub config: BTreeMap<String, i64>,
    #[serde(default)]
    pub compute_capabilities: Vec<i32>,
    #[serde(default)]
    pub network: Network,
    #[serde(default, rename = "profile")]
    pub profiles: Vec<Profile>,
    #[serde(rename = "build")]
    pub builds: Vec<Build>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Flavour {
    Tensorrt,
    TensorrtRtx,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Call {
    #[default]
    Dlopen,
    Linked,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Language {
    #[default]
    Cpp,
    Python,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Network {
    #[serde(default)]
    pub inputs: Vec<Tensor>,
    #[serde(default)]
    pub outputs: Vec<Tensor>,
    /// How many layers of each kind, by `TensorRT`'s number of the kind.
    #[serde(default)]
    pub layers: BTreeMap<String, u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tensor {
    pub name: String,
    #[serde(default)]
    pub data_type: i32,
    pub shape: Vec<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Profile {
    #[serde(default)]
    pub index: u32,
    pub input: String,
    pub min: Vec<i64>,
    pub opt: Vec<i64>,
    pub max: Vec<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Build {
    #[serde(default)]
    pub method: Method,
    #[serde(default)]
    pub on_false: OnFalse,
    #[serde(default)]
    pub returns: Returns,
    #[serde(default = "engine_bytes", deserialize_with = "bytes")]
    pub engine_bytes: u64,
    pub monitor: Option<Monitor>,
    pub timing_cache: Option<TimingCache>,
    #[serde(default, rename = "write")]
    pub writes: Vec<Write>,
    #[serde(rename = "do")]
    pub acts: Vec<Act>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Method {
    #[default]
    Serialized,
    Engine,
    Stream,
    KernelText,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum OnFalse {
    #[default]
    Stop,
    Ignore,
    Engine,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Returns {
    #[default]
    Engine,
    Nothing,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Monitor {
    pub false_at: Option<u32>,
    pub crash_at: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TimingCache {
    pub path: Option<PathBuf>,
    #[serde(default)]
    pub ignore_mismatch: bool,
    #[serde(default)]
    pub save: Save,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Save {
    #[default]
    Success,
    Always,
    Never,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    pub path: Option<PathBuf>,
    #[serde(default)]
    pub when: When,
    #[serde(default, deserialize_with = "some_bytes")]
    pub bytes: Option<u64>,
    #[serde(default, deserialize_with = "some_time")]
    pub over: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum When {
    Before,
    #[default]
    After,
    Always,
}

/// One thing that a build does. Exactly one of the first ten keys says what; the others belong to some of them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Act {
    pub phase: Option<String>,
    pub step: Option<i32>,
    pub finish: Option<String>,
    #[serde(default, deserialize_with = "some_time")]
    pub silence: Option<u64>,
    pub message: Option<String>,
    pub tactic: Option<String>,
    pub threads: Option<u32>,
    pub times: Option<u32>,
    pub fault: Option<Fault>,
    #[serde(default, deserialize_with = "some_bytes")]
    pub grow: Option<u64>,

    pub steps: Option<i32>,
    #[serde(default, deserialize_with = "some_time")]
    pub each: Option<u64>,
    pub parent: Option<String>,
    pub open: Option<bool>,
    pub of: Option<String>,
    pub severity: Option<Severity>,
    pub code: Option<u8>,
    #[serde(default, deserialize_with = "some_time")]
    pub over: Option<u64>,
    #[serde(rename = "do")]
    pub acts: Option<Vec<Act>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Fault {
    Crash,
    Abort,
    Exit,
    Hang,
    Spin,
    Deadlock,
    Stop,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Severity {
    InternalError,
    Error,
    Warning,
    Info,
    Verbose,
}

fn device() -> String {
    "GPU-00000000-0000-0000-0000-000000000000".to_owned()
}

fn engine_bytes() -> u64 {
    64 << 10
}

/// A span of time in nanoseconds.
fn some_time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(from)?;
    let span = duration::parse(&text).map_err(serde::de::Error::custom)?;
    u64::try_from(span.as_nanos()).map(Some).map_err(serde::de::Error::custom)
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    size::parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

fn some_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    bytes(from).map(Some)
}
