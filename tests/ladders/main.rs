//! The ladder of every host, signal for signal: against real builds in a step that lasts longer than some hosts wait, and
//! against commands. Each ends with a complete bundle inside the host's time, the right state and no process alive.

mod action;
#[path = "../common/mod.rs"]
mod common;
mod emulator;
mod hosts;

use common::bundle::Bundle;
use common::chance::setting;
use common::witness::wait_for_long_step;
use common::{model, now_ns, script};
use emulator::{Ended, Step};
use hosts::{Emulated, Entry};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

/// A command that obeys nothing but SIGKILL.
const STUBBORN: &str = "trap '' TERM INT; echo ready; while :; do sleep 0.05; done";
/// A command that ends when it is asked to.
const POLITE: &str = "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done";
/// What the machine may add to a time, milliseconds.
const SLACK_MS: f64 = 2_000.0;

/// How often a real build is ended by each host.
fn runs() -> u64 {
    setting("STUCKPROOF_LADDERS", 1)
}

/// A real build whose step of about twelve seconds has begun.
fn inside_the_step(host: &'static Emulated) -> Step {
    let stamps = tempfile::Builder::new().prefix("stuckproof-stamps-").tempfile().expect("a file");
    let stamps = common::text(stamps.into_temp_path().keep().expect("a file"));
    let wrapped = script("user_monitor.py", &[&model("long"), "/dev/null", &stamps]);
    let step = Step::start(host, host.entry, &[], &wrapped);
    let begun = wait_for_long_step(&stamps);
    std::fs::remove_file(&stamps).expect("a file");
    while now_ns() < begun + 300_000_000 {
        std::thread::sleep(Duration::from_millis(5));
    }
    step
}

/// What holds for every ladder: the bundle was complete in time, and the request is on record with its sender.
fn assert_in_time(host: &Emulated, ended: &Ended) -> Bundle {
    let bundle = Bundle::load(&ended.bundle);
    assert!(
        ended.runner_ms < host.limit_ms() as f64,
        "{}: complete only after {} ms",
        host.name,
        ended.runner_ms
    );
    let profile = &bundle.evidence["header"]["hostProfile"];
    assert_eq!(profile["name"], host.name);
    assert!(profile["allowsMs"].as_u64().expect("a time") <= host.limit_ms(), "{profile}");
    if was_asked(host, &bundle) {
        let request = accepted(&bundle);
        assert_eq!(request["source"], host.source, "{request}");
        assert_eq!(
            (&request["pid"], &request["uid"]),
            (&std::process::id().into(), &rustix::process::getuid().as_raw().into())
        );
        let at = request["tNs"].as_u64().expect("a time");
        assert!(at >= ended.first_ns, "stamped before it was sent");
    }
    bundle
}

/// A host that signals everybody may have ended the builder, and with it the job, before its signal to the runner arrives.
fn was_asked(host: &Emulated, bundle: &Bundle) -> bool {
    !host.hits_builder() || bundle.evidence["requests"] != serde_json::json!([])
}

fn accepted(bundle: &Bundle) -> &Value {
    let requests = bundle.evidence["requests"].as_array().expect("a list");
    let accepted: Vec<_> = requests.iter().filter(|request| request["accepted"] == true).collect();
    assert_eq!(accepted.len(), 1, "{requests:#?}");
    assert_eq!(accepted[0]["request"], 1);
    accepted[0]
}

/// The rung of that name, with its age.
fn rung_ms(bundle: &Bundle, rung: &str) -> Option<f64> {
    let rungs = bundle.evidence["ladder"].as_array().expect("a list");
    rungs.iter().find(|found| found["rung"] == rung)?["sinceRequestMs"].as_f64()
}

