//! What people see.

use crate::job::{Job, build_start, finish, message, returned, rtx, start, step};
use stuckproof::event::CancelSource;
use stuckproof::evidence;
use stuckproof::render::{Style, show};
use stuckproof::wire::Severity;

fn shown(job: &mut Job) -> String {
    let mut text = Vec::new();
    let mut bundle = job.bundle();
    bundle.path = "stuckproof-evidence/bold-otter".into();
    show(&bundle, &mut text, Style::default()).expect("memory can be written");
    String::from_utf8(text).expect("text")
}

/// A build that is asked to stop inside a long step, and does.
fn cancelled() -> Job {
    let mut job = Job::new();
    job.at(40).tell_of(4001, 0, rtx(true));
    job.at(50).tell(build_start()).tell(start("Building engine", None, 6));
    job.at(60).tell(step("Building engine", 0, 0));
    job.tell(start("Computing profile costs", Some("Building engine"), 5));
    for index in 0..7 {
        job.at(70 + 20 * index).tell(start("Timing tactics", Some("Computing profile costs"), 1));
        job.at(80 + 20 * index).tell(step("Timing tactics", 0, 0)).tell(finish("Timing tactics"));
    }
    job.at(210).tell(step("Computing profile costs", 0, 0));
    job.tell(start("Timing graph nodes", Some("Computing profile costs"), 3));
    job.at(5_000).request(CancelSource::CtrlC, "SIGINT").rung("cooperative", "requested");
    job.at(5_020).request(CancelSource::Service, "SIGTERM");
    job.at(12_210).tell(step("Timing graph nodes", 0, 1)).tell(finish("Timing graph nodes"));
    job.tell(finish("Computing profile costs")).tell(finish("Building engine"));
    job.at(12_250).tell(message(
        Severity::Error,
        "IBuilder::buildSerializedNetwork: Error Code 7: Internal Error (BuildCanceled)",
    ));
    job.tell(returned(false));
    job.at(12_400).exit(Some(1), None);
    job.at(12_410).end(1);
    job
}

#[test]
fn a_cancelled_build() {
    let mut job = cancelled();
    let bundle = job.bundle();
    let written = evidence::write(job.folder.path()).expect("the bundle can be written");
    assert_eq!(written, bundle.evidence);
    insta::assert_snapshot!("cancelled", shown(&mut job));
    for name in [evidence::EVIDENCE, evidence::SUMMARY] {
        let text = std::fs::read_to_string(job.folder.path().join(name)).expect("the file is there");
        insta::assert_snapshot!(format!("cancelled-{name}"), text);
    }
}
