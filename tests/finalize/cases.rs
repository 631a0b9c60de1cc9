//! What is finished how.

use crate::common::environment;
use crate::scene::{
    COMMAND, Happening, LOST, Remains, START, Story, build_start, cut, header, known, process, returned,
    start, step, told,
};
use crate::segments::{Chain, SLOTS, segment};
use std::fs;
use std::os::unix::fs::symlink;
use stuckproof::clock::Mono;
use stuckproof::event::{
    CancelSource, CommandExited, Event, EventKind, LadderRung, LeftoverFound, LogWriter, State,
};
use stuckproof::evidence::{self, Evidence, JobState};
use stuckproof::resume::ResumeError;
use stuckproof::seal::{self, SealError};
use stuckproof::wire::{Body, ProcessKey, Record, Severity};

fn failed(evidence: &Evidence) -> &str {
    assert_eq!(evidence.state, JobState::Failed);
    evidence.cause.as_deref().expect("a failure has a cause")
}

/// That a part of the record was lost, and that the evidence says which.
fn assert_lost(evidence: &Evidence, what: &str) {
    assert_eq!(failed(evidence), "evidence_lost");
    assert_eq!(evidence.exit_code, Some(125));
    assert!(evidence.lost.iter().any(|lost| lost.reason.contains(what)), "{:?}", evidence.lost);
}

fn exited(code: Option<i32>, signal: Option<i32>) -> CommandExited {
    CommandExited { code, signal, core_dumped: false, core_file: None, oom_kills: Some(0) }
}

fn main_process() -> ProcessKey {
    process(COMMAND, 1)
}

/// A build that is in the middle of a phase.
fn in_the_middle() -> Story {
    let mut story = Story::begin();
    let key = main_process();
    story.library(key).tell(key, 1, build_start()).tell(key, 1, start("Building engine", None));
    story.tell(key, 1, start("Timing tactics", Some("Building engine"))).tell(
        key,
        1,
        step("Timing tactics", 0),
    );
    story
}

