//! A crowded processor: a builder that works now and then uses hardly any of it, and one that only looks around waits for
//! its turns as well.

use crate::acting;
use crate::common::bundle::Bundle;
use crate::common::job::{Job, Place};
use crate::common::{command, wait_for};
use rustix::process::Signal;
use rustix::thread::sched_getaffinity;
use serde_json::Value;
use std::process::Child;
use std::time::{Duration, Instant};

/// Programs that always want the processor.
const CROWD: usize = 12;
const STALL_AFTER: Duration = Duration::from_secs(5);
/// Several times the threshold.
const LONG: Duration = Duration::from_secs(25);

/// Busy programs on one processor, while it lives.
struct Crowd(Vec<Child>);

impl Crowd {
    fn on(processor: &str) -> Self {
        let busy = || {
            let mut taskset = command("taskset");
            taskset.args(["-c", processor, "sh", "-c", "while :; do :; done"]);
            taskset.spawn().expect("taskset starts")
        };
        Self((0..CROWD).map(|_| busy()).collect())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().expect("it is our child");
            child.wait().expect("it is our child");
        }
    }
}

/// The first processor that we may use.
fn processor() -> String {
    let ours = sched_getaffinity(None).expect("the processors are known");
    let first = (0..1024).find(|cpu| ours.is_set(*cpu));
    first.expect("there is one").to_string()
}

/// A build on one processor, run by way of `through`.
fn start(act: &str, processor: &str, through: &[&str]) -> Job {
    let place = Place::new();
    let way = ["taskset", "-c", processor].into_iter().chain(through.iter().copied());
    let wrapped = acting(&place, "small", act, "step", 120);
    let wrapped: Vec<String> = way.map(str::to_owned).chain(wrapped).collect();
    let run = place.run(&["--stall-after", "5s", "--grace", "1s", "--kill-after", "1s"], &wrapped);
    let job = Job::start(place, run);
    let stamp = job.place().file("stamp");
    wait_for("the act", || std::fs::exists(&stamp).expect("its folder can be read").then_some(()));
    job
}

fn stalls(job: &Job) -> Vec<Value> {
    Bundle::lines_so_far(&job.place().bundle(), &["\"verdict\":\"stalled\""])
}

fn samples(job: &Job) -> Vec<Value> {
    let text = std::fs::read_to_string(job.place().bundle().join("resources.jsonl"));
    let text = text.expect("there are samples");
    let whole = text.lines().skip(1).filter_map(|line| serde_json::from_str(line).ok());
    whole.collect()
}

/// In percent of one core, between the two samples.
fn share(field: &str, first: &Value, last: &Value) -> f64 {
    let number = |sample: &Value, field: &str| sample[field].as_f64().expect("a number");
    let ms = number(last, field) - number(first, field);
    ms / ((number(last, "t") - number(first, "t")) / 1e6) * 100.0
}

fn end(job: Job) {
    job.signal(Signal::TERM);
    job.end();
}

#[test]
fn a_crowd_makes_no_working_build_stalled_and_hides_no_hang() {
    let processor = processor();
    let works = [&[][..], &["nice", "-n", "19"], &["chrt", "-i", "0"]].map(|through| {
        // One after another: none is to be in another's way before there is a crowd.
        start("duty", &processor, through)
    });
    let hangs = start("poll_lazily", &processor, &[]);
    let crowd = Crowd::on(&processor);
    let (began, before) = (Instant::now(), works.each_ref().map(|job| samples(job).len()));
    let found = wait_for("the stall of the one that hangs", || stalls(&hangs).pop());
    let after = began.elapsed();
    assert!(after < STALL_AFTER + Duration::from_secs(10), "found after {after:?}: {found}");
    std::thread::sleep(LONG.saturating_sub(began.elapsed()));
    let mut lacked = Vec::new();
    for (job, before) in works.iter().zip(before) {
        let samples = samples(job);
        let (first, last) = (&samples[before], samples.last().expect("samples"));
        let (used, starved) = (share("cpuMs", first, last), share("starvedMs", first, last));
        println!("used {used:.2} % of a core, lacked {starved:.1} %");
        assert!(used < 3.0, "the crowd was too small to prove anything: {used} %");
        assert_eq!(stalls(job), [] as [Value; 0], "{samples:#?}");
        lacked.push(starved);
    }
    // The other two have so few turns that looks find them waiting.
    assert!(lacked[0] > 3.0, "{lacked:?}");
    drop(crowd);
    works.into_iter().for_each(end);
    end(hangs);
}
