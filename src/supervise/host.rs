//! What stands around the runner, a terminal, a CI host or neither, and what follows from it.

use crate::cancel::Via;
use crate::event::CancelSource;
use std::io::IsTerminal;
use std::time::Duration;

/// Where the runner runs. A CI host comes first: some give their jobs a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// A recognised CI host, by its name.
    Ci(&'static str),
    /// A person's terminal.
    Terminal,
    /// Anything else: a service, a script.
    Other,
}

/// The variable that each CI host sets, most specific first (several of them set `CI` too).
const CI_HOSTS: [(&str, &str); 7] = [
    ("GITHUB_ACTIONS", "github"),
    ("GITLAB_CI", "gitlab"),
    ("BUILDKITE", "buildkite"),
    ("TF_BUILD", "azure"),
    ("CIRCLECI", "circleci"),
    ("JENKINS_URL", "jenkins"),
    ("CI", "ci"),
];

/// The times of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// From the request to SIGTERM; none is without limit.
    pub grace: Option<Duration>,
    /// From SIGTERM to SIGKILL.
    pub kill_after: Duration,
}

impl Host {
    /// Looks at the environment and at the standard streams.
    #[must_use]
    pub fn detect() -> Self {
        let terminal = std::io::stdin().is_terminal() || std::io::stderr().is_terminal();
        Self::from(|name| std::env::var(name).ok(), terminal)
    }

    fn from(variable: impl Fn(&str) -> Option<String>, terminal: bool) -> Self {
        let set = |name: &str| variable(name).is_some_and(|v| !matches!(v.as_str(), "" | "0" | "false"));
        match CI_HOSTS.iter().find(|(name, _)| set(name)) {
            Some((_, host)) => Self::Ci(host),
            None if terminal => Self::Terminal,
            None => Self::Other,
        }
    }

    /// The CI host's name.
    #[must_use]
    pub fn ci(self) -> Option<&'static str> {
        match self {
            Self::Ci(name) => Some(name),
            Self::Terminal | Self::Other => None,
        }
    }

    /// How long to wait on each rung, unless the user says otherwise.
    ///
    /// GitHub and Azure send SIGINT, SIGTERM 7.5 s later and end everything 2.5 s after that; Buildkite ends
    /// everything 10 s after its SIGTERM. Both rungs and the evidence must fit in before.
    #[must_use]
    pub fn patience(self) -> Patience {
        let seconds = |grace, kill| Patience {
            grace: Some(Duration::from_secs(grace)),
            kill_after: Duration::from_secs(kill),
        };
        match self {
            Self::Terminal => Patience { grace: None, kill_after: Duration::from_secs(10) },
            Self::Ci("github" | "azure") => seconds(6, 2),
            Self::Ci("buildkite") => seconds(8, 1),
            Self::Ci(_) | Self::Other => seconds(60, 10),
        }
    }

    /// Who asks, when the request came this way.
    #[must_use]
    pub fn source(self, via: Via) -> CancelSource {
        match (via, self) {
            (Via::ControlSocket | Via::CancelFile | Via::StdinClosed, _) | (Via::Interrupt, Self::Other) => {
                CancelSource::Api
            }
            (Via::Interrupt | Via::Terminate | Via::HangUp | Via::Deadline | Via::Stall, Self::Ci(_)) => {
                CancelSource::Ci
            }
            (Via::Interrupt, Self::Terminal) => CancelSource::CtrlC,
            (Via::Terminate | Via::HangUp | Via::Deadline | Via::Stall | Via::RunnerLost, _) => {
                CancelSource::Service
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(variables: &[(&str, &str)], terminal: bool) -> Host {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        Host::from(find, terminal)
    }

    #[test]
    fn a_ci_host_comes_before_a_terminal_and_the_specific_one_before_the_generic() {
        assert_eq!(host(&[("CI", "true"), ("GITHUB_ACTIONS", "true")], true), Host::Ci("github"));
        assert_eq!(host(&[("TF_BUILD", "True")], false), Host::Ci("azure"));
        assert_eq!(host(&[("CI", "1")], false), Host::Ci("ci"));
        assert_eq!(host(&[("CI", "false")], true), Host::Terminal);
        assert_eq!(host(&[("KUBERNETES_SERVICE_HOST", "10.0.0.1")], false), Host::Other);
    }

    #[test]
    fn sources_follow_the_acceptance_test() {
        let ci = Host::Ci("gitlab");
        assert_eq!(Host::Terminal.source(Via::Interrupt), CancelSource::CtrlC);
        assert_eq!(Host::Other.source(Via::Interrupt), CancelSource::Api);
        assert_eq!(ci.source(Via::Interrupt), CancelSource::Ci);
        assert_eq!(ci.source(Via::Deadline), CancelSource::Ci);
        assert_eq!(ci.source(Via::CancelFile), CancelSource::Api);
        assert_eq!(Host::Other.source(Via::Terminate), CancelSource::Service);
        assert_eq!(Host::Terminal.source(Via::HangUp), CancelSource::Service);
        assert_eq!(Host::Terminal.source(Via::Deadline), CancelSource::Service);
    }

    #[test]
    fn both_rungs_end_before_the_ci_host_ends_us() {
        for (name, end) in [("github", 10), ("azure", 10), ("buildkite", 10)] {
            let patience = Host::Ci(name).patience();
            let last_rung = patience.grace.unwrap() + patience.kill_after;
            assert!(last_rung < Duration::from_secs(end), "{name} leaves no time for the evidence");
        }
    }
}