#[test]
fn records_beyond_the_log_come_into_it_and_open_phases_are_closed() {
    let story = in_the_middle();
    let remains = Remains::of(&story, &story.events()[..1]);
    let evidence = remains.finish().expect("a bundle that can be finished");
    assert_eq!(failed(&evidence), "runner_lost");
    assert_eq!((evidence.counts.builds, evidence.counts.phases, evidence.counts.steps), (1, 2, 1));
    let events = remains.events();
    assert_eq!(told(&events), told(&story.events()));
    let closed: Vec<(&str, &str)> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::PhaseAborted(abort) => Some((abort.name.as_str(), abort.reason.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(closed, [("Timing tactics", LOST), ("Building engine", LOST)]);
    assert!(!remains.wire().exists(), "all of it is in the log");
}

#[test]
fn a_request_that_stands_only_in_the_control_page_is_put_on_record() {
    let key = main_process();
    let mut story = in_the_middle();
    story.request().tell(key, 1, step("Timing tactics", 1)).tell(key, 1, returned(false));
    let events = story.events();
    let before = events.iter().position(|e| e.kind.name() == "cancelRequested").expect("a request");
    let remains = Remains::of(&story, &events[..before]);
    let evidence = remains.finish().expect("a bundle that can be finished");
    assert_eq!((evidence.state, evidence.cause.as_deref()), (JobState::Cancelled, Some("ci")));
    let request = &evidence.requests[0];
    assert_eq!((request.request, request.source, request.via.as_str()), (1, CancelSource::Ci, "SIGTERM"));
    assert_eq!((request.pid, request.uid, request.accepted), (Some(1), None, true));
    assert!(request.reason.as_deref().is_some_and(|reason| reason.contains("control page")));
    let branch: Vec<&str> = request.open_branch.iter().map(|open| open.name.as_str()).collect();
    assert_eq!(branch, ["Building engine", "Timing tactics"]);
    assert_eq!(evidence.times.request_to_ack_ms, Some(1.0));
    assert!(evidence.lost.is_empty());
}

#[test]
fn an_acknowledgement_that_the_log_lacks_follows_its_step() {
    let key = main_process();
    let mut story = in_the_middle();
    story.request().tell(key, 1, step("Timing tactics", 1)).tell(key, 1, returned(false));
    let events = story.events();
    for logged in 2..=events.len() {
        let remains = Remains::of(&story, &events[..logged]);
        let evidence = remains.finish().expect("a bundle that can be finished");
        assert_eq!(evidence.state, JobState::Cancelled, "cut at {logged}");
        assert_eq!(told(&remains.events()), told(&events), "cut at {logged}");
    }
}

#[test]
fn what_the_caller_knows_comes_into_the_log() {
    let key = main_process();
    let mut story = in_the_middle();
    story.request();
    let remains = Remains::of(&story, &story.events());
    let at = |ms: u64| Mono(story.now + ms * 1_000_000);
    let rung = LadderRung { rung: "SIGKILL".to_owned(), why: "grace over".to_owned(), group: Some(COMMAND) };
    let left = LeftoverFound { pid: 5, name: "ccache".to_owned(), session: 5, action: "killed".to_owned() };
    let known = vec![
        Event { at: at(9), kind: EventKind::LeftoverFound(left.clone()) },
        Event { at: at(5), kind: EventKind::LadderRung(rung) },
    ];
    let evidence = remains.finish_with(Some((at(7), exited(None, Some(9)))), known).expect("a bundle");
    assert_eq!(failed(&evidence), "killed_by_runner");
    assert_eq!(evidence.exit_code, Some(137));
    assert_eq!((evidence.command.signal, evidence.ladder.len()), (Some(9), 1));
    assert_eq!(evidence.leftovers, [left]);
    let order: Vec<&str> = remains.events().iter().rev().take(6).map(|event| event.kind.name()).collect();
    let expected =
        ["jobEnded", "phaseAborted", "phaseAborted", "leftoverFound", "commandExited", "ladderRung"];
    assert_eq!(order, expected);
    assert_eq!(key.pid, COMMAND);
}

#[test]
fn a_success_that_the_caller_has_seen_to_its_end_is_one() {
    let mut story = Story::begin();
    story.library(main_process()).build(main_process(), 1, 0, true);
    let remains = Remains::of(&story, &story.events()[..4]);
    let exit = Some((Mono(story.now + 5), exited(Some(0), None)));
    let evidence = remains.finish_with(exit, Vec::new()).expect("a bundle that can be finished");
    assert_eq!((evidence.state, evidence.exit_code), (JobState::Succeeded, Some(0)));
    let other = Remains::of(&story, &story.events());
    assert_eq!(failed(&other.finish().expect("a bundle")), "runner_lost", "nobody saw the command's end");
}

#[test]
fn a_last_line_that_nothing_vouches_for_makes_no_success() {
    let mut story = Story::begin();
    story.library(main_process()).build(main_process(), 1, 0, true).exit(0);
    let remains = Remains::of(&story, &story.events());
    assert_lost(&remains.finish().expect("a bundle"), "vouches");
}

#[test]
fn processes_with_one_number_are_kept_apart() {
    let (first, second) = (process(COMMAND, 1), process(COMMAND, 2));
    let mut story = Story::begin();
    story.library(first).library(second);
    for _ in 0..3 {
        story.tell(first, 1, build_start()).tell(second, 1, build_start());
        story.tell(second, 1, start("A", None)).tell(first, 1, start("B", None));
        story.tell(first, 1, step("B", 0)).tell(second, 1, step("A", 0));
        story.tell(first, 1, returned(true));
    }
    let events = story.events();
    for logged in 1..=events.len() {
        let remains = Remains::of(&story, &events[..logged]);
        let evidence = remains.finish().expect("a bundle that can be finished");
        assert!(evidence.lost.is_empty(), "cut at {logged}: {:?}", evidence.lost);
        assert_eq!(told(&remains.events()), told(&events), "cut at {logged}");
    }
}

#[test]
fn builds_whose_start_was_lost_are_followed_too() {
    let key = main_process();
    let mut story = Story::begin();
    story.tell(key, 3, start("A", None)).tell(key, 3, build_start()).tell(key, 3, step("A", 0));
    story.tell(key, 3, start("A", None)).tell(key, 4, Body::PhaseFinish { name: "A".into() });
    let events = story.events();
    for logged in 1..=events.len() {
        let remains = Remains::of(&story, &events[..logged]);
        let evidence = remains.finish().expect("a bundle that can be finished");
        assert!(evidence.lost.is_empty(), "cut at {logged}: {:?}", evidence.lost);
        assert_eq!(told(&remains.events()), told(&events), "cut at {logged}");
    }
}

#[test]
fn a_finished_bundle_is_only_sealed() {
    let mut story = Story::begin();
    story.library(main_process()).build(main_process(), 1, 0, true).exit(1);
    let remains = Remains::of(&story, &story.ended());
    evidence::write(remains.path()).expect("evidence");
    fs::remove_dir_all(remains.wire()).expect("the wire goes");
    let before = remains.files();
    let inode =
        |name| std::os::unix::fs::MetadataExt::ino(&fs::metadata(remains.file(name)).expect("a file"));
    let inodes = [evidence::EVIDENCE, evidence::SUMMARY, evidence::PHASES].map(inode);
    fs::remove_file(remains.file(evidence::SUMMARY)).expect("gone");
    fs::write(remains.file("evidence.json.part-1"), "{").expect("a leftover");
    assert_eq!(failed(&remains.finish().expect("a finished bundle")), "command");
    let mut after = remains.files();
    assert!(after.remove(&remains.file(seal::MANIFEST)).is_some(), "it is sealed");
    assert_eq!(after, before, "a derived file that was gone has come back");
    assert_eq!(
        [evidence::EVIDENCE, evidence::PHASES].map(inode),
        [inodes[0], inodes[2]],
        "not even rewritten"
    );
}

#[test]
fn a_sealed_bundle_is_left_as_it_is_even_where_it_is_wrong() {
    let mut story = Story::begin();
    story.library(main_process()).build(main_process(), 1, 0, true).exit(1);
    let remains = Remains::of(&story, &story.ended());
    remains.finish().expect("a bundle that can be finished");
    let before = remains.files();
    remains.finish().expect("a sealed bundle");
    assert_eq!(remains.files(), before);
    fs::write(remains.file(evidence::SUMMARY), "{}").expect("spoiled");
    fs::write(remains.file("more"), "more").expect("a file");
    let before = remains.files();
    remains.finish().expect("a sealed bundle");
    assert_eq!(remains.files(), before, "its seal tells of the change; nothing hides it");
}

#[test]
fn an_end_that_does_not_follow_is_not_believed() {
    let mut story = Story::begin();
    story.library(main_process()).build(main_process(), 1, 0, false).exit(1);
    let mut events = story.ended();
    if let Some(Event { kind: EventKind::JobEnded(end), .. }) = events.last_mut() {
        (end.state, end.cause) = (State::Succeeded, None);
    }
    let remains = Remains::of(&story, &events);
    let before = remains.files();
    assert!(matches!(remains.finish(), Err(ResumeError::ForeignEnd(_))));
    assert_eq!(remains.files(), before);
}

#[test]
fn a_log_that_somebody_writes_is_left_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join(evidence::EVENTS);
    let mut writer = LogWriter::create(&log, &header()).expect("a log");
    writer.flush().expect("the log can be written");
    let before = fs::read(&log).expect("the log");
    let finish = || stuckproof::resume::finish(folder.path(), &known(&[]), None);
    assert!(matches!(finish(), Err(ResumeError::Busy(_))));
    assert_eq!(fs::read(&log).expect("the log"), before);
    drop(writer);
    assert_lost(&finish().expect("nobody writes any more"), "the wire is not there");
}

#[test]
fn a_changed_line_costs_the_rest_which_is_set_aside() {
    let mut story = in_the_middle();
    story.exit(0);
    let events = story.ended();
    let remains = Remains::of(&story, &events);
    let log = fs::read_to_string(remains.log()).expect("the log");
    let place = log.find("phaseStarted").expect("it is there");
    fs::write(remains.log(), log.replacen("phaseStarted", "phaseStartex", 1)).expect("spoiled");
    let line = log[..place].rfind('\n').expect("an earlier line") + 1;
    assert_lost(&remains.finish().expect("a bundle"), "a part of the log was damaged");
    let kept = fs::read_to_string(remains.log()).expect("the log");
    assert!(kept.starts_with(&log[..line]));
    let aside = fs::read_to_string(remains.file("events.damaged.jsonl")).expect("the rest");
    assert_eq!(aside, log[line..].replacen("phaseStarted", "phaseStartex", 1));
    assert_eq!(told(&remains.events()), told(&story.events()), "the wire had it all");
    assert!(remains.wire().exists(), "kept for those who want to look");
}

#[test]
fn a_log_that_is_gone_is_begun_anew_from_the_provisional_evidence() {
    let story = in_the_middle();
    for spoil in [None, Some("noise\n"), Some("")] {
        let remains = Remains::of(&story, &story.events());
        match spoil {
            None => fs::remove_file(remains.log()).expect("gone"),
            Some(bytes) => fs::write(remains.log(), bytes).expect("spoiled"),
        }
        assert_lost(&remains.finish().expect("a bundle"), "a part of the log was damaged");
        assert_eq!(told(&remains.events()), told(&story.events()));
        let after = remains.files();
        remains.finish().expect("a finished bundle");
        assert_eq!(remains.files(), after);
    }
}

#[test]
fn a_first_line_that_breaks_the_chain_still_says_what_was_run() {
    let story = in_the_middle();
    let remains = Remains::of(&story, &story.events());
    fs::remove_file(remains.file(evidence::EVIDENCE)).expect("gone");
    let log = fs::read_to_string(remains.log()).expect("the log");
    fs::write(remains.log(), log.replacen("0000", "0001", 1)).expect("spoiled");
    let evidence = remains.finish().expect("a bundle");
    assert_lost(&evidence, "a part of the log was damaged");
    assert_eq!(evidence.header, header());
}

#[test]
fn a_log_of_another_version_is_left_to_it() {
    let story = in_the_middle();
    let remains = Remains::of(&story, &story.events());
    let log = fs::read_to_string(remains.log()).expect("the log");
    fs::write(remains.log(), log.replacen("\"format\":1", "\"format\":2", 1)).expect("changed");
    let before = remains.files();
    assert!(matches!(remains.finish(), Err(ResumeError::Format { format: 2, .. })));
    assert_eq!(remains.files(), before);
}

#[test]
fn files_that_were_not_written_whole_go() {
    let story = in_the_middle();
    let remains = Remains::of(&story, &story.events());
    let parts = [
        "evidence.json.part-77",
        "summary.json.part-1",
        "junit.xml.part-9",
        "baseline.json.part-9",
        "stdout.log.part",
    ];
    let others = ["evidence.json.part-x", "model.engine.part-77", "stdout.log"];
    for name in parts.iter().chain(&others) {
        fs::write(remains.file(name), "half").expect("a file");
    }
    remains.finish().expect("a bundle");
    assert!(parts.iter().all(|name| !remains.file(name).exists()));
    assert!(others.iter().all(|name| remains.file(name).exists()), "what is not ours stays");
}

#[test]
fn what_is_finished_fits_the_schema() {
    let mut cancelled = in_the_middle();
    cancelled.request().tell(main_process(), 1, step("Timing tactics", 1)).tell(
        main_process(),
        1,
        returned(false),
    );
    let mut all: Vec<Remains> =
        [in_the_middle(), cancelled].iter().map(|story| Remains::of(story, &story.events()[..1])).collect();
    let damaged = Remains::of(&in_the_middle(), &in_the_middle().events());
    cut(&damaged.log(), 0);
    all.push(damaged);
    for remains in &all {
        remains.finish().expect("a bundle");
    }
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/validate.py");
    let mut validate = std::process::Command::new(environment("python"));
    let output = validate.arg(script).args(all.iter().map(Remains::path)).output().expect("python starts");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&said));
}

