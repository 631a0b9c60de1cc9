//! Looks at the processes of a job from outside.

use crate::rig::{Place, wait_until};
use std::fs;
use std::process::{Child, Command};
use stuckproof::evidence;

/// A process, as `/proc` tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub pid: u32,
    pub name: String,
    pub state: String,
    pub parent: u32,
    pub group: u32,
}

/// Looks at a process that lives.
pub fn look(pid: u32) -> Option<Seen> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (before, after) = line.rsplit_once(") ")?;
    let fields: Vec<&str> = after.split(' ').collect();
    let name = before.split_once(" (")?.1.to_owned();
    let number = |at: usize| fields[at].parse().ok();
    let seen = Seen { pid, name, state: fields[0].to_owned(), parent: number(1)?, group: number(2)? };
    (seen.state != "Z" && seen.state != "X").then_some(seen)
}

/// All processes that live.
pub fn all() -> Vec<Seen> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|e| look(e.file_name().to_str()?.parse().ok()?)).collect()
}

/// The keeper of a runner.
pub fn keeper(runner: &Child) -> Seen {
    let found = all().into_iter().find(|p| p.parent == runner.id() && p.name == "stuckproof-keep");
    found.expect("the runner has a keeper")
}

/// The living processes that carry the job's name in their environment: all that came from its command.
pub fn marked(job: &str) -> Vec<Seen> {
    let mark = format!("STUCKPROOF_JOB={job}");
    let carries = |p: &Seen| {
        let environment = fs::read(format!("/proc/{}/environ", p.pid)).unwrap_or_default();
        environment.split(|b| *b == 0).any(|variable| variable == mark.as_bytes())
    };
    all().into_iter().filter(carries).collect()
}

/// Sends a signal by its name to one process.
pub fn send(pid: u32, signal: &str) {
    let sent = Command::new("kill").args(["-s", signal, &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits until a file that a script writes has its whole line, and gives it as a process number.
pub fn pid_in(place: &Place, name: &str) -> u32 {
    let path = place.path(name);
    wait_until(name, || fs::read_to_string(&path).is_ok_and(|text| text.ends_with('\n')));
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// Waits for the bundle's end and checks that it is whole: every line follows, one end, all files there.
pub fn wait_for_whole_bundle(place: &Place) -> evidence::Evidence {
    let bundle = place.path("bundle");
    wait_until("the bundle is finished", || {
        evidence::load(&bundle).is_ok_and(|b| b.evidence.finished) && bundle.join("phases.json").exists()
    });
    wait_until("the wire is taken away", || !bundle.join("wire").exists());
    let read = evidence::load(&bundle).unwrap();
    assert!(read.faults.is_empty(), "{:?}", read.faults);
    assert_eq!(place.events_of("jobEnded").len(), 1);
    assert_eq!(place.json("evidence.json")["finished"], true);
    assert!(bundle.join("summary.json").exists());
    assert!(!bundle.join("keeper.log").exists(), "the keeper had nothing to complain of");
    read.evidence
}
