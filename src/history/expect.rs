//! What earlier builds make expect.

use super::entry::{Entry, Key, Outcome};
use crate::event::{BuildExpected, Likeness};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// So many of the newest builds say how long one takes: machines change.
const NEWEST: usize = 9;

/// What is expected of one build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The build's own key.
    pub key: Key,
    /// Which earlier builds this comes from.
    pub likeness: Likeness,
    /// How many of them succeeded.
    pub builds: u32,
    /// How many stalled.
    pub stalls: u32,
    /// How long a build takes.
    pub total: Option<Duration>,
    /// The longest that one was idle without being stuck.
    pub longest_idle: Duration,
    /// What of the history could not be used.
    pub notes: Vec<String>,
    /// The longest silence in each phase that had one of the longest of its build.
    silences: BTreeMap<Option<String>, Duration>,
    /// No silence elsewhere was longer.
    elsewhere: Duration,
    /// Start and length of each phase.
    phases: BTreeMap<String, (Duration, Duration)>,
    stalled_in: BTreeMap<String, u32>,
}

impl Expectation {
    /// From entries, newest first.
    #[must_use]
    pub fn of(key: Key, likeness: Likeness, entries: &[Entry], notes: Vec<String>) -> Self {
        let whole: Vec<&Entry> =
            entries.iter().filter(|entry| entry.outcome == Outcome::Succeeded).take(NEWEST).collect();
        let mut stalled_in = BTreeMap::new();
        for entry in entries {
            let phases: BTreeSet<&String> = entry.stalled_in.iter().collect();
            for phase in phases {
                *stalled_in.entry(phase.clone()).or_default() += 1;
            }
        }
        let mut silences = BTreeMap::new();
        for silence in whole.iter().flat_map(|entry| &entry.silences) {
            let longest: &mut Duration = silences.entry(silence.key.clone()).or_default();
            *longest = (*longest).max(Duration::from_millis(silence.ms));
        }
        let shortest_kept = |entry: &&Entry| entry.silences.iter().map(|silence| silence.ms).min();
        Self {
            key,
            likeness,
            builds: whole.len() as u32,
            stalls: entries.iter().filter(|entry| !entry.stalled_in.is_empty()).count() as u32,
            total: median(whole.iter().map(|entry| entry.total_ms)),
            longest_idle: Duration::from_millis(whole.iter().map(|e| e.longest_idle_ms).max().unwrap_or(0)),
            notes,
            silences,
            elsewhere: Duration::from_millis(whole.iter().filter_map(shortest_kept).max().unwrap_or(0)),
            phases: phases(&whole),
            stalled_in,
        }
    }

    /// The longest silence while the innermost open phase is this one; none where no whole build is known.
    #[must_use]
    pub fn silence(&self, phase: Option<&str>) -> Option<Duration> {
        let known = self.silences.get(&phase.map(str::to_owned)).copied();
        (self.builds > 0).then(|| known.unwrap_or(self.elsewhere))
    }

    /// How many earlier builds stalled in this phase.
    #[must_use]
    pub fn stalls_in(&self, phase: Option<&str>) -> u32 {
        phase.and_then(|phase| self.stalled_in.get(phase)).copied().unwrap_or(0)
    }

    /// How long this phase takes.
    #[must_use]
    pub fn phase(&self, phase: &str) -> Option<Duration> {
        self.phases.get(phase).map(|(_, length)| *length)
    }

    /// The time that is left of a build that has run for `elapsed`. `open` are its open phases, outermost first, each with
    /// the time that it has been open: the innermost one that is known says where the build is, so that a slower machine
    /// moves the end.
    #[must_use]
    pub fn rest(&self, elapsed: Duration, open: &[(&str, Duration)]) -> Option<Duration> {
        let total = self.total?;
        let known = open.iter().rev().find_map(|(key, age)| Some((self.phases.get(*key)?, *age)));
        Some(match known {
            Some(((start, length), age)) => total.saturating_sub(*start + age.min(*length)),
            None => total.saturating_sub(elapsed),
        })
    }

