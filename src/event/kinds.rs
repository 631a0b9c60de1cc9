//! The kinds of events, as the rest of the program speaks of them. `docs/evidence.md` is the reference for readers.

use super::silence::{BuildExpected, SilenceJudged};
use crate::clock::Mono;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The cancellation state of the job at an event's own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CancelState {
    /// Nobody has asked for a stop.
    Running,
    /// A stop was requested and is not yet acknowledged.
    Cancelling,
    /// The builder acknowledged the stop.
    Acknowledged,
}

/// An event before it has a place in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When it happened (not when it was written).
    pub at: Mono,
    /// What happened.
    pub kind: EventKind,
}

/// What happened. The JSON name of a variant is the line's `event`; its fields stand flat in the line.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// The first line.
    JobStarted(JobStarted),
    /// A file or folder is in our care.
    ArtifactDeclared(ArtifactDeclared),
    /// The command's process runs.
    CommandStarted(CommandStarted),
    /// A builder library is observed in a process.
    LibraryAttached(LibraryAttached),
    /// A builder was met and left alone.
    AttachRefused(AttachRefused),
    /// A build method was entered.
    BuildStarted(BuildStarted),
    /// What a build was about to build.
    BuildDescribed(BuildDescribed),
    /// A phase began.
    PhaseStarted(PhaseStarted),
    /// A step of a phase was completed.
    StepCompleted(StepCompleted),
    /// A phase ended.
    PhaseFinished(PhaseFinished),
    /// A phase was closed by us, since nobody else will.
    PhaseAborted(PhaseAborted),
    /// The application's own monitor asked for the stop.
    ApplicationDeclined(ApplicationDeclined),
    /// A message to the application's logger.
    Message(Message),
    /// A build method returned.
    BuildReturned(BuildReturned),
    /// Earlier builds make something expect of this one.
    BuildExpected(BuildExpected),
    /// The verdict on a silence changed.
    SilenceJudged(SilenceJudged),
    /// A stop was requested.
    CancelRequested(CancelRequested),
    /// A builder answered a request.
    CancelAcknowledged(CancelAcknowledged),
    /// A rung of the ladder was climbed.
    LadderRung(LadderRung),
    /// A file that the builds are made from was looked at.
    InputIdentified(InputIdentified),
    /// Such a file was read to its end, or will not be.
    InputDigested(InputDigested),
    /// Such a file is not what it was when it was looked at.
    InputChanged(InputChanged),
    /// The job was stopped by job control.
    JobPaused(JobPaused),
    /// The job goes on after a pause.
    JobResumed(JobResumed),
    /// The command's process ended.
    CommandExited(CommandExited),
    /// A process of the job was still there after the command's end.
    LeftoverFound(LeftoverFound),
    /// The user's own check of the engine ended.
    EngineValidated(EngineValidated),
    /// The artifacts of a success passed our checks and are published from now on, whatever happens.
    ArtifactsAccepted(ArtifactsAccepted),
    /// What became of a file or folder in our care.
    ArtifactSettled(ArtifactSettled),
    /// The secrets in the kept output were masked.
    OutputMasked(OutputMasked),
    /// Records whose process was ended while it wrote them.
    RecordsUnfinished(RecordsUnfinished),
    /// Records that the wire lost or could not decode.
    EvidenceLost(EvidenceLost),
    /// What the host says of its job, once the runner was lost.
    HostReported(HostReported),
    /// The last line.
    JobEnded(JobEnded),
}

