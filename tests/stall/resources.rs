//! What the samples of a real build say, and what they cost.

use crate::acting;
use crate::common::job::{Job, Place};
use serde_json::Value;

/// Of one core.
const MOST: f64 = 0.005;

fn samples(place: &Place) -> Vec<Value> {
    let text = std::fs::read_to_string(place.bundle().join("resources.jsonl")).expect("there are samples");
    text.lines().skip(1).map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

#[test]
fn a_builds_work_is_in_the_samples_and_they_cost_next_to_nothing() {
    let place = Place::new();
    let command = acting(&place, "small", "busy_child", "step", 8);
    let run = place.run(&[], &command);
    let ended = Job::start(place, run).end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let samples = samples(&ended.place);
    let number = |sample: &Value, field: &str| sample[field].as_f64().expect("a number");
    let (first, last) = (&samples[0], samples.last().expect("samples"));
    let seconds = (number(last, "t") - number(first, "t")) / 1e9;
    assert!(samples.len() >= 5 && seconds >= 5.0, "{} samples in {seconds} s", samples.len());
    assert!(samples.iter().any(|sample| number(sample, "processes") >= 2.0), "the child counts");
    assert!(number(last, "cpuMs") > number(first, "cpuMs") + 500.0, "{first} {last}");
    assert!(samples.windows(2).all(|pair| number(&pair[0], "cpuMs") <= number(&pair[1], "cpuMs")));
    let cost: f64 = samples.iter().map(|sample| number(sample, "costUs")).sum();
    assert!(cost / 1e6 / seconds < MOST, "sampling took {cost} µs in {seconds} s");
}
