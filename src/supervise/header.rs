//! What the log of a job begins with.

use super::host::{Host, Patience};
use super::limits::Limits;
use super::{Grace, Plan};
use crate::clock::Anchor;
use crate::event::JobStarted;
use std::ffi::OsStr;
use std::time::Duration;

/// The ladders of a job.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ladders {
    /// After any request.
    pub own: Patience,
    /// From the host's first signal on, where the host does not wait for ever.
    pub hurried: Option<Patience>,
}

impl Ladders {
    /// What the user says, else what the host's profile says.
    pub(super) fn of(plan: &Plan, host: Host) -> Self {
        let wanted = |usual: Patience| Patience {
            grace: match plan.grace {
                Grace::Host => usual.grace,
                Grace::Limit(limit) => Some(limit),
                Grace::Unlimited => None,
            },
            kill_after: plan.kill_after.unwrap_or(usual.kill_after),
        };
        Self { own: wanted(host.unhurried()), hurried: host.hurried().map(wanted) }
    }
}

/// The header, but for what is only known from the stage and the environment.
pub(super) fn header(
    job: String,
    plan: &Plan,
    host: Host,
    ladders: Ladders,
    limits: &Limits,
    anchor: Anchor,
) -> JobStarted {
    let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let text = |s: &OsStr| s.to_string_lossy().into_owned();
    JobStarted {
        format: 1,
        job,
        stuckproof: env!("CARGO_PKG_VERSION").to_owned(),
        argv: plan.argv.iter().map(|a| text(a)).collect(),
        cwd: std::env::current_dir().map(|d| text(d.as_os_str())).unwrap_or_default(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        runner_pid: std::process::id(),
        ci_host: host.ci().map(str::to_owned),
        host_profile: Box::new(host.facts(ladders.hurried.unwrap_or(ladders.own))),
        anchor_mono_ns: anchor.mono.0,
        anchor_wall_ns: anchor.wall_ns,
        grace_ms: ladders.own.grace.map(ms),
        kill_after_ms: ms(ladders.own.kill_after),
        deadline_ms: limits.deadline.map(ms),
        deadline_from: limits.from.map(str::to_owned),
        phase_limit_ms: plan.max_phase.map(ms),
        environment_changes: Vec::new(),
        bundle: String::new(),
        wire: String::new(),
        streams: String::new(),
        warnings: Vec::new(),
        attempt: plan.attempt.clone(),
    }
}
