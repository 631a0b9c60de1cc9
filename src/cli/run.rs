//! `stuckproof run`.

mod retry;

use super::masking::Masking;
use super::{duration, fail, history, refuse, say, signing_key, size};
use crate::artifact::{self, ArtifactError, Owner, Wishes};
use crate::baseline::{self, Recording};
use crate::clock::Mono;
use crate::event::{CachePolicy, Event, EventKind, EvidenceLost};
use crate::evidence::Bundle;
use crate::history::History;
use crate::mask::Secrets;
use crate::resume::{self, Known};
use crate::seal::addendum::{self, Kind, Status};
use crate::sign::SigningKey;
use crate::supervise::{
    self, Deadline, Finished, Grace, Heartbeat, Job, Left, OnStall, Plan, PrepareError, Unlogged,
};
use crate::{evidence, exit, fsio, seal};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The folder for the evidence, new or empty [default: stuckproof-evidence/<job>]
    #[arg(long, value_name = "DIR")]
    bundle: Option<PathBuf>,
    /// The host around the job, whose signals and time limits are assumed [default: the one that the environment tells of]
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(supervise::host_names()))]
    host: Option<String>,
    /// How long the host waits between its first signal and its end of the job, where it is not the usual time
    /// (a pod's or a unit's own grace period)
    #[arg(long, value_name = "DURATION", env = "STUCKPROOF_HOST_ALLOWS", value_parser = duration::parse)]
    host_allows: Option<Duration>,
    /// Ask the build to stop after this time, or `none` for never [default: none; on GitLab in time before the job's own
    /// timeout, at which nothing would be saved]
    #[arg(long, value_name = "DURATION|none", value_parser = deadline)]
    deadline: Option<Deadline>,
    /// Ask the build to stop when any phase, the outermost included, is open for longer than this
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    max_phase: Option<Duration>,
    /// How long the builder may take to answer a stop before the command gets SIGTERM, or `none` for as long as it
    /// takes [default: none at a terminal, else 60s; after a signal of the host what the host allows]
    #[arg(long, value_name = "DURATION|none", value_parser = grace)]
    grace: Option<Grace>,
    /// How long the command may take to end after SIGTERM before it gets SIGKILL [default: 10s; after a signal
    /// of the host what the host allows]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    kill_after: Option<Duration>,
    /// Ask the build to stop when this file exists
    #[arg(long, value_name = "PATH")]
    cancel_file: Option<PathBuf>,
    /// Ask the build to stop when standard input ends
    #[arg(long, conflicts_with = "tty")]
    cancel_on_stdin_close: bool,
    /// Give the command a terminal
    #[arg(long)]
    tty: bool,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    masking: Masking,
    /// After a success too, end processes that the command left in sessions of their own (compiler caches, build
    /// servers); after anything else they are ended in any case
    #[arg(long)]
    kill_daemons: bool,
    /// An engine that the command builds: a file, or a folder. Only a success replaces it. Where `{engine}` stands in the
    /// command (`{engine:2}` for the second), the command writes to a place of its own, and the result is moved to PATH;
    /// otherwise it writes to PATH itself, and what was there comes back unless the job succeeds
    #[arg(long, value_name = "PATH")]
    engine: Vec<PathBuf>,
    /// The timing cache that the command reads and writes, in the same way; `{timing_cache}` stands for a copy of its own
    #[arg(long, value_name = "PATH")]
    timing_cache: Option<PathBuf>,
    /// What the job may do with the timing cache: `reuse` gives back what was learned, `refresh` builds without it and
    /// puts a new one in its place, `readonly` uses it and leaves it as it is, `off` builds without it
    #[arg(
        long,
        value_name = "reuse|refresh|readonly|off",
        default_value = "reuse",
        requires = "timing_cache",
        value_parser = policy
    )]
    timing_cache_policy: CachePolicy,
    /// A shell command that checks the first engine (`{engine}`) after a build that succeeded; the engine is published only
    /// if it says 0
    #[arg(long, value_name = "COMMAND", requires = "engine")]
    validate: Option<String>,
    /// How long a silent build may be idle before it counts as stalled
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = stall_after)]
    stall_after: Duration,
    /// What to do when a build stalls: say it, or ask it to stop as well
    #[arg(long, value_name = "report|cancel", default_value = "report", value_parser = on_stall)]
    on_stall: OnStall,
    /// Say what the build is doing after so much silence of the command, or `none` [default: 60s under a CI host]
    #[arg(long, value_name = "DURATION|none", value_parser = heartbeat)]
    heartbeat: Option<Heartbeat>,
    /// The folder that remembers earlier builds, or `none` [default: `$STUCKPROOF_HISTORY`, else stuckproof/history in
    /// the user's cache folder]
    #[arg(long, value_name = "DIR|none")]
    history: Option<PathBuf>,
    /// A file that the build is made from, for the evidence and the hash of the build; may be repeated. ONNX files that
    /// the command names are found, and so are the files that they keep weights in
    #[arg(long = "input", value_name = "PATH")]
    inputs: Vec<PathBuf>,
    /// Try again up to N times where that is what the job recommends (`retry_cold`, `retry_with_cache`) and nobody asked for
    /// a stop. Each attempt has a bundle of its own in the folder; the deadline covers all of them together
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with_all = ["tty", "cancel_on_stdin_close"])]
    retry: u32,
    /// Sign the evidence with this Ed25519 key (PKCS#8 PEM) [default: that of `STUCKPROOF_SIGN_KEY`, if set]
    #[arg(long, value_name = "KEY")]
    sign: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What the bundle keeps of the command's output.
