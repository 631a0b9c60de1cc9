//! What `evidence.json` holds. Times named `…Ms` are milliseconds with up to three decimals; `tNs` is the job's
//! monotonic clock in nanoseconds, as in the log; other times are RFC 3339 in UTC.

use super::retry::Retry;
use super::silence::{Expected, Silences};
use crate::event::{
    BuildFacts, CancelSource, Cancellability, HostReported, InputKind, JobStarted, LeftoverFound,
    LibraryAttached, OpenPhase, OutputMasked, State, ValidationStatus,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that follows from the log of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "evidence")]
pub struct Evidence {
    /// Version of this file's format: 1.
    pub format: u32,
    /// Whether the log has its end. Where not, the runner is still at work or was lost.
    pub finished: bool,
    /// The job's name.
    pub job: String,
    /// The job's state.
    pub state: JobState,
    /// Its cause; null after a success and before the end.
    pub cause: Option<String>,
    /// Whether any builder was observed.
    pub observed: bool,
    /// The build that decides the state: the worst, and among equals the last; null where there was none.
    pub decisive_build: Option<u32>,
    /// The exit code that the runner gave, or null before the end.
    pub exit_code: Option<u8>,
    /// What a reader should know, in words.
    pub notes: Vec<String>,
    /// The job's start.
    pub started_at: String,
    /// From its start to its last event.
    pub duration_ms: f64,
    /// The log's first line: what was run, where and how.
    pub header: JobStarted,
    /// The command.
    pub command: Command,
    /// Builder libraries that were observed.
    pub libraries: Vec<LibraryAttached>,
    /// The files that the builds were made from, and the libraries that built.
    pub inputs: Vec<Input>,
    /// Builders that were met and left alone.
    pub refusals: Vec<Refusal>,
    /// The builds.
    pub builds: Vec<Build>,
    /// Errors that fell outside of any build, in order.
    pub errors: Vec<ErrorLine>,
    /// Requests for a stop in the order of their arrival.
    pub requests: Vec<Request>,
    /// What the runner did to make the job stop.
    pub ladder: Vec<Rung>,
    /// The times at which job control had stopped the job.
    pub pauses: Vec<Pause>,
    /// Who masked the secrets in the kept output, or null where none is kept or nobody has yet.
    pub output: Option<OutputMasked>,
    /// Processes of the job that were still there after the command's end.
    pub leftovers: Vec<LeftoverFound>,
    /// How its silences were judged.
    pub silences: Silences,
    /// What the host said of its job when the bundle of a lost runner was finished, or null.
    pub host_report: Option<HostReported>,
    /// The intervals of the accepted request.
    pub times: Times,
    /// The user's own check of the engine, or null where none was run.
    pub validation: Option<Validation>,
    /// What to do next.
    pub retry: Retry,
    /// Records that were lost.
    pub lost: Vec<Loss>,
    /// How much the log holds.
    pub counts: Counts,
    /// Why a field of `summary.json`, or of `times`, is null.
    pub nulls: BTreeMap<String, String>,
}

/// The state of a job, live or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum JobState {
    /// Nobody has asked for a stop and the log has no end yet.
    Running,
    /// A stop was accepted and the log has no end yet.
    Cancelling,
    /// An engine was returned, or, where no builder was seen, the command said 0.
    Succeeded,
    /// The builder acknowledged a request and returned nothing.
    Cancelled,
    /// Everything else.
    Failed,
}

impl From<State> for JobState {
    fn from(state: State) -> Self {
        match state {
            State::Succeeded => Self::Succeeded,
            State::Cancelled => Self::Cancelled,
            State::Failed => Self::Failed,
        }
    }
}

/// The wrapped command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Command {
    /// Its process, or null where it never ran.
    pub pid: Option<u32>,
    /// When it began to run, or null.
    pub started_at: Option<String>,
    /// How long it ran, or null before its end.
    pub duration_ms: Option<f64>,
    /// Its exit code, or null where a signal ended it or its end was not seen.
    pub code: Option<i32>,
    /// The signal that ended it, or null.
    pub signal: Option<i32>,
    /// Whether it dumped core.
    pub core_dumped: bool,
    /// The core's file, or null where there is none, or where the system has its own place for cores.
    pub core_file: Option<String>,
    /// Kills by the kernel's OOM killer in its memory cgroup, or null where that is not known.
    pub oom_kills: Option<u64>,
}

