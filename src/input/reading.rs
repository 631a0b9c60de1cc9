//! The thread that reads the inputs, beside the command and giving way to it.

use super::{Inputs, file, onnx};
use crate::clock::Mono;
use crate::event::{Event, EventKind, InputChanged, InputDigested, InputKind};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

/// The lowest priority: a build goes first.
const LAST: i32 = 19;

/// What the thread tells.
pub type Tell = Box<dyn Fn(Option<Box<Event>>) + Send>;

/// A reading that goes on.
#[derive(Debug)]
pub struct Reading {
    /// Libraries to be read; none where nothing more will come.
    libraries: Option<Sender<PathBuf>>,
    stop: Arc<AtomicBool>,
}

impl Reading {
    /// Begins to read. `tell` gets every event, and nothing when all is told.
    ///
    /// # Errors
    /// When the machine has no thread left.
    pub fn begin(inputs: Inputs, tell: Tell) -> io::Result<Self> {
        let (libraries, more) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let reader = Reader { inputs, digested: 0, stop: Arc::clone(&stop), tell };
        std::thread::Builder::new().name("stuckproof-input".to_owned()).spawn(move || reader.run(&more))?;
        Ok(Self { libraries: Some(libraries), stop })
    }

    /// A library has been met.
    pub fn library(&self, path: &str) {
        if let Some(libraries) = &self.libraries {
            // A thread that has ended has told everything that it could.
            let _ = libraries.send(PathBuf::from(path));
        }
    }

    /// Nothing more will come: the thread reads what is left, looks whether anything has changed, and ends.
    pub fn close(&mut self) {
        self.libraries = None;
    }

    /// There is no time for what is left.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Reader {
    inputs: Inputs,
    /// How many of them are told.
    digested: usize,
    stop: Arc<AtomicBool>,
    tell: Tell,
}

impl Reader {
    fn run(mut self, libraries: &Receiver<PathBuf>) {
        let own = rustix::thread::gettid();
        // One that must not be slowed down is only a little less polite.
        let _ = rustix::process::setpriority_process(Some(own), LAST);
        self.find_external();
        self.digest();
        for library in libraries {
            self.add(&library, InputKind::Library, None);
            self.digest();
        }
        self.compare();
        (self.tell)(None);
    }

    fn tell(&self, event: Event) {
        (self.tell)(Some(Box::new(event)));
    }

    fn add(&mut self, path: &Path, kind: InputKind, of: Option<u32>) {
        if let Some(event) = self.inputs.add(path, kind, of) {
            self.tell(event);
        }
    }

    /// Looks at the files that ONNX files keep weights in, before anything is read that takes time.
    fn find_external(&mut self) {
        let models: Vec<(u32, PathBuf)> = self
            .inputs
            .known
            .iter()
            .filter(|known| is_model(known))
            .map(|known| (known.input, known.path.clone()))
            .collect();
        for (model, path) in models {
            match onnx::external_files(&path) {
                Ok(names) => names.iter().for_each(|name| self.add_external(model, &path, name)),
                Err(e) => {
                    let why = format!("the files that it keeps weights in are not known: {e}");
                    let refused = self.inputs.refuse(&path, InputKind::External, model, why);
                    self.tell(refused);
                }
            }
        }
    }

    fn add_external(&mut self, model: u32, path: &Path, name: &str) {
        let inside =
            Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if inside && !name.is_empty() && !name.contains('\0') {
            let folder = path.parent().unwrap_or_else(|| Path::new(""));
            self.add(&folder.join(name), InputKind::External, Some(model));
        } else {
            let why = "it leads out of the model's folder, so it was not looked at".to_owned();
            let refused = self.inputs.refuse(Path::new(name), InputKind::External, model, why);
            self.tell(refused);
        }
    }

    /// Reads what was not read yet.
    fn digest(&mut self) {
        for known in &self.inputs.known[self.digested..] {
            let Ok(identity) = &known.identity else { continue };
            let (sha256, reason) = match file::digest(&known.path, identity, &self.stop) {
                Ok(digest) => (Some(digest), None),
                Err(why) => (None, Some(why)),
            };
            let digested = InputDigested { input: known.input, sha256, reason };
            self.tell(Event { at: Mono::now(), kind: EventKind::InputDigested(digested) });
        }
        self.digested = self.inputs.known.len();
    }

    /// Tells which files are not what they were.
    fn compare(&self) {
        for known in &self.inputs.known {
            if let Ok(identity) = &known.identity
                && let Some(what) = identity.difference(&known.path)
            {
                let changed = InputChanged { input: known.input, what };
                self.tell(Event { at: Mono::now(), kind: EventKind::InputChanged(changed) });
            }
        }
    }
}

fn is_model(known: &file::Known) -> bool {
    let onnx = |path: &Path| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"));
    known.identity.is_ok() && onnx(&known.path)
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