#[derive(Debug, Args)]
struct Output {
    /// How much of each output stream the bundle keeps: the first and the last half of it
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size::parse)]
    output_cap: u64,
    /// Keep nothing of the command's output; it still reaches the streams of this process
    #[arg(long, conflicts_with = "output_cap")]
    no_output_copy: bool,
}

fn deadline(text: &str) -> Result<Deadline, String> {
    if text == "none" { Ok(Deadline::Never) } else { duration::parse(text).map(Deadline::After) }
}

fn policy(text: &str) -> Result<CachePolicy, String> {
    serde_json::from_value(text.into())
        .map_err(|_| format!("{text:?} is no policy; write reuse, refresh, readonly or off"))
}

fn grace(text: &str) -> Result<Grace, String> {
    if text == "none" { Ok(Grace::Unlimited) } else { duration::parse(text).map(Grace::Limit) }
}

fn heartbeat(text: &str) -> Result<Heartbeat, String> {
    if text == "none" { Ok(Heartbeat::Never) } else { duration::parse(text).map(Heartbeat::Every) }
}

fn on_stall(text: &str) -> Result<OnStall, String> {
    match text {
        "report" => Ok(OnStall::Report),
        "cancel" => Ok(OnStall::Cancel),
        _ => Err("write report or cancel".to_owned()),
    }
}

/// Less than a second is less than the time between two samples.
fn stall_after(text: &str) -> Result<Duration, String> {
    let span = duration::parse(text)?;
    if span < Duration::from_secs(1) { Err("a stall takes at least 1s".to_owned()) } else { Ok(span) }
}

impl From<Options> for Plan {
    fn from(options: Options) -> Self {
        Self {
            argv: options.command,
            bundle: options.bundle,
            host: options.host,
            host_allows: options.host_allows,
            deadline: options.deadline.unwrap_or(Deadline::Host),
            max_phase: options.max_phase,
            grace: options.grace.unwrap_or(Grace::Host),
            kill_after: options.kill_after,
            cancel_file: options.cancel_file,
            cancel_on_stdin_close: options.cancel_on_stdin_close,
            tty: options.tty,
            output_cap: (!options.output.no_output_copy).then_some(options.output.output_cap),
            inputs: options.inputs,
            masking: options.masking.into(),
            kill_daemons: options.kill_daemons,
            artifacts: Wishes {
                engines: options.engine,
                timing_cache: options.timing_cache,
                policy: options.timing_cache_policy,
                validate: options.validate,
            },
            stall_after: options.stall_after,
            on_stall: options.on_stall,
            heartbeat: options.heartbeat.unwrap_or(Heartbeat::Host),
            history: history::store(options.history),
            attempt: None,
        }
    }
}

/// Runs the command as a job, or inside the job that is around it already.
pub(super) fn main(options: Options) -> ExitCode {
    if let Some(job) = job_around() {
        say(&format!(
            "inside job {job}, which records this command as well; the options given here do not apply"
        ));
        let mut plan = Plan::from(options);
        artifact::name_plainly(&plan.artifacts, &mut plan.argv);
        return refuse(&supervise::exec(&plan.argv));
    }
    let retries = options.retry;
    // Before anything is built: a key that cannot be used must not be found out hours later.
    let key = match signing_key(options.sign.as_deref()) {
        Ok(key) => key.map(Arc::new),
        Err(e) => return fail(&e),
    };
    let plan = Plan::from(options);
    if retries > 0 {
        return retry::main(plan, retries, key);
    }
    match prepare(&plan).and_then(|job| begin(job, plan.history, key)) {
        Ok(begun) => ExitCode::from(begun.run().exit_code),
        Err(e) => fail(&e),
    }
}

/// A job whose bundle tells of it already, and whose command has not started.
struct Begun {
    job: Job,
    baseline: Recording,
    history: Option<History>,
    key: Option<Arc<SigningKey>>,
}

/// Writes what a kill is to leave at least. A job that cannot begin for want of that is finished here, and says so: nobody
/// killed its runner.
fn begin(job: Job, history: Option<History>, key: Option<Arc<SigningKey>>) -> Result<Begun, String> {
    let begun = evidence::provisional(job.bundle(), job.header()).map_err(|e| e.to_string()).and_then(|()| {
        baseline::begin(job.bundle(), job.header(), job.secrets())
            .map_err(|e| format!("cannot start a thread: {e}; the machine is short of processes"))
    });
    match begun {
        Ok(baseline) => Ok(Begun { job, baseline, history, key }),
        Err(why) => {
            give_up(job, &why, key.as_deref());
            Err(why)
        }
    }
}

