//! The time limit of a GitLab job. At that limit nothing of the job is saved, not even with `when: always`.

use super::Variable;
use super::times::part;
use crate::clock::Anchor;
use std::time::Duration;

/// What GitLab itself reserves for after-scripts and uploads.
const RESERVED: Duration = Duration::from_mins(5);

/// What is left of a GitLab job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobLimit {
    /// Until the limit.
    pub left: Duration,
}

impl JobLimit {
    /// Reads it from the variables of a GitLab job.
    #[must_use]
    pub fn of_this_job(anchor: Anchor) -> Option<Self> {
        Self::read(&super::variable, anchor.wall_ns.cast_signed())
    }

    fn read(variable: Variable, wall_ns: i64) -> Option<Self> {
        let limit = Duration::from_secs(variable("CI_JOB_TIMEOUT")?.trim().parse().ok()?);
        let started = chrono::DateTime::parse_from_rfc3339(variable("CI_JOB_STARTED_AT")?.trim()).ok()?;
        let run_ns = wall_ns.checked_sub(started.timestamp_nanos_opt()?)?;
        // A clock that is behind GitLab's makes no time.
        let run = Duration::from_nanos(u64::try_from(run_ns).unwrap_or(0));
        Some(Self { left: limit.saturating_sub(run) })
    }

    /// The deadline that leaves time for the stop, the evidence and its upload: five minutes, or a quarter of a short
    /// job.
    #[must_use]
    pub fn deadline(self) -> Duration {
        self.left.saturating_sub(RESERVED.min(part(self.left, 25)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_NS: i64 = 1_800_000_000_000_000_000;

    fn read(timeout: &str, started: &str, after_s: i64) -> Option<JobLimit> {
        let find = |name: &str| match name {
            "CI_JOB_TIMEOUT" => Some(timeout.to_owned()),
            "CI_JOB_STARTED_AT" => Some(started.to_owned()),
            _ => None,
        };
        JobLimit::read(&find, START_NS + after_s * 1_000_000_000)
    }

    #[test]
    fn what_ran_before_us_counts() {
        let started = "2027-01-15T08:00:00Z";
        let limit = read("3600", started, 600).unwrap();
        assert_eq!(limit.left.as_secs(), 3000);
        assert_eq!(limit.deadline().as_secs(), 2700);
        assert_eq!(read("600", started, 0).unwrap().deadline().as_secs(), 450);
        assert_eq!(read("600", started, 700).unwrap().deadline(), Duration::ZERO);
        assert_eq!(read("600", started, -50).unwrap().left.as_secs(), 600);
    }

    #[test]
    fn what_cannot_be_read_is_no_limit() {
        for (timeout, started) in
            [("", "2027-01-15T08:00:00Z"), ("1h", "2027-01-15T08:00:00Z"), ("60", "now")]
        {
            assert_eq!(read(timeout, started, 0), None);
        }
    }
}
