//! How long threads were kept from a processor while they had more to do.
//!
//! A look finds what a thread does at one moment. On a crowded machine a thread that works a little now and then uses
//! hardly any processor, and the few looks of a short silence may all find it asleep. The kernel counts what looks miss:
//! how long each thread waited for its turn, however short each wait was. That alone is not work, since a thread that
//! wakes up only to look around waits for its turn as well, the longer the more crowded the machine is. What tells them
//! apart is how their turns end: the one goes back to sleep by itself, the other is taken off. So of a thread's waits those
//! count that belong to turns that were cut short, in proportion to all its turns.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// A thread that waited less than this since it was last looked into is not looked into.
const WORTH_A_LOOK: u64 = 1_000_000;

/// All threads of a job, over time.
#[derive(Debug, Default)]
pub(super) struct Starving {
    /// By number and start, as a number can be given to another thread.
    threads: BTreeMap<(u32, u64), Counters>,
    /// Those that the look under way has met: the ones that it does not meet have ended.
    met: BTreeMap<(u32, u64), Counters>,
    starved: Duration,
    /// The kernel counts.
    counted: bool,
}

/// What the kernel has counted for a thread since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counters {
    /// Time it could run and did not, nanoseconds.
    waited: u64,
    /// Turns on a processor.
    turns: u64,
    /// Turns after which it could still run.
    cut_short: u64,
}

impl Starving {
    /// Looks at a thread, by its folder in `/proc`.
    pub(super) fn look(&mut self, folder: &str, tid: u32, started: u64) {
        let Some(now) = fs::read_to_string(format!("{folder}/schedstat")).ok().and_then(|s| parse(&s)) else {
            return;
        };
        self.counted |= now.turns > 0;
        let mut known = self.threads.remove(&(tid, started)).unwrap_or_default();
        if now.waited.saturating_sub(known.waited) >= WORTH_A_LOOK
            && let Some(cut_short) = cut_short(folder)
        {
            let now = Counters { cut_short, ..now };
            self.starved += starved(known, now);
            known = now;
        }
        self.met.insert((tid, started), known);
    }

    /// The look is over: the time that threads starved so far, or nothing where the kernel does not count it. What a
    /// thread waited between the last look at it and its end is not in it.
    pub(super) fn so_far(&mut self) -> Option<Duration> {
        self.threads = std::mem::take(&mut self.met);
        self.counted.then_some(self.starved)
    }
}

/// Between two states of a thread.
fn starved(before: Counters, now: Counters) -> Duration {
    let turns = now.turns.saturating_sub(before.turns).max(1);
    let cut_short = now.cut_short.saturating_sub(before.cut_short).min(turns);
    let waited = now.waited.saturating_sub(before.waited);
    Duration::from_nanos(waited).mul_f64(cut_short as f64 / turns as f64)
}

/// The line has the time on a processor, the time waited for one, and the turns. All are zero where nothing is counted.
fn parse(schedstat: &str) -> Option<Counters> {
    let mut fields = schedstat.split_ascii_whitespace().skip(1).map(str::parse);
    let mut field = || fields.next()?.ok();
    Some(Counters { waited: field()?, turns: field()?, cut_short: 0 })
}

fn cut_short(folder: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("{folder}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    line?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(waited_ms: u64, turns: u64, cut_short: u64) -> Counters {
        Counters { waited: waited_ms * 1_000_000, turns, cut_short }
    }

    #[test]
    fn waits_count_as_far_as_turns_were_cut_short() {
        let ms = |before, now| starved(before, now).as_millis();
        assert_eq!(ms(turns(0, 0, 0), turns(100, 10, 10)), 100, "taken off each time");
        assert_eq!(ms(turns(0, 0, 0), turns(100, 10, 0)), 0, "goes back to sleep each time");
        assert_eq!(ms(turns(100, 10, 0), turns(200, 20, 5)), 50);
        assert_eq!(ms(turns(100, 10, 9), turns(50, 5, 3)), 0, "counters that jump");
        assert_eq!(ms(turns(0, 5, 0), turns(100, 5, 9)), 100, "counters that are not read at one moment");
    }

    #[test]
    fn a_kernel_that_counts_nothing_says_nothing() {
        assert_eq!(parse("0 51878000 3\n"), Some(Counters { waited: 51_878_000, turns: 3, cut_short: 0 }));
        assert_eq!(parse("1 2"), None);
        assert_eq!(parse("x y z"), None);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let file = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let mut starving = Starving::default();
        starving.look(path, 1, 1);
        assert_eq!(starving.so_far(), None, "no such file");
        file("schedstat", "0 0 0\n");
        starving.look(path, 1, 1);
        assert_eq!(starving.so_far(), None, "zeros");
        file("schedstat", "5 2000000 4\n");
        starving.look(path, 1, 1);
        assert_eq!(starving.so_far(), Some(Duration::ZERO), "how turns ended is not told");
        file("status", "Name:\tx\nvoluntary_ctxt_switches:\t2\nnonvoluntary_ctxt_switches:\t2\n");
        starving.look(path, 1, 1);
        assert_eq!(starving.so_far(), Some(Duration::from_millis(1)));
        starving.look(path, 1, 1);
        assert_eq!(starving.so_far(), Some(Duration::from_millis(1)), "once only");
        starving.look(path, 1, 2);
        assert_eq!(starving.so_far(), Some(Duration::from_millis(2)), "another thread of that number");
    }
}
