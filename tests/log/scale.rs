//! Logs of tens of thousands of anything. A log is a stranger's word, and one of some megabytes must not keep its reader
//! busy for hours: whatever is read, derived, compared or printed costs what is there, and not the square of it.

use crate::job::{self, COMMAND, START, build_start, header, message, record, start};
use crate::silences::verdict;
use quick_junit::Report;
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;
use stuckproof::clock::Mono;
use stuckproof::diff::{self, Threshold};
use stuckproof::event::{
    ArtifactDeclared, ArtifactKind, ArtifactMode, ArtifactOutcome, ArtifactSettled, AttachRefused,
    BuildDescribed, BuildFacts, BuildReturned, BuildStarted, CancelAcknowledged, CancelRequested,
    CancelSource, CommandExited, CommandStarted, Encoder, Event, EventKind, EvidenceLost, InputDigested,
    InputIdentified, InputKind, JobEnded, LadderRung, LeftoverFound, LibraryAttached, LogReader, Message,
    PhaseFinished, PhaseStarted, SettledBy, SilenceJudged, SilenceVerdict, StepCompleted,
};
use stuckproof::evidence::{self, Bundle, Phases};
use stuckproof::exit;
use stuckproof::explain;
use stuckproof::observe::Tracker;
use stuckproof::render::{self, Style};
use stuckproof::review::{Policy, review};
use stuckproof::seal::seal;
use stuckproof::verdict::{Verdict, judge};
use stuckproof::verify::{Answer, Wanted, verify};
use stuckproof::wire::Severity;
use tempfile::TempDir;

/// So many of anything. A search in a list for each of them would cost four hundred million comparisons.
const MANY: u32 = 20_000;
/// What is done with a log may cost so many times what reading it costs, which is linear: by the processor time of this
/// process, so that a busy machine has no say in it.
const TIMES: u32 = 6;
/// And so much in any case.
const USUAL: Duration = Duration::from_secs(1);
/// The process that has no library of its own.
const STRANGER: u32 = 9_999_999;

fn build(number: u32, pid: u32) -> EventKind {
    let method = "buildSerializedNetwork".to_owned();
    EventKind::BuildStarted(BuildStarted { build: number, pid, tid: pid, method, chained: false })
}

fn returned(build: u32, engine: bool) -> EventKind {
    EventKind::BuildReturned(BuildReturned { build, engine, bytes: None, messages: [0; 5] })
}

fn described(build: u32) -> EventKind {
    let facts = BuildFacts { layers: i64::from(build), ..BuildFacts::default() };
    EventKind::BuildDescribed(BuildDescribed { build, facts })
}

fn library(pid: u32, version: &str) -> EventKind {
    EventKind::LibraryAttached(LibraryAttached {
        pid,
        flavour: "tensorrt".to_owned(),
        version: version.to_owned(),
        path: "/opt/libnvinfer.so.10".to_owned(),
        python: false,
        proven: "headers".to_owned(),
        messages_unobserved: None,
        simulated: false,
    })
}

fn phase(build: u32, phase: u64, parent: Option<u64>) -> EventKind {
    EventKind::PhaseStarted(PhaseStarted {
        build,
        phase,
        parent,
        unknown_parent: None,
        name: "Timing tactics".to_owned(),
        steps: 3,
        pid: COMMAND,
        tid: COMMAND,
    })
}

fn step(build: u32, phase: u64, answered: Option<u32>) -> EventKind {
    EventKind::StepCompleted(StepCompleted {
        build,
        phase: Some(phase),
        parent: None,
        name: "Timing tactics".to_owned(),
        step: 1,
        steps: Some(3),
        answered,
        pid: COMMAND,
        tid: COMMAND,
    })
}

fn finish(build: u32, phase: u64) -> EventKind {
    EventKind::PhaseFinished(PhaseFinished {
        build,
        phase: Some(phase),
        parent: None,
        name: "Timing tactics".to_owned(),
        reported: 1,
        steps: Some(3),
        pid: COMMAND,
        tid: COMMAND,
    })
}

fn error(build: Option<u32>, phase: Option<u64>) -> EventKind {
    EventKind::Message(Message {
        build,
        phase,
        severity: "error".to_owned(),
        code: Some(10),
        text: "Error Code 10: no implementation for node Add_7".to_owned(),
        truncated: false,
        pid: COMMAND,
        tid: COMMAND,
    })
}

fn request(number: u32, accepted: bool) -> EventKind {
    EventKind::CancelRequested(CancelRequested {
        request: number,
        source: CancelSource::Api,
        via: "control socket".to_owned(),
        reason: None,
        accepted,
        kill: false,
        pid: None,
        uid: None,
        open_branch: Vec::new(),
    })
}

