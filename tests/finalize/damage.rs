//! Whatever happened to a bundle: never a panic, never a state that is too good, and a second run changes nothing.

use crate::common::chance::Chance;
use crate::scene::{Happening, Remains, Story, cut, told};
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;
use stuckproof::event::State;
use stuckproof::evidence::{self, JobState};
use stuckproof::verdict::judge;

/// So many cases by default; `PROPTEST_CASES` asks for another number, as the soak does.
fn cases(usual: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(usual),
    }
}

/// A story and the number of its events that a runner had put on record when it was lost.
fn lost_at_any_moment(chance: &mut Chance) -> (Story, Remains) {
    let story = Story::of_chance(chance);
    let events = story.events();
    let remains = Remains::of(&story, &events[..=chance.place(events.len())]);
    (story, remains)
}

/// Does one bad thing to the bundle.
fn damage(remains: &Remains, chance: &mut Chance) {
    let files: Vec<PathBuf> = remains.files().into_keys().collect();
    let path = &files[chance.place(files.len())];
    let length = fs::metadata(path).expect("a file").len();
    match chance.place(6) {
        0 => fs::remove_file(path).expect("the file can be removed"),
        1 => fs::remove_dir_all(remains.wire()).or_else(|_| fs::remove_file(path)).expect("gone"),
        2 | 3 => cut(path, chance.place(length as usize + 1) as u64),
        _ => flip(path, 1 + chance.place(20), chance),
    }
}

/// Flips bits where there is something: a segment is empty for the most part.
fn flip(path: &PathBuf, bits: usize, chance: &mut Chance) {
    let mut bytes = fs::read(path).expect("a file");
    let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    for _ in 0..bits.min(used) {
        bytes[chance.place(used)] ^= 1 << chance.place(8);
    }
    fs::write(path, bytes).expect("the file can be written");
}

/// Finishes twice and checks what must hold whatever there was. Gives the state where there is one.
fn finish_twice(remains: &Remains) -> Option<JobState> {
    let first = remains.finish();
    let after = remains.files();
    let second = remains.finish();
    assert_eq!(remains.files(), after, "a second run changes nothing");
    let first = match (first, second) {
        (Ok(first), Ok(second)) => {
            assert_eq!(first, second);
            first
        }
        (Err(first), Err(second)) => {
            assert_eq!(first.to_string(), second.to_string());
            return None;
        }
        (first, second) => panic!("the second run ends otherwise: {first:?}, {second:?}"),
    };
    let bundle = evidence::load(remains.path()).expect("a bundle");
    assert!(bundle.faults.is_empty(), "{:?}", bundle.faults);
    assert!(bundle.evidence.finished);
    assert_eq!(bundle.evidence, first);
    let open = bundle.phases.builds.iter().flat_map(|build| &build.phases);
    assert_eq!(open.filter(|phase| phase.end == evidence::End::Open).count(), 0, "every phase is closed");
    assert!(after.contains_key(&remains.file(evidence::SUMMARY)));
    Some(first.state)
}

/// A state that is too good for what happened.
fn is_false(state: JobState, truth: State) -> bool {
    match state {
        JobState::Succeeded => truth != State::Succeeded,
        JobState::Cancelled => truth != State::Cancelled,
        JobState::Failed => false,
        JobState::Running | JobState::Cancelling => true,
    }
}