#[test]
fn where_nothing_tells_what_was_run_nothing_is_changed() {
    let story = in_the_middle();
    let remains = Remains::of(&story, &story.events());
    fs::remove_file(remains.file(evidence::EVIDENCE)).expect("gone");
    fs::write(remains.log(), "{\"seq\":1").expect("spoiled");
    let before = remains.files();
    assert!(matches!(remains.finish(), Err(ResumeError::NoHeader(_))));
    fs::remove_file(remains.log()).expect("gone");
    assert!(matches!(remains.finish(), Err(ResumeError::NoHeader(_))));
    assert_eq!(remains.files().len() + 1, before.len());
}

type Spoil = fn(&Remains);

#[test]
fn a_missing_part_of_the_wire_is_a_loss() {
    let mut story = in_the_middle();
    story.library(process(COMMAND + 1, 2));
    let spoils: [(&str, Spoil); 7] = [
        ("the wire is not there", |r| fs::remove_dir_all(r.wire()).expect("gone")),
        ("control", |r| fs::remove_file(r.wire().join("control")).expect("gone")),
        ("not the one of this job", |r| {
            fs::remove_file(r.wire().join("control")).expect("gone");
            let other = stuckproof::clock::Anchor { mono: Mono(1), wall_ns: 2 };
            stuckproof::wire::Control::create(&r.wire(), other).expect("a page");
        }),
        ("segments of 1 are there", |r| {
            fs::remove_file(r.wire().join(segment(process(COMMAND + 1, 2), 0))).expect("gone");
        }),
        ("segments of 1 are there", |r| cut(&r.wire().join(segment(main_process(), 0)), 500_000)),
        ("segments of 1 are there", |r| {
            let path = r.wire().join(segment(main_process(), 0));
            fs::rename(&path, r.wire().join(segment(process(9, 9), 0))).expect("renamed");
        }),
        ("tell of different requests", |r| {
            let control = stuckproof::wire::Control::open(&r.wire()).expect("a page");
            let mut other = control.requested().expect("a page").expect("a request");
            other.request = 2;
            control.request(&other).expect("the page can be written");
        }),
    ];
    story.request();
    let events = story.events();
    for (what, spoil) in spoils {
        for logged in [1, events.len()].into_iter().filter(|logged| !what.contains("requests") || *logged > 1)
        {
            let remains = Remains::of(&story, &events[..logged]);
            spoil(&remains);
            assert_lost(&remains.finish().expect("a bundle"), what);
        }
    }
}

