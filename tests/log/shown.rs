//! What people see, and what stands in the files.

use crate::files::{published, put_back};
use crate::job::{
    COMMAND, Job, build_start, described, finish, gpu_host, header, host, message, returned, rtx, start, step,
};
use crate::lines::{encoded, events};
use crate::names::{HOSTILE, cases, text};
use crate::silences::{of_earlier_builds, verdict};
use proptest::collection::vec;
use proptest::prelude::*;
use std::fs;
use stuckproof::event::{
    AttachRefused, CancelSource, EventKind, HostReported, InputChanged, InputKind, JobPaused, JobResumed,
    LeftoverFound, LogWriter, OutputMasked, RecordsUnfinished, SilenceVerdict,
};
use stuckproof::evidence::{self, EvidenceError, JobState};
use stuckproof::render::{Style, show};
use stuckproof::wire::{Body, LibraryFacts, Severity};

pub fn shown(job: &mut Job) -> String {
    let mut bundle = job.bundle();
    bundle.path = "stuckproof-evidence/bold-otter".into();
    let mut text = Vec::new();
    show(&bundle, &mut text, Style::default()).expect("memory can be written");
    String::from_utf8(text).expect("text")
}

/// A build that is asked to stop inside a long step, and does.
pub fn cancelled() -> Job {
    let mut job = Job::new();
    job.at(1).input(1, InputKind::Argument, "model one.onnx").digested(1, Some(&"ab".repeat(32)));
    job.at(40).tell_of(COMMAND, 0, rtx(true));
    job.at(50).tell(build_start()).tell(described()).tell(start("Building engine", None, 6));
    job.at(60).tell(step("Building engine", 0, 0));
    job.tell(start("Computing profile costs", Some("Building engine"), 5));
    for index in 0..7 {
        job.at(70 + 20 * index).tell(start("Timing tactics", Some("Computing profile costs"), 1));
        job.at(80 + 20 * index).tell(step("Timing tactics", 0, 0)).tell(finish("Timing tactics"));
    }
    job.at(210).tell(step("Computing profile costs", 0, 0));
    job.tell(start("Timing graph nodes", Some("Computing profile costs"), 3));
    job.at(5_000).request(CancelSource::CtrlC, "SIGINT").rung("cooperative", "requested");
    job.at(5_020).request(CancelSource::Service, "SIGTERM");
    job.at(12_210).tell(step("Timing graph nodes", 0, 1)).tell(finish("Timing graph nodes"));
    job.tell(finish("Computing profile costs")).tell(finish("Building engine"));
    let said = "IBuilder::buildSerializedNetwork: Error Code 7: Internal Error (BuildCanceled)";
    job.at(12_250).tell(message(Severity::Error, said)).tell(returned(false));
    job.at(12_400).exit(Some(1), None);
    job.at(12_405).event(EventKind::OutputMasked(OutputMasked { by: "runner".to_owned(), values: 2 }));
    job.at(12_410).end(1);
    job.baseline(&host(None));
    job
}

/// A build that fails with errors of its own, after an error that no build had yet begun for.
pub fn failed() -> Job {
    let mut job = Job::new();
    job.at(1).input(1, InputKind::Declared, "model.onnx").digested(1, None);
    job.at(40).tell_of(COMMAND, 0, rtx(false));
    job.event(EventKind::InputChanged(InputChanged {
        input: 1,
        what: "it has 7 bytes, and had 5".to_owned(),
    }));
    job.at(42).tell_of(COMMAND, 0, message(Severity::Error, "ModelImporter: node 3 has a doubtful type"));
    job.at(50).tell(build_start()).tell(start("Building engine", None, 6));
    job.at(90).tell(message(
        Severity::Error,
        "Error Code 10: Internal Error\n  no implementation for node Add_7\n",
    ));
    job.at(91).tell(message(Severity::InternalError, "\u{1b}[31mAssertion failed\u{1b}[0m"));
    job.at(92).tell(message(Severity::Warning, "not an error"));
    job.at(95).request(CancelSource::Ci, "SIGTERM");
    job.at(100).tell(finish("Building engine")).tell(returned(false));
    job.at(120).exit(Some(2), None);
    job.end(2);
    job
}

