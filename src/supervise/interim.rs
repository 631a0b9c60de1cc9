//! The evidence so far, written once while a stop is under way: whoever kills everything after that leaves the request on
//! record in every file of the bundle.

use crate::clock::Mono;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

/// Writes the evidence of a bundle whose log has no end yet.
pub type WriteInterim = Box<dyn FnOnce(&Path) + Send>;

/// The writing of the evidence so far.
pub struct Interim {
    write: Option<WriteInterim>,
    due: Option<Mono>,
    writing: Option<JoinHandle<()>>,
}

impl Interim {
    /// Nothing is due before somebody asks for a stop.
    pub fn new(write: WriteInterim) -> Self {
        Self { write: Some(write), due: None, writing: None }
    }

    /// A stop was accepted: the evidence is due so long after it.
    pub fn request(&mut self, at: Mono, span: Duration) {
        self.due = Some(Mono(at.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))));
    }

    /// Starts to write, if it is time. A log can be long, so that this has a thread of its own; a machine that has none
    /// left goes without.
    pub fn write_if_due(&mut self, now: Mono, bundle: &Path) {
        if self.due.is_none_or(|due| now < due) {
            return;
        }
        let Some(write) = self.write.take() else { return };
        let bundle = bundle.to_owned();
        let thread = std::thread::Builder::new().name("stuckproof-interim".to_owned());
        self.writing = thread.spawn(move || write(&bundle)).ok();
    }

    /// Waits until nothing is written any more: the complete evidence must be the last.
    pub fn finish(&mut self) {
        self.write = None;
        if let Some(writing) = self.writing.take() {
            // What it could not write, the complete evidence will tell.
            let _ = writing.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_once_and_only_after_a_request() {
        let folder = tempfile::tempdir().unwrap();
        let mut interim =
            Interim::new(Box::new(|bundle| std::fs::write(bundle.join("interim"), "").unwrap()));
        interim.write_if_due(Mono(u64::MAX), folder.path());
        interim.request(Mono(5), Duration::from_nanos(10));
        interim.write_if_due(Mono(14), folder.path());
        assert!(interim.writing.is_none());
        interim.write_if_due(Mono(15), folder.path());
        interim.write_if_due(Mono(16), folder.path());
        interim.finish();
        assert!(folder.path().join("interim").exists());
    }
}