#[test]
fn a_log_that_the_wire_contradicts_is_not_added_to() {
    let story = in_the_middle();
    let events = story.events();
    let other = Story { happenings: story.happenings[..3].to_vec(), now: story.now };
    let remains = Remains::of(&other, &events);
    assert_lost(&remains.finish().expect("a bundle"), "is not what the wire holds");
    assert_eq!(told(&remains.events()), told(&events));
    assert!(remains.wire().exists());
}

#[test]
fn a_full_segment_promises_the_next() {
    const SPAN: usize = 586;
    let key = main_process();
    let story = Story::begin();
    let message = |bytes: usize| Record {
        process: key,
        at: Mono(START + 10_000_000),
        build: 0,
        tid: 1,
        body: Body::Message { severity: Severity::Warning, text: "x".repeat(bytes), truncated: false },
    };
    let longest = message((SPAN - 1) * 56);
    let filling = message((SLOTS % SPAN - 1) * 56);
    let finish = |long: usize, more: &[&Record], missing: Option<usize>| {
        let remains = Remains::of(&story, &story.events());
        let chain = Chain::of(std::iter::repeat_n(&longest, long).chain(more.iter().copied()));
        chain.write(&remains.wire(), key);
        remains.tell_processes(1);
        if let Some(missing) = missing {
            fs::remove_file(remains.wire().join(segment(key, missing))).expect("gone");
        }
        let evidence = remains.finish().expect("a bundle");
        (chain.len(), evidence)
    };
    let (full, short) = (SLOTS / SPAN, message(100));
    assert_eq!(failed(&finish(full, &[&filling, &short], None).1), "runner_lost");
    let (slots, evidence) = finish(full * 3 / 4, &[], Some(1));
    assert!(slots > SLOTS / 2);
    assert_eq!(failed(&evidence), "runner_lost", "it was made ahead and held nothing");
    let (slots, evidence) = finish(full, &[&filling], Some(1));
    assert_eq!(slots, SLOTS);
    assert_lost(&evidence, "0001.seg is missing");
    assert_lost(&finish(full, &[&filling, &short], Some(1)).1, "0001.seg is missing");
    assert_lost(&finish(full, &[&filling, &short], Some(0)).1, "0000.seg is missing");
}

