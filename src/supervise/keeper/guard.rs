//! The keeper's own process, while the runner lives.

use super::channel::{Channel, Orders, Report, Word};
use super::takeover::{self, Orphaned};
use crate::clock::Mono;
use crate::event::CommandExited;
use crate::supervise::core_dump;
use crate::supervise::family::Family;
use crate::supervise::group::Group;
use crate::supervise::kin::Kin;
use crate::supervise::oom::OomWatch;
use crate::supervise::signals::ignored_at_start;
use crate::supervise::spawn::{self, Start};
use crate::supervise::waiter;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions};
use rustix::time::Timespec;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// What a keeper must not die of, nor stop at.
const UNHEARD: [i32; 7] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2];

/// The hidden verb: starts the command as ordered and watches over it until the runner says that the job is finished.
/// What it gives back is the job of a runner that died before, with nothing of it alive any more.
#[must_use]
pub fn keep() -> Option<Orphaned> {
    let line = Line::new().ok()?;
    let mut guard = Guard::start(line)?;
    match guard.watch() {
        End::Finished => None,
        End::RunnerLost => Some(takeover::take_over(guard)),
    }
}

/// Why the watch ended.
enum End {
    Finished,
    RunnerLost,
}

/// Where a keeper's news come from.
struct Line {
    channel: Channel,
    /// Becomes readable when a child has ended.
    children: UnixStream,
}

impl Line {
    fn new() -> io::Result<Self> {
        // The name by which people find it, instead of the one of the link that was executed.
        let _ = rustix::thread::set_name(c"stuckproof-keep");
        let stdin = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        waiter::adopt_orphans()?;
        for signal in UNHEARD.into_iter().filter(|signal| !ignored_at_start(*signal)) {
            // A handler, and not the kernel's own way to ignore, which the command would inherit.
            signal_hook::flag::register(signal, Arc::default())?;
        }
        let (children, told) = UnixStream::pair()?;
        children.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(SIGCHLD, told)?;
        Ok(Self { channel: Channel::new(UnixStream::from(stdin)), children })
    }

    /// Waits for news of a child, or from the runner if it is wanted; true when the runner has some.
    fn wait(&mut self, runner: bool, limit: Option<&Timespec>) -> bool {
        let wanted = if runner { PollFlags::IN } else { PollFlags::empty() };
        let mut ready = [PollFd::new(&self.children, PollFlags::IN), PollFd::new(&self.channel, wanted)];
        // Without the runner's news its end must not be looked at either: it would be told at once, for ever.
        let _ = rustix::event::poll(&mut ready[..if runner { 2 } else { 1 }], limit);
        let told = runner && !ready[1].revents().is_empty();
        // How many they are does not matter.
        let _ = self.children.read(&mut [0; 64]);
        told
    }
}

/// A keeper that watches over a command.
pub(super) struct Guard {
    line: Line,
    pub(super) orders: Orders,
    pub(super) family: Family,
    pub(super) exit: Option<(Mono, CommandExited)>,
    /// The log, whose lock it shares with the runner: as long as it is held, nobody else finishes the bundle.
    pub(super) log: Option<OwnedFd>,
    /// When the command was started.
    pub(super) started: Mono,
    command: Pid,
    oom: OomWatch,
    may_reap: bool,
    alone: bool,
}

impl Guard {
    /// Starts the command; nothing when there is none to watch.
    fn start(mut line: Line) -> Option<Self> {
        let mut descriptors = line.channel.take_over().ok()?.into_iter();
        let (stdin, stdout, stderr) = (descriptors.next()?, descriptors.next()?, descriptors.next()?);
        let mut orders = line.channel.receive::<Orders>().ok()??;
        let oom = OomWatch::new();
        let environment = std::mem::take(&mut orders.environment);
        let start = Start { argv: &orders.argv, environment, seat: orders.seat, stdin, stdout, stderr };
        let command = match spawn::spawn(start) {
            Ok(command) => command,
            Err(e) => {
                // A runner that is gone needs no answer.
                let _ = line.channel.send(&Report::NotStarted(e.to_string()));
                return None;
            }
        };
        let started = Mono::now();
        let group = Group::led_by(command);
        let session = orders.seat.session_of(group.id());
        let family = Family::new(Kin::of(std::process::id()), group, session);
        let _ = line.channel.send(&Report::Started(group.id()));
        let log = descriptors.next();
        let (exit, may_reap, alone) = (None, false, false);
        Some(Self { line, orders, family, exit, log, started, command, oom, may_reap, alone })
    }

    fn watch(&mut self) -> End {
        loop {
            let told = self.line.wait(true, None);
            self.reap();
            if told && let Some(end) = self.hear() {
                return end;
            }
        }
    }

    fn hear(&mut self) -> Option<End> {
        loop {
            match self.line.channel.receive() {
                Ok(Some(Word::Reap)) => self.release(),
                Ok(Some(Word::Finished)) => return Some(End::Finished),
                Ok(None) | Err(_) => return Some(End::RunnerLost),
            }
            if !self.line.channel.has_pending() {
                return None;
            }
        }
    }

    /// The command's number is not used any more.
    pub(super) fn release(&mut self) {
        self.may_reap = true;
        self.reap();
    }

    /// Waits for the end of a child, or for `limit`.
    pub(super) fn wait(&mut self, limit: &Timespec) {
        self.line.wait(false, Some(limit));
        self.reap();
    }

    /// Reaps what has ended. A command whose end was told keeps its number until it is released.
    fn reap(&mut self) {
        while !self.alone {
            if self.exit.is_none()
                && let Some(exited) = waiter::look_for_end(self.command)
            {
                self.command_ended(exited);
            }
            if self.exit.is_some() && !self.may_reap {
                return;
            }
            match rustix::process::wait(WaitOptions::NOHANG) {
                // It ended between the look and the wait.
                Ok(Some((pid, status))) if pid == self.command && self.exit.is_none() => {
                    self.command_ended(waiter::reaped(status));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return,
                Err(_) => {
                    self.alone = true;
                    self.family.leave();
                    let _ = self.line.channel.send(&Report::Alone);
                }
            }
        }
    }

    fn command_ended(&mut self, mut exited: CommandExited) {
        let at = Mono::now();
        exited.oom_kills = self.oom.kills();
        exited.core_file = core_dump::of(self.family.group().id(), &self.orders.argv[0], &exited);
        let _ = self.line.channel.send(&Report::Exited(at.0, exited.clone()));
        self.exit = Some((at, exited));
    }
}