/// A build that does not stop and is killed.
pub fn killed() -> Job {
    let mut job = Job::new();
    job.at(40).tell_of(COMMAND, 0, rtx(false)).at(50).tell(build_start());
    job.tell(start("Building engine", None, 6)).at(70).tell(start(
        "Timing graph nodes",
        Some("Building engine"),
        4,
    ));
    job.at(90).event(of_earlier_builds(3, 1));
    job.at(1_000).request(CancelSource::Ci, "deadline").rung("cooperative", "requested");
    job.at(60_100).event(EventKind::SilenceJudged(verdict(SilenceVerdict::Stalled, "idle", 2, 60)));
    job.at(61_000).rung("SIGTERM", "grace over").at(71_000).rung("SIGKILL", "grace over");
    job.at(71_020).exit(None, Some(9));
    job.event(EventKind::RecordsUnfinished(RecordsUnfinished { records: 1 }));
    job.end(124);
    job
}

/// Two builds in two processes; one gives an engine too late to be stopped, the other fails.
pub fn two_builds() -> Job {
    let mut job = Job::new();
    job.at(10).tell_of(5001, 0, rtx(true)).tell_of(5002, 0, rtx(true));
    job.at(20).tell_of(5001, 1, build_start()).at(21).tell_of(5002, 1, build_start());
    job.at(30).tell_of(5001, 1, start("Building engine", None, 6));
    job.at(31).tell_of(5002, 1, start("Building engine", None, 6));
    job.at(40).request(CancelSource::Api, "cancel file");
    job.at(50).tell_of(5001, 1, finish("Building engine")).tell_of(5001, 1, returned(true));
    job.at(60).tell_of(5002, 1, Body::ApplicationFalse { name: "Building engine".into(), step: 0 });
    job.at(70).tell_of(5002, 1, returned(false));
    job.at(80).exit(Some(0), None);
    job.end(123);
    job
}

pub fn unobserved() -> Job {
    let mut job = Job::new();
    job.event(EventKind::AttachRefused(AttachRefused {
        pid: 4002,
        reason: "TensorRT 8.6.1.6 has no progress monitor; update to 9.1 or later".to_owned(),
    }));
    job.at(100).event(EventKind::JobPaused(JobPaused { by: "SIGTSTP".to_owned() }));
    job.at(600).event(EventKind::JobResumed(JobResumed { paused_ns: 500_000_000 }));
    job.at(900).exit(Some(0), None);
    job.at(910).event(EventKind::LeftoverFound(LeftoverFound {
        pid: 4003,
        name: "ccache\u{1b}[31m".to_owned(),
        session: 4003,
        action: "left".to_owned(),
    }));
    job.end(0);
    job
}

#[test]
fn a_cancelled_build() {
    let mut job = cancelled();
    let bundle = job.bundle();
    let written = evidence::write(job.folder.path()).expect("the bundle can be written");
    assert_eq!(written.evidence, bundle.evidence);
    insta::assert_snapshot!("cancelled", shown(&mut job));
    for name in [evidence::EVIDENCE, evidence::SUMMARY, evidence::PHASES] {
        let text = fs::read_to_string(job.folder.path().join(name)).expect("the file is there");
        insta::assert_snapshot!(format!("cancelled-{name}"), text);
    }
}

#[test]
fn jobs_that_end_otherwise() {
    insta::assert_snapshot!("failed", shown(&mut failed()));
    insta::assert_snapshot!("killed", shown(&mut killed()));
    insta::assert_snapshot!("two-builds", shown(&mut two_builds()));
    insta::assert_snapshot!("unobserved", shown(&mut unobserved()));
}

#[test]
fn a_crash_sends_the_reader_to_the_output() {
    let mut job = Job::new();
    job.at(10).tell(build_start()).tell(start("Building engine", None, 6)).at(50).exit(None, Some(11));
    job.end(139);
    let text = shown(&mut job);
    let head: Vec<&str> = text.lines().take(3).collect();
    assert_eq!(head[..2], ["failed: crash", "  The builder's process crashed."]);
    assert!(head[2].contains("the end of stderr.log"), "{}", head[2]);
    assert!(text.contains("the command was ended by SIGSEGV"), "{text}");
}

