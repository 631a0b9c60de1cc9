//! Lines for a log that would else be silent: some hosts end a job that says nothing, and a person wants to know.

use super::silence::LiveSilence;
use crate::clock::Mono;
use crate::shown::Ms;
use std::time::Duration;

/// How often, under a CI host.
const USUAL: Duration = Duration::from_mins(1);

/// When to say something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heartbeat {
    /// Under a CI host, once a minute of silence.
    Host,
    /// After so much silence.
    Every(Duration),
    /// Never.
    Never,
}

/// The silence of a job's log.
#[derive(Debug)]
pub struct Pulse {
    every: Option<Duration>,
    output: u64,
    last: Mono,
}

impl Pulse {
    /// The log has been silent since `now`.
    #[must_use]
    pub fn new(wanted: Heartbeat, ci: bool, now: Mono) -> Self {
        let every = match wanted {
            Heartbeat::Every(every) => Some(every),
            Heartbeat::Host if ci => Some(USUAL),
            Heartbeat::Host | Heartbeat::Never => None,
        };
        Self { every, output: 0, last: now }
    }

    /// Whether a line is due, when so many bytes of the command's output have been carried by `now`.
    pub fn is_due(&mut self, output: u64, now: Mono) -> bool {
        let Some(every) = self.every else { return false };
        let wrote = std::mem::replace(&mut self.output, output) != output;
        let due = !wrote && now.since(self.last) >= every;
        if wrote || due {
            self.last = now;
        }
        due
    }
}

/// The line.
#[must_use]
pub fn line(silence: &LiveSilence, elapsed: Duration) -> String {
    let expected = silence.expected.as_ref().map(|expected| {
        let (total, rest) = (Ms(expected.total_ms), Ms(expected.rest_ms));
        format!("; this build usually takes {total}, about {rest} are left")
    });
    let elapsed = Ms(elapsed.as_secs_f64() * 1e3);
    format!("running for {elapsed}; {}{}", silence.words, expected.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_silent_log_gets_a_line() {
        let second = |at: u64| Mono(at * 1_000_000_000);
        let mut pulse = Pulse::new(Heartbeat::Every(Duration::from_secs(10)), false, second(0));
        assert!(!pulse.is_due(0, second(9)));
        assert!(pulse.is_due(0, second(10)));
        assert!(!pulse.is_due(0, second(19)) && pulse.is_due(0, second(20)));
        assert!(!pulse.is_due(5, second(29)) && !pulse.is_due(5, second(38)) && pulse.is_due(5, second(39)));
        let quiet = |wanted, ci| !Pulse::new(wanted, ci, second(0)).is_due(0, second(3600));
        assert!(quiet(Heartbeat::Host, false) && !quiet(Heartbeat::Host, true));
        assert!(quiet(Heartbeat::Never, true));
    }
}