fn input(number: u32) -> EventKind {
    EventKind::InputIdentified(InputIdentified {
        input: number,
        kind: InputKind::External,
        path: "weights/model.bin".to_owned(),
        of: None,
        bytes: Some(5),
        modified_ns: None,
        inode: None,
        build_id: None,
        reason: None,
    })
}

fn digested(number: u32) -> EventKind {
    let sha256 = Some(format!("{number:064x}"));
    EventKind::InputDigested(InputDigested { input: number, sha256, reason: None })
}

fn declared(number: u32) -> EventKind {
    EventKind::ArtifactDeclared(ArtifactDeclared {
        artifact: number,
        kind: ArtifactKind::Engine,
        folder: false,
        path: format!("/models/{number}.engine"),
        target: format!("/models/{number}.engine"),
        mode: ArtifactMode::InPlace,
        written: String::new(),
        work: String::new(),
        policy: None,
        must_validate: false,
        previous: None,
    })
}

fn settled(number: u32) -> EventKind {
    EventKind::ArtifactSettled(ArtifactSettled {
        artifact: number,
        outcome: ArtifactOutcome::Absent,
        reason: "the command has not written it".to_owned(),
        fault: None,
        previous_sha256: None,
        after: None,
        partial: None,
        quarantine: None,
        content: None,
        timing_cache: None,
        undeclared: Vec::new(),
        by: SettledBy::Runner,
    })
}

fn rung(number: u32) -> EventKind {
    let why = "grace over".to_owned();
    EventKind::LadderRung(LadderRung { rung: "SIGTERM".to_owned(), why, group: Some(number) })
}

fn leftover(pid: u32) -> EventKind {
    let [name, action] = ["ccache", "left"].map(str::to_owned);
    EventKind::LeftoverFound(LeftoverFound { pid, name, session: pid, action })
}

fn silence(build: u32) -> EventKind {
    EventKind::SilenceJudged(SilenceJudged {
        build: Some(build),
        ..verdict(SilenceVerdict::Stalled, "idle", 2, 60)
    })
}

fn each(one: impl Fn(u32) -> EventKind) -> Vec<EventKind> {
    (1..=MANY).map(one).collect()
}

/// A sealed bundle in which these things happened, a millisecond after each other. The command's end comes last.
fn sealed(kinds: impl IntoIterator<Item = EventKind>) -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let begin = [EventKind::JobStarted(header()), EventKind::CommandStarted(CommandStarted { pid: COMMAND })];
    let exited = CommandExited {
        code: Some(1),
        signal: None,
        core_dumped: false,
        core_file: None,
        oom_kills: Some(0),
    };
    let end = EventKind::CommandExited(exited.clone());
    let kinds = begin.into_iter().chain(kinds).chain([end]);
    let at = |ms: usize| Mono(START + ms as u64 * 1_000_000);
    let mut events: Vec<Event> = kinds.enumerate().map(|(ms, kind)| Event { at: at(ms), kind }).collect();
    let verdict = judge(&events);
    let lost = events.iter().any(|event| matches!(event.kind, EventKind::EvidenceLost(_)));
    let exit_code = verdict.exit_code(Some(&exited), exit::OWN_FAULT, false, lost);
    let Verdict { state, cause, observed, .. } = verdict;
    let ended = JobEnded { state, cause, observed, exit_code };
    events.push(Event { at: at(events.len()), kind: EventKind::JobEnded(ended) });
    let mut encoder = Encoder::new(header().anchor());
    let mut log = Vec::new();
    for event in &events {
        encoder.encode(event, &mut log);
    }
    fs::write(folder.path().join(evidence::EVENTS), log).expect("the folder can be written");
    folder
}

/// The processor time that this process has used.
fn used() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32)
}

/// What a step costs, held against what it may.
struct Costs {
    most: Duration,
    last: Duration,
}

impl Costs {
    /// Reads the log and does nothing with it.
    fn of(folder: &Path, usual: Duration) -> Self {
        let begin = used();
        let mut reader = LogReader::open(&folder.join(evidence::EVENTS)).expect("there is a log");
        while reader.read().expect("a log without faults").is_some() {}
        let reading = used().saturating_sub(begin);
        eprintln!("{:<10} {:>8.3} s", "reading", reading.as_secs_f64());
        Self { most: reading * TIMES + usual, last: used() }
    }

    fn took(&mut self, what: &str) {
        let took = used().saturating_sub(self.last);
        eprintln!("{what:<10} {:>8.3} s", took.as_secs_f64());
        assert!(took < self.most, "{what} took {took:?}, and may take {:?}", self.most);
        self.last = used();
    }
}