#[test]
fn every_file_reads_back_as_it_was_derived() {
    for mut job in [cancelled(), failed(), killed(), two_builds(), unobserved(), published(), put_back()] {
        let bundle = job.bundle();
        evidence::write(job.folder.path()).expect("the bundle can be written");
        let read = |name: &str| fs::read(job.folder.path().join(name)).expect("the file is there");
        let evidence: evidence::Evidence =
            serde_json::from_slice(&read(evidence::EVIDENCE)).expect("evidence");
        let summary: evidence::Summary = serde_json::from_slice(&read(evidence::SUMMARY)).expect("a summary");
        let phases: evidence::Phases = serde_json::from_slice(&read(evidence::PHASES)).expect("phases");
        let inventory: evidence::Inventory =
            serde_json::from_slice(&read(evidence::INVENTORY)).expect("an inventory");
        assert_eq!(inventory, bundle.inventory);
        assert_eq!((&evidence, &summary, &phases), (&bundle.evidence, &bundle.summary, &bundle.phases));
        let fields: serde_json::Value = serde_json::from_slice(&read(evidence::SUMMARY)).expect("JSON");
        let fields = fields.as_object().expect("an object");
        assert_eq!(fields.len(), 11);
        for (name, value) in fields {
            assert_eq!(
                value.is_null(),
                evidence.nulls.contains_key(name),
                "{name} is null if and only if a reason is given"
            );
        }
        assert_eq!(evidence.counts.events, job.events.len() as u64);
        let phases: usize = phases.builds.iter().map(|build| build.phases.len()).sum();
        assert_eq!(evidence.counts.phases, phases as u64);
        assert_eq!(evidence.counts.phases, evidence.builds.iter().map(|build| build.phases).sum::<u64>());
        assert_eq!(evidence.counts.steps, evidence.builds.iter().map(|build| build.steps).sum::<u64>());
    }
}

#[test]
fn a_bundle_from_the_first_moment_is_truthful() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    evidence::provisional(folder.path(), &header()).expect("the folder can be written");
    let read = |name: &str| fs::read(folder.path().join(name)).expect("the file is there");
    let provisional: evidence::Evidence =
        serde_json::from_slice(&read(evidence::EVIDENCE)).expect("evidence");
    assert_eq!(
        (provisional.state, provisional.finished, provisional.exit_code),
        (JobState::Running, false, None)
    );
    let summary: evidence::Summary = serde_json::from_slice(&read(evidence::SUMMARY)).expect("a summary");
    assert_eq!((summary.cancel_source, summary.tensorrt_version.as_str()), (None, "none observed"));
    LogWriter::create(&folder.path().join(evidence::EVENTS), &header())
        .expect("a log")
        .sync()
        .expect("a disk");
    assert_eq!(evidence::load(folder.path()).expect("a bundle").evidence, provisional);
}

#[test]
fn a_log_cut_anywhere_is_still_shown() {
    for job in [cancelled(), killed()] {
        let log = fs::read(job.log()).expect("the log");
        for cut in (0..log.len()).step_by(397).chain([log.len() - 1]) {
            fs::write(job.log(), &log[..cut]).expect("the log can be cut");
            let bundle = match evidence::load(job.folder.path()) {
                Ok(bundle) => bundle,
                Err(EvidenceError::NoHeader { .. }) => {
                    assert!(!log[..cut].contains(&b'\n'), "only a log without its first line is refused");
                    continue;
                }
                Err(other) => panic!("{other}"),
            };
            assert!(!bundle.evidence.finished && bundle.faults.is_empty());
            assert!(matches!(bundle.evidence.state, JobState::Running | JobState::Cancelling));
            let mut text = Vec::new();
            show(&bundle, &mut text, Style::default()).expect("memory can be written");
            let text = String::from_utf8(text).expect("text");
            assert!(text.contains("The log has no end"), "{text}");
            evidence::write(job.folder.path()).expect("an unfinished bundle can be derived too");
        }
    }
}

