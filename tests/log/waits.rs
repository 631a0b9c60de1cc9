//! Cancellability: the closed form against a simulation that cancels at every moment.

use crate::job::{build_start, finish, record, returned, start, step};
use crate::names::cases;
use proptest::collection::vec;
use proptest::prelude::*;
use stuckproof::clock::Mono;
use stuckproof::event::{Cancellability, Event, Tree};
use stuckproof::observe::Tracker;
use stuckproof::wire::{Body, Record};

/// Moments of the build that the simulation cancels at.
const MOMENTS: u64 = 20_000;

fn events(records: &[Record]) -> Vec<Event> {
    let mut tracker = Tracker::new();
    let mut events = Vec::new();
    for record in records {
        tracker.ingest(record, &mut events);
    }
    events
}

fn waits(stream: &[(u64, Body)]) -> Option<Cancellability> {
    let records: Vec<Record> = stream.iter().map(|(at, body)| record(9, 1, *at, body.clone())).collect();
    Tree::of(&events(&records)).build(1).expect("the build").cancellability()
}

/// A build of one phase whose steps come after the given gaps, and which returns after one more.
fn stream(gaps: &[u64], tail: u64) -> Vec<(u64, Body)> {
    let mut at = 1_000;
    let mut stream = vec![(at, build_start()), (at, start("A", None, 9))];
    for gap in gaps {
        at += gap;
        stream.push((at, step("A", 0, 0)));
    }
    stream.push((at + tail, finish("A")));
    stream.push((at + tail, returned(true)));
    stream
}

/// Waits of cancels spread evenly over the build, sorted.
fn simulated(gaps: &[u64], tail: u64) -> Vec<f64> {
    let mut ends: Vec<u64> = Vec::new();
    for gap in gaps.iter().chain([&tail]) {
        ends.push(ends.last().unwrap_or(&0) + gap);
    }
    let total = *ends.last().expect("the tail is there");
    let mut waits: Vec<f64> = (0..MOMENTS)
        .map(|moment| {
            let at = (moment as f64 + 0.5) / MOMENTS as f64 * total as f64;
            let end = ends.iter().find(|end| **end as f64 >= at).expect("the build ends after it");
            *end as f64 - at
        })
        .collect();
    waits.sort_by(f64::total_cmp);
    waits
}

fn gap() -> impl Strategy<Value = u64> {
    prop_oneof![0..10_000_u64, 1_000_000..50_000_000_u64, 1_000_000_000..20_000_000_000_u64]
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn the_closed_form_is_what_a_simulation_finds(gaps in vec(gap(), 0..60), tail in gap()) {
        let total: u64 = gaps.iter().sum::<u64>() + tail;
        prop_assume!(total > 1_000);
        let found = waits(&stream(&gaps, tail)).expect("it has a length");
        let simulated = simulated(&gaps, tail);
        let apart = total as f64 / 1e6 / MOMENTS as f64;
        let near = |ours: f64, theirs: f64| (ours - theirs / 1e6).abs() <= 2.0 * apart + ours * 3e-4 + 0.001;
        let mean = simulated.iter().sum::<f64>() / MOMENTS as f64;
        prop_assert!(near(found.mean_ms, mean), "mean {} and {}", found.mean_ms, mean / 1e6);
        for (share, ours) in [(0.5, found.p50_ms), (0.95, found.p95_ms), (0.99, found.p99_ms)] {
            let theirs = simulated[(share * MOMENTS as f64) as usize];
            prop_assert!(near(ours, theirs), "{share}: {ours} and {}", theirs / 1e6);
        }
        let worst = gaps.iter().chain([&tail]).max().expect("the tail is there");
        prop_assert!((found.worst_ms - *worst as f64 / 1e6).abs() <= 0.001);
        let share = tail as f64 / total as f64;
        prop_assert!((found.undeliverable_share - share).abs() <= 1e-6);
        prop_assert!(found.p50_ms <= found.p95_ms && found.p95_ms <= found.p99_ms && found.p99_ms <= found.worst_ms + 0.001);
    }
}

