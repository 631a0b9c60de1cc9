//! What stands around the runner: a CI host, a terminal, a service manager or nothing, and what follows from it.

mod entry;
mod limit;
mod report;
mod table;
mod times;
mod wait;

pub use entry::warning as entry_warning;
pub use limit::JobLimit;
pub use report::host_report;
pub use table::{HostRow, markdown, rows};
pub use times::Patience;

use crate::cancel::{Insists, Via};
use crate::event::{CancelSource, HostProfile};
use std::io::IsTerminal;
use std::time::Duration;
use table::{Mark, PROFILES, Profile, Target};
use times::Times;

/// A variable's value, by its name.
type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Where the runner runs. A CI host comes first: some give their jobs a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    profile: &'static Profile,
    chosen_by: &'static str,
    allows: Option<Duration>,
}

/// The names that `--host` takes.
#[must_use]
pub fn host_names() -> Vec<&'static str> {
    PROFILES.iter().map(|profile| profile.name).collect()
}

/// What this process finds around itself.
struct Around<'a> {
    variable: Variable<'a>,
    terminal: bool,
    /// This process and its parent.
    processes: [u32; 2],
}

impl Host {
    /// The host that the user names, else the one that the environment and the standard streams tell of. `allows` is
    /// what the user knows of its patience.
    #[must_use]
    pub fn find(wanted: Option<&str>, allows: Option<Duration>) -> Self {
        let around = Around {
            variable: &variable,
            terminal: std::io::stdin().is_terminal() || std::io::stderr().is_terminal(),
            processes: [std::process::id(), std::os::unix::process::parent_id()],
        };
        around.host(wanted, allows)
    }

    /// The CI host's name.
    #[must_use]
    pub fn ci(self) -> Option<&'static str> {
        self.profile.ci
    }

    /// Whether a person sits at a terminal.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        self.profile.name == "terminal"
    }

    /// What a signal after the first request means.
    #[must_use]
    pub fn insists(self) -> Insists {
        self.profile.insists
    }

    /// The ladder after a request that the host knows nothing of: its clock does not run.
    #[must_use]
    pub fn unhurried(self) -> Patience {
        if self.is_terminal() { self.times().patience } else { Patience::UNHURRIED }
    }

    /// The ladder after the host's first signal, where the host does not wait for ever.
    #[must_use]
    pub fn hurried(self) -> Option<Patience> {
        self.allows.map(|_| self.times().patience)
    }

    /// From the host's first signal to its end of the job.
    #[must_use]
    pub fn allows(self) -> Option<Duration> {
        self.allows
    }

    /// When, after the host's first signal, the evidence must be complete.
    #[must_use]
    pub fn complete(self) -> Option<Duration> {
        self.times().complete
    }

    /// How long after a request the evidence so far is written.
    #[must_use]
    pub fn provisional(self) -> Duration {
        self.times().provisional
    }

    /// Whether the host signals only one process.
    #[must_use]
    pub fn signals_one(self) -> bool {
        self.profile.target == Target::One
    }

    /// The host's name for people.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.profile.title
    }

    /// What the host itself says of a signal of its own.
    #[must_use]
    pub fn reason(self) -> Option<String> {
        wait::reason(self.profile.name, &variable)
    }

    /// What is assumed of the host, in a line for a person; none where nothing is.
    #[must_use]
    pub fn announcement(self, hurried: Option<Patience>) -> Option<String> {
        let (allows, patience) = self.allows.zip(hurried)?;
        let s = |span: Duration| span.as_secs_f64();
        let ladder = patience.grace.map_or_else(String::new, |grace| {
            let killed = grace.saturating_add(patience.kill_after);
            format!(", the command gets SIGTERM after {} s and SIGKILL after {} s", s(grace), s(killed))
        });
        Some(format!(
            "host: {} ({}): it ends the job {} s after its first signal{ladder}; --host says otherwise",
            self.title(),
            self.chosen_by,
            s(allows)
        ))
    }

    /// As the evidence tells it, with the ladder that follows the host's signals.
    #[must_use]
    pub fn facts(self, patience: Patience) -> HostProfile {
        let times = self.times();
        HostProfile {
            name: self.profile.name.to_owned(),
            chosen_by: self.chosen_by.to_owned(),
            ladder: self.profile.ladder.to_owned(),
            allows_ms: self.allows.map(ms),
            provisional_ms: ms(times.provisional),
            grace_ms: patience.grace.map(ms),
            kill_after_ms: ms(patience.kill_after),
            complete_ms: times.complete.map(ms),
        }
    }

    /// Who asks, when the request came this way.
    #[must_use]
    pub fn source(self, via: Via) -> CancelSource {
        let nobody = self.ci().is_none() && !self.is_terminal();
        match via {
            Via::ControlSocket | Via::CancelFile | Via::StdinClosed => CancelSource::Api,
            Via::Interrupt if nobody => CancelSource::Api,
            Via::Interrupt if self.is_terminal() => CancelSource::CtrlC,
            Via::RunnerLost => CancelSource::Service,
            _ if self.ci().is_some() => CancelSource::Ci,
            _ => CancelSource::Service,
        }
    }

    fn times(self) -> Times {
        Times::of(self.profile, self.allows)
    }
}

impl Around<'_> {
    fn host(&self, wanted: Option<&str>, allows: Option<Duration>) -> Host {
        let (profile, chosen_by) = match wanted.and_then(table::named) {
            Some(profile) => (profile, "--host"),
            None => self.recognise(),
        };
        let told = || wait::told(profile.name, self.variable).or(profile.allows);
        Host { profile, chosen_by, allows: allows.or_else(told) }
    }

    fn recognise(&self) -> (&'static Profile, &'static str) {
        let known = PROFILES.iter().find(|profile| profile.marks.iter().all(|mark| self.bears(*mark)));
        let profile = known.expect("the last profile needs no mark");
        let by = match profile.marks.first() {
            Some(Mark::Set(name) | Mark::Names(name)) => name,
            Some(Mark::Terminal) => "a terminal",
            None => "nothing else fitted",
        };
        (profile, by)
    }

    fn bears(&self, mark: Mark) -> bool {
        match mark {
            Mark::Set(name) => {
                (self.variable)(name).is_some_and(|v| !matches!(v.as_str(), "" | "0" | "false" | "False"))
            }
            Mark::Names(name) => {
                let pid = (self.variable)(name).and_then(|pid| pid.parse().ok());
                pid.is_some_and(|pid| self.processes.contains(&pid))
            }
            Mark::Terminal => self.terminal,
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
