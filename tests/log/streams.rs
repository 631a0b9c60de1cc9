//! Random callbacks, and what any stream of them must become.

use crate::job::{build_start, finish, process, record, returned, start, step};
use crate::names::{cases, text};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::collections::HashMap;
use stuckproof::clock::Mono;
use stuckproof::event::{BuildTree, Event, EventKind, PhaseEnd, Tree};
use stuckproof::observe::Tracker;
use stuckproof::wire::{Body, Record};

/// One callback, with names as places in a small pool, so that they repeat.
#[derive(Debug, Clone)]
enum Call {
    Build,
    Start { name: usize, parent: Option<usize>, steps: i32 },
    Step { name: usize, step: i32 },
    Finish { name: usize },
    Return,
}

const POOL: usize = 4;

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        1 => Just(Call::Build),
        6 => (0..POOL, option::weighted(0.8, 0..POOL), 1..9).prop_map(|(name, parent, steps)| Call::Start { name, parent, steps }),
        8 => (0..POOL, 0..9).prop_map(|(name, step)| Call::Step { name, step }),
        5 => (0..POOL).prop_map(|name| Call::Finish { name }),
        1 => Just(Call::Return),
    ]
}

/// Records of up to four builders in two processes, interleaved, with names from a pool of anything.
fn records() -> impl Strategy<Value = Vec<Record>> {
    let calls = vec((0..2_u32, 1..3_u32, 0..5_000_u64, call()), 0..120);
    (vec(text(), POOL), calls).prop_map(|(names, calls)| {
        let mut at = 0;
        let mut told = Vec::new();
        for (pid, build, later, call) in calls {
            at += later;
            told.push(record(100 + pid, build, at, body(&names, &call)));
        }
        told
    })
}

fn body(names: &[String], call: &Call) -> Body {
    match *call {
        Call::Build => build_start(),
        Call::Start { name, parent, steps } => {
            start(&names[name], parent.map(|parent| names[parent].as_str()), steps)
        }
        Call::Step { name, step: number } => step(&names[name], number, 0),
        Call::Finish { name } => finish(&names[name]),
        Call::Return => returned(true),
    }
}

/// Events of all records and of the end.
fn tracked(records: &[Record]) -> Vec<Event> {
    let mut tracker = Tracker::new();
    let mut events = Vec::new();
    for record in records {
        tracker.ingest(record, &mut events);
    }
    let end = records.last().map_or(Mono(0), |record| record.at);
    tracker.close(end, "the process ended", &mut events);
    assert!(tracker.open_branch(end).is_empty(), "nothing is open after the end");
    events
}

/// What is open in one build, as a reader of the records alone would say it: name and instance, oldest first.
type Open = Vec<(String, u64)>;

fn newest(open: &Open, name: &str) -> Option<u64> {
    open.iter().rev().find(|(other, _)| other == name).map(|(_, phase)| *phase)
}

