//! What a host tells of itself: how long it waits, and why it ends a job.

use super::Variable;
use std::path::Path;
use std::time::Duration;

/// Buildkite's agent 3 kills a second before the end of its grace period.
const BUILDKITE_EARLY: Duration = Duration::from_secs(1);
/// What Azure waits after SIGINT and after SIGTERM, unless it is told otherwise.
const AZURE: [(&str, u64); 2] = [("PROCESS_SIGINT_TIMEOUT", 7_500), ("PROCESS_SIGTERM_TIMEOUT", 2_500)];
/// Where Buildkite's agent leaves word that the time of a job is over, before it signals.
const BUILDKITE_TIMEOUT: &str = "BUILDKITE_AGENT_JOB_TIMEOUT_FILE";

/// How long the host waits, as its variables say.
pub fn told(host: &str, variable: Variable) -> Option<Duration> {
    let number = |name: &str| variable(name)?.trim().parse::<u64>().ok();
    match host {
        "azure" => {
            let parts = AZURE.map(|(name, usual)| number(name).unwrap_or(usual));
            Some(Duration::from_millis(parts.iter().sum())).filter(|sum| !sum.is_zero())
        }
        "buildkite" => {
            let timeout = number("BUILDKITE_CANCEL_SIGNAL_TIMEOUT").map(Duration::from_secs);
            let grace = || number("BUILDKITE_CANCEL_GRACE_PERIOD").map(Duration::from_secs);
            let told = timeout.or_else(|| grace()?.checked_sub(BUILDKITE_EARLY));
            told.filter(|told| !told.is_zero())
        }
        _ => None,
    }
}

/// Why the host signals, where it says so.
pub fn reason(host: &str, variable: Variable) -> Option<String> {
    timed_out(host, variable).map(|told_by| format!("the host's time limit is over ({told_by})"))
}

/// Whether the host says that the time of the job is over, and by which variable.
pub fn timed_out(host: &str, variable: Variable) -> Option<&'static str> {
    let file = variable(BUILDKITE_TIMEOUT).filter(|file| host == "buildkite" && !file.is_empty())?;
    Path::new(&file).exists().then_some(BUILDKITE_TIMEOUT)
}