/// Fields of `jobStarted`: the header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct JobStarted {
    /// Version of the log's format; this program writes 1.
    pub format: u32,
    /// The job's name, unique on the host.
    pub job: String,
    /// Version of stuckproof.
    pub stuckproof: String,
    /// The wrapped command.
    pub argv: Vec<String>,
    /// Its working directory.
    pub cwd: String,
    /// Host name.
    pub host: String,
    /// The runner's process.
    pub runner_pid: u32,
    /// The recognised CI host, or null.
    pub ci_host: Option<String>,
    /// What the job assumes of the host around it.
    pub host_profile: Box<HostProfile>,
    /// `CLOCK_MONOTONIC` at the anchor, nanoseconds.
    pub anchor_mono_ns: u64,
    /// The wall clock at the anchor, nanoseconds since the Unix epoch, UTC.
    pub anchor_wall_ns: u64,
    /// Cooperative grace before the first signal, milliseconds; null is without limit. After a signal of the host the
    /// times of `hostProfile` hold where they are shorter.
    pub grace_ms: Option<u64>,
    /// From the first signal to SIGKILL, milliseconds.
    pub kill_after_ms: u64,
    /// The deadline, milliseconds from the start of the command, or null.
    pub deadline_ms: Option<u64>,
    /// Where the deadline comes from: `--deadline`, `CI_JOB_TIMEOUT`; null without one.
    pub deadline_from: Option<String>,
    /// How long any phase may be open, milliseconds, or null.
    pub phase_limit_ms: Option<u64>,
    /// What was wrong with the way in which the job was started, and how to mend it.
    pub warnings: Vec<String>,
    /// What the attach library's place and the environment of the child were changed to, in words (`LD_PRELOAD`,
    /// `ASAN_OPTIONS`).
    pub environment_changes: Vec<String>,
    /// The bundle's folder, as an absolute path while the job ran.
    pub bundle: String,
    /// Where the wire's mapped files lie, and why there.
    pub wire: String,
    /// How the command's streams are kept: `separate`, `merged` or `terminal`.
    pub streams: String,
    /// Which attempt this is; null where the job is tried once.
    pub attempt: Option<NthAttempt>,
}

/// What an artifact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// An engine: one file, or a folder of them.
    Engine,
    /// A timing cache.
    TimingCache,
}

/// Where the command writes an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactMode {
    /// To a staging place; only a success is moved to the path.
    Staged,
    /// To the path itself; a copy of what was there is kept beside it.
    InPlace,
}

/// A file or folder at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArtifactFacts {
    /// Its size; that of a folder is the sum of its files'.
    pub bytes: u64,
    /// 1, or how many files the folder holds.
    pub files: u64,
    /// When its content was last changed, RFC 3339 in UTC; of a folder's files the latest.
    pub modified: String,
    /// The inode of the file or folder.
    pub inode: u64,
    /// A digest over names, sizes, inodes and times: where it is the same, nobody has touched it.
    pub stamp: String,
    /// SHA-256 of the content; of a folder that of a list with a line `digest, two blanks, name` for each file in the order
    /// of the names. Null where it was not read.
    pub sha256: Option<String>,
}

/// What a job may do with its timing cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CachePolicy {
    /// Use it, and give back what was learned.
    #[default]
    Reuse,
    /// Build without it, and put a new one in its place.
    Refresh,
    /// Use it, and leave it as it is.
    Readonly,
    /// Build without it, and leave it as it is.
    Off,
}

/// What happened to the timing cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimingCacheMode {
    /// None was used.
    Cold,
    /// One was used and not changed.
    Reused,
    /// One was used and changed.
    Updated,
    /// What was learned was thrown away, or the one that was there was not used.
    Discarded,
    /// One was set aside as suspect.
    Quarantined,
}

/// Fields of `artifactDeclared`: everything that is needed to settle it, also for somebody who comes later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactDeclared {
    /// Its number, from 1.
    pub artifact: u32,
    /// What it is.
    pub kind: ArtifactKind,
    /// Whether it is a folder.
    pub folder: bool,
    /// Where it belongs, absolute.
    pub path: String,
    /// The file or folder that the path leads to: another one where the path is a link.
    pub target: String,
    /// Where the command writes it.
    pub mode: ArtifactMode,
    /// Where the command writes it: a place of this job's own in `work`, or the target.
    pub written: String,
    /// Our folder beside the target, for as long as the artifact is not settled.
    pub work: String,
    /// What the job may do with a timing cache; null for an engine.
    pub policy: Option<CachePolicy>,
    /// Whether it is published only after the user's own check of the engine has passed.
    pub must_validate: bool,
    /// What was there before, or null.
    pub previous: Option<ArtifactFacts>,
}

