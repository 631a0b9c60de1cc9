//! What jobs leave in the history, whoever finishes them.

use crate::common::bundle::Bundle;
use crate::common::job::{Ended, Job, Place, stuckproof};
use crate::common::wait_for;
use crate::scene::{Scene, script};
use rustix::process::{Pid, Signal, kill_process};

const SECRET: &str = "planted-word";

/// A build that stalls in a phase with the secret in its name, as its input's.
fn stalling() -> String {
    let network = format!("[network]\ninputs = [{{ name = \"{SECRET}\", shape = [1], data_type = 0 }}]");
    script(
        &network,
        "",
        &format!("    {{ phase = \"Timing {SECRET} nodes\", do = [{{ fault = \"deadlock\" }}] }},"),
    )
}

fn start(history: &str, options: &[&str], script: &str) -> Job {
    let scene = Scene::new();
    let command = scene.command(script);
    let options = [&["--history", history], options].concat();
    let mut run = scene.place.run(&options, &command);
    run.env("DEPLOY_TOKEN", SECRET);
    Job::start(scene.place, run)
}

fn stalled(history: &str) -> Ended {
    let options =
        ["--stall-after", "1s", "--on-stall", "cancel", "--grace", "500ms", "--kill-after", "500ms"];
    start(history, &options, &stalling()).end()
}

#[test]
fn a_phase_whose_name_holds_a_secret_is_known_again() {
    let place = Place::new();
    let history = place.file("history");
    stalled(&history).bundle().assert_state("failed", Some("killed_by_runner"));
    assert_eq!(entries(&history), 1, "what was written at once and what was learned at the end are one");
    let bundle = stalled(&history).bundle();
    assert_eq!(bundle.build()["expected"]["likeness"], "same");
    let facts = &bundle.evidence["silences"]["stalls"][0]["facts"];
    assert_eq!(facts["phaseName"], "Timing (masked) nodes");
    assert_eq!(facts["earlierStalls"], 1, "{facts}");
}

/// Two builds: one that gives an engine, and one that hangs.
fn half() -> String {
    let done = "do = [{ phase = \"Building engine\", steps = 3, each = \"10ms\" }]";
    script("", "", "    { phase = \"Building engine\", steps = 3, each = \"10ms\" },")
        + &format!("\n[[build]]\n{}\n", done.replace("each = \"10ms\"", "do = [{ fault = \"hang\" }]"))
}

/// Starts it, and waits for its second build.
fn begun(history: &str) -> Job {
    let job = start(history, &[], &half());
    let bundle = job.place().bundle();
    wait_for("the second build", || {
        Bundle::lines_so_far(&bundle, &["\"event\":\"phaseStarted\"", "\"build\":2"]).pop()
    });
    job
}

/// Builds that are remembered.
fn entries(history: &str) -> usize {
    let folders = std::fs::read_dir(history).into_iter().flatten();
    let files = |folder: std::fs::DirEntry| std::fs::read_dir(folder.path()).expect("a folder").count();
    folders.map(|folder| files(folder.expect("an entry"))).sum()
}

#[test]
fn the_keeper_remembers_what_a_lost_runner_cannot() {
    let place = Place::new();
    let history = place.file("history");
    let job = begun(&history);
    job.signal(Signal::KILL);
    let lost = job.end_of_the_killed();
    wait_for("the keeper's lessons", || (entries(&history) == 2).then_some(()));
    assert!(Bundle::is_finished(&lost.bundle()));
    let second = start(&history, &[], &script("", "", "    { phase = \"Building engine\" },")).end();
    let bundle = second.bundle();
    let expected = &bundle.build()["expected"];
    assert_eq!((&expected["likeness"], &expected["builds"]), (&"same".into(), &1.into()));
}

#[test]
fn finalize_teaches_the_history_that_it_is_given_and_no_other() {
    let (own, given) = (Place::new(), Place::new());
    let (own, given) = (own.file("history"), given.file("history"));
    let job = begun(&own);
    let bundle = job.place().bundle();
    let keeper = keeper_of(job.pid());
    kill_process(keeper, Signal::STOP).expect("the keeper can be stopped");
    job.signal(Signal::KILL);
    kill_process(keeper, Signal::KILL).expect("the keeper can be killed");
    let _lost = job.end_of_the_killed();
    wait_for("a bundle that can be finished", || {
        let finalize = ["finalize", "--history", &given];
        let done = stuckproof().args(finalize).arg(&bundle).output().expect("it starts");
        done.status.success().then_some(())
    });
    assert_eq!((entries(&own), entries(&given)), (0, 2));
}

fn keeper_of(runner: Pid) -> Pid {
    let children = format!("/proc/{0}/task/{0}/children", runner.as_raw_nonzero());
    let children = std::fs::read_to_string(children).expect("the runner lives");
    let first = children.split_whitespace().next().expect("it has a keeper");
    Pid::from_raw(first.parse().expect("a number")).expect("a process")
}