/// A file that the builds were made from, or a library that built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// Its number, from 1.
    pub input: u32,
    /// Why it counts as one.
    pub kind: InputKind,
    /// Its path, as it was given.
    pub path: String,
    /// The input that names it, or null.
    pub of: Option<u32>,
    /// Its size, or null where it could not be looked at.
    pub bytes: Option<u64>,
    /// When it was last changed, nanoseconds since the Unix epoch.
    pub modified_ns: Option<i64>,
    /// Its number in its file system.
    pub inode: Option<u64>,
    /// A library's build-id, where it has one.
    pub build_id: Option<String>,
    /// When it was looked at.
    pub at: String,
    /// When it was looked at, on the job's clock.
    pub t_ns: u64,
    /// SHA-256 of its content, or null.
    pub sha256: Option<String>,
    /// How it differs from what it was when it was looked at, or null where it does not.
    pub changed: Option<String>,
    /// Why it could not be looked at or has no digest, or null where it has.
    pub reason: Option<String>,
}

/// A builder that was met and left alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Refusal {
    /// Its process.
    pub pid: u32,
    /// Why.
    pub reason: String,
    /// When.
    pub at: String,
}

/// One build.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Build {
    /// Its number, from 1 over the whole job.
    pub build: u32,
    /// The builder's process.
    pub pid: u32,
    /// The thread that called.
    pub tid: u32,
    /// The method's name.
    pub method: String,
    /// Whether the application's own monitor was chained.
    pub chained: bool,
    /// The library that built, with its version, or null where it is not known.
    pub library: Option<String>,
    /// What the builder said that it was about to build, or null where it was not asked.
    pub facts: Option<BuildFacts>,
    /// SHA-256 over the library's flavour and version, `facts` and the digests of the inputs, or null where something of
    /// that is not known.
    pub config_hash: Option<String>,
    /// Whether no input is known, so that the hash does not cover the weights.
    pub config_hash_partial: bool,
    /// Its state.
    pub state: JobState,
    /// Its cause; null after a success and before the end.
    pub cause: Option<String>,
    /// `too_late`, `undelivered`, `builder_return_unobserved`.
    pub notes: Vec<String>,
    /// When the method was entered.
    pub started_at: String,
    /// To its return, or to the last moment that is known of it.
    pub duration_ms: f64,
    /// Whether it returned an engine, or null where its return was not seen.
    pub engine: Option<bool>,
    /// Size of the serialised engine, where the method returns it.
    pub bytes: Option<u64>,
    /// Phases.
    pub phases: u64,
    /// Steps.
    pub steps: u64,
    /// Messages to the application's logger, or null where the return was not seen, since the builder counts them.
    pub messages: Option<MessageCounts>,
    /// Every error line, in order.
    pub errors: Vec<ErrorLine>,
    /// From the accepted request to this build's acknowledgement, or null.
    pub request_to_ack_ms: Option<f64>,
    /// From the acknowledgement to the return, or null.
    pub ack_to_return_ms: Option<f64>,
    /// The waits that a cancel would have had at a random moment; null for a build of no length.
    pub cancellability: Option<Cancellability>,
    /// The longest times without any callback, longest first.
    pub longest_silences: Vec<SilenceFacts>,
    /// The longest that the job was idle in a silence of this build that ended by itself.
    pub longest_idle_ms: f64,
    /// What earlier builds made expect of it, or null where the history was not asked.
    pub expected: Option<Expected>,
}

/// Messages by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MessageCounts {
    /// `kINTERNAL_ERROR`
    pub internal_error: u32,
    /// `kERROR`
    pub error: u32,
    /// `kWARNING`
    pub warning: u32,
    /// `kINFO`
    pub info: u32,
    /// `kVERBOSE`
    pub verbose: u32,
}