/// Fields of `engineValidated`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EngineValidated {
    /// The check's command line, as it was given.
    pub command: String,
    /// `pass`, `fail`, or `pending` where it did not come to its end.
    pub status: ValidationStatus,
    /// Its exit code, or null.
    pub code: Option<i32>,
    /// The signal that ended it, or null.
    pub signal: Option<i32>,
    /// Why it did not come to its end, or null.
    pub reason: Option<String>,
    /// How long it ran, nanoseconds.
    pub duration_ns: u64,
}

/// Validation of the engine, kept apart from the build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValidationStatus {
    /// None was asked for.
    NotApplicable,
    /// Not yet done.
    Pending,
    /// Passed.
    Pass,
    /// Failed.
    Fail,
}

/// Fields of `artifactsAccepted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactsAccepted {
    /// Those that the command has written.
    pub artifacts: Vec<AcceptedArtifact>,
}

/// An artifact that passed the checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AcceptedArtifact {
    /// Its number.
    pub artifact: u32,
    /// As it is published.
    pub facts: ArtifactFacts,
}

/// What became of an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactOutcome {
    /// A whole new one is at its path.
    Published,
    /// What was there before was not touched.
    Kept,
    /// What was there before was changed, and is there again byte for byte.
    Restored,
    /// Nothing was there before and nothing is there now; what the command wrote was set aside.
    Quarantined,
    /// Nothing was there before and nothing is there now.
    Absent,
    /// It could not be put in order.
    Failed,
}

/// Fields of `artifactSettled`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactSettled {
    /// Its number.
    pub artifact: u32,
    /// What became of it.
    pub outcome: ArtifactOutcome,
    /// Why so, for a person.
    pub reason: String,
    /// Why a job that would have succeeded failed for it, or null.
    pub fault: Option<String>,
    /// SHA-256 of what was there before, or null where it was not read or nothing was there.
    pub previous_sha256: Option<String>,
    /// What is at the path now, or null.
    pub after: Option<ArtifactFacts>,
    /// What was set aside, or null.
    pub partial: Option<ArtifactFacts>,
    /// The quarantine's folder for it, or null.
    pub quarantine: Option<String>,
    /// What the first bytes of the engine say: `TensorRT engine`, `TensorRT-RTX engine`, `unknown`; null where none was
    /// looked at.
    pub content: Option<String>,
    /// What the builder did with a timing cache; null for an engine.
    pub timing_cache: Option<TimingCacheMode>,
    /// Files beside it that look like engines, are newer than the job's start and were not declared.
    pub undeclared: Vec<String>,
    /// Who settled it.
    pub by: SettledBy,
}

/// Who settled an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettledBy {
    /// The job's runner.
    Runner,
    /// Somebody in the place of a runner that was lost; nobody timed it.
    Successor,
}

/// What a job assumes of the host around it. Times count from the host's first signal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostProfile {
    /// Its name in the table of hosts.
    pub name: String,
    /// What it was chosen by: a variable, `--host`, `a terminal`, `nothing else fitted`.
    pub chosen_by: String,
    /// What the host does to end a job, in words.
    pub ladder: String,
    /// How long it waits before nothing of the job runs or is saved any more, milliseconds; null where it waits for
    /// ever.
    pub allows_ms: Option<u64>,
    /// When the evidence so far is written, milliseconds.
    pub provisional_ms: u64,
    /// When the command gets SIGTERM, milliseconds; null is never.
    pub grace_ms: Option<u64>,
    /// From SIGTERM to SIGKILL, milliseconds.
    pub kill_after_ms: u64,
    /// When the evidence must be complete, milliseconds, or null.
    pub complete_ms: Option<u64>,
}

/// The place of an attempt at a job among the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NthAttempt {
    /// Its number, from 1.
    pub number: u32,
    /// SHA-256 of the manifest of the attempt before it; null in the first.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub previous: Option<String>,
}

/// Fields of `commandStarted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandStarted {
    /// The process, which leads its own group.
    pub pid: u32,
}

/// Fields of `libraryAttached`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct LibraryAttached {
    /// The builder's process.
    pub pid: u32,
    /// `tensorrt` or `tensorrt-rtx`.
    pub flavour: String,
    /// As the library says it.
    pub version: String,
    /// The mapped file.
    pub path: String,
    /// Whether a Python interpreter is in the process.
    pub python: bool,
    /// `library` when the slot table was proven on this version's real library, `headers` when on headers only.
    pub proven: String,
    /// Why messages are not recorded; null when they are.
    pub messages_unobserved: Option<String>,
    /// Whether it is stuckproof's own simulated builder, and nothing that it built is an engine.
    pub simulated: bool,
}