/// The middle of a build with its fourth record and something of another kind before its last.
fn with_a_fault(fault: fn(&mut Chain)) -> Evidence {
    let story = in_the_middle();
    let remains = Remains::of(&story, &story.events()[..1]);
    let mut chain = Chain::default();
    let told = story.happenings.iter().filter_map(|happening| match happening {
        Happening::Told(record) => Some(record),
        Happening::Own(_) => None,
    });
    let records: Vec<&Record> = told.collect();
    let (last, others) = records.split_last().expect("records");
    for record in others {
        chain.tell(record);
    }
    fault(&mut chain);
    chain.tell(last);
    chain.write(&remains.wire(), main_process());
    let evidence = remains.finish().expect("a bundle");
    assert_eq!(evidence.counts.steps, 1, "what came after it is kept");
    evidence
}

#[test]
fn a_record_that_was_never_finished_is_no_loss_and_a_damaged_one_is() {
    let evidence = with_a_fault(Chain::hole);
    assert_eq!(failed(&evidence), "runner_lost");
    let evidence = with_a_fault(Chain::noise);
    assert_lost(&evidence, "damaged on disk");
    assert_eq!(evidence.lost[0].records, 1);
}

/// Finishes a bundle that holds what has no place in one: it gets everything but its seal.
fn finished_without_seal(remains: &Remains) -> Evidence {
    let error = remains.finish().expect_err("it cannot be sealed");
    assert!(matches!(error, ResumeError::Seal(SealError::Odd { .. })), "{error}");
    assert!(!seal::is_sealed(remains.path()));
    evidence::load(remains.path()).expect("a bundle").evidence
}

