//! Signals to the runner, taken on a thread of their own.
//!
//! The thread does nothing but stamp and pass on, so that a busy disk cannot stand between a Ctrl-C and the builder.

use super::host::Host;
use super::pause::Pauses;
use crate::cancel::{Ask, Cancellation, Via};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Origin;
use std::io;
use std::sync::Arc;

/// What a change of the terminal (its size, our coming back to the foreground) calls.
pub type TerminalChanged = Box<dyn Fn() + Send>;

/// What job control wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobControl {
    /// The job is to pause.
    Pause,
    /// The job goes on.
    GoOn,
}

/// Where signals go.
pub struct Listener {
    /// The host that they come from.
    pub host: Host,
    /// The state that requests to stop go through.
    pub cancellation: Arc<Cancellation>,
    /// The pauses of the job.
    pub pauses: Arc<Pauses>,
    /// Who is told of SIGTSTP and SIGCONT.
    pub control: Box<dyn Fn(JobControl) + Send>,
    /// Who is told of SIGWINCH and SIGCONT.
    pub terminal: Option<TerminalChanged>,
}

impl Listener {
    /// Takes SIGINT, SIGTERM, SIGHUP, SIGTSTP and SIGCONT from now on. A SIGHUP or SIGTSTP that was ignored stays ignored
    /// (`nohup`); SIGQUIT keeps its meaning.
    pub fn listen(self) -> io::Result<()> {
        let mut wanted = vec![SIGINT, SIGTERM];
        if !ignored_at_start(SIGHUP) {
            wanted.push(SIGHUP);
        }
        if !ignored_at_start(SIGTSTP) {
            self.pauses.follow()?;
            wanted.extend([SIGTSTP, SIGCONT]);
        }
        if self.terminal.is_some() {
            wanted.extend([SIGWINCH, SIGCONT]);
        }
        let mut signals = SignalsInfo::<WithOrigin>::new(wanted)?;
        std::thread::spawn(move || (&mut signals).into_iter().for_each(|origin| self.hear(&origin)));
        Ok(())
    }

    fn hear(&self, origin: &Origin) {
        match via(origin.signal) {
            Some(via) => drop(self.cancellation.request(ask(self.host, via, origin))),
            None if origin.signal == SIGTSTP => (self.control)(JobControl::Pause),
            None => {
                if origin.signal == SIGCONT {
                    (self.control)(JobControl::GoOn);
                }
                if let Some(changed) = &self.terminal {
                    changed();
                }
            }
        }
    }
}

fn via(signal: i32) -> Option<Via> {
    match signal {
        SIGINT => Some(Via::Interrupt),
        SIGTERM => Some(Via::Terminate),
        SIGHUP => Some(Via::HangUp),
        _ => None,
    }
}

fn ask(host: Host, via: Via, origin: &Origin) -> Ask {
    // A process of another pid namespace is told as 0, which names nobody.
    let sender = origin.process.filter(|p| p.pid > 0);
    Ask {
        source: host.source(via),
        via,
        reason: None,
        pid: sender.map(|p| p.pid.unsigned_abs()),
        uid: sender.map(|p| p.uid),
    }
}

/// Whether a signal was ignored when this process started, which the kernel shows as a mask.
pub fn ignored_at_start(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_tells_which_signals_are_ignored() {
        // The Rust runtime ignores SIGPIPE and nothing here ignores SIGTERM.
        assert!(ignored_at_start(signal_hook::consts::SIGPIPE));
        assert!(!ignored_at_start(SIGTERM));
    }
}
