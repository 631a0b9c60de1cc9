//! The clocks that stand still while the job is paused by job control.

use crate::clock::Mono;
use signal_hook::consts::{SIGCONT, SIGTSTP};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The pauses of one job.
#[derive(Debug, Default)]
pub struct Pauses {
    state: Mutex<State>,
    over: Condvar,
    /// Whether SIGTSTP came and was not taken yet; its handler itself writes it.
    wanted: Arc<AtomicBool>,
    /// Whether SIGCONT came and was not heard of yet; its handler itself writes it.
    gone_on: Arc<AtomicBool>,
}

/// A SIGTSTP and a SIGCONT that come in the same moment are handled on two threads, in any order. Whichever came first,
/// the job goes on: a pause that nobody wants any more would last for ever.
const SAME_MOMENT: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
struct State {
    since: Option<Mono>,
    /// The pauses that are over: their ends and lengths.
    past: Vec<(Mono, Duration)>,
    /// When the job was last let go on.
    went_on: Option<Mono>,
}

impl Pauses {
    /// Follows the signals of job control from now on.
    ///
    /// # Errors
    /// When the system takes no handlers.
    pub fn follow(&self) -> io::Result<()> {
        signal_hook::flag::register(SIGTSTP, Arc::clone(&self.wanted))?;
        signal_hook::flag::register(SIGCONT, Arc::clone(&self.gone_on))?;
        Ok(())
    }

    /// Whether a pause was asked for since this was last asked, and is still wanted.
    #[must_use]
    pub fn take(&self) -> bool {
        self.wanted.swap(false, Ordering::SeqCst) && !self.is_over()
    }

    /// Whether the job was let go on just now.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let went_on = self.lock().went_on;
        self.gone_on.load(Ordering::SeqCst) || went_on.is_some_and(|at| Mono::now().since(at) < SAME_MOMENT)
    }

    /// The main loop has heard that the job was let go on.
    pub fn go_on(&self, at: Mono) {
        self.lock().went_on = Some(at);
        self.gone_on.store(false, Ordering::SeqCst);
    }

    /// A pause begins.
    pub fn begin(&self, at: Mono) {
        self.lock().since = Some(at);
    }

    /// The pause is over; it was this long. None where there was no pause.
    pub fn end(&self, at: Mono) -> Option<Duration> {
        let mut state = self.lock();
        let paused = at.since(state.since.take()?);
        state.past.push((at, paused));
        self.over.notify_all();
        Some(paused)
    }

    /// Sleeps until the job has run for `span` since `start`, pauses not counted.
    pub fn sleep(&self, start: Mono, span: Duration) {
        let mut state = self.lock();
        loop {
            // A thread that a pause has stopped wakes before the end of the pause is on record.
            while state.since.is_some() {
                state = self.over.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let run = state.run(start, Mono::now());
            let Some(left) = span.checked_sub(run).filter(|left| !left.is_zero()) else { return };
            state = self.over.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How long the job has run since `start`, pauses not counted.
    #[must_use]
    pub fn run_since(&self, start: Mono, now: Mono) -> Duration {
        self.lock().run(start, now)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn run(&self, start: Mono, now: Mono) -> Duration {
        let paused = self.past.iter().filter(|(end, _)| *end > start).map(|(_, length)| *length).sum();
        now.since(start).saturating_sub(paused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_does_not_count_pauses() {
        let pauses = Arc::new(Pauses::default());
        let start = Mono::now();
        pauses.begin(start);
        let sleeper = {
            let pauses = Arc::clone(&pauses);
            std::thread::spawn(move || {
                pauses.sleep(start, Duration::from_millis(50));
                Mono::now()
            })
        };
        std::thread::sleep(Duration::from_millis(150));
        assert!(!sleeper.is_finished());
        let length = pauses.end(Mono::now()).unwrap();
        assert!(sleeper.join().unwrap().since(start) >= length + Duration::from_millis(50));
        assert_eq!(pauses.end(Mono::now()), None);
    }

    #[test]
    fn only_the_pauses_since_then_count() {
        let pauses = Pauses::default();
        for (begin, end) in [(10, 30), (50, 55)] {
            pauses.begin(Mono(begin));
            pauses.end(Mono(end));
        }
        assert_eq!(pauses.run_since(Mono(0), Mono(100)), Duration::from_nanos(75));
        assert_eq!(pauses.run_since(Mono(40), Mono(100)), Duration::from_nanos(55));
        assert_eq!(pauses.run_since(Mono(60), Mono(100)), Duration::from_nanos(40));
    }

    #[test]
    fn of_two_signals_in_one_moment_the_one_that_lets_go_on_counts() {
        let pauses = Pauses::default();
        assert!(!pauses.take());
        pauses.wanted.store(true, Ordering::SeqCst);
        assert!(pauses.take() && !pauses.take());
        pauses.gone_on.store(true, Ordering::SeqCst);
        pauses.wanted.store(true, Ordering::SeqCst);
        assert!(!pauses.take(), "the other is not heard of yet");
        pauses.go_on(Mono::now());
        pauses.wanted.store(true, Ordering::SeqCst);
        assert!(!pauses.take(), "it was a moment ago");
        pauses.go_on(Mono(0));
        pauses.wanted.store(true, Ordering::SeqCst);
        assert!(pauses.take());
    }

    #[test]
    fn a_sleep_that_is_over_already_returns() {
        Pauses::default().sleep(Mono(0), Duration::from_millis(1));
    }
}