/// Fields of `attachRefused`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttachRefused {
    /// The builder's process.
    pub pid: u32,
    /// Why, for a person.
    pub reason: String,
}

/// Fields of `buildStarted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BuildStarted {
    /// The build, counted from 1 over the whole job.
    pub build: u32,
    /// The builder's process.
    pub pid: u32,
    /// The thread that called.
    pub tid: u32,
    /// The method's name.
    pub method: String,
    /// Whether the application's own monitor is chained.
    pub chained: bool,
}

/// Fields of `buildDescribed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BuildDescribed {
    /// The build.
    pub build: u32,
    /// What the builder said.
    pub facts: BuildFacts,
}

/// What a builder said of its configuration, its network and its profiles at the start of a build.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BuildFacts {
    /// The configuration's numbers by name: `flags`, `optimizationLevel`, `tacticSources` …, as `TensorRT` numbers them.
    /// A name that the version does not have is absent.
    pub config: BTreeMap<String, i64>,
    /// The compute capabilities that the engine is made for, as `TensorRT` numbers them; empty where none was set.
    pub compute_capabilities: Vec<i64>,
    /// Whether a timing cache was attached; null where the library has none.
    pub timing_cache_attached: Option<bool>,
    /// The flags that the network was created with.
    pub network_flags: i64,
    /// Layers in the network.
    pub layers: i64,
    /// Layers of each kind, by `TensorRT`'s number of the kind.
    pub layer_kinds: BTreeMap<String, u32>,
    /// The network's inputs in order.
    pub inputs: Vec<Tensor>,
    /// The network's outputs in order.
    pub outputs: Vec<Tensor>,
    /// The shapes of each profile's inputs.
    pub profiles: Vec<ProfileShape>,
    /// Whether something did not fit and is missing here.
    pub incomplete: bool,
}

/// An input or output of a network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Its type, as `TensorRT` numbers it: 0 float, 1 half, 2 int8, 3 int32 …
    pub data_type: i64,
    /// Its extents, `1x3x-1x640`; -1 is dynamic, empty is a scalar.
    pub shape: String,
}

/// The shapes of one input in one profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProfileShape {
    /// The profile, from 0.
    pub profile: u32,
    /// The input's name.
    pub input: String,
    /// The smallest shape; empty where the profile has none.
    pub min: String,
    /// The shape to optimise for.
    pub opt: String,
    /// The largest shape.
    pub max: String,
}

/// Fields of `phaseStarted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhaseStarted {
    /// The build.
    pub build: u32,
    /// The phase instance, counted from 1 over the whole job. Names repeat; this does not.
    pub phase: u64,
    /// The parent's instance, or null for a root.
    pub parent: Option<u64>,
    /// The parent's name as `TensorRT` gave it, where no open phase of that name was known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unknown_parent: Option<String>,
    /// The display name.
    pub name: String,
    /// The announced steps.
    pub steps: i32,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
}

/// Fields of `stepCompleted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepCompleted {
    /// The build.
    pub build: u32,
    /// The phase instance, or null where no open phase had that name.
    pub phase: Option<u64>,
    /// The parent's instance, or null.
    pub parent: Option<u64>,
    /// The phase's name.
    pub name: String,
    /// The step.
    pub step: i32,
    /// The announced steps, or null where the phase is unknown.
    pub steps: Option<i32>,
    /// The request that was answered with false, or null.
    pub answered: Option<u32>,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
}

/// Fields of `phaseFinished`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhaseFinished {
    /// The build.
    pub build: u32,
    /// The phase instance, or null where no open phase had that name.
    pub phase: Option<u64>,
    /// The parent's instance, or null.
    pub parent: Option<u64>,
    /// The phase's name.
    pub name: String,
    /// Steps reported.
    pub reported: u32,
    /// Steps announced, or null where the phase is unknown.
    pub steps: Option<i32>,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
}

