//! Whether this process was ever signalled to stop, for the time in which no job listens.

use super::signals::ignored_at_start;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The last signal that asked for a stop.
#[derive(Debug)]
pub struct Signalled(Arc<AtomicUsize>);

impl Signalled {
    /// Notes SIGINT, SIGTERM and SIGHUP from now on, beside whoever else listens.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn listen() -> io::Result<Self> {
        let last = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal != SIGHUP || !ignored_at_start(SIGHUP) {
                flag::register_usize(signal, Arc::clone(&last), usize::try_from(signal).unwrap_or_default())?;
            }
        }
        Ok(Self(last))
    }

    /// The last one.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        i32::try_from(self.0.load(Ordering::SeqCst)).ok().filter(|&signal| signal != 0)
    }

    /// Gives it to whoever listens now. The sender is this process then: who sent the first one was not heard.
    ///
    /// # Errors
    /// When the system refuses it.
    pub fn pass_on(&self) -> io::Result<()> {
        self.signal().map_or(Ok(()), low_level::raise)
    }
}
