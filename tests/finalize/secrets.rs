//! Logs in which the runner had masked secrets, and records that still hold them.

use crate::scene::{COMMAND, Remains, Story, known, process};
use std::fs;
use stuckproof::event::Event;
use stuckproof::evidence::Evidence;
use stuckproof::resume::finish;

/// A phase of the story has this name.
const SECRET: &str = "Timing tactics";

/// Finishes a bundle whose log was masked and ends after `lines`, with these secrets known.
fn finished(lines: usize, secrets: &[&str]) -> (Remains, Evidence) {
    let main = process(COMMAND, 1);
    let mut story = Story::begin();
    story.library(main).build(main, 1, 0, true).build(main, 2, 0, true).exit(0);
    let all = known(&[SECRET]).secrets;
    let mask = |event: &Event| Event { at: event.at, kind: event.kind.masked(&all).into_owned() };
    let log: Vec<Event> = story.events().iter().take(lines).map(mask).collect();
    let remains = Remains::of(&story, &log);
    fs::write(remains.file("stdout.log"), format!("about {SECRET}\n")).expect("the output");
    let evidence = finish(remains.path(), &known(secrets), None).expect("it can be finished");
    (remains, evidence)
}

#[test]
fn what_was_masked_does_not_part_the_log_from_the_wire() {
    for lines in [2, 6, 8, 10, 14] {
        for secrets in [&[SECRET][..], &[]] {
            let (remains, evidence) = finished(lines, secrets);
            assert_eq!(evidence.lost, [], "{lines} lines, {secrets:?}");
            assert_eq!(evidence.counts.phases, 4);
            assert!(!remains.wire().exists());
        }
    }
}

#[test]
fn no_file_holds_a_secret_that_is_known() {
    let (remains, evidence) = finished(6, &[SECRET]);
    for (path, bytes) in remains.files() {
        assert!(!String::from_utf8_lossy(&bytes).contains(SECRET), "{}", path.display());
    }
    assert_eq!(evidence.output.map(|output| (output.by, output.values)), Some(("finalize".to_owned(), 1)));
}

#[test]
fn a_wire_with_a_secret_goes_even_where_something_was_lost() {
    let main = process(COMMAND, 1);
    let mut story = Story::begin();
    story.library(main).build(main, 1, 0, true).exit(0);
    for (secrets, stays) in [(&[SECRET][..], false), (&[], true)] {
        let remains = Remains::of(&story, &story.events()[..6]);
        remains.tell_processes(3);
        let evidence = finish(remains.path(), &known(secrets), None).expect("it can be finished");
        assert!(!evidence.lost.is_empty());
        assert_eq!(remains.wire().exists(), stays, "{secrets:?}");
    }
}
