//! The limit on how long a phase may be open.

use super::pause::Pauses;
use crate::clock::Mono;
use crate::event::OpenPhase;
use std::time::Duration;

/// The limit, until it has been broken.
#[derive(Debug)]
pub struct PhaseLimit {
    limit: Option<Duration>,
}

impl PhaseLimit {
    /// No phase may be open for longer than this.
    pub fn new(limit: Option<Duration>) -> Self {
        Self { limit }
    }

    /// Whether anything needs to be looked at.
    pub fn is_set(&self) -> bool {
        self.limit.is_some()
    }

    /// The reason for a stop, once, when one of these phases is open for too long; the innermost of them is named.
    pub fn broken_by(&mut self, open: &[OpenPhase], now: Mono, pauses: &Pauses) -> Option<String> {
        let limit = self.limit?;
        let run = |phase: &OpenPhase| pauses.run_since(Mono(now.0.saturating_sub(phase.open_ns)), now);
        let phase = open.iter().rfind(|phase| run(phase) >= limit)?;
        self.limit = None;
        Some(format!(
            "the phase {} (build {}, instance {}) has been open for {:.1} s; the limit is {:.1} s",
            phase.name,
            phase.build,
            phase.phase,
            run(phase).as_secs_f64(),
            limit.as_secs_f64()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(phase: u64, open_ns: u64) -> OpenPhase {
        OpenPhase { build: 1, phase, name: format!("phase {phase}"), last_step: None, steps: 1, open_ns }
    }

    #[test]
    fn the_innermost_phase_over_the_limit_is_named_once() {
        let pauses = Pauses::default();
        let mut limit = PhaseLimit::new(Some(Duration::from_nanos(500)));
        let now = Mono(1_000);
        assert_eq!(limit.broken_by(&[open(1, 499)], now, &pauses), None);
        let why = limit.broken_by(&[open(1, 900), open(2, 500), open(3, 10)], now, &pauses).unwrap();
        assert!(why.starts_with("the phase phase 2 (build 1, instance 2)"), "{why}");
        assert_eq!(limit.broken_by(&[open(1, 900)], now, &pauses), None);
    }

    #[test]
    fn pauses_do_not_count() {
        let pauses = Pauses::default();
        pauses.begin(Mono(200));
        pauses.end(Mono(700));
        let mut limit = PhaseLimit::new(Some(Duration::from_nanos(500)));
        assert_eq!(limit.broken_by(&[open(1, 900)], Mono(1_000), &pauses), None);
        assert!(limit.broken_by(&[open(1, 1_000)], Mono(1_100), &pauses).is_some());
    }
}