proptest! {
    #![proptest_config(cases(40))]

    /// The runner was lost at any moment, its last line cut anywhere; the builders wrote on: nothing is lost.
    #[test]
    fn what_the_builders_told_is_all_there(seed: u64) {
        let chance = &mut Chance(seed);
        let (story, remains) = lost_at_any_moment(chance);
        let length = fs::metadata(remains.log()).expect("a log").len();
        let log = fs::read_to_string(remains.log()).expect("a log");
        let first = log.find('\n').expect("a first line") + 1;
        cut(&remains.log(), (first + chance.place(length as usize - first + 1)) as u64);
        let state = finish_twice(&remains).expect("a bundle that can be finished");
        let events = remains.events();
        prop_assert_eq!(told(&events), told(&story.events()));
        prop_assert!(!is_false(state, judge(&story.events()).state));
        let bundle = evidence::load(remains.path()).expect("a bundle");
        let vouched = bundle.evidence.lost.iter().all(|lost| lost.reason.contains("vouches"));
        prop_assert!(vouched, "nothing was lost: {:?}", bundle.evidence.lost);
        prop_assert_eq!(remains.wire().exists(), !bundle.evidence.lost.is_empty());
    }

    /// An attempt to finish that is cut off itself leads to the same bytes in the end.
    #[test]
    fn finishing_can_be_interrupted(seed: u64) {
        let chance = &mut Chance(seed);
        let (mut story, _) = lost_at_any_moment(chance);
        story.happenings.retain(|happening| !matches!(happening, Happening::Own(event) if event.kind.name() == "commandExited"));
        let events = story.events();
        let begun = events.len().min(1 + chance.place(20));
        let (one, other) = (Remains::of(&story, &events[..begun]), Remains::of(&story, &events[..begun]));
        let torn = chance.one_in(2).then(|| fs::remove_file(one.wire().join("control")).and_then(|()| fs::remove_file(other.wire().join("control"))));
        prop_assert!(torn.is_none_or(|removed| removed.is_ok()));
        one.finish().expect("a bundle that can be finished");
        let whole = fs::read(one.log()).expect("the log");
        let before = fs::metadata(other.log()).expect("the log").len() as usize;
        let end = before + chance.place(whole.len() - before);
        fs::write(other.log(), &whole[..end]).expect("the log can be written");
        other.finish().expect("a bundle that can be finished");
        let again = fs::read(other.log()).expect("the log");
        prop_assert!(again == whole, "{}\nis not\n{}", String::from_utf8_lossy(&again), String::from_utf8_lossy(&whole));
    }

    /// Truncated, bit-flipped and half-deleted, in any mixture.
    #[test]
    fn no_damage_makes_a_state_too_good(seed: u64) {
        let chance = &mut Chance(seed);
        let (story, remains) = lost_at_any_moment(chance);
        for _ in 0..=chance.place(3) {
            damage(&remains, chance);
        }
        if let Some(state) = finish_twice(&remains) {
            prop_assert!(!is_false(state, judge(&story.events()).state), "{state:?}");
        }
    }

    /// The same for a bundle that its runner had finished.
    #[test]
    fn no_damage_makes_a_finished_bundle_too_good(seed: u64) {
        let chance = &mut Chance(seed);
        let story = Story::of_chance(chance);
        let events = story.ended();
        let remains = Remains::of(&story, &events);
        evidence::write(remains.path()).expect("evidence");
        if chance.one_in(2) {
            fs::remove_dir_all(remains.wire()).expect("the wire can be removed");
        }
        for _ in 0..=chance.place(3) {
            damage(&remains, chance);
        }
        if let Some(state) = finish_twice(&remains) {
            prop_assert!(!is_false(state, judge(&events).state), "{state:?}");
        }
    }

    /// Bytes that were never a bundle.
    #[test]
    fn noise_is_survived(files in prop::collection::vec((0_usize..6, prop::collection::vec(any::<u8>(), 0..3_000)), 1..6)) {
        let story = Story::begin();
        let remains = Remains::of(&story, &story.events());
        for (which, bytes) in files {
            let name = ["events.jsonl", "evidence.json", "wire/control", "wire/p1-2-0000.seg", "events.damaged.jsonl", "wire/runner.lock"][which];
            fs::write(remains.file(name), bytes).expect("the file can be written");
        }
        let state = finish_twice(&remains);
        prop_assert!(matches!(state, None | Some(JobState::Failed)), "{state:?}");
    }
}
