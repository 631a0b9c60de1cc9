//! Asks the history what to expect of a build, beside the job.

use super::job::Note;
use super::silence::Lookup;
use crate::baseline::{self, Baseline};
use crate::history::{History, Key};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// How long the baseline, which names the GPU, is waited for.
const BASELINE: Duration = Duration::from_secs(2);
/// How often it is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A call that looks on a thread of its own: the history may lie on a disk that does not answer.
pub(super) fn lookup(history: History, bundle: PathBuf, tell: Sender<Note>) -> Lookup {
    Box::new(move |build, library, facts| {
        let (history, bundle, tell) = (history.clone(), bundle.clone(), tell.clone());
        let (library, facts) = (library.clone(), facts.clone());
        std::thread::spawn(move || {
            let sku = wait_for_baseline(&bundle).and_then(|baseline| baseline.sku(Some(&facts)).ok());
            let found = history.find(Key::of(&library, &facts, sku.as_deref()));
            // A main loop that is gone needs no news.
            let _ = tell.send(Note::Expected(build, Box::new(found)));
        });
    })
}

fn wait_for_baseline(bundle: &Path) -> Option<Baseline> {
    let start = Instant::now();
    loop {
        match baseline::load(bundle) {
            Ok(baseline) => return Some(baseline),
            Err(_) if start.elapsed() < BASELINE => std::thread::sleep(LOOK_AGAIN),
            Err(_) => return None,
        }
    }
}
