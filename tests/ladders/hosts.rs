//! What each host does to a job that it wants to end, as its own source or documentation tells it. This is written down
//! apart from the table in the program, so that the two can disagree.

use rustix::process::Signal;

/// Whom a host signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The process that it started.
    Entry,
    /// The children of that process.
    Children,
    /// The group of that process.
    Group,
    /// Everything that came from that process, and itself.
    Everybody,
    /// Everything that came from that process, but not itself: it is the first of its container.
    AllButEntry,
}

/// One thing that a host does.
#[derive(Debug, Clone, Copy)]
pub struct Blow {
    /// When, after the first.
    pub after_ms: u64,
    pub target: Target,
    pub signal: Signal,
}

/// What the host starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// The shell of a step, whose script becomes stuckproof.
    Exec,
    /// A shell that waits for stuckproof.
    Shell,
    /// A shell that waits for stuckproof and has a trap of its own for SIGTERM.
    Trapping,
    /// Stuckproof itself.
    Direct,
}

/// The value of a variable that holds the number of the entry's process.
pub const OWN_PID: &str = "$$";

/// A host.
#[derive(Debug)]
pub struct Emulated {
    /// As the program's table names it.
    pub name: &'static str,
    pub variables: &'static [(&'static str, &'static str)],
    pub entry: Entry,
    /// The last of them ends everything.
    pub blows: &'static [Blow],
    /// Who asked, as the evidence should say it.
    pub source: &'static str,
}

impl Emulated {
    /// From the first blow to the last.
    pub fn limit_ms(&self) -> u64 {
        self.blows.last().expect("a host has a ladder").after_ms
    }

    /// Whether the builder's own process gets a signal of the host's.
    pub fn hits_builder(&self) -> bool {
        matches!(self.blows[0].target, Target::Everybody | Target::AllButEntry)
    }
}

const fn blow(after_ms: u64, target: Target, signal: Signal) -> Blow {
    Blow { after_ms, target, signal }
}

use Target::{AllButEntry, Children, Everybody, Group};

/// The ladder of GitHub's runner, and of Azure's, which it was made from.
const INT_TERM_KILL: &[Blow] = &[
    blow(0, Target::Entry, Signal::INT),
    blow(7_500, Target::Entry, Signal::TERM),
    blow(10_000, Target::Entry, Signal::KILL),
];

pub static GITHUB: Emulated = Emulated {
    name: "github",
    variables: &[("CI", "true"), ("GITHUB_ACTIONS", "true")],
    entry: Entry::Exec,
    blows: INT_TERM_KILL,
    source: "ci",
};

pub static AZURE: Emulated = Emulated {
    name: "azure",
    variables: &[("TF_BUILD", "True")],
    entry: Entry::Exec,
    blows: INT_TERM_KILL,
    source: "ci",
};

pub static GITLAB_SHELL: Emulated = Emulated {
    name: "gitlab-shell",
    variables: &[("CI", "true"), ("GITLAB_CI", "true")],
    entry: Entry::Trapping,
    blows: &[blow(0, Group, Signal::TERM), blow(600_000, Group, Signal::KILL)],
    source: "ci",
};

pub static GITLAB_DOCKER: Emulated = Emulated {
    name: "gitlab-docker",
    variables: &[("CI", "true"), ("GITLAB_CI", "true"), ("CI_DISPOSABLE_ENVIRONMENT", "true")],
    entry: Entry::Trapping,
    blows: &[blow(0, AllButEntry, Signal::TERM), blow(10_000, Everybody, Signal::KILL)],
    source: "ci",
};

pub static GITLAB_KUBERNETES: Emulated = Emulated {
    name: "gitlab-kubernetes",
    variables: &[
        ("CI", "true"),
        ("GITLAB_CI", "true"),
        ("CI_DISPOSABLE_ENVIRONMENT", "true"),
        ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
    ],
    entry: Entry::Trapping,
    blows: &[
        blow(0, Children, Signal::TERM),
        blow(500, Target::Entry, Signal::TERM),
        blow(30_000, Everybody, Signal::KILL),
    ],
    source: "ci",
};

pub static BUILDKITE: Emulated = Emulated {
    name: "buildkite",
    variables: &[("CI", "true"), ("BUILDKITE", "true"), ("BUILDKITE_CANCEL_GRACE_PERIOD", "10")],
    entry: Entry::Shell,
    blows: &[blow(0, Group, Signal::TERM), blow(9_000, Group, Signal::KILL)],
    source: "ci",
};

pub static JENKINS: Emulated = Emulated {
    name: "jenkins",
    variables: &[("JENKINS_URL", "http://127.0.0.1:1/")],
    entry: Entry::Shell,
    blows: &[blow(0, Everybody, Signal::TERM), blow(20_000, Everybody, Signal::KILL)],
    source: "ci",
};

pub static KUBERNETES: Emulated = Emulated {
    name: "kubernetes",
    variables: &[("KUBERNETES_SERVICE_HOST", "10.0.0.1")],
    entry: Entry::Direct,
    blows: &[blow(0, Target::Entry, Signal::TERM), blow(30_000, Everybody, Signal::KILL)],
    source: "service",
};

pub static SYSTEMD: Emulated = Emulated {
    name: "systemd",
    variables: &[("SYSTEMD_EXEC_PID", OWN_PID)],
    entry: Entry::Shell,
    blows: &[
        blow(0, Everybody, Signal::TERM),
        blow(0, Everybody, Signal::CONT),
        blow(90_000, Everybody, Signal::KILL),
    ],
    source: "service",
};

pub static SLURM: Emulated = Emulated {
    name: "slurm",
    variables: &[("SLURM_JOB_ID", "7")],
    entry: Entry::Direct,
    blows: &[
        blow(0, Everybody, Signal::CONT),
        blow(0, Everybody, Signal::TERM),
        blow(30_000, Everybody, Signal::KILL),
    ],
    source: "service",
};
