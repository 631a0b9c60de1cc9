//! The one table of hosts: what each does to a job that it wants to end, and how one knows that it is there.

use super::ms;
use super::times::Times;
use crate::cancel::Insists;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// Whom a host signals first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// One process, the one that it started; a shell there does not pass the signal on.
    One,
    /// Every process of a group, a session or a container.
    Many,
}

/// How one knows a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// This variable is set, to something other than `0` and `false`.
    Set(&'static str),
    /// This variable holds the number of this process or of its parent.
    Names(&'static str),
    /// Standard input or standard error is a terminal.
    Terminal,
}

/// A host.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name, for `--host` and in the evidence.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// All of these must be there; none of them where the host is only chosen by name or when nothing else fits.
    pub marks: &'static [Mark],
    /// The CI host that it is a part of.
    pub ci: Option<&'static str>,
    /// What it does to end a job.
    pub ladder: &'static str,
    /// Whom it signals first.
    pub target: Target,
    /// What a later signal means.
    pub insists: Insists,
    /// From its first signal to the moment from which nothing of ours runs or is saved any more; none where it waits.
    pub allows: Option<Duration>,
    /// What may tell another time than that.
    pub told_by: &'static str,
}

use Mark::{Names, Set, Terminal};

/// Every host, the most specific first: several of them set the marks of another as well.
pub static PROFILES: [Profile; 14] = [
    Profile {
        name: "github",
        title: "GitHub Actions",
        marks: &[Set("GITHUB_ACTIONS")],
        ci: Some("github"),
        ladder: "SIGINT to the step's process, SIGTERM after 7.5 s, SIGKILL after 2.5 s more",
        target: Target::One,
        insists: Insists::ByTerminate,
        allows: Some(Duration::from_secs(10)),
        told_by: "",
    },
    Profile {
        name: "gitlab-kubernetes",
        title: "GitLab, Kubernetes executor",
        marks: &[Set("GITLAB_CI"), Set("CI_DISPOSABLE_ENVIRONMENT"), Set("KUBERNETES_SERVICE_HOST")],
        ci: Some("gitlab"),
        ladder: "SIGTERM to the children of the stage's script, then the pod is deleted",
        target: Target::Many,
        insists: Insists::Never,
        allows: Some(Duration::from_secs(30)),
        told_by: "",
    },
    Profile {
        name: "gitlab-docker",
        title: "GitLab, docker executor",
        marks: &[Set("GITLAB_CI"), Set("CI_DISPOSABLE_ENVIRONMENT")],
        ci: Some("gitlab"),
        ladder: "SIGTERM to every process of the container but the first, then the container is stopped",
        target: Target::Many,
        insists: Insists::Never,
        allows: Some(Duration::from_secs(10)),
        told_by: "",
    },
    Profile {
        name: "gitlab-shell",
        title: "GitLab, shell executor",
        marks: &[Set("GITLAB_CI")],
        ci: Some("gitlab"),
        ladder: "SIGTERM to the process group, SIGKILL after 10 min",
        target: Target::Many,
        insists: Insists::Never,
        allows: Some(Duration::from_mins(10)),
        told_by: "",
    },
    Profile {
        name: "buildkite",
        title: "Buildkite",
        marks: &[Set("BUILDKITE")],
        ci: Some("buildkite"),
        ladder: "SIGTERM to the process group, SIGKILL after 9 s",
        target: Target::Many,
        insists: Insists::Never,
        allows: Some(Duration::from_secs(9)),
        told_by: "`BUILDKITE_CANCEL_SIGNAL_TIMEOUT`, or a second less than `BUILDKITE_CANCEL_GRACE_PERIOD`",
    },
    Profile {
        name: "azure",
        title: "Azure Pipelines",
        marks: &[Set("TF_BUILD")],
        ci: Some("azure"),
        ladder: "SIGINT to the step's process, SIGTERM after 7.5 s, SIGKILL after 2.5 s more",
        target: Target::One,
        insists: Insists::ByTerminate,
        allows: Some(Duration::from_secs(10)),
        told_by: "`PROCESS_SIGINT_TIMEOUT` and `PROCESS_SIGTERM_TIMEOUT` together",
    },
    Profile {
        name: "circleci",
        title: "CircleCI",
        marks: &[Set("CIRCLECI")],
        ci: Some("circleci"),
        ladder: "not known; nothing is assumed",
        target: Target::Many,
        insists: Insists::Never,
        allows: None,
        told_by: "",
    },
    Profile {
        name: "jenkins",
        title: "Jenkins",
        marks: &[Set("JENKINS_URL")],
        ci: Some("jenkins"),
        ladder: "SIGTERM to every process of the build, no SIGKILL; the step is given up after 20 s",
        target: Target::Many,
        insists: Insists::Never,
        allows: Some(Duration::from_secs(20)),
        told_by: "",
    },
    Profile {
        name: "ci",
        title: "another CI host",
        marks: &[Set("CI")],
        ci: Some("ci"),
        ladder: "not known; nothing is assumed",
        target: Target::Many,
        insists: Insists::Never,
        allows: None,
        told_by: "",
    },
    Profile {
        name: "terminal",
        title: "a terminal",
        marks: &[Terminal],
        ci: None,
        ladder: "SIGINT to the group for each Ctrl-C; SIGHUP when it is closed",
        target: Target::Many,
        insists: Insists::ByInterrupt,
        allows: None,
        told_by: "",
    },
    Profile {
        name: "systemd",
        title: "systemd",
        marks: &[Names("SYSTEMD_EXEC_PID")],
        ci: None,
        ladder: "SIGTERM to the unit's control group, SIGKILL after `TimeoutStopSec`",
        target: Target::Many,
        insists: Insists::Never,
        allows: Some(Duration::from_secs(90)),
        told_by: "",
    },
    Profile {
        name: "slurm",
        title: "Slurm",
        marks: &[Set("SLURM_JOB_ID")],
        ci: None,
        ladder: "SIGTERM to the job's steps, SIGKILL after `KillWait`",
        target: Target::Many,
        insists: Insists::Never,
        allows: Some(Duration::from_secs(30)),
        told_by: "",
    },
    Profile {
        name: "kubernetes",
        title: "Kubernetes",
        marks: &[Set("KUBERNETES_SERVICE_HOST")],
        ci: None,
        ladder: "SIGTERM to the container's first process, SIGKILL after the pod's grace period",
        target: Target::One,
        insists: Insists::Never,
        allows: Some(Duration::from_secs(30)),
        told_by: "",
    },
    Profile {
        name: "none",
        title: "no host",
        marks: &[],
        ci: None,
        ladder: "not known; nothing is assumed",
        target: Target::Many,
        insists: Insists::Never,
        allows: None,
        told_by: "",
    },
];