/// Finishes a job whose command is never started, in the room that was reserved for its end.
fn give_up(job: Job, why: &str, key: Option<&SigningKey>) {
    let (bundle, secrets) = (job.bundle().to_owned(), Arc::clone(job.secrets()));
    // The log is free once nobody records.
    drop(job);
    let lost = EvidenceLost { records: 0, reason: format!("the command was not started: {why}") };
    let known = Known {
        exited: None,
        events: vec![Event { at: Mono::now(), kind: EventKind::EvidenceLost(lost) }],
        host: None,
        reason: "the command was not started",
        exit_code: exit::OWN_FAULT,
        by: "runner",
        output_cap: u64::MAX,
        secrets,
    };
    // What cannot be done now, `finalize` can do once there is room.
    drop(resume::finish(&bundle, &known, key));
}

impl Begun {
    /// Runs the command, and writes and seals the evidence. Gives the exit code, and whether a stop was asked for after that.
    fn run(self) -> Left {
        let Self { job, baseline, history, key } = self;
        let key = key.as_deref();
        baseline.wait();
        // What cannot be written then is written at the end, or is an error there.
        let mut finished = job.run(Box::new(|bundle: &Path| drop(evidence::write_so_far(bundle))));
        let recorded = baseline.finish().map_err(|e| e.to_string());
        let written = write(&mut finished, key);
        // A bundle that lacks something gets no seal that says it is whole.
        let whole = recorded.and(written);
        if let Err(e) = whole.and_then(|written| written.map_or(Ok(()), |bundle| seal(&bundle, key))) {
            finished.fail(e);
        }
        if let Err(e) = fsio::release(finished.bundle()) {
            finished.fail(e.to_string());
        }
        if let Some(why) = history.and_then(|history| history::learn(history, finished.bundle())) {
            say(&why);
        }
        let bundle = finished.bundle().to_owned();
        finished.leave(&mut |late| {
            let what = (Kind::LateRequest, Status::TooLate);
            addendum::add(&bundle, what, &late.note, late.at, key).map(drop).map_err(|e| e.to_string())
        })
    }
}

/// Makes the job ready. Where a lost job stands in the way at the path of an artifact, that one is finished first.
fn prepare(plan: &Plan) -> Result<Job, String> {
    let mut finished = Vec::new();
    loop {
        match Job::prepare(plan.clone()) {
            // One that stands there again cannot be finished from here, and is told like any other fault.
            Err(PrepareError::Artifact(ArtifactError::Left { path, owner, work }))
                if !finished.contains(&work) =>
            {
                finish_lost(&owner, &work, &path, plan)?;
                finished.push(work);
            }
            other => return other.map_err(|e| e.to_string()),
        }
    }
}

/// Finishes a job whose runner was lost; where its bundle is gone, or was never told of the artifact, the artifact alone.
fn finish_lost(owner: &Owner, work: &Path, path: &Path, plan: &Plan) -> Result<(), String> {
    let (job, path) = (&owner.job, path.display());
    // A log without its first line tells of nothing that could be finished, and must not keep others from the path.
    if resume::has_begun(&owner.bundle) {
        say(&format!("job {job} was lost while it was building {path}; it is finished first"));
        let secrets = Arc::new(Secrets::collect(&plan.masking, std::env::vars_os(), &plan.argv));
        resume::finish_abandoned(&owner.bundle, None, &secrets, None).map_err(|e| e.to_string())?;
        if let Some(why) = plan.history.clone().and_then(|history| history::learn(history, &owner.bundle)) {
            say(&why);
        }
    } else {
        say(&format!(
            "job {job} was lost while it was building {path}, and no bundle tells of it; what it wrote is set aside"
        ));
    }
    if work.exists() { artifact::abandon(work).map_err(|e| e.to_string()) } else { Ok(()) }
}

/// Writes the evidence. A log that could not be written to its end is finished, and sealed, like one whose runner was
/// lost, now that there is the room that was reserved.
fn write(finished: &mut Finished, key: Option<&SigningKey>) -> Result<Option<Bundle>, String> {
    if let Some(Unlogged { exited, events }) = finished.give_up_log() {
        let known = Known {
            exited,
            events,
            host: None,
            reason: "the log could not be written",
            exit_code: exit::OWN_FAULT,
            by: "runner",
            output_cap: u64::MAX,
            secrets: Arc::clone(finished.secrets()),
        };
        return resume::finish(finished.bundle(), &known, key).map(|_| None).map_err(|e| e.to_string());
    }
    let written = evidence::write(finished.bundle()).map_err(|e| e.to_string())?;
    finished.remove_wire().map_err(|e| e.to_string())?;
    Ok(Some(written))
}

fn seal(bundle: &Bundle, key: Option<&SigningKey>) -> Result<(), String> {
    seal::seal(bundle, key).map_err(|e| e.to_string())
}

/// The job around this process, if there is one and its runner lives.
fn job_around() -> Option<String> {
    let job = std::env::var("STUCKPROOF_JOB").ok().filter(|job| !job.is_empty())?;
    let wire = std::env::var_os("STUCKPROOF_WIRE")?;
    supervise::runner_lives(Path::new(&wire)).then_some(job)
}