/// The state follows from what happened: an answer, the host's own signal to the builder, or ours.
fn assert_state(host: &Emulated, bundle: &Bundle) {
    let answered = bundle.of_kind("cancelAcknowledged").next().is_some();
    match rung_ms(bundle, "SIGTERM") {
        _ if answered => bundle.assert_state("cancelled", Some(host.source)),
        Some(_) => bundle.assert_state("failed", Some("killed_by_runner")),
        None => {
            assert!(host.hits_builder(), "{}: nobody ended the build", host.name);
            bundle.assert_state("failed", Some("killed_by_host"));
        }
    }
}

/// Ends real builds in their long step.
fn real(host: &'static Emulated) {
    for run in 0..runs() {
        let ended = inside_the_step(host).suffer(1);
        let bundle = assert_in_time(host, &ended);
        assert_state(host, &bundle);
        // A builder that the host ends itself may be gone by the time that the request arrives.
        if !host.hits_builder() {
            let request = accepted(&bundle);
            let open = request["openBranch"].as_array().expect("a list");
            assert!(open.iter().any(|phase| phase["name"] == "Determining refit engines"), "{open:?}");
        }
        let provisional = bundle.evidence["header"]["hostProfile"]["provisionalMs"].as_f64().expect("a time");
        let lasted = ended.runner_ms > provisional + SLACK_MS;
        assert!(ended.interim || !lasted, "{}: no file told of the request before the end", host.name);
        println!(
            "{} run {run}: {} after {:.0} ms",
            host.name,
            bundle.evidence["state"].as_str().expect("a state"),
            ended.runner_ms
        );
    }
}

#[test]
fn real_github() {
    real(&hosts::GITHUB);
}

#[test]
fn real_gitlab_shell() {
    real(&hosts::GITLAB_SHELL);
}

#[test]
fn real_kubernetes() {
    real(&hosts::KUBERNETES);
}

#[test]
fn real_azure() {
    real(&hosts::AZURE);
}

#[test]
fn real_buildkite() {
    real(&hosts::BUILDKITE);
}

#[test]
fn real_gitlab_docker() {
    real(&hosts::GITLAB_DOCKER);
}

#[test]
fn real_gitlab_kubernetes() {
    real(&hosts::GITLAB_KUBERNETES);
}

#[test]
fn real_jenkins() {
    real(&hosts::JENKINS);
}

#[test]
fn real_systemd() {
    real(&hosts::SYSTEMD);
}

#[test]
fn real_slurm() {
    real(&hosts::SLURM);
}

/// A build that answers in time is cancelled, and by its own word.
#[test]
fn real_build_that_answers() {
    let wrapped = script("user_monitor.py", &[&model("long"), "/dev/null", "/dev/null"]);
    let step = Step::start(&hosts::GITHUB, Entry::Exec, &[], &wrapped);
    step.wait_for_event("stepCompleted");
    let ended = step.suffer(1);
    let bundle = assert_in_time(&hosts::GITHUB, &ended);
    bundle.assert_state("cancelled", Some("ci"));
    assert_eq!(bundle.evidence["header"]["warnings"], serde_json::json!([]));
    assert!(
        ended.said.contains("host: GitHub Actions (GITHUB_ACTIONS): it ends the job 10 s after"),
        "{}",
        ended.said
    );
}

fn commanded(host: &'static Emulated, entry: Entry, options: &[&str], line: &str) -> Step {
    let step = Step::start(host, entry, options, &["sh", "-c", line].map(str::to_owned));
    let log = step.bundle.join("stdout.log");
    common::wait_for("the command", || std::fs::read_to_string(&log).ok()?.contains("ready").then_some(()));
    step
}

/// A command that obeys nothing, under a host that sends its first signal again and again.
fn stubborn(host: &'static Emulated) {
    let ended = commanded(host, host.entry, &[], STUBBORN).suffer(5);
    let bundle = assert_in_time(host, &ended);
    bundle.assert_state("failed", Some("command"));
    let requests = bundle.evidence["requests"].as_array().expect("a list");
    assert!(requests.iter().all(|request| request["kill"] == false), "{requests:#?}");
    // SIGTERM comes at once where no builder can answer. The host's time is over as soon as it would be with one.
    let header = &bundle.evidence["header"];
    let ms = |value: &Value| value.as_f64().expect("a time");
    let host_ms = ms(&header["hostProfile"]["graceMs"]) + ms(&header["hostProfile"]["killAfterMs"]);
    let promised = host_ms.min(ms(&header["killAfterMs"]));
    let killed = rung_ms(&bundle, "SIGKILL").expect("it was killed");
    assert!((promised..promised + SLACK_MS).contains(&killed), "killed after {killed} ms, not {promised}");
}

