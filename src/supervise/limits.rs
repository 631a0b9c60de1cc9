//! When a job has to end by itself.

use super::Deadline;
use super::host::{Host, JobLimit};
use crate::clock::Anchor;
use std::time::Duration;

/// The option that a deadline came from.
const OPTION: &str = "--deadline";
/// The variable that a deadline was made from.
const HOST: &str = "CI_JOB_TIMEOUT";

/// The deadline of a job and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// After the start of the command.
    pub deadline: Option<Duration>,
    /// Where it comes from.
    pub from: Option<&'static str>,
    /// What is left of the CI job around this one.
    left: Option<Duration>,
}

impl Limits {
    /// What the user wants; where nothing was said, what the host's own limit leaves time for. A job that reaches the
    /// limit of GitLab is lost with everything that it made, so that an earlier end costs nothing there.
    pub fn of(wanted: Deadline, host: Host, anchor: Anchor) -> Self {
        let limit = (host.ci() == Some("gitlab")).then(|| JobLimit::of_this_job(anchor)).flatten();
        let (deadline, from) = match (wanted, limit) {
            (Deadline::After(span), _) => (Some(span), Some(OPTION)),
            (Deadline::Host, Some(limit)) => (Some(limit.deadline()), Some(HOST)),
            (Deadline::Host | Deadline::Never, _) => (None, None),
        };
        Self { deadline, from, left: limit.map(|limit| limit.left) }
    }

    /// What a user of a host that saves nothing at its limit should know.
    pub fn warning(&self, host: Host) -> Option<String> {
        if host.ci() != Some("gitlab") {
            return None;
        }
        let lost = "at the job's own timeout nothing is saved, not even the evidence";
        match (self.deadline, self.left) {
            (None, _) => Some(format!("no deadline is set: {lost}; give a --deadline below that timeout")),
            (Some(deadline), Some(left)) if deadline >= left => Some(format!(
                "the deadline ({:.0} s) lies behind the end of the job, which is in {:.0} s: {lost}; give an earlier --deadline \
                 or the job a longer timeout",
                deadline.as_secs_f64(),
                left.as_secs_f64()
            )),
            _ => None,
        }
    }

    /// What to say of a deadline that the user did not ask for.
    pub fn announcement(&self) -> Option<String> {
        let deadline = self.deadline.filter(|_| self.from == Some(HOST))?;
        Some(format!(
            "the build is asked to stop after {:.0} s, while there is time to save the evidence ({HOST}); --deadline says otherwise",
            deadline.as_secs_f64()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(deadline: Option<u64>, left: Option<u64>) -> Limits {
        Limits {
            deadline: deadline.map(Duration::from_secs),
            from: None,
            left: left.map(Duration::from_secs),
        }
    }

    #[test]
    fn a_job_on_gitlab_needs_a_deadline_before_its_end() {
        let gitlab = Host::find(Some("gitlab-shell"), None);
        let warned = |limits: Limits| limits.warning(gitlab).unwrap_or_default();
        assert!(warned(limits(None, None)).contains("no deadline"));
        assert!(warned(limits(Some(60), Some(60))).contains("lies behind"));
        assert_eq!(warned(limits(Some(59), Some(60))), "");
        assert_eq!(warned(limits(Some(59), None)), "");
        assert_eq!(limits(None, None).warning(Host::find(Some("github"), None)), None);
    }
}
