//! The events on silences: what was expected of a build, and how each silence was judged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a silence means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SilenceVerdict {
    /// The builder calls back, or did so a moment ago.
    Advancing,
    /// Silent, and earlier builds or the load explain it.
    SlowExpected,
    /// Silent, and nothing explains it, but it cannot be called stalled.
    SlowUnexplained,
    /// Silent and idle for longer than the threshold.
    Stalled,
}

impl SilenceVerdict {
    /// As the log says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Advancing => "advancing",
            Self::SlowExpected => "slow_expected",
            Self::SlowUnexplained => "slow_unexplained",
            Self::Stalled => "stalled",
        }
    }
}

/// Fields of `silenceJudged`: the verdict on a silence has changed, with the facts that it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct SilenceJudged {
    /// The build that was silent, or null outside of any.
    pub build: Option<u32>,
    /// Its innermost open phase instance, or null.
    pub phase: Option<u64>,
    /// That phase's name, or null.
    pub phase_name: Option<String>,
    /// The verdict from here on.
    pub verdict: SilenceVerdict,
    /// Why, in one of these words: `called back`, `history`, `load`, `longer than history`, `long without history`, `not
    /// explained yet`, `no open build`, `gpu unseen`, `idle`, `stopped`, `blocked`.
    pub reason: String,
    /// How long the silence has lasted, or had lasted when it ended, nanoseconds; pauses of the job are not counted.
    pub silent_ns: u64,
    /// How long of that, up to now, the job was idle, nanoseconds. When the silence has ended: the longest that it was idle
    /// in it.
    pub idle_ns: u64,
    /// Processor time during the silence, in percent of one core.
    pub cpu_percent: u32,
    /// Processor time that its threads lacked during the silence, in percent of one core: what they waited for a turn after
    /// others were cut short. Null where the kernel does not count it.
    pub starved_percent: Option<u32>,
    /// The highest load of a GPU at the last sample, percent; null where none can be seen.
    pub gpu_percent: Option<u32>,
    /// Threads that ran or could have run at the last sample.
    pub running: u32,
    /// Threads that waited for a device.
    pub blocked: u32,
    /// Threads that were stopped.
    pub stopped: u32,
    /// The longest silence that earlier builds make expect here, nanoseconds; null where there are none.
    pub expected_ns: Option<u64>,
    /// So long idle is stalled, nanoseconds.
    pub threshold_ns: u64,
    /// Earlier jobs that stalled in this phase, as far as the history tells.
    pub earlier_stalls: u32,
}

/// Which earlier builds an expectation comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    /// The same configuration, GPU and cache mode.
    Same,
    /// The same configuration and GPU, with another cache mode.
    OtherCache,
    /// The same configuration on another GPU.
    OtherGpu,
    /// There are none.
    None,
}

/// Fields of `buildExpected`: what earlier builds make expect of this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct BuildExpected {
    /// The build.
    pub build: u32,
    /// SHA-256 over the library's flavour and version and all that the builder said of the build.
    pub shape: String,
    /// The GPU, or that it is not known.
    pub sku: String,
    /// `none` where the library has no timing cache, else `cold` or `attached`.
    pub cache: String,
    /// Which earlier builds this comes from.
    pub likeness: Likeness,
    /// How many of them succeeded, and so say how long a build takes.
    pub builds: u32,
    /// How many of them stalled.
    pub stalls: u32,
    /// The time that a build takes: their median, nanoseconds; null where there are none.
    pub total_ns: Option<u64>,
    /// The longest that one of them was idle without being stuck, nanoseconds.
    pub longest_idle_ns: u64,
    /// What of the history could not be used, and why.
    pub notes: Vec<String>,
}
