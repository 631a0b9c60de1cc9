//! When a sample is taken and when it is written.
//!
//! Samples serve the verdict on a silence and stay frequent; lines serve a reader, and a day of them must stay small.

use std::time::Duration;

/// Between two samples, unless one costs too much.
const USUAL: Duration = Duration::from_secs(1);
/// The longest time between two samples: a stall must be found within seconds of its threshold.
const LONGEST: Duration = Duration::from_secs(4);
/// A sample may take one part in so many of the time until the next: 0.4 % of a core.
const SHARE: u32 = 250;

/// From the job's start up to this long, one line in so many.
const LINES: [(Duration, Duration); 3] = [
    (Duration::from_mins(5), Duration::ZERO),
    (Duration::from_hours(1), Duration::from_secs(10)),
    (Duration::MAX, Duration::from_mins(1)),
];

/// How long to wait after a sample that cost so much processor time.
#[must_use]
pub fn until_next(cost: Duration) -> Duration {
    (cost * SHARE).clamp(USUAL, LONGEST)
}

/// Whether a sample at this age of the job is written, when the last line is so old.
pub(super) fn is_due(age: Duration, since_line: Duration) -> bool {
    let rule = LINES.iter().find(|(until, _)| age < *until);
    // Half a sample early rather than half a sample late.
    rule.is_none_or(|(_, apart)| since_line + USUAL / 2 >= *apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_samples_is_a_few_thousand_lines() {
        let day = 24 * 3600;
        let (mut lines, mut last) = (0, 0);
        for second in 0..day {
            if is_due(Duration::from_secs(second), Duration::from_secs(second - last)) {
                (lines, last) = (lines + 1, second);
            }
        }
        assert_eq!(lines, 300 + 330 + 23 * 60);
    }

    #[test]
    fn a_costly_sample_is_taken_less_often_but_never_too_seldom() {
        assert_eq!(until_next(Duration::from_micros(300)), USUAL);
        assert_eq!(until_next(Duration::from_millis(8)), Duration::from_secs(2));
        assert_eq!(until_next(Duration::from_secs(1)), LONGEST);
    }
}