/// Does with a log whatever can be done with one.
fn everything(folder: &Path, usual: Duration) -> Bundle {
    let mut costs = Costs::of(folder, usual);
    let bundle = evidence::load(folder).expect("a log that can be read");
    costs.took("load");
    let written = evidence::write(folder).expect("the folder can be written");
    costs.took("write");
    seal(&written, None).expect("the bundle is finished");
    costs.took("seal");
    let report = verify(folder, &Wanted::default());
    assert_eq!(report.answer(), Answer::NotSucceeded, "{:?}", report.faults);
    costs.took("verify");
    let mut out = Vec::new();
    render::show(&bundle, &mut out, Style::default()).expect("memory can be written");
    costs.took("show");
    render::markdown(&bundle, &mut out).expect("memory can be written");
    render::annotations(&bundle, &mut out).expect("memory can be written");
    costs.took("pages");
    explain::print(&explain::explain(&bundle, None, None), &mut out).expect("memory can be written");
    costs.took("explain");
    let other = report.bundle.expect("it was read");
    let difference = diff::compare(&bundle, &other, Threshold { percent: 0.0, ms: 0.0 });
    render::difference(&difference, &mut out, Style::default()).expect("memory can be written");
    render::difference_page(&difference, &mut out).expect("memory can be written");
    costs.took("diff");
    let _ = evidence::lessons(&bundle);
    costs.took("lessons");
    let policy = Policy { criteria: (1..=8).collect(), ..Policy::default() };
    review(&[folder.to_owned()], &policy, None, &[], chrono::Utc::now()).expect("there is a bundle");
    costs.took("review");
    bundle
}

fn of(kinds: impl IntoIterator<Item = EventKind>) -> Bundle {
    everything(sealed(kinds).path(), USUAL)
}

#[test]
fn builds() {
    let begin = [library(STRANGER, "10.13.2"), input(1), digested(1)];
    let one = |number| {
        [build(number, number), described(number), error(Some(number), None), returned(number, false)]
    };
    let bundle = of(begin.into_iter().chain((1..=MANY).flat_map(one)));
    assert_eq!(bundle.evidence.builds.len(), MANY as usize);
    assert!(
        bundle.evidence.builds.iter().all(|build| build.errors.len() == 1 && build.config_hash.is_some())
    );
    let report =
        evidence::files(&bundle).into_iter().find(|(name, _)| *name == evidence::JUNIT).expect("a report").1;
    let report = Report::deserialize_from_str(&String::from_utf8(report).expect("text")).expect("JUnit");
    assert_eq!(report.test_suites.len(), 1002, "the job, a thousand builds, and the others together");
    let others = report.test_suites.last().expect("a suite");
    let told = format!("{:?}", others.test_cases[0].status);
    assert!(told.contains("19000 of 19000 more builds did not succeed"), "{told}");
}

#[test]
fn builds_beside_as_many_of_everything_else() {
    let kinds = (1..=MANY / 2).flat_map(|number| {
        [
            library(number, &format!("10.{number}")),
            input(number),
            declared(number),
            build(number, number),
            described(number),
            request(number, false),
            silence(number),
            rung(number),
            error(Some(number), None),
        ]
    });
    let late = (1..=MANY / 2).rev().flat_map(|number| {
        [digested(number), settled(number), leftover(number), error(None, None), request(number, true)]
    });
    let bundle = of(kinds.chain(late));
    let hashes: BTreeSet<_> =
        bundle.evidence.builds.iter().filter_map(|build| build.config_hash.as_ref()).collect();
    assert_eq!(hashes.len(), MANY as usize / 2);
}

#[test]
fn requests() {
    let mut kinds = vec![build(1, COMMAND)];
    kinds.extend(each(|number| request(number, false)));
    kinds.extend([request(MANY + 1, true), step(1, 0, Some(MANY + 1)), returned(1, false)]);
    let bundle = of(kinds);
    let mut outcomes = bundle.evidence.requests.iter().map(|request| request.outcome.as_deref());
    assert_eq!(outcomes.clone().filter(|outcome| *outcome == Some("recorded_only")).count(), MANY as usize);
    assert_eq!(outcomes.next_back(), Some(Some("delivered")));
}

#[test]
fn phases_below_each_other() {
    let mut kinds = vec![build(1, COMMAND)];
    kinds.extend(each(|number| {
        phase(1, number.into(), number.checked_sub(1).filter(|p| *p > 0).map(u64::from))
    }));
    kinds.extend(each(|number| step(1, number.into(), None)));
    kinds.extend((1..=MANY).rev().map(|number| finish(1, number.into())));
    let folder = sealed(kinds);
    let bundle = everything(folder.path(), USUAL);
    let phases = fs::read(folder.path().join(evidence::PHASES)).expect("it was written");
    let phases: Phases = serde_json::from_slice(&phases).expect("a tree of any depth can be read back");
    assert_eq!(phases, bundle.phases);
    assert_eq!(phases.builds[0].phases[MANY as usize - 1].parent, Some(u64::from(MANY - 1)));
}