    /// As the log tells it.
    #[must_use]
    pub fn as_event(&self, build: u32) -> BuildExpected {
        let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let Key { shape, sku, cache } = self.key.clone();
        BuildExpected {
            build,
            shape,
            sku,
            cache,
            likeness: self.likeness,
            builds: self.builds,
            stalls: self.stalls,
            total_ns: self.total.map(nanos),
            longest_idle_ns: nanos(self.longest_idle),
            notes: self.notes.clone(),
        }
    }
}

fn phases(whole: &[&Entry]) -> BTreeMap<String, (Duration, Duration)> {
    let mut all: BTreeMap<&String, Vec<(u64, u64)>> = BTreeMap::new();
    for phase in whole.iter().flat_map(|entry| &entry.phases) {
        all.entry(&phase.key).or_default().push((phase.start_ms, phase.ms));
    }
    let both = |times: &[(u64, u64)]| {
        Some((median(times.iter().map(|time| time.0))?, median(times.iter().map(|time| time.1))?))
    };
    all.into_iter().filter_map(|(key, times)| Some((key.clone(), both(&times)?))).collect()
}

/// The middle one; of two in the middle the mean.
fn median(ms: impl Iterator<Item = u64>) -> Option<Duration> {
    let mut sorted: Vec<u64> = ms.collect();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    let lower = if sorted.len().is_multiple_of(2) { sorted[middle - 1] } else { upper };
    Some(Duration::from_millis(lower.midpoint(upper)))
}

#[cfg(test)]
mod tests {
    use super::super::entry::{EntryPhase, EntrySilence};
    use super::*;

    fn key() -> Key {
        Key { shape: "s".to_owned(), sku: "g".to_owned(), cache: "none".to_owned() }
    }

    fn entry(total_ms: u64) -> Entry {
        let phase =
            |key: &str, start_ms, ms| EntryPhase { key: key.to_owned(), name: key.to_owned(), start_ms, ms };
        let silence = |key: &str, ms| EntrySilence { key: Some(key.to_owned()), ms };
        Entry {
            format: 1,
            job: "j".to_owned(),
            build: 1,
            key: key(),
            outcome: Outcome::Succeeded,
            total_ms,
            longest_idle_ms: 2_000,
            silences: vec![silence("b", total_ms / 2), silence("a", 100)],
            phases: vec![phase("a", 0, total_ms), phase("b", total_ms / 4, total_ms / 2)],
            stalled_in: Vec::new(),
        }
    }

    fn of(entries: &[Entry]) -> Expectation {
        Expectation::of(key(), Likeness::Same, entries, Vec::new())
    }

    #[test]
    fn whole_builds_say_how_long_one_takes_and_others_do_not() {
        let seconds = Duration::from_secs;
        let mut cancelled = entry(1_000);
        cancelled.outcome = Outcome::NotSucceeded;
        cancelled.stalled_in = vec!["b".to_owned(), "b".to_owned()];
        let expected = of(&[cancelled.clone(), entry(40_000), entry(60_000), entry(50_000)]);
        assert_eq!((expected.builds, expected.stalls, expected.total), (3, 1, Some(seconds(50))));
        assert_eq!(expected.silence(Some("b")), Some(seconds(30)));
        assert_eq!(expected.silence(Some("elsewhere")), Some(Duration::from_millis(100)));
        assert_eq!(expected.phase("b"), Some(seconds(25)));
        assert_eq!((expected.stalls_in(Some("b")), expected.stalls_in(Some("a"))), (1, 0));
        assert_eq!(expected.longest_idle, seconds(2));
        let nothing = of(&[cancelled]);
        assert_eq!(
            (nothing.total, nothing.silence(Some("b")), nothing.rest(seconds(1), &[])),
            (None, None, None)
        );
    }

    #[test]
    fn the_rest_follows_from_where_the_build_is() {
        let seconds = Duration::from_secs;
        let expected = of(&[entry(40_000)]);
        assert_eq!(expected.rest(seconds(5), &[]), Some(seconds(35)));
        // Twice as slow a machine: the phase that begins after 10 seconds began after 20.
        let open = [("a", seconds(22)), ("b", seconds(2))];
        assert_eq!(expected.rest(seconds(22), &open), Some(seconds(28)));
        let late = [("b", seconds(500))];
        assert_eq!(expected.rest(seconds(500), &late), Some(seconds(10)));
        assert_eq!(expected.rest(seconds(900), &[("x", seconds(1))]), Some(seconds(0)));
    }
}
