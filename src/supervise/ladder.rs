//! The ladder: what is done to a command that must stop, and when. It decides only; nothing here sends a signal.
//!
//! cooperative (the cancel word, already written) → SIGTERM to the group after the grace → SIGKILL after
//! `kill_after`. Processes that outlive the command itself climb the same two last rungs.

use super::host::Patience;
use crate::clock::Mono;
use std::time::Duration;

/// How long processes that the command left behind may take to leave by themselves. Helpers of a runtime end a few
/// milliseconds after the process that they serve, on a busy machine a few more; they are no leftovers.
const SETTLE: Duration = Duration::from_secs(1);
/// From SIGTERM to SIGKILL for processes that outlived their command when nobody had asked for a stop.
pub const LEFTOVER_GRACE: Duration = Duration::from_secs(1);
/// How long to wait for processes that got SIGKILL and whose command has ended. One that a driver holds, or that we may
/// not signal, can stay for ever; the evidence must not.
pub const UNKILLABLE: Duration = Duration::from_secs(3);

/// A rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rung {
    /// The builder is asked to stop at its next step.
    Cooperative,
    /// SIGTERM to the group.
    Terminate,
    /// SIGKILL to the group.
    Kill,
}

impl Rung {
    /// The word that the evidence uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cooperative => "cooperative",
            Self::Terminate => "SIGTERM",
            Self::Kill => "SIGKILL",
        }
    }
}

/// A rung to climb now, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Climb {
    /// The rung.
    pub rung: Rung,
    /// Why, as the evidence says it.
    pub why: &'static str,
}

/// The ladder of one job.
#[derive(Debug)]
pub struct Ladder {
    patience: Patience,
    requested: Option<Mono>,
    /// The host's own clock, since its first signal, and what it leaves time for.
    hurried: Option<(Mono, Patience)>,
    terminated: Option<Mono>,
    killed: Option<Mono>,
    /// When the command ended and left processes behind.
    left_behind: Option<Mono>,
}

impl Ladder {
    /// A ladder that nobody stands on.
    #[must_use]
    pub fn new(patience: Patience) -> Self {
        Self { patience, requested: None, hurried: None, terminated: None, killed: None, left_behind: None }
    }

    /// The times of the ladder.
    #[must_use]
    pub fn patience(&self) -> Patience {
        self.patience
    }

    /// Gives a builder that will hardly answer this long, where it would have had as long as it takes.
    pub fn limit_grace(&mut self, grace: Duration) {
        self.patience.grace.get_or_insert(grace);
    }

    /// A stop was accepted at `at`.
    pub fn request(&mut self, at: Mono) -> Climb {
        self.requested = Some(at);
        Climb { rung: Rung::Cooperative, why: "requested" }
    }

    /// The host has signalled at `at` and waits for no longer than this. Its first signal counts.
    pub fn hurry(&mut self, at: Mono, patience: Patience) {
        self.hurried.get_or_insert((at, patience));
    }

    /// Somebody wants the command dead now. Nothing, when it has been killed already.
    pub fn kill(&mut self, now: Mono) -> Option<Climb> {
        if self.killed.is_some() {
            return None;
        }
        self.killed = Some(now);
        Some(Climb { rung: Rung::Kill, why: "kill requested" })
    }

    /// Whether SIGKILL was sent already.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.killed.is_some()
    }

    /// The job was paused for so long: what was promised is kept, but later. A host's clock does not stand still.
    pub fn shift(&mut self, pause: Duration) {
        for stamp in [&mut self.requested, &mut self.terminated, &mut self.killed, &mut self.left_behind] {
            *stamp = stamp.map(|at| after(at, pause));
        }
    }

    /// Whether what was left behind has outlived its SIGKILL for so long that nothing will end it.
    #[must_use]
    pub fn is_exhausted(&self, now: Mono) -> bool {
        let both = self.killed.zip(self.left_behind);
        both.is_some_and(|(killed, left)| now >= after(killed.max(left), UNKILLABLE))
    }

    /// The command ended at `at` and left processes of its group behind.
    pub fn leave_behind(&mut self, at: Mono) {
        self.left_behind = Some(at);
    }

    /// The rung that is due, if one is. `cooperative` says whether a builder is there that can answer.
    pub fn due(&mut self, now: Mono, cooperative: bool) -> Option<Climb> {
        let (at, climb) = self.next(cooperative)?;
        if now < at {
            return None;
        }
        match climb.rung {
            Rung::Cooperative => {}
            Rung::Terminate => self.terminated = Some(now),
            Rung::Kill => self.killed = Some(now),
        }
        Some(climb)
    }

    /// When the next rung is due, and which it is.
    #[must_use]
    pub fn next(&self, cooperative: bool) -> Option<(Mono, Climb)> {
        if self.killed.is_some() {
            return None;
        }
        if let Some(terminated) = self.terminated {
            return Some((self.kill_at(terminated), self.kill_climb()));
        }
        if let Some(left) = self.left_behind {
            let climb = Climb { rung: Rung::Terminate, why: "leftover processes" };
            return Some((after(left, SETTLE), climb));
        }
        let requested = self.requested?;
        if !cooperative {
            return Some((requested, Climb { rung: Rung::Terminate, why: "no builder observed" }));
        }
        let own = self.patience.grace.map(|grace| after(requested, grace));
        let host = self.hurried.and_then(|(at, host)| Some(after(at, host.grace?)));
        let at = own.into_iter().chain(host).min()?;
        Some((at, Climb { rung: Rung::Terminate, why: "grace over" }))
    }

    fn kill_at(&self, terminated: Mono) -> Mono {
        let promised = self.patience.kill_after;
        if self.requested.is_none() {
            return after(terminated, promised.min(LEFTOVER_GRACE));
        }
        let host = self.hurried.and_then(|(at, host)| Some(after(after(at, host.grace?), host.kill_after)));
        host.map_or(after(terminated, promised), |host| host.min(after(terminated, promised)))
    }

    fn kill_climb(&self) -> Climb {
        let why = if self.left_behind.is_some() { "leftover processes" } else { "SIGTERM ignored" };
        Climb { rung: Rung::Kill, why }
    }
}