/// Follows the events of one build beside its records and checks every instance that was given.
fn check(records: &[Record], events: &[Event]) {
    let mut open: HashMap<u32, Open> = HashMap::new();
    let mut of_record: HashMap<(u32, u32), u32> = HashMap::new();
    let mut rest = events.iter();
    let mut last_phase = 0;
    for record in records {
        let key = (record.process.pid, record.build);
        loop {
            let event = rest.next().expect("every record makes an event of its own kind");
            match (&event.kind, &record.body) {
                (EventKind::BuildStarted(start), body) => {
                    of_record.insert(key, start.build);
                    open.insert(start.build, Open::new());
                    if matches!(body, Body::BuildStart { .. }) {
                        break;
                    }
                }
                (EventKind::PhaseAborted(abort), Body::BuildReturn { .. } | Body::BuildStart { .. }) => {
                    let (name, phase) = open.get_mut(&abort.build).and_then(Vec::pop).expect("it was open");
                    assert_eq!((&name, phase), (&abort.name, abort.phase), "innermost first");
                }
                (EventKind::PhaseStarted(got), Body::PhaseStart { name, parent, steps }) => {
                    let open = open.get_mut(&of_record[&key]).expect("its build has begun");
                    let expected = parent.as_ref().and_then(|parent| newest(open, parent));
                    assert_eq!((&*got.name, got.steps, got.parent), (&**name, *steps, expected));
                    let unknown = parent.as_deref().filter(|_| expected.is_none());
                    assert_eq!(got.unknown_parent.as_deref(), unknown);
                    assert_eq!(got.phase, last_phase + 1);
                    last_phase = got.phase;
                    open.push((got.name.clone(), got.phase));
                    break;
                }
                (EventKind::StepCompleted(got), Body::Step { name, step, .. }) => {
                    assert_eq!((got.phase, got.step), (newest(&open[&of_record[&key]], name), *step));
                    break;
                }
                (EventKind::PhaseFinished(got), Body::PhaseFinish { name }) => {
                    let open = open.get_mut(&of_record[&key]).expect("its build has begun");
                    assert_eq!(got.phase, newest(open, name));
                    open.retain(|(_, phase)| Some(*phase) != got.phase);
                    break;
                }
                (EventKind::BuildReturned(got), Body::BuildReturn { .. }) => {
                    assert_eq!(got.build, of_record[&key]);
                    assert!(open[&got.build].is_empty(), "a return leaves nothing open");
                    break;
                }
                (event, record) => panic!("{record:?} made {event:?}"),
            }
            assert_eq!(event.at, record.at);
        }
    }
    assert!(rest.all(|event| matches!(event.kind, EventKind::PhaseAborted(_))), "the end only closes");
}

/// What holds for the tree of any log.
fn check_tree(build: &BuildTree) {
    let mut before = 0;
    for phase in &build.phases {
        assert!(phase.phase > before, "instances rise");
        before = phase.phase;
        assert_ne!(phase.end, PhaseEnd::Open, "every phase is closed");
        assert!(build.started <= phase.started && phase.started <= phase.ended);
        assert!(
            phase.ended <= build.ended || phase.started >= build.ended,
            "only late calls reach over the return"
        );
        if let Some(parent) = phase.parent {
            let parent = build.phase(parent).expect("every parent is known and of the same build");
            assert!(parent.phase < phase.phase && parent.started <= phase.started);
        }
    }
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn any_stream_of_callbacks_becomes_a_balanced_tree(records in records()) {
        let events = tracked(&records);
        check(&records, &events);
        let tree = Tree::of(&events);
        tree.builds().for_each(check_tree);
        let count = |wanted: &dyn Fn(&EventKind) -> bool| events.iter().filter(|event| wanted(&event.kind)).count();
        let started = count(&|kind| matches!(kind, EventKind::PhaseStarted(_)));
        prop_assert_eq!(tree.builds().map(|build| build.phases.len()).sum::<usize>(), started);
        let steps = count(&|kind| matches!(kind, EventKind::StepCompleted(_)));
        prop_assert_eq!(tree.builds().map(|build| build.steps).sum::<u64>(), steps as u64);
        let placed = count(&|kind| matches!(kind, EventKind::StepCompleted(step) if step.phase.is_some()));
        let reported: u64 = tree.builds().flat_map(|build| &build.phases).map(|phase| u64::from(phase.reported)).sum();
        prop_assert_eq!(reported, placed as u64);
    }

    #[test]
    fn builds_do_not_depend_on_how_they_are_interleaved(records in records()) {
        let alone = |pid: u32, build: u32| {
            let own: Vec<Record> =
                records.iter().filter(|record| (record.process, record.build) == (process(pid), build)).cloned().collect();
            shapes(&tracked(&own))
        };
        let mut apart: Vec<Shape> = [(100, 1), (100, 2), (101, 1), (101, 2)].into_iter().flat_map(|(pid, build)| alone(pid, build)).collect();
        let mut together = shapes(&tracked(&records));
        apart.sort();
        together.sort();
        prop_assert_eq!(apart, together);
    }
}