/// Fields of `phaseAborted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhaseAborted {
    /// The build.
    pub build: u32,
    /// The phase instance.
    pub phase: u64,
    /// The parent's instance, or null.
    pub parent: Option<u64>,
    /// The phase's name.
    pub name: String,
    /// Steps reported.
    pub reported: u32,
    /// Steps announced.
    pub steps: i32,
    /// Why it was closed.
    pub reason: String,
}

/// Fields of `applicationDeclined`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationDeclined {
    /// The build.
    pub build: u32,
    /// The phase instance, or null where no open phase had that name.
    pub phase: Option<u64>,
    /// The phase's name.
    pub name: String,
    /// The step.
    pub step: i32,
}

/// Fields of `message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// The build, or null outside one.
    pub build: Option<u32>,
    /// The innermost open phase instance at that moment, or null.
    pub phase: Option<u64>,
    /// `internal_error`, `error`, `warning`.
    pub severity: String,
    /// `TensorRT`'s error code, where the text names one.
    pub code: Option<u32>,
    /// The text.
    pub text: String,
    /// Whether the text was cut.
    pub truncated: bool,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
}

/// Fields of `buildReturned`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BuildReturned {
    /// The build.
    pub build: u32,
    /// Whether it returned an engine.
    pub engine: bool,
    /// The serialised engine's bytes, where the method returns them.
    pub bytes: Option<u64>,
    /// Messages of each severity during the build: internal error, error, warning, info, verbose.
    pub messages: [u32; 5],
}

/// Who asked first, in the words of the acceptance test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelSource {
    /// Ctrl-C at a terminal.
    CtrlC,
    /// A signal or a deadline under a recognised CI host.
    Ci,
    /// An editor.
    Ide,
    /// SIGTERM or SIGHUP elsewhere, shutdown of a service, a deadline outside CI.
    Service,
    /// A program: control socket, cancel file, stdin closing, an outer event loop.
    Api,
}

impl CancelSource {
    /// As the log and the summary say it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CtrlC => "ctrl_c",
            Self::Ci => "ci",
            Self::Ide => "ide",
            Self::Service => "service",
            Self::Api => "api",
        }
    }
}

/// Fields of `cancelRequested`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelRequested {
    /// The request's number, from 1 in order of arrival.
    pub request: u32,
    /// Who asked.
    pub source: CancelSource,
    /// The exact way: `SIGINT`, `SIGTERM`, `SIGHUP`, `control socket`, `cancel file`, `stdin closed`, `deadline`,
    /// `phase limit`, `stall`.
    pub via: String,
    /// What the asker gave as a reason, or null.
    pub reason: Option<String>,
    /// Whether this request set the state (the first does), or was recorded only.
    pub accepted: bool,
    /// Whether this request means "kill now" (a second interrupt at a terminal).
    pub kill: bool,
    /// The sender's process, where the kernel tells it.
    pub pid: Option<u32>,
    /// The sender's user, where the kernel tells it.
    pub uid: Option<u32>,
    /// The open branch of each running build when the request came, root first: `build`, then phases.
    pub open_branch: Vec<OpenPhase>,
}

/// One open phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OpenPhase {
    /// The build.
    pub build: u32,
    /// The phase instance.
    pub phase: u64,
    /// Its name.
    pub name: String,
    /// The last step reported, or null when none was.
    pub last_step: Option<i32>,
    /// The announced steps.
    pub steps: i32,
    /// How long it had been open, nanoseconds.
    pub open_ns: u64,
}

/// Fields of `cancelAcknowledged`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelAcknowledged {
    /// The accepted request.
    pub request: u32,
    /// The build that answered.
    pub build: u32,
    /// The phase instance whose step answered, or null.
    pub phase: Option<u64>,
    /// From the request's stamp to the acknowledgement's, nanoseconds.
    pub latency_ns: u64,
}

/// Fields of `ladderRung`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LadderRung {
    /// `cooperative`, `SIGTERM`, `SIGKILL`.
    pub rung: String,
    /// Why this rung now: `requested`, `grace over`, `no builder observed`, `SIGTERM ignored`, `kill requested`,
    /// `leftover processes`, the last with the names and numbers of the processes behind a colon. A signal that could
    /// not be sent says so behind a semicolon. `the keeper was lost` stands for the kill that follows from that; what the
    /// keeper did for a runner that was killed begins with `the runner was lost`.
    pub why: String,
    /// The process group that was signalled, or null for the cooperative rung.
    pub group: Option<u32>,
}

