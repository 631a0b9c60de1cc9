//! What the runner itself says, on standard error.
//!
//! The lines are written on a thread of their own: a reader of our standard error that stalls must not stall the
//! ladder.

use super::streams;
use std::sync::mpsc::{self, Sender};

/// Says lines on standard error, each beginning with `stuckproof: `.
#[derive(Debug)]
pub struct Voice {
    lines: Option<Sender<String>>,
}

impl Voice {
    /// Starts the thread. `done` is called on it when the voice was dropped and everything is said.
    #[must_use]
    pub fn new(done: impl FnOnce() + Send + 'static) -> Self {
        let (lines, said) = mpsc::channel::<String>();
        std::thread::spawn(move || {
            for line in said {
                // Without a reader there is nobody to tell.
                let _ = streams::write_all(rustix::stdio::stderr(), line.as_bytes());
            }
            done();
        });
        Self { lines: Some(lines) }
    }

    /// Says one line.
    pub fn say(&self, line: &str) {
        if let Some(lines) = &self.lines {
            // The thread ends only after this sender is gone.
            let _ = lines.send(format!("stuckproof: {line}\n"));
        }
    }

    /// Says nothing more: the thread ends when everything is said.
    pub fn end(&mut self) {
        self.lines = None;
    }
}
