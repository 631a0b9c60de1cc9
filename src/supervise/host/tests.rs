use super::*;

fn host(variables: &[(&str, &str)], terminal: bool) -> Host {
    let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
    Around { variable: &find, terminal, processes: [50, 40] }.host(None, None)
}

fn name(variables: &[(&str, &str)], terminal: bool) -> &'static str {
    host(variables, terminal).profile.name
}

#[test]
fn a_ci_host_comes_before_a_terminal_and_the_specific_one_before_the_generic() {
    assert_eq!(name(&[("CI", "true"), ("GITHUB_ACTIONS", "true")], true), "github");
    assert_eq!(name(&[("TF_BUILD", "True")], false), "azure");
    assert_eq!(name(&[("CI", "1")], false), "ci");
    assert_eq!(name(&[("CI", "false")], true), "terminal");
    assert_eq!(name(&[("SLURM_JOB_ID", "7")], true), "terminal");
    assert_eq!(name(&[("SLURM_JOB_ID", "7")], false), "slurm");
    assert_eq!(name(&[("KUBERNETES_SERVICE_HOST", "10.0.0.1")], false), "kubernetes");
    assert_eq!(name(&[], false), "none");
}

#[test]
fn the_executors_of_gitlab_are_told_apart() {
    let (job, disposable) = (("GITLAB_CI", "true"), ("CI_DISPOSABLE_ENVIRONMENT", "true"));
    assert_eq!(name(&[job], false), "gitlab-shell");
    assert_eq!(name(&[job, disposable], false), "gitlab-docker");
    assert_eq!(name(&[job, disposable, ("KUBERNETES_SERVICE_HOST", "10.0.0.1")], false), "gitlab-kubernetes");
    assert_eq!(host(&[job], false).ci(), Some("gitlab"));
}

#[test]
fn systemd_is_the_host_of_the_process_that_it_started() {
    assert_eq!(name(&[("SYSTEMD_EXEC_PID", "50")], false), "systemd");
    assert_eq!(name(&[("SYSTEMD_EXEC_PID", "40")], false), "systemd");
    assert_eq!(name(&[("SYSTEMD_EXEC_PID", "7")], false), "none", "a service that started something else");
}

#[test]
fn the_user_has_the_last_word() {
    let find = |name: &str| (name == "GITHUB_ACTIONS").then(|| "true".to_owned());
    let around = Around { variable: &find, terminal: false, processes: [50, 40] };
    let none = around.host(Some("none"), None);
    assert_eq!((none.profile.name, none.chosen_by, none.hurried()), ("none", "--host", None));
    let longer = around.host(None, Some(Duration::from_secs(20)));
    assert_eq!(longer.hurried().unwrap().grace, Some(Duration::from_secs(11)));
    assert_eq!(longer.unhurried(), Patience::UNHURRIED, "its own clock does not run for others");
}

#[test]
fn some_hosts_tell_how_long_they_wait() {
    let allows = |variables: &[(&str, &str)]| host(variables, false).allows.unwrap().as_millis();
    assert_eq!(allows(&[("TF_BUILD", "True"), ("PROCESS_SIGINT_TIMEOUT", "60000")]), 62_500);
    assert_eq!(allows(&[("TF_BUILD", "True"), ("PROCESS_SIGINT_TIMEOUT", "soon")]), 10_000);
    assert_eq!(allows(&[("BUILDKITE", "true"), ("BUILDKITE_CANCEL_GRACE_PERIOD", "60")]), 59_000);
    assert_eq!(allows(&[("BUILDKITE", "true"), ("BUILDKITE_CANCEL_SIGNAL_TIMEOUT", "30")]), 30_000);
    assert_eq!(allows(&[("BUILDKITE", "true"), ("BUILDKITE_CANCEL_GRACE_PERIOD", "0")]), 9_000);
}

#[test]
fn sources_follow_the_acceptance_test() {
    let ci = host(&[("GITLAB_CI", "true")], false);
    let (terminal, other) = (host(&[], true), host(&[], false));
    assert_eq!(terminal.source(Via::Interrupt), CancelSource::CtrlC);
    assert_eq!(other.source(Via::Interrupt), CancelSource::Api);
    assert_eq!(ci.source(Via::Interrupt), CancelSource::Ci);
    assert_eq!(ci.source(Via::Deadline), CancelSource::Ci);
    assert_eq!(ci.source(Via::PhaseLimit), CancelSource::Ci);
    assert_eq!(ci.source(Via::CancelFile), CancelSource::Api);
    assert_eq!(ci.source(Via::RunnerLost), CancelSource::Service);
    assert_eq!(other.source(Via::Terminate), CancelSource::Service);
    assert_eq!(terminal.source(Via::HangUp), CancelSource::Service);
    assert_eq!(terminal.source(Via::Deadline), CancelSource::Service);
    assert_eq!(host(&[("SYSTEMD_EXEC_PID", "50")], false).source(Via::Terminate), CancelSource::Service);
}
