//! Two clocks: the monotonic one measures, the wall clock only dates.
//!
//! A [`Mono`] is `CLOCK_MONOTONIC` in nanoseconds, the same clock that the attach library stamps its records with, so
//! a time taken in the builder's process and one taken here can be subtracted. An [`Anchor`] pairs the two clocks once,
//! at the start of a job; every wall time in the evidence is derived from it, so that a clock step during a build moves
//! no event.

use chrono::{DateTime, SecondsFormat, Utc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point on `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Mono(pub u64);

impl Mono {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Self(t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
    }

    /// The time from `earlier` to `self`; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Milliseconds from `earlier` to `self`, rounded to a microsecond; zero when `earlier` is later.
    #[must_use]
    pub fn ms_since(self, earlier: Self) -> f64 {
        round_ms(self.0.saturating_sub(earlier.0))
    }
}

/// Nanoseconds as milliseconds with three decimals.
#[must_use]
pub fn round_ms(ns: u64) -> f64 {
    (ns as f64 / 1_000.0).round() / 1_000.0
}

/// One reading of both clocks, taken together at the start of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// The monotonic reading.
    pub mono: Mono,
    /// The wall reading, nanoseconds since the Unix epoch, UTC.
    pub wall_ns: u64,
}

impl Anchor {
    /// Reads both clocks.
    #[must_use]
    pub fn now() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { mono: Mono::now(), wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX) }
    }

    /// The wall time of a monotonic point, nanoseconds since the Unix epoch.
    #[must_use]
    pub fn wall_ns(&self, at: Mono) -> u64 {
        self.wall_ns.saturating_add(at.0).saturating_sub(self.mono.0)
    }

    /// The wall time of a monotonic point as RFC 3339 in UTC with microseconds.
    #[must_use]
    pub fn rfc3339(&self, at: Mono) -> String {
        rfc3339(self.wall_ns(at))
    }
}

/// A wall time, in nanoseconds since the Unix epoch, as RFC 3339 in UTC with microseconds.
#[must_use]
pub fn rfc3339(wall_ns: u64) -> String {
    let ns = i64::try_from(wall_ns).unwrap_or(i64::MAX);
    DateTime::<Utc>::from_timestamp_nanos(ns).to_rfc3339_opts(SecondsFormat::Micros, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wall_time_follows_from_the_anchor() {
        let anchor = Anchor { mono: Mono(5_000_000_000), wall_ns: 1_700_000_000_000_000_000 };
        assert_eq!(anchor.rfc3339(Mono(6_500_000_000)), "2023-11-14T22:13:21.500000Z");
        assert_eq!(anchor.rfc3339(Mono(4_000_000_000)), "2023-11-14T22:13:19.000000Z");
    }

    #[test]
    fn a_span_never_goes_below_zero() {
        assert_eq!(Mono(3).since(Mono(5)), Duration::ZERO);
        assert!((Mono(2_345_678).ms_since(Mono(0)) - 2.346).abs() < 1e-9);
    }
}
