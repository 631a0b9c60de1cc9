//! The four answers, for each state and each verdict.

use crate::job::Job;
use crate::shown::{cancelled, failed, killed, two_builds, unobserved};
use crate::silences::{of_earlier_builds, verdict};
use stuckproof::event::SilenceVerdict;
use stuckproof::explain::{explain, print};
use stuckproof::supervise::{Live, LiveExpected, LivePhase, LiveRequest, LiveSilence};

fn told(job: &mut Job, live: Option<&Live>) -> String {
    let mut text = Vec::new();
    print(&explain(&job.bundle(), live, None), &mut text).expect("memory can be written");
    String::from_utf8(text).expect("text")
}

/// A job in the middle of its build, of which the runner says this.
fn running(judged: SilenceVerdict, reason: &str, seconds: u64) -> Live {
    let facts = verdict(judged, reason, 2, seconds);
    let words = stuckproof::stall::in_words(&facts);
    let expected =
        LiveExpected { build: 1, builds: 3, total_ms: 40_000.0, rest_ms: 15_000.0, phase_ms: Some(20_000.0) };
    Live {
        job: "bold-otter".to_owned(),
        state: "running".to_owned(),
        bundle: "/b".into(),
        runner_pid: 4000,
        command_pid: Some(4001),
        started_at: String::new(),
        elapsed_ms: 100_000.0,
        libraries: 1,
        builds: Vec::new(),
        open_branch: vec![LivePhase {
            build: 1,
            phase: 2,
            name: "Timing graph nodes".to_owned(),
            last_step: Some(3),
            steps: 9,
            open_ms: 90_000.0,
        }],
        last_callback_ms: Some(seconds as f64 * 1e3),
        requests: Vec::new(),
        silence: Some(LiveSilence { facts, words, expected: Some(expected) }),
    }
}

/// A log without its end.
fn open() -> Job {
    let mut job = Job::new();
    job.at(90).event(of_earlier_builds(3, 0));
    job
}

#[test]
fn jobs_that_have_ended() {
    insta::assert_snapshot!("explained-cancelled", told(&mut cancelled(), None));
    insta::assert_snapshot!("explained-failed", told(&mut failed(), None));
    insta::assert_snapshot!("explained-killed", told(&mut killed(), None));
    insta::assert_snapshot!("explained-two-builds", told(&mut two_builds(), None));
    insta::assert_snapshot!("explained-unobserved", told(&mut unobserved(), None));
}

#[test]
fn jobs_that_run() {
    use SilenceVerdict::{Advancing, SlowExpected, SlowUnexplained, Stalled};
    let verdicts = [
        ("advancing", Advancing, "called back", 1),
        ("slow-expected", SlowExpected, "load", 80),
        ("slow-unexplained", SlowUnexplained, "long without history", 400),
        ("stalled", Stalled, "idle", 61),
    ];
    for (name, judged, reason, seconds) in verdicts {
        let live = running(judged, reason, seconds);
        insta::assert_snapshot!(format!("explained-{name}"), told(&mut open(), Some(&live)));
    }
    let request = LiveRequest {
        request: 1,
        via: "SIGINT".to_owned(),
        accepted: true,
        ago_ms: 5_000.0,
        acknowledged_after_ms: None,
    };
    let live = running(Advancing, "called back", 1);
    let live = Live { state: "cancelling".to_owned(), requests: vec![request], ..live };
    insta::assert_snapshot!("explained-cancelling", told(&mut open(), Some(&live)));
}

#[test]
fn a_job_without_an_end_and_without_a_runner() {
    insta::assert_snapshot!("explained-lost", told(&mut open(), None));
}
