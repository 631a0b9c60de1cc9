//! The sources of a stop that are neither signals nor the control socket: the deadline, the cancel file and the end of
//! standard input. Each waits on a thread of its own, which ends with the process.

use super::host::Host;
use super::pause::Pauses;
use crate::cancel::{Ask, Cancellation, Via};
use crate::clock::Mono;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, inotify};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// A file made on another machine of a shared file system gives no event here: look again after this long.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

/// Why a source cannot be watched.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The cancel file's folder is not there.
    #[error("the folder of the cancel file {path} does not exist; create it, or give another --cancel-file", path = .0.display())]
    NoFolder(PathBuf),
    /// Standard input has no end that means anything.
    #[error(
        "--cancel-on-stdin-close needs a pipe, a socket or a terminal on standard input, and it is {0}; \
         keep a pipe open to it, or leave the option out"
    )]
    NoStream(&'static str),
    /// Standard input could not be examined.
    #[error("cannot examine standard input: {0}; leave --cancel-on-stdin-close out")]
    Stdin(io::Error),
}

fn ask(host: Host, via: Via) -> Ask {
    Ask { source: host.source(via), via, reason: None, pid: None, uid: None }
}

/// Asks for a stop after `span` of the job's own time.
pub fn deadline(span: Duration, host: Host, pauses: Arc<Pauses>, cancellation: Arc<Cancellation>) {
    let start = Mono::now();
    std::thread::spawn(move || {
        pauses.sleep(start, span);
        cancellation.request(ask(host, Via::Deadline));
    });
}

/// Asks for a stop because a phase has been open for too long.
pub fn phase_limit(why: String, host: Host, cancellation: &Cancellation) {
    cancellation.request(Ask { reason: Some(why), ..ask(host, Via::PhaseLimit) });
}

/// The watch on the cancel file.
#[derive(Debug)]
pub struct CancelFile {
    path: PathBuf,
    watch: Option<OwnedFd>,
}

impl CancelFile {
    /// Checks the folder and starts to watch it.
    pub fn watch(path: &Path) -> Result<Self, SourceError> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.is_dir() {
            return Err(SourceError::NoFolder(path.to_path_buf()));
        }
        let wanted = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO;
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).ok();
        let watch = watch.filter(|w| inotify::add_watch(w, folder, wanted).is_ok());
        Ok(Self { path: path.to_path_buf(), watch })
    }

    /// Asks for a stop once the file exists; one that is there already counts.
    pub fn listen(self, host: Host, cancellation: Arc<Cancellation>) {
        std::thread::spawn(move || {
            while self.path.symlink_metadata().is_err() {
                self.wait();
            }
            cancellation.request(ask(host, Via::CancelFile));
        });
    }

    fn wait(&self) {
        let Some(watch) = &self.watch else {
            let _ = rustix::event::poll(&mut [], Some(&LOOK_AGAIN));
            return;
        };
        let _ = rustix::event::poll(&mut [PollFd::new(watch, PollFlags::IN)], Some(&LOOK_AGAIN));
        let mut events = [0_u8; 4096];
        let _ = rustix::io::read(watch, &mut events[..]);
    }
}

/// Whether the end of standard input can mean anything.
pub fn check_stdin() -> Result<(), SourceError> {
    let stat = rustix::fs::fstat(rustix::stdio::stdin()).map_err(|e| SourceError::Stdin(e.into()))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo | FileType::Socket => Ok(()),
        FileType::CharacterDevice if rustix::termios::isatty(rustix::stdio::stdin()) => Ok(()),
        FileType::CharacterDevice => Err(SourceError::NoStream("a device such as /dev/null")),
        _ => Err(SourceError::NoStream("a file")),
    }
}

/// Asks for a stop once standard input has ended. What is read from it is thrown away.
pub fn stdin_close(host: Host, cancellation: Arc<Cancellation>) {
    std::thread::spawn(move || {
        let mut thrown_away = [0_u8; 4096];
        loop {
            match rustix::io::read(rustix::stdio::stdin(), &mut thrown_away[..]) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let stdin = PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN);
                    let _ = rustix::event::poll(&mut [stdin], None);
                }
                // A terminal that hung up reads as an error: that is an end as well.
                Err(_) => break,
            }
        }
        cancellation.request(ask(host, Via::StdinClosed));
    });
}