#[test]
fn nothing_outside_of_the_bundle_is_touched() {
    let outside = tempfile::tempdir().expect("a temporary folder");
    let story = in_the_middle();
    let precious = outside.path().join("precious");
    let copy = || {
        let remains = Remains::of(&story, &story.events());
        fs::write(&precious, fs::read(remains.log()).expect("the log")).expect("a file");
        remains
    };
    let remains = copy();
    fs::remove_file(remains.log()).expect("gone");
    symlink(&precious, remains.log()).expect("a link");
    let before = fs::read(&precious).expect("a file");
    assert!(matches!(remains.finish(), Err(ResumeError::File(_))));
    assert_eq!(fs::read(&precious).expect("a file"), before);

    let remains = copy();
    let elsewhere = outside.path().join("wire");
    fs::rename(remains.wire(), &elsewhere).expect("moved");
    symlink(&elsewhere, remains.wire()).expect("a link");
    assert_lost(&finished_without_seal(&remains), "the wire is not there");
    assert_eq!(fs::read_dir(&elsewhere).expect("a folder").count(), 2, "nothing was removed");

    let remains = copy();
    fs::write(remains.wire().join("notes.txt"), "mine").expect("a file");
    assert_eq!(failed(&remains.finish().expect("a bundle")), "runner_lost");
    assert_eq!(fs::read_to_string(remains.wire().join("notes.txt")).expect("it stays"), "mine");
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let story = in_the_middle();
    let pipe = |path: &std::path::Path| {
        fs::remove_file(path).expect("gone");
        let made = std::process::Command::new("mkfifo").arg(path).status().expect("mkfifo");
        assert!(made.success());
    };
    let remains = Remains::of(&story, &story.events());
    pipe(&remains.wire().join(segment(main_process(), 0)));
    assert_lost(&finished_without_seal(&remains), "segments of 0 are there");
    let remains = Remains::of(&story, &story.events());
    pipe(&remains.wire().join("control"));
    assert_lost(&finished_without_seal(&remains), "control");
    let remains = Remains::of(&story, &story.events());
    pipe(&remains.log());
    assert!(matches!(remains.finish(), Err(ResumeError::File(_))));
}