#[test]
fn an_unfinished_bundle_says_so() {
    let mut job = cancelled();
    job.sync();
    let log = fs::read(job.log()).expect("the log");
    let acknowledged = b"cancelAcknowledged";
    let cut = log.windows(acknowledged.len()).position(|window| window == acknowledged).expect("it is there");
    fs::write(job.log(), &log[..cut]).expect("the log can be cut");
    insta::assert_snapshot!("unfinished", shown(&mut job));
}

#[test]
fn a_changed_log_is_shown_with_its_faults_and_not_written() {
    let mut job = failed();
    job.sync();
    let log = fs::read_to_string(job.log()).expect("the log");
    fs::write(job.log(), log.replace("doubtful", "excellent")).expect("the log can be changed");
    let bundle = job.bundle();
    assert_eq!(bundle.faults.len(), 1);
    assert!(shown(&mut job).contains("one of the two was changed"));
    assert!(matches!(evidence::write(job.folder.path()), Err(EvidenceError::Log { .. })));
}

#[test]
fn a_folder_that_is_no_bundle_is_refused_in_words() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let error = evidence::load(folder.path()).expect_err("there is no log");
    assert!(error.to_string().contains("is no bundle"), "{error}");
    fs::create_dir(folder.path().join(evidence::EVENTS)).expect("a folder in its place");
    let error = evidence::load(folder.path()).expect_err("there is no log");
    assert!(error.to_string().contains("it is not a file"), "{error}");
    fs::remove_dir(folder.path().join(evidence::EVENTS)).expect("it is empty");
    fs::write(folder.path().join(evidence::EVENTS), "not a log\n").expect("it can be written");
    assert!(matches!(evidence::load(folder.path()), Err(EvidenceError::Log { .. })));
}

#[test]
fn colours_only_where_they_are_wanted() {
    let mut job = cancelled();
    let bundle = job.bundle();
    let mut text = Vec::new();
    show(&bundle, &mut text, Style { color: true }).expect("memory can be written");
    let text = String::from_utf8(text).expect("text");
    assert!(text.starts_with("\u{1b}[1;33mcancelled\u{1b}[0m"), "{text:?}");
    assert!(!shown(&mut job).contains('\u{1b}'));
}

#[test]
fn a_tree_of_any_depth_and_breadth_stays_readable() {
    let mut job = Job::new();
    job.at(1).tell(build_start());
    let names: Vec<String> = (0..3_000).map(|level| format!("Level {level}")).collect();
    job.tell(start(&names[0], None, 1));
    for pair in names.windows(2) {
        job.tell(start(&pair[1], Some(&pair[0]), 1));
    }
    job.at(2).tell(returned(true)).at(3).exit(Some(0), None);
    job.end(0);
    let text = shown(&mut job);
    assert!(text.lines().count() < 400, "a wall of text helps nobody");
    assert!(text.contains("and 2700 more phases, all of them in phases.json"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() < 200));
}

#[test]
fn the_summary_names_what_built() {
    let library = |flavour: &str, version: &str, python| {
        Body::Library(LibraryFacts {
            flavour: flavour.to_owned(),
            version: version.to_owned(),
            python,
            proven: "headers".to_owned(),
            ..LibraryFacts::default()
        })
    };
    let mut job = Job::new();
    job.at(1).tell_of(COMMAND, 0, library("tensorrt", "10.16.1.11", true)).tell(build_start());
    job.at(2).tell_of(5000, 0, library("tensorrt-rtx", "1.7.1.116", false));
    job.at(3).tell(returned(true)).at(4).exit(Some(0), None);
    job.end(0);
    let summary = serde_json::to_value(job.bundle().summary).expect("JSON");
    assert_eq!(summary["tensorrtVersion"], "TensorRT 10.16.1.11");
    assert_eq!(
        (&summary["language"], &summary["timingCacheMode"]),
        (&"python".into(), &serde_json::Value::Null)
    );
    let notes = job.bundle().evidence.notes;
    assert!(notes.iter().any(|note| note.contains("not proven on the real library")), "{notes:?}");
}

