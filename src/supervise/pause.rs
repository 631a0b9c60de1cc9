//! The clocks that stand still while the job is paused by job control.

use crate::clock::Mono;
use signal_hook::consts::{SIGCONT, SIGTSTP};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The pauses of one job.
#[derive(Debug, Default)]
pub struct Pauses {
    state: Mutex<State>,
    over: Condvar,
    /// Which signal of job control came last. The handlers themselves write it, since news of the two can overtake each
    /// other.
    last: Arc<AtomicUsize>,
}

/// What stands in [`Pauses::last`] after SIGTSTP; after SIGCONT it is 0.
const STOP: usize = 1;

#[derive(Debug, Default)]
struct State {
    since: Option<Mono>,
    total: Duration,
}

impl Pauses {
    /// Follows the signals of job control from now on.
    ///
    /// # Errors
    /// When the system takes no handlers.
    pub fn follow(&self) -> io::Result<()> {
        signal_hook::flag::register_usize(SIGTSTP, Arc::clone(&self.last), STOP)?;
        signal_hook::flag::register_usize(SIGCONT, Arc::clone(&self.last), 0)?;
        Ok(())
    }

    /// Whether a pause was asked for and not taken back since.
    #[must_use]
    pub fn wanted(&self) -> bool {
        self.last.load(Ordering::SeqCst) == STOP
    }

    /// A pause begins.
    pub fn begin(&self, at: Mono) {
        self.lock().since = Some(at);
    }

    /// The pause is over; it was this long. None where there was no pause.
    pub fn end(&self, at: Mono) -> Option<Duration> {
        let mut state = self.lock();
        let paused = at.since(state.since.take()?);
        state.total += paused;
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
            let run = Mono::now().since(start).saturating_sub(state.total);
            let Some(left) = span.checked_sub(run).filter(|left| !left.is_zero()) else { return };
            state = self.over.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn a_sleep_that_is_over_already_returns() {
        Pauses::default().sleep(Mono(0), Duration::from_millis(1));
    }
}
