//! What a job says and assumes of the host around it.

use crate::rig::{Place, finish};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A command that ends at the first SIGTERM.
const POLITE: &str = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done";

fn warnings(place: &Place) -> Vec<String> {
    let header = place.event("jobStarted");
    header["warnings"].as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_owned()).collect()
}

fn now(offset_s: i64) -> String {
    let output =
        Command::new("date").args(["-u", "-d", &format!("{offset_s} seconds"), "+%FT%TZ"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_gitlab_job_ends_before_its_timeout() {
    let place = Place::new();
    let mut run = place.run(&[], POLITE);
    run.env("GITLAB_CI", "true").env("CI_JOB_TIMEOUT", "604").env("CI_JOB_STARTED_AT", now(-600));
    let done = finish(run.spawn().unwrap());
    done.assert_code(124);
    let header = place.event("jobStarted");
    assert_eq!(header["deadlineFrom"], "CI_JOB_TIMEOUT");
    assert!(header["deadlineMs"].as_u64().unwrap() <= 3_000, "{header}");
    assert_eq!(place.event("cancelRequested")["via"], "deadline");
    assert!(warnings(&place).is_empty());
    assert!(
        done.stderr.contains("while there is time to save the evidence (CI_JOB_TIMEOUT)"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_gitlab_job_whose_end_is_lost_is_warned() {
    for (options, said) in [
        (&["--deadline", "none"][..], "no deadline is set"),
        (&["--deadline", "2h"][..], "lies behind the end of the job"),
        (&["--deadline", "10m"][..], ""),
    ] {
        let place = Place::new();
        let mut run = place.run(options, "true");
        run.env("GITLAB_CI", "true").env("CI_JOB_TIMEOUT", "3600").env("CI_JOB_STARTED_AT", now(-60));
        finish(run.spawn().unwrap()).assert_code(0);
        assert_eq!(warnings(&place).is_empty(), said.is_empty(), "{options:?}");
        assert!(warnings(&place).concat().contains(said), "{options:?}");
    }
}

#[test]
fn a_container_client_is_recognised() {
    let place = Place::new();
    let client = place.path("docker");
    fs::write(&client, "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).unwrap();
    let done =
        place.verb(&["run", "--bundle", "bundle", "--", "./docker", "run", "--rm", "image", "trtexec"]);
    done.assert_code(0);
    assert!(done.stderr.contains("warning: docker only asks for a container"), "{}", done.stderr);
    assert!(warnings(&place)[0].contains("IMAGE stuckproof run -- COMMAND"));
}

#[test]
fn the_user_chooses_the_host() {
    let place = Place::new();
    let mut run = place.run(&["--host", "systemd"], "true");
    run.env("GITHUB_ACTIONS", "true").env("STUCKPROOF_HOST_ALLOWS", "20s");
    let done = finish(run.spawn().unwrap());
    done.assert_code(0);
    let profile = &place.event("jobStarted")["hostProfile"];
    assert_eq!((&profile["name"], &profile["chosenBy"]), (&"systemd".into(), &"--host".into()));
    assert_eq!((&profile["allowsMs"], &profile["completeMs"]), (&20_000.into(), &18_000.into()));
    assert!(
        done.stderr.contains("host: systemd (--host): it ends the job 20 s after its first signal"),
        "{}",
        done.stderr
    );
    let refused = place.verb(&["run", "--host", "travis", "--", "true"]);
    refused.assert_code(125);
    assert!(refused.stderr.contains("gitlab-docker"), "the names are listed: {}", refused.stderr);
}

#[test]
fn a_host_is_picked_without_a_job() {
    let place = Place::new();
    let hosts = |options: &[&str]| {
        let mut hosts = place.stuckproof();
        hosts
            .arg("hosts")
            .args(options)
            .env("BUILDKITE", "true")
            .env("BUILDKITE_CANCEL_SIGNAL_TIMEOUT", "20");
        let done = finish(hosts.spawn().unwrap());
        done.assert_code(0);
        String::from_utf8(done.stdout).unwrap()
    };
    let said: serde_json::Value = serde_json::from_str(&hosts(&["--json"])).unwrap();
    let mut run = place.run(&[], "true");
    run.env("BUILDKITE", "true").env("BUILDKITE_CANCEL_SIGNAL_TIMEOUT", "20");
    finish(run.spawn().unwrap()).assert_code(0);
    assert_eq!(said["picked"]["allowsMs"], 20_000);
    assert_eq!(said["picked"], place.event("jobStarted")["hostProfile"], "what a job assumes");
    assert_eq!(said["hosts"].as_array().map(Vec::len), Some(14));
    let text = hosts(&[]);
    assert!(text.starts_with("Here a job assumes Buildkite (buildkite), chosen by BUILDKITE.\n"), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("* buildkite ")).count(), 1, "{text}");
    assert!(hosts(&["--host", "none"]).contains("* none "));
}

#[test]
fn buildkite_says_that_the_time_is_over() {
    let place = Place::new();
    fs::write(place.path("marker"), "").unwrap();
    let mut run = place.run(&[], POLITE);
    run.env("BUILDKITE", "true").env("BUILDKITE_AGENT_JOB_TIMEOUT_FILE", place.path("marker"));
    let child = run.spawn().unwrap();
    crate::rig::wait_until("the command is ready", || {
        fs::read_to_string(place.path("bundle/stdout.log")).is_ok_and(|text| text.contains("ready"))
    });
    crate::rig::signal(&child, "TERM");
    finish(child).assert_code(9);
    let request = place.event("cancelRequested");
    assert!(request["reason"].as_str().unwrap().contains("time limit is over"), "{request}");
}