/// The profile of that name.
pub fn named(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

/// One host, for people and for programs. Times count from the host's first signal.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostRow {
    /// Its name, for `--host`.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What it is known by, in Markdown.
    pub known_by: String,
    /// What it does to end a job.
    pub ladder: &'static str,
    /// How long it waits, milliseconds; null where it waits for ever.
    pub allows_ms: Option<u64>,
    /// What may tell another time than that, in Markdown.
    pub told_by: &'static str,
    /// When the evidence so far is written, milliseconds.
    pub provisional_ms: u64,
    /// When the command gets SIGTERM, milliseconds; null is never.
    pub grace_ms: Option<u64>,
    /// When it gets SIGKILL, milliseconds; null is never.
    pub kill_ms: Option<u64>,
    /// When the evidence must be complete, milliseconds, or null.
    pub complete_ms: Option<u64>,
}

/// Every host, in the order in which they are looked for.
#[must_use]
pub fn rows() -> Vec<HostRow> {
    let row = |profile: &'static Profile| {
        let times = Times::of(profile, profile.allows);
        HostRow {
            name: profile.name,
            title: profile.title,
            known_by: marks(profile),
            ladder: profile.ladder,
            allows_ms: profile.allows.map(ms),
            told_by: profile.told_by,
            provisional_ms: ms(times.provisional),
            grace_ms: times.patience.grace.map(ms),
            kill_ms: times.patience.grace.map(|grace| ms(grace + times.patience.kill_after)),
            complete_ms: times.complete.map(ms),
        }
    };
    PROFILES.iter().map(row).collect()
}

/// The table for `docs/hosts.md`, in Markdown.
#[must_use]
pub fn markdown() -> String {
    let mut table = "| `--host` | known by | what it does to end a job | it allows | evidence so far | SIGTERM | SIGKILL | \
                     evidence complete |\n|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    let after = |ms: Option<u64>| ms.map_or_else(|| "–".to_owned(), |ms| format!("{} s", ms as f64 / 1e3));
    for row in rows() {
        let _ = writeln!(
            table,
            "| `{}` | {} | {} | {}{} | {} | {} | {} | {} |",
            row.name,
            row.known_by,
            row.ladder,
            after(row.allows_ms),
            if row.told_by.is_empty() { String::new() } else { format!(", or {}", row.told_by) },
            after(Some(row.provisional_ms)),
            after(row.grace_ms),
            after(row.kill_ms),
            after(row.complete_ms),
        );
    }
    table
}

fn marks(profile: &Profile) -> String {
    let words: Vec<String> = profile
        .marks
        .iter()
        .map(|mark| match mark {
            Set(name) => format!("`{name}`"),
            Names(name) => format!("`{name}` names this process or its parent"),
            Terminal => "a terminal on standard input or standard error".to_owned(),
        })
        .collect();
    if words.is_empty() { "nothing of the above".to_owned() } else { words.join(", ") }
}
