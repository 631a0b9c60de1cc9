//! The clocks that stand still while the job is paused by job control.

use crate::clock::Mono;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The pauses of one job.
#[derive(Debug, Default)]
pub struct Pauses {
    state: Mutex<State>,
    over: Condvar,
}

#[derive(Debug, Default)]
struct State {
    since: Option<Mono>,
    total: Duration,
    /// How often the system let us go on.
    continued: u32,
}

impl Pauses {
    /// How often the system has let us go on. A pause that was asked for before is over.
    #[must_use]
    pub fn continued(&self) -> u32 {
        self.lock().continued
    }

    /// The system lets us go on.
    pub fn go_on(&self) {
        self.lock().continued += 1;
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
    use std::sync::Arc;

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
        let paused = pauses.end(Mono::now()).unwrap();
        assert!(sleeper.join().unwrap().since(start) >= paused + Duration::from_millis(50));
        assert_eq!(pauses.end(Mono::now()), None);
    }

    #[test]
    fn a_sleep_that_is_over_already_returns() {
        Pauses::default().sleep(Mono(0), Duration::from_millis(1));
    }
}