/// A build without the numbers that depend on others: its process, start, and phases with parents by their place.
type Shape = (u32, Mono, Vec<(String, Option<usize>, u32, Mono)>);

fn shapes(events: &[Event]) -> Vec<Shape> {
    let tree = Tree::of(events);
    let place = |build: &BuildTree, parent| build.phases.iter().position(|phase| phase.phase == parent);
    let shape = |build: &BuildTree| {
        let phases = build.phases.iter().map(|phase| {
            let parent = phase.parent.and_then(|parent| place(build, parent));
            (phase.name.clone(), parent, phase.reported, phase.started)
        });
        (build.pid, build.started, phases.collect())
    };
    tree.builds().map(shape).collect()
}

#[test]
fn what_real_builders_do_survives() {
    let stream = [
        build_start(),
        start("Building engine", None, 6),
        start("Computing profile costs", Some("Building engine"), 10),
        start("Timing tactics", Some("Computing profile costs"), 2),
        step("Timing tactics", 0, 0),
        step("Timing tactics", 1, 0),
        finish("Timing tactics"),
        start("Computing reformatting costs", Some("Computing profile costs"), 1),
        finish("Computing reformatting costs"),
        start("Computing reformatting costs", Some("Computing profile costs"), 1),
        step("Computing reformatting costs", 0, 0),
        finish("Computing reformatting costs"),
        start("Determining refit engines", Some("Computing profile costs"), 3),
        step("Computing profile costs", 3, 0),
        step("Computing profile costs", 4, 0),
        finish("Determining refit engines"),
        finish("Computing profile costs"),
        step("Building engine", 4, 0),
        finish("Building engine"),
        returned(true),
    ];
    let records: Vec<Record> =
        stream.into_iter().enumerate().map(|(at, body)| record(100, 1, at as u64 * 1_000, body)).collect();
    let events = tracked(&records);
    check(&records, &events);
    let tree = Tree::of(&events);
    let build = tree.build(1).expect("the build");
    let told: Vec<_> =
        build.phases.iter().map(|p| (p.phase, p.parent, p.name.as_str(), p.reported)).collect();
    assert_eq!(
        told,
        [
            (1, None, "Building engine", 1),
            (2, Some(1), "Computing profile costs", 2),
            (3, Some(2), "Timing tactics", 2),
            (4, Some(2), "Computing reformatting costs", 0),
            (5, Some(2), "Computing reformatting costs", 1),
            (6, Some(2), "Determining refit engines", 0),
        ]
    );
    assert!(build.phases.iter().all(|phase| phase.end == PhaseEnd::Finished));
    assert_eq!(build.returned.as_ref().map(|(at, returned)| (at.0, returned.engine)), Some((19_000, true)));
}

#[test]
fn a_name_open_twice_means_the_one_opened_last() {
    let stream = [
        build_start(),
        start("A", None, 1),
        start("A", Some("A"), 1),
        step("A", 0, 0),
        finish("A"),
        step("A", 0, 0),
        start("B", Some("A"), 1),
        finish("A"),
        start("C", Some("A"), 1),
        returned(false),
    ];
    let records: Vec<Record> =
        stream.into_iter().enumerate().map(|(at, body)| record(100, 1, at as u64, body)).collect();
    let events = tracked(&records);
    check(&records, &events);
    let tree = Tree::of(&events);
    let phases = &tree.build(1).expect("the build").phases;
    let told: Vec<_> =
        phases.iter().map(|p| (p.parent, p.reported, p.unknown_parent.as_deref(), p.end.clone())).collect();
    let aborted = || PhaseEnd::Aborted("the builder returned".to_owned());
    assert_eq!(
        told,
        [
            (None, 1, None, PhaseEnd::Finished),
            (Some(1), 1, None, PhaseEnd::Finished),
            (Some(1), 0, None, aborted()),
            (None, 0, Some("A"), aborted()),
        ]
    );
}
