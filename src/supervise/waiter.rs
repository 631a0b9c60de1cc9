//! What the kernel tells a parent of its children's end.

use crate::event::CommandExited;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitIdStatus, WaitStatus};

/// The bit of a wait status that says that there is a core.
const CORE: i32 = 0x80;

/// Makes this process the parent of whatever its descendants leave behind.
pub fn adopt_orphans() -> std::io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Whether this process has any child.
#[must_use]
pub fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(rustix::process::waitid(WaitId::All, options), Err(Errno::CHILD))
}

/// Whether a child has ended, and how. It is not reaped, so that its number stays its own.
#[must_use]
pub fn look_for_end(child: Pid) -> Option<CommandExited> {
    peek(child, WaitIdOptions::NOHANG)
}

/// Waits for the end of a child without reaping it; none when it is no child of ours.
#[must_use]
pub fn wait_for_end(child: Pid) -> Option<CommandExited> {
    peek(child, WaitIdOptions::empty())
}

fn peek(child: Pid, options: WaitIdOptions) -> Option<CommandExited> {
    let options = options | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    loop {
        match rustix::process::waitid(WaitId::Pid(child), options) {
            Ok(status) => return status.as_ref().map(exited),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

fn exited(status: &WaitIdStatus) -> CommandExited {
    CommandExited {
        code: status.exit_status(),
        signal: status.terminating_signal(),
        core_dumped: status.dumped(),
        core_file: None,
        oom_kills: None,
    }
}

/// The same for a child that was reaped.
#[must_use]
pub fn reaped(status: WaitStatus) -> CommandExited {
    CommandExited {
        code: status.exit_status(),
        signal: status.terminating_signal(),
        core_dumped: status.signaled() && status.as_raw() & CORE != 0,
        core_file: None,
        oom_kills: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_end_of_a_child_is_told_before_and_after_it_is_reaped() {
        let end = |script| {
            let pid = Pid::from_child(&Command::new("sh").args(["-c", script]).spawn().unwrap());
            let told = wait_for_end(pid).unwrap();
            assert_eq!(look_for_end(pid), Some(told.clone()));
            let (_, status) =
                rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty()).unwrap().unwrap();
            assert_eq!(look_for_end(pid), None);
            assert_eq!(reaped(status), told);
            (told.code, told.signal, told.core_dumped)
        };
        assert_eq!(end("exit 7"), (Some(7), None, false));
        assert_eq!(end("kill -KILL $$"), (None, Some(9), false));
    }
}