#[test]
fn the_summary_names_the_gpu_the_target_or_the_reason() {
    let sku = |job: &mut Job| {
        let bundle = job.bundle();
        let mut text = Vec::new();
        show(&bundle, &mut text, Style::default()).expect("memory can be written");
        let row = String::from_utf8(text).expect("text");
        let row = row.lines().find(|line| line.starts_with("  gpu ")).expect("a row of the GPU").to_owned();
        (bundle.summary.gpu_sku.ok_or_else(|| bundle.evidence.nulls["gpuSku"].clone()), row)
    };
    let mut job = cancelled();
    let (name, row) = sku(&mut job);
    assert_eq!(name.unwrap(), "none (target SM89)");
    assert_eq!(row, "  gpu       none: NVML cannot be loaded");
    job.baseline(&gpu_host(&["NVIDIA L4", "NVIDIA L4"]));
    let (name, row) = sku(&mut job);
    assert_eq!(name.unwrap(), "NVIDIA L4");
    assert_eq!(row, "  gpu       NVIDIA L4, NVIDIA L4; driver 575.57, CUDA up to 12.9");
    job.baseline(&gpu_host(&["NVIDIA L4", "NVIDIA T4"]));
    assert!(sku(&mut job).0.unwrap_err().contains("several kinds: NVIDIA L4, NVIDIA T4"));
    let mut unknown = host(None);
    unknown.gpu.usable = None;
    job.baseline(&unknown);
    assert_eq!(sku(&mut job).0.unwrap_err(), "NVML cannot be loaded", "a target does not tell the GPU");
    let mut without_target = failed();
    without_target.baseline(&host(None));
    assert!(sku(&mut without_target).0.unwrap_err().ends_with("the builder named no target"));
}

/// A job in which every text is somebody else's.
pub fn hostile_job(texts: &[String]) -> Job {
    let text = |place: usize| texts[place % texts.len()].as_str();
    let mut job = Job::new();
    job.at(1).tell_of(
        COMMAND,
        0,
        Body::Library(LibraryFacts {
            flavour: text(0).to_owned(),
            version: text(1).to_owned(),
            path: text(2).to_owned(),
            python: false,
            messages_unobserved: text(3).to_owned(),
            proven: text(4).to_owned(),
            simulated: false,
        }),
    );
    job.tell_of(COMMAND, 0, Body::Refused { reason: text(5).to_owned() }).tell(build_start());
    for place in 0..texts.len() {
        job.at(2 + place as u64).tell(start(text(place), Some(text(place + 1)), 3)).tell(step(
            text(place + 2),
            0,
            0,
        ));
        job.tell(message(Severity::Error, text(place)));
    }
    job.request(CancelSource::Api, text(6)).rung(text(7), text(8));
    job.at(9_000).exit(None, Some(11)).lose(1);
    let (status, told_by) = (text(10).to_owned(), text(11).to_owned());
    job.event(EventKind::HostReported(HostReported { status, told_by }));
    job.end(125);
    job.baseline(&host(Some(text(9))));
    job
}

fn assert_printable(text: &str) {
    let bad = |c: char| {
        (c.is_control() && c != '\n') || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202e}' | '\u{200b}')
    };
    assert!(!text.contains(bad), "{text:?}");
}

