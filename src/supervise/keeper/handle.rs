//! The runner's side of the keeper.

use super::KEEPER_VERB;
use super::channel::{Channel, Orders, Report, Word};
use crate::clock::Mono;
use crate::supervise::kin::{Kin, Process};
use crate::supervise::spawn::ourselves;
use crate::supervise::waiter;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver, Sender};

/// What the thread that listens to the keeper tells.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// What the keeper said, or what this process has seen in its place.
    Report(Report),
    /// The keeper has ended, at this time or a moment before; what it was the parent of is ours now.
    Lost(Mono),
}

/// A keeper that runs.
#[derive(Debug)]
pub struct Keeper {
    pid: Pid,
    started: u64,
    only_child: bool,
    channel: Channel,
}

/// A keeper that watches over a command.
#[derive(Debug)]
pub struct OnDuty {
    channel: Channel,
    may_reap: Sender<()>,
    pid: u32,
    started: u64,
    only_child: bool,
}

impl Keeper {
    /// Starts one; it waits for its orders, and ends by itself if none come.
    ///
    /// # Errors
    /// When there is no process or descriptor left.
    pub fn start(job: &str) -> io::Result<Self> {
        let (ours, its) = UnixStream::pair()?;
        let only_child = !waiter::has_children();
        let mut command = ourselves();
        command.args([KEEPER_VERB, job]).process_group(0);
        // None of our streams: whoever waits for their end must not wait for it.
        command.stdin(OwnedFd::from(its)).stdout(Stdio::null()).stderr(Stdio::null());
        let pid = Pid::from_child(&command.spawn()?);
        let number = pid.as_raw_nonzero().get().unsigned_abs();
        let started = Process::of(number).map_or(0, |p| p.started());
        Ok(Self { pid, started, only_child, channel: Channel::new(ours) })
    }

    /// Lets it start the command, and waits until that is done.
    ///
    /// # Errors
    /// When the keeper is gone, or the command cannot be started.
    pub fn order(&mut self, orders: &Orders, streams: &[OwnedFd; 3], log: BorrowedFd<'_>) -> io::Result<u32> {
        let mut descriptors: Vec<BorrowedFd<'_>> = streams.iter().map(AsFd::as_fd).collect();
        descriptors.push(log);
        self.channel.hand_over(&descriptors)?;
        self.channel.send(orders)?;
        match self.channel.receive()? {
            Some(Report::Started(pid)) => Ok(pid),
            Some(Report::NotStarted(reason)) => Err(io::Error::other(reason)),
            _ => Err(io::Error::other("the process that was to start it has ended")),
        }
    }

    /// Listens from here on, on a thread of its own.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn listen(self, command: Pid, tell: impl Fn(Told) + Send + 'static) -> io::Result<OnDuty> {
        let Self { pid, started, only_child, mut channel } = self;
        let sender = channel.sender()?;
        let (may_reap, reap) = mpsc::channel();
        std::thread::spawn(move || {
            while let Ok(Some(report)) = channel.receive() {
                tell(Told::Report(report));
            }
            // Only a process that is gone altogether has given its children away.
            let _ = rustix::io::retry_on_intr(|| rustix::process::waitpid(Some(pid), WaitOptions::empty()));
            tell(Told::Lost(Mono::now()));
            wait_instead(command, &reap, &tell);
        });
        let pid = pid.as_raw_nonzero().get().unsigned_abs();
        Ok(OnDuty { channel: sender, may_reap, pid, started, only_child })
    }
}

/// Does the keeper's work in its place: waits for the command, and after it for whatever else was inherited.
fn wait_instead(command: Pid, reap: &Receiver<()>, tell: &impl Fn(Told)) {
    if let Some(exited) = waiter::wait_for_end(command) {
        tell(Told::Report(Report::Exited(Mono::now().0, exited)));
        let _ = reap.recv();
    }
    while !matches!(rustix::process::wait(WaitOptions::empty()), Err(Errno::CHILD)) {}
    tell(Told::Report(Report::Alone));
}

impl OnDuty {
    /// Where the job's processes are, as long as the keeper lives.
    #[must_use]
    pub fn kin(&self) -> Kin {
        Kin::of(self.pid)
    }

    /// Where they are once it is lost.
    #[must_use]
    pub fn kin_without(&self) -> Kin {
        Kin::of_since(std::process::id(), self.started)
    }

    /// Whether the end of all children of this process will mean, once the keeper is lost, that nothing of the job is
    /// left. A process that became the runner may have children from before, which do not end with the job.
    #[must_use]
    pub fn is_only_child(&self) -> bool {
        self.only_child
    }

    /// The command's end is on record and its number is not used any more.
    pub fn reap(&mut self) {
        // Whichever of the two is there hears it.
        let _ = self.channel.send(&Word::Reap);
        let _ = self.may_reap.send(());
    }

    /// The job is finished, and the keeper with it.
    pub fn dismiss(mut self) {
        // One that is gone has nothing left to do either.
        let _ = self.channel.send(&Word::Finished);
    }
}