#[test]
fn a_hundred_thousand_gaps_keep_their_precision() {
    let gaps: Vec<u64> = (0..100_000_u64).map(|n| 1_000 + n * n % 999_983).collect();
    let found = waits(&stream(&gaps, 500)).expect("it has a length");
    let total = (gaps.iter().sum::<u64>() + 500) as f64;
    let squares: f64 = gaps.iter().chain([&500]).map(|gap| (*gap as f64).powi(2)).sum();
    assert!((found.mean_ms - squares / 2.0 / total / 1e6).abs() < 1e-3);
    let within =
        |ms: f64| gaps.iter().chain([&500]).map(|gap| (*gap as f64).min(ms * 1e6)).sum::<f64>() / total;
    assert!((within(found.p50_ms) - 0.5).abs() < 1e-3);
    assert!((within(found.p95_ms) - 0.95).abs() < 1e-3);
    assert!((within(found.p99_ms) - 0.99).abs() < 1e-3);
}

#[test]
fn a_build_without_steps_cannot_be_cancelled() {
    let found = waits(&[(0, build_start()), (0, start("A", None, 1)), (8_000_000, returned(true))]);
    let found = found.expect("it has a length");
    assert!((found.undeliverable_share - 1.0).abs() < 1e-9);
    assert!((found.mean_ms - 4.0).abs() < 1e-9 && (found.worst_ms - 8.0).abs() < 1e-9);
    assert_eq!(found.worst_phase.as_deref(), Some("A"));
    assert_eq!(waits(&[(5, build_start()), (5, returned(true))]), None, "no length, no waits");
}

#[test]
fn the_worst_phase_is_the_one_that_filled_the_gap() {
    let ms = 1_000_000;
    let build = [
        (0, build_start()),
        (0, start("Root", None, 6)),
        (ms, step("Root", 0, 0)),
        (2 * ms, start("Silent and long", Some("Root"), 1)),
        (900 * ms, finish("Silent and long")),
        (950 * ms, start("Short", Some("Root"), 1)),
        (1_000 * ms, step("Short", 0, 0)),
        (1_001 * ms, finish("Short")),
        (1_100 * ms, finish("Root")),
        (1_100 * ms, returned(true)),
    ];
    let found = waits(&build).expect("it has a length");
    assert!((found.worst_ms - 999.0).abs() < 1e-9);
    assert_eq!(
        (found.worst_phase.as_deref(), found.worst_phase_instance),
        (Some("Silent and long"), Some(2))
    );
}

#[test]
fn the_wait_before_the_first_phase_has_no_phase() {
    let build =
        [(0, build_start()), (900, start("A", None, 1)), (1_000, step("A", 0, 0)), (1_001, returned(true))];
    let found = waits(&build).expect("it has a length");
    assert_eq!((found.worst_phase, found.worst_phase_instance), (None, None));
}

#[test]
fn silences_are_between_callbacks_of_any_kind() {
    let mut stream = vec![(0, build_start())];
    for (place, ms) in [7, 1, 9, 3, 5, 8, 2].into_iter().enumerate() {
        let at = stream.last().expect("the start").0 + ms * 1_000_000;
        stream.push((at, if place == 0 { start("A", None, 9) } else { step("A", 0, 0) }));
    }
    let records: Vec<Record> = stream.iter().map(|(at, body)| record(9, 1, *at, body.clone())).collect();
    let tree = Tree::of(&events(&records));
    let silences = &tree.build(1).expect("the build").silences;
    let told: Vec<_> = silences.iter().map(|silence| (silence.ns / 1_000_000, silence.phase)).collect();
    assert_eq!(told, [(9, Some(1)), (8, Some(1)), (7, None), (5, Some(1)), (3, Some(1))]);
    assert_eq!(silences[0].from, Mono(8_000_000));
}

#[test]
fn the_last_silence_belongs_to_the_phase_that_was_open_in_it() {
    let ms = 1_000_000;
    let stream = [(0, build_start()), (ms, start("A", None, 1)), (9 * ms, returned(false))];
    let records: Vec<Record> = stream.iter().map(|(at, body)| record(9, 1, *at, body.clone())).collect();
    let tree = Tree::of(&events(&records));
    let silences = &tree.build(1).expect("the build").silences;
    assert_eq!(
        (silences[0].ns, silences[0].phase),
        (8 * ms, Some(1)),
        "although its return closes the phase"
    );
}
