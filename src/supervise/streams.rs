//! The command's output: written by the command itself into files of the bundle, carried from there to our own
//! streams.
//!
//! The command never writes to a pipe of ours, so that a reader of our output that stalls or dies can neither stall nor
//! kill a build. Each file has one [`Pump`], a thread that carries what is new, byte for byte and in order.

use super::keep::Keep;
use crate::fsio::{self, FsError};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes carried at once.
const CHUNK: usize = 256 * 1024;
/// A file is watched only from this age on: the kernel may take 15 ms to end a watch, which is more than a short command
/// runs.
const UNWATCHED: Duration = Duration::from_millis(500);
/// How long to sleep before looking again at a file that is not watched: not yet, or not at all, since the number of
/// watches is limited.
const BLIND_WAIT: rustix::time::Timespec = rustix::time::Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// One of our own output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Target {
    fn fd(self) -> BorrowedFd<'static> {
        match self {
            Self::Stdout => rustix::stdio::stdout(),
            Self::Stderr => rustix::stdio::stderr(),
        }
    }
}

/// Whether our standard output and standard error are the same open thing, so that only one file keeps their order.
#[must_use]
pub fn are_merged() -> bool {
    let identity =
        |target: Target| rustix::fs::fstat(target.fd()).map(|s| (s.st_dev, s.st_ino, s.st_rdev)).ok();
    let stdout = identity(Target::Stdout);
    stdout.is_some() && stdout == identity(Target::Stderr)
}

/// A file that the command writes and that is carried to one of our streams.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    writer: File,
    reader: File,
    target: Target,
    kept: bool,
}

/// What tells that a file grows.
#[derive(Debug)]
enum Watch {
    /// Nothing until then.
    From(Instant),
    /// This becomes readable.
    By(OwnedFd),
    /// Nothing ever will.
    Never,
}

impl Output {
    /// Creates the file. One that is not to be kept loses its name at once, so that nothing of it stays whatever happens.
    pub fn create(path: &Path, target: Target, kept: bool) -> Result<Self, FsError> {
        let writer = fsio::create_append_only(path)?;
        // Writable, since a hole can only be punched through such a handle.
        let reader = File::options().read(true).write(true).open(path);
        let reader = reader.map_err(|e| FsError::new("open", path, e))?;
        if !kept {
            std::fs::remove_file(path).map_err(|e| FsError::new("remove", path, e))?;
        }
        Ok(Self { path: path.to_path_buf(), writer, reader, target, kept })
    }

    /// One more handle for the command to write to.
    pub fn handle(&self) -> Result<OwnedFd, FsError> {
        let handle = self.writer.as_fd().try_clone_to_owned();
        handle.map_err(|e| FsError::new("duplicate the handle of", &self.path, e))
    }

    /// Starts to carry. `done` is called at the end, on the pump's thread.
    pub fn pump(self, keep: Keep, done: impl FnOnce() + Send + 'static) -> Result<Pump, FsError> {
        let (stop_seen, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|e| FsError::new("make a pipe for", &self.path, e.into()))?;
        let ended = Arc::new(AtomicBool::new(false));
        let carried = Carried::default();
        let mut work = Carrier {
            watch: Watch::From(Instant::now() + UNWATCHED),
            ended: Arc::clone(&ended),
            file: self.reader,
            stop_seen,
            target: self.target,
            offset: 0,
            carried: Arc::clone(&carried),
            reader_gone: false,
            keep: keep.clone(),
        };
        std::thread::spawn(move || {
            work.run();
            done();
        });
        let kept = self.kept.then_some((self.path, keep));
        Ok(Pump { ended, _stop: stop, kept, carried })
    }
}

impl Watch {
    /// Of an open file, which may have no name any more.
    fn of(file: &File) -> Self {
        let begin = || -> Result<OwnedFd, Errno> {
            let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            inotify::add_watch(&watch, path, inotify::WatchFlags::MODIFY)?;
            Ok(watch)
        };
        begin().map_or(Self::Never, Self::By)
    }
}

/// The handle of a thread that carries one file.
#[derive(Debug)]
pub struct Pump {
    ended: Arc<AtomicBool>,
    /// Closing it wakes the thread.
    _stop: OwnedFd,
    /// The file, where it is to be kept.
    kept: Option<(PathBuf, Keep)>,
    carried: Carried,
}

/// The bytes that a pump has carried so far.
pub type Carried = Arc<AtomicU64>;

impl Pump {
    /// How much it has carried, now and later.
    #[must_use]
    pub fn carried(&self) -> Carried {
        Arc::clone(&self.carried)
    }

    /// Says that nothing more will be written: the thread carries what is there and ends. The file in the bundle is
    /// cut to what it may keep, and its secrets are masked; what is still to be carried is read from the old one.
    pub fn finish(self) -> Result<(), FsError> {
        self.kept.as_ref().map_or(Ok(()), |(path, keep)| keep.settle(path))
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
    }
}

struct Carrier {
    file: File,
    watch: Watch,
    ended: Arc<AtomicBool>,
    stop_seen: OwnedFd,
    target: Target,
    offset: u64,
    carried: Carried,
    reader_gone: bool,
    keep: Keep,
}

impl Carrier {
    fn run(&mut self) {
        let mut chunk = vec![0; CHUNK];
        loop {
            // Read before the look at the file: what was written before the end is then surely seen.
            let ended = self.ended.load(Ordering::Acquire);
            match self.file.read_at(&mut chunk, self.offset) {
                Ok(0) | Err(_) if ended => return,
                Ok(0) | Err(_) => self.wait(),
                Ok(n) => {
                    self.carry(&chunk[..n]);
                    self.offset += n as u64;
                    self.carried.store(self.offset, Ordering::Relaxed);
                    self.keep.carried(&self.file, self.offset);
                }
            }
        }
    }

    /// Writes to our stream. Without a reader the bytes are only counted: the build is not to notice.
    fn carry(&mut self, bytes: &[u8]) {
        if !self.reader_gone && write_all(self.target.fd(), bytes).is_err() {
            self.reader_gone = true;
        }
    }

    fn wait(&mut self) {
        let stop = PollFd::new(&self.stop_seen, PollFlags::IN);
        match &self.watch {
            // What came before the watch is looked for once more.
            Watch::From(at) if Instant::now() >= *at => self.watch = Watch::of(&self.file),
            Watch::By(watch) => {
                let _ = rustix::event::poll(&mut [PollFd::new(watch, PollFlags::IN), stop], None);
                let mut events = [0_u8; 4096];
                // Only the fact that there are some is of interest.
                let _ = rustix::io::read(watch, &mut events[..]);
            }
            Watch::From(_) | Watch::Never => {
                let _ = rustix::event::poll(&mut [stop], Some(&BLIND_WAIT));
            }
        }
    }
}

/// Writes everything, waiting where the stream was set to non-blocking by whoever shares it with us.
pub fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(n) => bytes = &bytes[n..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = rustix::event::poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::OUT)], None);
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}
