//! Waits for the command, and for the orphans that the runner inherits as their reaper.

use crate::clock::Mono;
use crate::event::CommandExited;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

/// The bit of a wait status that says that there is a core.
const CORE: i32 = 0x80;

/// A process that ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// The command, at this time and in this way.
    Command(Mono, CommandExited),
    /// Something that it left behind.
    Orphan,
}

/// Makes this process the parent of whatever the command leaves behind.
pub fn adopt_orphans() -> std::io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Reaps on a thread of its own until no child is left, and tells of each.
pub fn wait(command: Pid, tell: impl Fn(Ended) + Send + 'static) {
    std::thread::spawn(move || {
        loop {
            match rustix::process::wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if pid == command => {
                    tell(Ended::Command(Mono::now(), exited(status)));
                }
                Ok(_) => tell(Ended::Orphan),
                Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    });
}

fn exited(status: WaitStatus) -> CommandExited {
    CommandExited {
        code: status.exit_status(),
        signal: status.terminating_signal(),
        oom_kills: None,
        core_dumped: status.signaled() && status.as_raw() & CORE != 0,
    }
}