#[test]
fn hostile_texts_reach_no_terminal() {
    let texts = HOSTILE.map(str::to_owned);
    let mut job = hostile_job(&texts);
    let text = shown(&mut job);
    assert_printable(&text);
    assert!(text.contains("\\u{1b}[2J\\u{1b}[31mred"), "it is shown what was there: {text}");
    evidence::write(job.folder.path()).expect("the bundle can be written");
    for name in [evidence::EVENTS, evidence::EVIDENCE, evidence::PHASES, evidence::SUMMARY] {
        let text = fs::read_to_string(job.folder.path().join(name)).expect("the file is there");
        assert!(
            !text.contains(|c: char| (c.is_control() && c != '\n') || matches!(c, '\u{2028}' | '\u{2029}')),
            "{name}"
        );
    }
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn any_text_is_shown_safely_and_kept_whole(texts in vec(text(), 1..12)) {
        let mut job = hostile_job(&texts);
        assert_printable(&shown(&mut job));
        let bundle = job.bundle();
        prop_assert!(bundle.faults.is_empty());
        let names: Vec<String> = bundle.phases.builds[0].phases.iter().map(|phase| phase.name.clone()).collect();
        prop_assert_eq!(names, texts.clone());
        let errors: Vec<String> = bundle.evidence.builds[0].errors.iter().map(|error| error.text.clone()).collect();
        prop_assert_eq!(errors, texts);
    }

    #[test]
    fn no_log_however_senseless_stops_its_reader(events in events(300)) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join(evidence::EVENTS), encoded(&events)).expect("the log can be written");
        let bundle = evidence::load(folder.path()).expect("its lines are good, whatever they say");
        let mut text = Vec::new();
        show(&bundle, &mut text, Style::default()).expect("memory can be written");
        assert_printable(std::str::from_utf8(&text).expect("text"));
        prop_assert_eq!(bundle.evidence.counts.events, events.len() as u64);
    }
}

/// A page or a list of commands from a hostile bundle.
fn rendered(job: &Job, render: impl Fn(&evidence::Bundle, &mut Vec<u8>) -> std::io::Result<()>) -> String {
    let bundle = evidence::load(job.folder.path()).expect("the bundle can be read");
    let mut out = Vec::new();
    render(&bundle, &mut out).expect("a vector can be written to");
    String::from_utf8(out).expect("it is text")
}

#[test]
fn a_hostile_name_makes_no_command_and_no_markup() {
    let hostile = [
        "::error::forged",
        "a\n::set-output name=x::y",
        "a%0A::warning::b\r\n::debug::c",
        "title,line=1:x",
        "| cell | # head",
        "![picture](http://evil.example/x.png) <img src=x onerror=y> [link](javascript:z)",
        "`code` www.evil.example @everyone <script>",
        "</code><h1>",
    ];
    let mut texts: Vec<String> = hostile.map(str::to_owned).to_vec();
    texts.push("x|".repeat(100_000));
    for turn in 0..texts.len() {
        texts.rotate_left(1);
        let job = hostile_job(&texts);
        let commands = rendered(&job, stuckproof::render::annotations);
        for line in commands.lines() {
            let known = ["::error title=", "::warning title=", "::notice title="];
            assert!(known.iter().any(|start| line.starts_with(start)), "turn {turn}: {line}");
            assert!(line.len() < 4_096 * 3 && !line.contains('\r'));
            let (_, rest) = line.split_once(" title=").expect("a title");
            let (title, _) = rest.split_once("::").expect("a message");
            assert!(!title.contains([':', ',']), "turn {turn}: {title}");
        }
        for level in ["error", "warning", "notice"] {
            let kept = commands.lines().filter(|line| line.starts_with(&format!("::{level} "))).count();
            assert!(kept <= 10, "{kept} of level {level}");
        }
        let page = rendered(&job, stuckproof::render::markdown);
        assert!(page.len() < 1 << 20, "{} bytes", page.len());
        for markup in ["<img", "<script", "<h1", "![", "](", "@everyone", "www.evil", "# head", "::error"] {
            assert!(!page.contains(markup), "turn {turn}: {markup} in\n{page}");
        }
        assert_eq!(page.lines().filter(|line| line.starts_with('#')).count(), 1);
    }
}

#[test]
fn a_summary_tells_who_asked_and_what_was_open() {
    let job = cancelled();
    let page = rendered(&job, stuckproof::render::markdown);
    assert!(page.starts_with("### TensorRT build: cancelled"), "{page}");
    assert!(page.contains("**Stop** asked for by") && page.contains("the builder answered after"), "{page}");
    let commands = rendered(&job, stuckproof::render::annotations);
    assert!(commands.starts_with("::warning title=TensorRT build cancelled"), "{commands}");
}