/// An error that the builder told its logger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ErrorLine {
    /// `error` or `internal_error`.
    pub severity: String,
    /// `TensorRT`'s error code, where the text names one.
    pub code: Option<u32>,
    /// The text.
    pub text: String,
    /// Whether the text was cut.
    pub truncated: bool,
    /// The innermost open phase instance, or null.
    pub phase: Option<u64>,
    /// Its name, or null.
    pub phase_name: Option<String>,
    /// When.
    pub at: String,
    /// When, on the job's clock.
    pub t_ns: u64,
}

/// A time without any callback.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SilenceFacts {
    /// How long.
    pub ms: f64,
    /// How long after the build's start it began.
    pub from_ms: f64,
    /// The innermost open phase instance, or null outside of any.
    pub phase: Option<u64>,
    /// Its name, or null.
    pub phase_name: Option<String>,
}

/// A request for a stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    /// Its number in the order of arrival.
    pub request: u32,
    /// Who asked.
    pub source: CancelSource,
    /// The exact way.
    pub via: String,
    /// The asker's reason, or null.
    pub reason: Option<String>,
    /// Whether it set the state.
    pub accepted: bool,
    /// Whether it meant "kill now".
    pub kill: bool,
    /// The sender's process, where the kernel told it.
    pub pid: Option<u32>,
    /// The sender's user, where the kernel told it.
    pub uid: Option<u32>,
    /// When it came.
    pub at: String,
    /// When it came, on the job's clock.
    pub t_ns: u64,
    /// `delivered`, `too_late`, `undelivered`, `recorded_only`; null before the end.
    pub outcome: Option<String>,
    /// The phases that were open when it came.
    pub open_branch: Vec<OpenPhase>,
}

/// A rung of the ladder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rung {
    /// `cooperative`, `SIGTERM`, `SIGKILL`.
    pub rung: String,
    /// Why then.
    pub why: String,
    /// When.
    pub at: String,
    /// When, on the job's clock.
    pub t_ns: u64,
    /// How long after the accepted request, or null where there was none.
    pub since_request_ms: Option<f64>,
}

/// A pause of the job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pause {
    /// The signal that began it.
    pub by: String,
    /// When.
    pub at: String,
    /// When, on the job's clock.
    pub t_ns: u64,
    /// How long it was, or null where its end is not on record.
    pub paused_ms: Option<f64>,
}

/// The user's own check of the engine, apart from the build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Validation {
    /// Its command line.
    pub command: String,
    /// What became of it.
    pub status: ValidationStatus,
    /// Its exit code, or null.
    pub code: Option<i32>,
    /// The signal that ended it, or null.
    pub signal: Option<i32>,
    /// Why it did not come to its end, or null.
    pub reason: Option<String>,
    /// When it ended.
    pub at: String,
    /// How long it ran, nanoseconds.
    pub duration_ns: u64,
}

/// The intervals of the accepted request, each null where one of its ends did not come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Times {
    /// From the request to the first acknowledgement.
    pub request_to_ack_ms: Option<f64>,
    /// From that acknowledgement to the return of its build.
    pub ack_to_return_ms: Option<f64>,
    /// From that return to the command's exit.
    pub return_to_exit_ms: Option<f64>,
    /// From the acknowledgement to the moment when every declared artifact was cleaned.
    pub ack_to_cleaned_ms: Option<f64>,
}

/// Records that were lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Loss {
    /// How many.
    pub records: u64,
    /// How.
    pub reason: String,
    /// When it was noticed.
    pub at: String,
}

/// How much the log holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Counts {
    /// Lines.
    pub events: u64,
    /// Builds.
    pub builds: u64,
    /// Phases.
    pub phases: u64,
    /// Steps.
    pub steps: u64,
    /// Messages that are in the log one by one.
    pub messages: u64,
    /// Records whose process was ended while it wrote them; their callbacks never returned to the builder.
    pub unfinished_records: u64,
}
