//! From the time that a host allows to the times of everything that must fit in.

use super::table::Profile;
use crate::cancel::Insists;
use std::time::Duration;

/// The grace where nothing limits it from outside. A longer one holds a machine for an answer that may never come.
const GRACE: Duration = Duration::from_mins(1);
/// From SIGTERM to SIGKILL where nothing limits it from outside.
const KILL_AFTER: Duration = Duration::from_secs(10);
/// After the kill: for leftovers, artifacts and evidence, at most.
const RESERVE: Duration = Duration::from_secs(15);
/// Between the complete evidence and the host's own end, at most.
const MARGIN: Duration = Duration::from_secs(5);
/// How long after the request the evidence so far is written, at most.
const PROVISIONAL: Duration = Duration::from_secs(5);

/// The times of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// From the request to SIGTERM; none is without limit.
    pub grace: Option<Duration>,
    /// From SIGTERM to SIGKILL.
    pub kill_after: Duration,
}

impl Patience {
    /// The ladder where nothing outside limits it.
    pub const UNHURRIED: Self = Self { grace: Some(GRACE), kill_after: KILL_AFTER };
}

/// When what is due after a host's first signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The ladder.
    pub patience: Patience,
    /// The evidence so far is written, so that a kill leaves the request on record in every file.
    pub provisional: Duration,
    /// The evidence must be complete.
    pub complete: Option<Duration>,
}

impl Times {
    /// The times under a host that allows so much. Of ten seconds the builder gets 5.5 to answer, the command 1.5 after
    /// SIGTERM, and 3 are kept for what comes after the kill.
    #[must_use]
    pub fn of(profile: &Profile, allows: Option<Duration>) -> Self {
        let patience = match allows {
            None if profile.insists == Insists::ByInterrupt => {
                Patience { grace: None, ..Patience::UNHURRIED }
            }
            None => Patience::UNHURRIED,
            Some(allows) => {
                let kill_after = part(allows, 15).min(KILL_AFTER);
                let reserve = part(allows, 30).min(RESERVE);
                Patience { grace: Some(allows.saturating_sub(reserve + kill_after).min(GRACE)), kill_after }
            }
        };
        Self {
            patience,
            provisional: patience.grace.map_or(PROVISIONAL, |grace| part(grace, 50).min(PROVISIONAL)),
            complete: allows.map(|allows| allows.saturating_sub(part(allows, 10).min(MARGIN))),
        }
    }
}

/// So many hundredths, to the millisecond.
pub fn part(whole: Duration, hundredths: u32) -> Duration {
    let whole = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(whole / 100 * u64::from(hundredths) + whole % 100 * u64::from(hundredths) / 100)
}

#[cfg(test)]
mod tests {
    use super::super::table::{PROFILES, named};
    use super::*;

    fn of(name: &str) -> Times {
        let profile = named(name).unwrap();
        Times::of(profile, profile.allows)
    }

    #[test]
    fn ten_seconds_are_divided() {
        let ms = Duration::from_millis;
        let times = of("github");
        assert_eq!(times.patience, Patience { grace: Some(ms(5500)), kill_after: ms(1500) });
        assert_eq!((times.provisional, times.complete), (ms(2750), Some(ms(9000))));
        assert_eq!(of("azure"), times);
    }

    #[test]
    fn a_long_wait_is_not_used_up() {
        for name in ["gitlab-shell", "none", "ci"] {
            assert_eq!(of(name).patience, Patience::UNHURRIED, "{name}");
        }
        assert_eq!(of("terminal").patience.grace, None);
    }

    #[test]
    fn every_host_leaves_time_for_the_evidence() {
        for ms in [1, 99, 1_000, 9_000, 10_000, 12_345, 30_000, 90_000, 600_000, u64::MAX / 2] {
            let allows = Duration::from_millis(ms);
            for profile in &PROFILES {
                let times = Times::of(profile, Some(allows));
                let killed = times.patience.grace.unwrap() + times.patience.kill_after;
                let complete = times.complete.unwrap();
                assert!(times.provisional <= times.patience.grace.unwrap(), "{ms}");
                assert!(killed <= complete && complete <= allows, "{ms}");
                assert!(
                    ms < 1_000 || complete >= killed + Duration::from_millis(ms / 10).min(MARGIN),
                    "{ms}"
                );
            }
        }
    }
}
