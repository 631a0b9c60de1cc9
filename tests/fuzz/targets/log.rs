//! A log and all that follows from it.

use super::seeds;
use std::path::Path;
use stuckproof::diff::{self, Threshold};
use stuckproof::event::{Encoder, Ending, Event, EventKind, LogReader};
use stuckproof::evidence::{
    self, Bundle, Evidence, EvidenceError, Inventory, JobState, Phases, Summary, findings, lessons,
};
use stuckproof::explain;
use stuckproof::render::{self, Style};

/// Takes bytes as a log, as they are, and once more with their lines chained as the writer would have done it.
pub fn run(bytes: &[u8]) {
    let events = events(bytes);
    if let Ok(bundle) = derived(bytes) {
        everything(&bundle);
    }
    let log = chained(&events);
    let bundle = derived(&log).expect("a log with a header");
    assert!(bundle.faults.is_empty(), "{:?}", bundle.faults);
    everything(&bundle);
    assert_eq!(evidence::files(&bundle), evidence::files(&derived(&log).expect("the same log")));
    for cut in cuts(bytes, log.len()) {
        prefix(&log[..cut]);
    }
}

/// The events that can be read, whatever is between them.
fn events(bytes: &[u8]) -> Vec<Event> {
    let mut reader = LogReader::new(bytes);
    let mut events = Vec::new();
    let mut calls = 0;
    loop {
        calls += 1;
        assert!(calls <= 2 * bytes.len() + 2, "every call reads a line or tells of one");
        match reader.read() {
            Ok(Some(line)) => events.push(line.event),
            Ok(None) => break,
            Err(fault) => assert!(!fault.to_string().is_empty()),
        }
    }
    assert_eq!(reader.lines() as usize, bytes.split(|byte| *byte == b'\n').count() - 1);
    events
}

/// The events as a log without a fault: one header, and nothing after an end.
fn chained(events: &[Event]) -> Vec<u8> {
    let is_header = |event: &&Event| matches!(event.kind, EventKind::JobStarted(_));
    let is_end = |event: &&Event| matches!(event.kind, EventKind::JobEnded(_));
    let header = events.iter().find(is_header).cloned().unwrap_or_else(seeds::begin);
    let EventKind::JobStarted(started) = &header.kind else { unreachable!("it was looked for") };
    let mut encoder = Encoder::new(started.anchor());
    let rest = events.iter().filter(|event| !is_header(event));
    let end = rest.clone().find(is_end);
    let written: Vec<&Event> =
        std::iter::once(&header).chain(rest.filter(|event| !is_end(event))).chain(end).collect();
    let mut log = Vec::new();
    for event in &written {
        encoder.encode(event, &mut log);
    }
    let mut reader = LogReader::new(&log[..]);
    for event in written {
        let line = reader.read().expect("our own line").expect("as many as were written");
        assert_eq!(&line.event, event, "what is read is what was written");
        let text = reader.text();
        assert_eq!(line.to_json().expect("a line is JSON"), text, "and both ways to write it are one");
    }
    assert!(matches!(reader.read(), Ok(None)));
    log
}

fn derived(log: &[u8]) -> Result<Bundle, EvidenceError> {
    let none = Err("there is no baseline.json".to_owned());
    evidence::read(Path::new("bundle"), LogReader::new(log), none, |_, _| {})
}

/// Does with a bundle whatever can be done with one in memory.
pub fn everything(bundle: &Bundle) {
    for (name, bytes) in evidence::files(bundle) {
        match name {
            evidence::EVIDENCE => drop(serde_json::from_slice::<Evidence>(&bytes).expect("evidence")),
            evidence::PHASES => {
                let phases: Phases = serde_json::from_slice(&bytes).expect("phases");
                assert!(phases.builds.is_sorted_by_key(|build| build.build));
            }
            evidence::SUMMARY => summary(bundle, &bytes),
            evidence::INVENTORY => {
                let inventory: Inventory = serde_json::from_slice(&bytes).expect("an inventory");
                assert_eq!(inventory, bundle.inventory);
            }
            _ => assert!(std::str::from_utf8(&bytes).is_ok_and(|text| text.starts_with("<?xml"))),
        }
    }
    let mut out = Vec::new();
    render::show(bundle, &mut out, Style::default()).expect("memory can be written");
    render::markdown(bundle, &mut out).expect("memory can be written");
    render::annotations(bundle, &mut out).expect("memory can be written");
    explain::print(&explain::explain(bundle, None, None), &mut out).expect("memory can be written");
    let same = diff::compare(bundle, bundle, Threshold { percent: 0.0, ms: 0.001 });
    assert!(same.same && same.sections.is_empty(), "nothing differs from itself: {same:?}");
    render::difference(&same, &mut out, Style::default()).expect("memory can be written");
    render::difference_page(&same, &mut out).expect("memory can be written");
    let plain = |c: char| c == '\n' || !c.is_control();
    let text = std::str::from_utf8(&out).expect("text");
    assert!(text.chars().all(plain), "what a terminal would obey is not printed");
    assert!(!findings(bundle).is_empty());
    for lesson in lessons(bundle) {
        assert_eq!(lesson.job, bundle.evidence.job);
    }
}

/// The eleven fields, each null if and only if a reason is given.
fn summary(bundle: &Bundle, bytes: &[u8]) {
    let typed: Summary = serde_json::from_slice(bytes).expect("a summary");
    assert_eq!(typed.build_config_hash, bundle.summary.build_config_hash);
    let fields: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(bytes).expect("an object");
    assert_eq!(fields.len(), 11);
    for (name, value) in &fields {
        assert_eq!(value.is_null(), bundle.evidence.nulls.contains_key(name), "{name}");
    }
    let hash = typed.build_config_hash.as_deref().unwrap_or_default();
    assert!(hash.is_empty() || (hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit())));
}

/// Places to cut at: they follow from the bytes, so that a finding can be repeated.
fn cuts(bytes: &[u8], length: usize) -> impl Iterator<Item = usize> {
    let seed =
        bytes.iter().fold(7_usize, |seed, byte| seed.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    [seed, seed >> 7, seed >> 19].into_iter().map(move |cut| cut % (length + 1))
}

/// A log that ends early says that its job runs or is being stopped, and nothing else.
fn prefix(log: &[u8]) {
    let Ok(bundle) = derived(log) else { return };
    assert!(bundle.faults.is_empty(), "{:?}", bundle.faults);
    if bundle.ending != Ending::Ended {
        let live = matches!(bundle.evidence.state, JobState::Running | JobState::Cancelling);
        assert!(live || bundle.evidence.finished, "{:?} before the end", bundle.evidence.state);
        assert!(!bundle.evidence.finished, "a log without its last line has no end");
    }
}