#[test]
fn phases_that_are_open_at_once_and_end_in_the_order_of_their_start() {
    let mut kinds = vec![build(1, COMMAND)];
    kinds.extend(each(|number| phase(1, number.into(), None)));
    kinds.extend((1..=MANY).flat_map(|number| [step(1, number.into(), None), finish(1, number.into())]));
    let bundle = of(kinds);
    assert_eq!(bundle.evidence.builds[0].phases, u64::from(MANY));
}

#[test]
fn returns_of_one_build_with_its_phases_open() {
    let mut kinds = vec![build(1, COMMAND)];
    kinds.extend(each(|number| phase(1, number.into(), Some(1))));
    kinds.extend(each(|_| returned(1, false)));
    of(kinds);
}

#[test]
fn errors() {
    let mut kinds = vec![build(1, COMMAND), phase(1, 1, None)];
    kinds.extend(each(|_| error(Some(1), Some(1))));
    kinds.extend(each(|_| error(None, None)));
    let bundle = of(kinds);
    assert_eq!([bundle.evidence.builds[0].errors.len(), bundle.evidence.errors.len()], [MANY as usize; 2]);
}

#[test]
fn inputs_of_one_name_and_artifacts() {
    let kinds = each(input).into_iter().chain((1..=MANY).rev().map(digested));
    let bundle = of(kinds.chain(each(declared)).chain((1..=MANY).rev().map(settled)));
    assert!(bundle.evidence.inputs.iter().all(|input| input.sha256.is_some()));
    assert!(bundle.inventory.artifacts.iter().all(|artifact| artifact.outcome.is_some()));
}

#[test]
fn libraries_refusals_leftovers_silences_and_acknowledgements() {
    let kinds = (1..=MANY).flat_map(|number| {
        let reason = "no progress monitor".to_owned();
        let refused = EventKind::AttachRefused(AttachRefused { pid: number, reason });
        let acknowledged = CancelAcknowledged { request: 1, build: number, phase: None, latency_ns: 1 };
        [
            library(number, "10.1"),
            refused,
            leftover(number),
            silence(1),
            EventKind::CancelAcknowledged(acknowledged),
        ]
    });
    of(kinds);
}

/// One text of a megabyte that everything else points to must not be written as often as it is pointed to.
#[test]
fn long_texts_that_many_share() {
    let long = "x".repeat(1 << 20);
    let mut named = phase(1, 1, None);
    if let EventKind::PhaseStarted(phase) = &mut named {
        phase.name.clone_from(&long);
    }
    let lost = EventKind::EvidenceLost(EvidenceLost { records: 1, reason: long.clone() });
    let mut kinds = vec![library(STRANGER, &long), lost, build(1, COMMAND), named];
    kinds.extend((0..10_000).map(|_| error(Some(1), Some(1))));
    kinds.extend((2..10_000).flat_map(|number| [build(number, number), described(number)]));
    // Few lines, and many reasons of two thousand characters each.
    let bundle = everything(sealed(kinds).path(), USUAL * 30);
    let bytes: usize = evidence::files(&bundle).iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(bytes < 64 << 20, "{bytes} bytes follow from a log of some megabytes");
}

/// The runner's own walk along what a builder tells. Each event costs as much as the first ones did.
#[test]
fn the_tracker_of_a_running_job() {
    let few = tracked(MANY / 10);
    let many = tracked(MANY);
    eprintln!("{few:?} and {many:?}");
    assert!(many < few * 10 * 4 + USUAL, "{many:?} for ten times what took {few:?}");
}

fn tracked(many: u32) -> Duration {
    let begin = used();
    let mut tracker = Tracker::new();
    let mut out = Vec::new();
    let mut tell = |build, body| {
        out.clear();
        tracker.ingest(&record(COMMAND, build, START, body), &mut out);
        out.len()
    };
    tell(1, build_start());
    for number in 0..many {
        tell(1, start(&number.to_string(), None, 1));
    }
    for number in 0..many {
        tell(1, job::step(&number.to_string(), 0, 0));
        tell(1, job::finish(&number.to_string()));
    }
    for number in 2..many {
        tell(number, build_start());
        tell(number, job::returned(true));
        tell(0, message(Severity::Error, "whose?"));
    }
    assert_eq!(tell(1, job::returned(true)), 1, "nothing is open any more");
    used().saturating_sub(begin)
}