#[test]
fn stubborn_commands_are_killed_in_time() {
    let hosts = [
        &hosts::GITHUB,
        &hosts::AZURE,
        &hosts::BUILDKITE,
        &hosts::JENKINS,
        &hosts::KUBERNETES,
        &hosts::SLURM,
    ];
    let running = hosts.map(|host| std::thread::spawn(move || stubborn(host)));
    for thread in running {
        thread.join().expect("every host's ladder holds");
    }
}

#[test]
fn polite_commands_end_at_once() {
    let hosts = [&hosts::GITLAB_SHELL, &hosts::GITLAB_DOCKER, &hosts::GITLAB_KUBERNETES, &hosts::SYSTEMD];
    for host in hosts {
        let ended = commanded(host, host.entry, &[], POLITE).suffer(3);
        assert_in_time(host, &ended).assert_state("failed", Some("command"));
        assert!(ended.runner_ms < 5_000.0, "{}: {} ms", host.name, ended.runner_ms);
    }
}

/// The host's last signal means that there is no more time, whatever the user has asked for.
#[test]
fn the_last_signal_of_a_host_kills() {
    let options = ["--kill-after", "1h"];
    let ended = commanded(&hosts::GITHUB, Entry::Exec, &options, STUBBORN).suffer(1);
    let bundle = assert_in_time(&hosts::GITHUB, &ended);
    let killed = rung_ms(&bundle, "SIGKILL").expect("it was killed");
    assert!((7_400.0..7_500.0 + SLACK_MS).contains(&killed), "{killed}");
    let last = &bundle.evidence["requests"][1];
    assert_eq!((&last["via"], &last["kill"]), (&"SIGTERM".into(), &true.into()), "{last}");
    assert!(ended.said.contains("warning: --grace and --kill-after let the command live"), "{}", ended.said);
}

/// Where a shell keeps the signal for itself, that is said before it happens.
#[test]
fn a_shell_in_between_is_found() {
    let mut step = commanded(&hosts::GITHUB, Entry::Shell, &["--deadline", "2s"], POLITE);
    assert!(!step.is_reached_by(Signal::TERM), "the shell has passed the signal on");
    let ended = step.suffer_alone();
    let bundle = Bundle::load(&ended.bundle);
    assert_eq!(accepted(&bundle)["via"], "deadline");
    let warning = bundle.evidence["header"]["warnings"][0].as_str().expect("a warning");
    assert!(
        warning.contains("a shell (bash, process") && warning.contains("exec stuckproof run"),
        "{warning}"
    );
    assert!(ended.said.contains(&format!("stuckproof: warning: {warning}")), "{}", ended.said);
    let noted = bundle.evidence["notes"].as_array().expect("a list").iter();
    assert!(noted.filter_map(Value::as_str).any(|note| note.contains(warning)));
}

/// A phase that is open for too long is a reason to stop, and its name is on record.
#[test]
fn real_phase_limit() {
    let options = ["--max-phase", "1s", "--grace", "none"];
    let ended =
        common::job::run(&options, &script("user_monitor.py", &[&model("slow"), "/dev/null", "/dev/null"]));
    let bundle = ended.bundle();
    bundle.assert_state("cancelled", Some("service"));
    assert_eq!(ended.code(), 124, "{}", ended.stderr);
    let request = accepted(&bundle);
    assert_eq!(request["via"], "phase limit");
    let reason = request["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("the phase ") && reason.ends_with("; the limit is 1.0 s"), "{reason}");
}