/// Fields of `commandExited`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExited {
    /// Its exit code, or null when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it, or null.
    pub signal: Option<i32>,
    /// Whether it dumped core.
    pub core_dumped: bool,
    /// The core's file, or null where there is none, or where the system has its own place for cores.
    pub core_file: Option<String>,
    /// How many processes the kernel's OOM killer ended in the command's memory cgroup while it ran, or null where that
    /// count cannot be read.
    pub oom_kills: Option<u64>,
}

/// Why a file counts as an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InputKind {
    /// The user said so.
    Declared,
    /// The command names it, and it is an ONNX file.
    Argument,
    /// An ONNX file keeps weights in it.
    External,
    /// It is the library that builds.
    Library,
}

/// Fields of `inputIdentified`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputIdentified {
    /// The input, counted from 1.
    pub input: u32,
    /// Why it counts as one.
    pub kind: InputKind,
    /// Its path, as it was given.
    pub path: String,
    /// The input that names it, or null.
    pub of: Option<u32>,
    /// Its size.
    pub bytes: Option<u64>,
    /// When it was last changed, nanoseconds since the Unix epoch.
    pub modified_ns: Option<i64>,
    /// Its number in its file system.
    pub inode: Option<u64>,
    /// A library's build-id, where it has one.
    pub build_id: Option<String>,
    /// Why the rest is null, or null where it is not.
    pub reason: Option<String>,
}

/// Fields of `inputDigested`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputDigested {
    /// The input.
    pub input: u32,
    /// SHA-256 of its content, or null.
    pub sha256: Option<String>,
    /// Why there is none, or null where there is one.
    pub reason: Option<String>,
}

/// Fields of `inputChanged`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputChanged {
    /// The input.
    pub input: u32,
    /// What is different.
    pub what: String,
}

/// Fields of `outputMasked`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct OutputMasked {
    /// Who did it: `runner`, `keeper`, `finalize`.
    pub by: String,
    /// How many secrets were looked for. Whoever finishes a bundle by hand knows those of its own environment only.
    pub values: u64,
}

/// Fields of `jobPaused`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobPaused {
    /// What paused it: the signal's name, for example `SIGTSTP`.
    pub by: String,
}

/// Fields of `jobResumed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobResumed {
    /// How long the pause was, nanoseconds; the deadline and the grace do not count it.
    pub paused_ns: u64,
}

/// Fields of `leftoverFound`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftoverFound {
    /// The process.
    pub pid: u32,
    /// Its name, as the kernel tells it.
    pub name: String,
    /// Its session: that of the job, or one that it made for itself.
    pub session: u32,
    /// What became of it: `left` or `killed`.
    pub action: String,
}

/// Fields of `recordsUnfinished`.
///
/// Nothing is lost by them: a callback returns only after its record is whole, so these are of callbacks that never
/// returned to the builder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordsUnfinished {
    /// How many, at least.
    pub records: u64,
}

/// Fields of `evidenceLost`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceLost {
    /// Records that the attach library could not store, or that were damaged.
    pub records: u64,
    /// What happened, for a person.
    pub reason: String,
}

/// Fields of `hostReported`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HostReported {
    /// What became of the host's job, in the host's own word: `canceled`, `failed`, `timed_out` …
    pub status: String,
    /// Where that stands: the name of a variable, or `--host-status`.
    pub told_by: String,
}

/// The terminal states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// An engine was returned, or, where no builder was seen, the command said 0.
    Succeeded,
    /// The builder acknowledged a request and returned nothing.
    Cancelled,
    /// Everything else.
    Failed,
}

/// Fields of `jobEnded`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobEnded {
    /// The job's state.
    pub state: State,
    /// Its cause: a cancel source, `builder`, `application_cancel`, `killed_by_runner`, `killed_by_host`, `oom`, `crash`,
    /// `runner_lost`, `command`, `artifact`, `evidence_lost`; null after a success.
    pub cause: Option<String>,
    /// Whether any builder was observed.
    pub observed: bool,
    /// The exit code that the runner gives.
    pub exit_code: u8,
}