fn after(at: Mono, span: Duration) -> Mono {
    Mono(at.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn ladder(grace: Option<u64>) -> Ladder {
        Ladder::new(Patience { grace: grace.map(Duration::from_secs), kill_after: Duration::from_secs(10) })
    }

    #[test]
    fn the_rungs_come_in_order_and_once() {
        let mut l = ladder(Some(60));
        assert_eq!(l.due(Mono(0), true), None);
        assert_eq!(l.request(Mono(S)).rung, Rung::Cooperative);
        assert_eq!(l.due(Mono(60 * S), true), None);
        assert_eq!(l.due(Mono(61 * S), true), Some(Climb { rung: Rung::Terminate, why: "grace over" }));
        assert_eq!(l.due(Mono(70 * S), true), None);
        assert_eq!(l.due(Mono(71 * S), true), Some(Climb { rung: Rung::Kill, why: "SIGTERM ignored" }));
        assert_eq!(l.due(Mono(1000 * S), true), None);
    }

    #[test]
    fn without_a_limit_only_a_person_ends_the_grace() {
        let mut l = ladder(None);
        l.request(Mono(0));
        assert_eq!(l.due(Mono(100_000 * S), true), None);
        assert_eq!(l.kill(Mono(S)).map(|c| c.rung), Some(Rung::Kill));
        assert_eq!(l.kill(Mono(2 * S)), None);
    }

    #[test]
    fn nobody_waits_for_a_builder_that_is_not_there() {
        let mut l = ladder(None);
        l.request(Mono(5));
        assert_eq!(l.due(Mono(5), false).map(|c| c.why), Some("no builder observed"));
    }

    #[test]
    fn leftovers_get_a_moment_then_a_word_then_the_end() {
        let mut l = ladder(Some(60));
        l.leave_behind(Mono(0));
        assert_eq!(l.due(Mono(S / 2), true), None);
        assert_eq!(l.due(Mono(S), true).map(|c| c.rung), Some(Rung::Terminate));
        assert_eq!(l.due(Mono(2 * S), true).map(|c| c.rung), Some(Rung::Kill));
    }

    #[test]
    fn what_sigkill_does_not_end_is_given_up_once_the_command_has_ended() {
        let mut l = ladder(Some(60));
        l.kill(Mono(0));
        assert!(!l.is_exhausted(Mono(40 * S)), "the command itself is waited for");
        l.leave_behind(Mono(50 * S));
        assert!(!l.is_exhausted(Mono(52 * S)));
        assert!(l.is_exhausted(Mono(53 * S)));
    }

    #[test]
    fn a_pause_does_not_count() {
        let mut l = ladder(Some(60));
        l.request(Mono(0));
        l.shift(Duration::from_secs(100));
        assert_eq!(l.due(Mono(159 * S), true), None);
        assert_eq!(l.due(Mono(160 * S), true).map(|c| c.rung), Some(Rung::Terminate));
        l.shift(Duration::from_secs(5));
        assert_eq!(l.due(Mono(174 * S), true), None);
        assert_eq!(l.due(Mono(175 * S), true).map(|c| c.rung), Some(Rung::Kill));
    }

    #[test]
    fn a_host_that_signals_shortens_what_is_left() {
        let host = Patience { grace: Some(Duration::from_secs(5)), kill_after: Duration::from_secs(2) };
        let mut l = ladder(Some(60));
        l.request(Mono(0));
        l.hurry(Mono(30 * S), host);
        l.hurry(Mono(34 * S), host);
        assert_eq!(l.due(Mono(34 * S), true), None);
        assert_eq!(l.due(Mono(35 * S), true).map(|c| c.why), Some("grace over"));
        assert_eq!(l.due(Mono(36 * S), true), None);
        assert_eq!(l.due(Mono(37 * S), true).map(|c| c.rung), Some(Rung::Kill));
        let mut l = ladder(Some(1));
        l.request(Mono(0));
        assert_eq!(l.due(Mono(S), true).map(|c| c.rung), Some(Rung::Terminate));
        l.hurry(Mono(2 * S), host);
        assert_eq!(l.due(Mono(9 * S), true).map(|c| c.rung), Some(Rung::Kill), "the host's end comes first");
        let mut l = ladder(Some(1));
        l.request(Mono(0));
        l.hurry(Mono(0), host);
        assert_eq!(
            l.due(Mono(S), true).map(|c| c.rung),
            Some(Rung::Terminate),
            "a shorter grace of the user's holds"
        );
    }

    #[test]
    fn leftovers_of_a_stopped_command_keep_the_time_they_were_promised() {
        let mut l = ladder(Some(1));
        l.request(Mono(0));
        assert_eq!(l.due(Mono(S), true).map(|c| c.rung), Some(Rung::Terminate));
        l.leave_behind(Mono(2 * S));
        assert_eq!(l.due(Mono(10 * S), true), None);
        assert_eq!(l.due(Mono(11 * S), true).map(|c| c.why), Some("leftover processes"));
    }
}
