//! `--tty`: a pseudo-terminal for the command.
//!
//! What the command writes to it goes into the bundle's `stdout.log` and from there to our standard output, by the same
//! pump as without a terminal, so that here too a stalled reader stalls nobody. What is typed at our own terminal goes
//! to the command's, except the interrupt key, which stays ours.

use super::kin::Process;
use super::streams::write_all;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, Winsize, isatty, tcgetattr,
    tcgetwinsize, tcsetattr, tcsetwinsize,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The size of a terminal that nobody looks at.
const UNSEEN: Winsize = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
/// The value that switches a special key off.
const NO_KEY: u8 = 0;
/// End of input, as typed.
const END_OF_INPUT: u8 = 4;

/// The command's pseudo-terminal, our side of it.
#[derive(Debug, Clone)]
pub struct Terminal {
    master: Arc<OwnedFd>,
}

impl Terminal {
    /// Opens one of our own terminal's size; the second handle is the command's side.
    pub fn open() -> io::Result<(Self, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags)?;
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        let name = rustix::pty::ptsname(&master, Vec::new())?;
        let side = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(name.as_c_str(), side, Mode::empty())?;
        let terminal = Self { master: Arc::new(master) };
        terminal.resize();
        Ok((terminal, slave))
    }

    /// Gives it the size of our own terminal.
    pub fn resize(&self) {
        let ours = own_terminal().and_then(|fd| tcgetwinsize(fd).ok());
        let _ = tcsetwinsize(&*self.master, ours.unwrap_or(UNSEEN));
    }

    /// Carries what comes from our standard input, and its end, on a thread that ends with the process.
    pub fn carry_input(&self) {
        let master = Arc::clone(&self.master);
        std::thread::spawn(move || {
            let mut typed = [0_u8; 4096];
            loop {
                match rustix::io::read(rustix::stdio::stdin(), &mut typed[..]) {
                    Ok(0) => break,
                    Ok(n) if write_all(master.as_fd(), &typed[..n]).is_ok() => {}
                    Err(Errno::INTR) => {}
                    Ok(_) | Err(_) => break,
                }
            }
            let _ = write_all(master.as_fd(), &[END_OF_INPUT]);
        });
    }

    /// Carries what the command writes to `log`.
    pub fn carry_output(&self, log: OwnedFd) -> io::Result<Carrying> {
        let (stop_seen, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let master = Arc::clone(&self.master);
        let thread = std::thread::spawn(move || carry(master.as_fd(), log.as_fd(), stop_seen.as_fd()));
        Ok(Carrying { stop, thread })
    }
}

/// The thread that carries the command's output.
#[derive(Debug)]
pub struct Carrying {
    stop: OwnedFd,
    thread: JoinHandle<io::Result<()>>,
}

impl Carrying {
    /// Waits until everything that was written is in the log; then the error, if the log could not take it.
    pub fn finish(self) -> io::Result<()> {
        drop(self.stop);
        self.thread.join().unwrap_or(Ok(()))
    }
}

fn carry(master: BorrowedFd<'_>, log: BorrowedFd<'_>, stop: BorrowedFd<'_>) -> io::Result<()> {
    let mut chunk = vec![0_u8; 64 * 1024];
    let mut kept = Ok(());
    loop {
        let mut ready =
            [PollFd::from_borrowed_fd(master, PollFlags::IN), PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        let _ = rustix::event::poll(&mut ready, None);
        let stopped = !ready[1].revents().is_empty();
        if ready[0].revents().is_empty() {
            // A process outside the group may hold the terminal open for ever; what the group wrote is here.
            if stopped {
                return kept;
            }
            continue;
        }
        match rustix::io::read(master, &mut chunk[..]) {
            // A log that cannot be written is no reason to let the command's terminal fill up.
            Ok(n) if n > 0 => kept = kept.and(write_all(log, &chunk[..n])),
            Err(Errno::INTR | Errno::AGAIN) => {}
            // The command's side is closed.
            Ok(_) | Err(_) => return kept,
        }
    }
}

/// The first of our standard streams that is a terminal.
fn own_terminal() -> Option<BorrowedFd<'static>> {
    [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()]
        .into_iter()
        .find(|fd| isatty(fd))
}

/// Our own terminal handed through to the command's: no echo and no line editing (the command's terminal does both),
/// while Ctrl-C stays ours. Dropping it brings the terminal back as it was.
#[derive(Debug)]
pub struct HandedThrough {
    /// The modes to go back to, as long as they are changed.
    before: Arc<Mutex<Option<Termios>>>,
}

impl HandedThrough {
    /// Changes the terminal on standard input, if there is one.
    #[must_use]
    pub fn new() -> Option<Self> {
        let before = tcgetattr(rustix::stdio::stdin()).ok()?;
        hand_through(&before);
        Some(Self { before: Arc::new(Mutex::new(Some(before))) })
    }

    /// A call that changes it again, after the shell had it in between.
    pub fn again(&self) -> impl Fn() + Send + 'static {
        let before = Arc::clone(&self.before);
        move || {
            if let Some(before) = before.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
                hand_through(before);
            }
        }
    }
}

impl HandedThrough {
    /// Brings the terminal back as it was, until [`again`](Self::again) is called.
    pub fn let_go(&self) {
        if let Some(before) = self.before.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            bring_back(before);
        }
    }
}

impl Drop for HandedThrough {
    fn drop(&mut self) {
        if let Some(before) = self.before.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bring_back(&before);
        }
    }
}

fn bring_back(before: &Termios) {
    let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, before);
}

fn hand_through(before: &Termios) {
    // In the background the kernel would stop us for it; the terminal is somebody else's then.
    let foreground = rustix::termios::tcgetpgrp(rustix::stdio::stdin()).map(|g| g.as_raw_nonzero().get());
    let own = Process::of(std::process::id()).map(|own| own.group.cast_signed());
    if foreground.ok().zip(own).is_some_and(|(foreground, own)| foreground != own) {
        return;
    }
    let mut modes = before.clone();
    modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ECHONL | LocalModes::IEXTEN;
    modes.local_modes |= LocalModes::ISIG;
    modes.input_modes -= InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR;
    // The quit key goes through: here it would end the runner and leave the terminal as it is now.
    modes.special_codes[SpecialCodeIndex::VQUIT] = NO_KEY;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &modes);
}
