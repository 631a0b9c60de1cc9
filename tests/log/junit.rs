//! `junit.xml`, read back by parsers that are not ours.

use crate::common::environment;
use crate::job::{
    COMMAND, Job, build_start, described, finish, header, host, message, returned, rtx, start, step,
};
use crate::names::{HOSTILE, cases, text};
use crate::shown::{cancelled, failed, hostile_job, killed, two_builds, unobserved};
use proptest::collection::vec;
use proptest::prelude::*;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use stuckproof::event::{CancelSource, EventKind, InputChanged, InputKind, JobStarted};
use stuckproof::evidence::{self, Bundle, JUNIT};
use stuckproof::render::reviewed_junit;
use stuckproof::review::{Decision, Review, Verdict};
use stuckproof::verify::Answer;
use stuckproof::wire::Severity;

/// Texts that break a report that takes them as they are.
const BREAKING: [&str; 6] = [
    "]]>",
    "<![CDATA[ ]]]]>> <!-- --> <?x?> </testcase>",
    "\u{fffe} and \u{ffff}",
    "]\u{1b}[0m]>",
    "&amp; &#27; \"' <x/>",
    "https://user:planted@host/x",
];

/// Cases by what became of them: passed, failed, in error, skipped.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
struct Counts {
    passed: usize,
    failed: usize,
    errors: usize,
    skipped: usize,
}

fn written(job: &Job) -> String {
    evidence::write(job.folder.path()).expect("the bundle can be written");
    fs::read_to_string(job.folder.path().join(JUNIT)).expect("the report is there")
}

fn read(xml: &str) -> Report {
    Report::deserialize_from_str(xml).unwrap_or_else(|e| panic!("{e}: {xml}"))
}

fn all(report: &Report) -> impl Iterator<Item = &TestCase> {
    report.test_suites.iter().flat_map(|suite| &suite.test_cases)
}

fn counts(report: &Report) -> Counts {
    all(report).fold(Counts::default(), |mut counts, case| {
        match &case.status {
            TestCaseStatus::Success { .. } => counts.passed += 1,
            TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, .. } => counts.failed += 1,
            TestCaseStatus::NonSuccess { kind: NonSuccessKind::Error, .. } => counts.errors += 1,
            TestCaseStatus::Skipped { .. } => counts.skipped += 1,
        }
        counts
    })
}

/// The counts as expat, the parser of GitHub's and GitLab's tools' kind, and as Python's junitparser read them, with those
/// of the suites' own words.
fn by_python(path: &Path) -> Counts {
    const SCRIPT: &str = "
import sys, xml.etree.ElementTree as tree
from junitparser import Error, Failure, JUnitXml, Skipped
root = tree.parse(sys.argv[1]).getroot()
cases = root.findall('testsuite/testcase')
kinds = ['failure', 'error', 'skipped']
count = lambda kind: sum(case.find(kind) is not None for case in cases)
for suite in root:
    assert int(suite.get('tests')) == len(suite), suite.attrib
    for total, kind in (('failures', 'failure'), ('errors', 'error')):
        assert int(suite.get(total)) == len(suite.findall('testcase/' + kind)), suite.attrib
counts = [sum(all(case.find(kind) is None for kind in kinds) for case in cases), *map(count, kinds)]
suites = list(JUnitXml.fromfile(sys.argv[1]))
results = [case.result for suite in suites for case in suite]
assert [case.name for suite in suites for case in suite] == [case.get('name') for case in cases]
assert [suite.tests for suite in suites] == [len(list(suite)) for suite in suites]
count = lambda kind: sum(any(isinstance(one, kind) for one in result) for result in results)
assert counts == [results.count([]), count(Failure), count(Error), count(Skipped)], results
print(*counts)
";
    let python = Command::new(environment("python")).args(["-c", SCRIPT]).arg(path).output();
    let python = python.expect("python starts");
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    let said = String::from_utf8(python.stdout).expect("text");
    let numbers: Vec<usize> = said.split_whitespace().map(|n| n.parse().expect("a number")).collect();
    let [passed, failed, errors, skipped] = numbers[..] else { panic!("{said}") };
    Counts { passed, failed, errors, skipped }
}

/// The kind, the type, the message and the content of what is wrong with a case.
fn wrong(case: &TestCase) -> Option<(NonSuccessKind, String, String, String)> {
    let TestCaseStatus::NonSuccess { kind, message, ty, description, .. } = &case.status else { return None };
    let text =
        |text: &Option<quick_junit::XmlString>| text.as_ref().expect("it is given").as_str().to_owned();
    Some((*kind, text(ty), text(message), text(description)))
}

fn case<'a>(report: &'a Report, classname: &str, name: &str) -> &'a TestCase {
    let wanted = |case: &&TestCase| {
        case.name.as_str() == name && case.classname.as_ref().is_some_and(|c| c.as_str() == classname)
    };
    all(report).find(wanted).unwrap_or_else(|| panic!("no {classname} {name}"))
}

/// What holds for every report.
fn check(bundle: &Bundle, xml: &str) -> Report {
    let report = read(xml);
    let builds = bundle.evidence.builds.len();
    let expected = if builds == 0 { 9 } else { 1 + 9 * builds };
    assert_eq!(all(&report).count(), expected);
    let identities: BTreeSet<String> =
        all(&report).map(|case| format!("{:?} {:?}", case.classname, case.name)).collect();
    assert_eq!(identities.len(), expected, "GitLab drops cases of one name: {identities:?}");
    for case in all(&report) {
        let skipped = match &case.status {
            TestCaseStatus::Skipped { ty, message, .. } => Some((ty.clone(), message.clone())),
            _ => None,
        };
        let kinds = [
            wrong(case).map(|(_, kind, ..)| kind),
            skipped.and_then(|(ty, _)| Some(ty?.as_str().to_owned())),
        ];
        for kind in kinds.into_iter().flatten() {
            assert!(kind.starts_with("stuckproof."), "a bare type such as yaml breaks GitLab: {kind}");
        }
        if let Some((_, _, message, content)) = wrong(case) {
            assert!(!message.is_empty() && !content.is_empty(), "hosts read the one or the other");
        }
    }
    report
}

#[test]
fn every_ending_has_its_own_kind_of_case() {
    let mut succeeded = Job::new();
    succeeded.at(40).tell_of(COMMAND, 0, rtx(true)).at(50).tell(build_start()).tell(described());
    succeeded.tell(start("Building engine", None, 1)).at(60).tell(step("Building engine", 0, 0));
    succeeded.tell(finish("Building engine")).tell(returned(true)).at(70).exit(Some(0), None).end(0);
    succeeded.baseline(&host(None));
    let mut unfinished = Job::new();
    unfinished.sync();
    let mut crashed = Job::new();
    crashed.at(10).tell(build_start()).at(50).exit(None, Some(11)).end(139);
    let endings = [
        (succeeded, None),
        (cancelled(), Some((NonSuccessKind::Error, "stuckproof.cancelled"))),
        (killed(), Some((NonSuccessKind::Error, "stuckproof.timed_out"))),
        (failed(), Some((NonSuccessKind::Failure, "stuckproof.failed"))),
        (crashed, Some((NonSuccessKind::Error, "stuckproof.crash"))),
        (unfinished, Some((NonSuccessKind::Error, "stuckproof.unfinished"))),
        (unobserved(), None),
    ];
    for (mut job, expected) in endings {
        let xml = written(&job);
        let report = check(&job.bundle(), &xml);
        let found = wrong(case(&report, "stuckproof.job", "the job")).map(|(kind, ty, ..)| (kind, ty));
        assert_eq!(found, expected.map(|(kind, ty)| (kind, ty.to_owned())));
        if !job.bundle().evidence.builds.is_empty() {
            let of_build =
                wrong(case(&report, "stuckproof.build-1", "the build")).map(|(kind, ty, ..)| (kind, ty));
            assert_eq!(of_build, found);
        }
        assert_eq!(by_python(&job.folder.path().join(JUNIT)), counts(&report));
    }
}

#[test]
fn the_criteria_follow_from_the_evidence() {
    let mut job = cancelled();
    let report = check(&job.bundle(), &written(&job));
    let of = |name: &str| &case(&report, "stuckproof.build-1", name).status;
    for held in [
        "1 baseline",
        "2 phase tree",
        "3 one cancellation state",
        "4 cooperative acknowledgement",
        "5 honest terminal state",
    ] {
        assert!(matches!(of(held), TestCaseStatus::Success { .. }), "{held}: {:?}", of(held));
    }
    for untold in ["6 artifacts", "7 timing cache", "8 recovery"] {
        assert!(matches!(of(untold), TestCaseStatus::Skipped { .. }), "{untold}: {:?}", of(untold));
    }
    let mut job = killed();
    let report = check(&job.bundle(), &written(&job));
    let why = |name: &str| wrong(case(&report, "stuckproof.build-1", name)).map(|(.., message, _)| message);
    assert_eq!(
        why("4 cooperative acknowledgement").as_deref(),
        Some("no step answered the request; what ended the build: killed_by_runner")
    );
    assert!(why("1 baseline").is_some_and(|why| why.contains("no baseline.json")));
    assert_eq!(why("2 phase tree"), None, "a phase that the runner closed is closed");
    let mut late = host(None);
    late.t_ns = u64::MAX;
    let job_late = cancelled();
    job_late.baseline(&late);
    let report = read(&written(&job_late));
    let (.., message, _) =
        wrong(case(&report, "stuckproof.build-1", "1 baseline")).expect("it came too late");
    assert!(message.contains("only after the first phase"), "{message}");
    let mut lost = two_builds();
    let report = check(&lost.bundle(), &written(&lost));
    assert!(wrong(case(&report, "stuckproof.build-2", "the build")).is_some());
    assert!(wrong(case(&report, "stuckproof.build-1", "the build")).is_none());
}

#[test]
fn the_baseline_needs_what_is_in_the_inputs() {
    type Edit = fn(&mut Job) -> &mut Job;
    let judged = |edit: Edit| {
        let mut job = Job::new();
        edit(job.at(1));
        job.at(40).tell_of(COMMAND, 0, rtx(true)).at(50).tell(build_start()).tell(described());
        job.tell(start("Building engine", None, 1))
            .at(60)
            .tell(finish("Building engine"))
            .tell(returned(true));
        job.exit(Some(0), None).end(0);
        job.baseline(&host(None));
        let report = read(&written(&job));
        let status = case(&report, "stuckproof.build-1", "1 baseline").status.clone();
        let hash = job.bundle().summary.build_config_hash.is_some();
        (status, hash, job.bundle().evidence.builds[0].config_hash_partial)
    };
    let (status, ..) = judged(|job| job.input(1, InputKind::Argument, "m").digested(1, Some("ab")));
    assert!(matches!(status, TestCaseStatus::Success { .. }), "{status:?}");
    let (status, hash, partial) = judged(|job| job);
    assert!(matches!(status, TestCaseStatus::Skipped { .. }) && hash && partial, "{status:?}");
    let gaps: [(Edit, &str); 3] = [
        (|job| job.input(1, InputKind::Argument, "m"), "the record ends before it was read"),
        (|job| job.input(1, InputKind::Argument, "m").digested(1, None), "it cannot be read"),
        (
            |job| {
                job.input(1, InputKind::Argument, "m").digested(1, Some("ab"));
                let what = "it has 7 bytes, and had 5".to_owned();
                job.event(EventKind::InputChanged(InputChanged { input: 1, what }))
            },
            "changed while the job ran: it has 7 bytes",
        ),
    ];
    for (edit, why) in gaps {
        let (status, hash, partial) = judged(edit);
        assert!(!hash && !partial);
        let told = matches!(&status, TestCaseStatus::NonSuccess { message: Some(said), .. } if said.as_str().contains(why));
        assert!(told, "{status:?}");
    }
}

#[test]
fn the_first_report_of_a_job_fails_and_the_last_replaces_it() {
    let job = cancelled();
    evidence::provisional(job.folder.path(), &header()).expect("the folder can be written");
    let first = fs::read_to_string(job.folder.path().join(JUNIT)).expect("the report is there");
    let report = read(&first);
    let (kind, ty, ..) = wrong(case(&report, "stuckproof.job", "the job")).expect("it fails");
    assert_eq!((kind, ty.as_str()), (NonSuccessKind::Error, "stuckproof.unfinished"));
    assert_ne!(written(&job), first);
}

#[test]
fn the_evidence_is_attached_where_gitlab_can_find_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let cwd = folder.path().to_string_lossy().into_owned();
    for (name, attached) in [("evidence of it", true), ("a[b]", false)] {
        let bundle = folder.path().join(name);
        fs::create_dir(&bundle).expect("it is new");
        let place = bundle.to_string_lossy().into_owned();
        let header = JobStarted { cwd: cwd.clone(), bundle: place, ..header() };
        evidence::provisional(&bundle, &header).expect("the folder can be written");
        let report = read(&fs::read_to_string(bundle.join(JUNIT)).expect("the report is there"));
        let out =
            case(&report, "stuckproof.job", "the job").system_out.as_ref().map(|out| out.as_str().to_owned());
        assert_eq!(out, attached.then(|| format!("[[ATTACHMENT|{name}/evidence.json]]")));
    }
}

/// A verdict on a bundle of that path: some rules hold, and the last does not where the bundle did not verify or `wrong` says
/// so.
fn verdict(path: &str, answer: Answer, found: &str, wrong: bool) -> Verdict {
    let decide =
        |rule, item: &str, passed| Decision { rule, item: item.to_owned(), passed, found: found.to_owned() };
    let decisions = match answer {
        Answer::Invalid | Answer::CannotTell => vec![decide("verify", "", false)],
        Answer::Valid | Answer::NotSucceeded => {
            vec![decide("verify", "", true), decide("drift", "/a", true), decide("drift", "/b", !wrong)]
        }
    };
    Verdict { bundle: path.into(), job: None, answer, decisions, engines: Vec::new() }
}

#[test]
fn a_review_is_a_suite_for_each_bundle_and_one_for_what_ships() {
    let subjects = vec![Decision {
        rule: "subject",
        item: "model.engine".to_owned(),
        passed: false,
        found: "model.engine is of none of the bundles".to_owned(),
    }];
    let bundles = vec![
        verdict("all/good", Answer::Valid, "well", false),
        verdict("all/drifted", Answer::Valid, "another", true),
        verdict("all/edited.tar.zst", Answer::Invalid, "digest: summary.json sha256: its bytes", true),
        verdict("all/open", Answer::CannotTell, "sealed: manifest.json : the bundle is not sealed", true),
    ];
    let xml = reviewed_junit(&Review { bundles, subjects }, chrono::DateTime::UNIX_EPOCH);
    let report = read(std::str::from_utf8(&xml).expect("text"));
    assert_eq!(report.test_suites.len(), 5);
    assert_eq!(counts(&report), Counts { passed: 5, failed: 2, errors: 2, skipped: 0 });
    let class = |name: &str| format!("stuckproof.review.{name}");
    let told =
        |name: &str, case_name: &str| wrong(case(&report, &class(name), case_name)).expect("it is wrong");
    let (failure, error) = (NonSuccessKind::Failure, NonSuccessKind::Error);
    let (kind, ty, message, _) = told("all/drifted", "drift: /b");
    assert_eq!((kind, &*ty, &*message), (failure, "stuckproof.rule", "another"));
    let (kind, ty, message, _) = told("all/edited.tar.zst", "verify");
    assert_eq!((kind, &*ty), (error, "stuckproof.invalid"));
    assert_eq!(message, "digest: summary.json sha256: its bytes");
    let (kind, ty, _, _) = told("all/open", "verify");
    assert_eq!((kind, &*ty), (error, "stuckproof.cannot_tell"));
    let (kind, ty, _, _) = told("subjects", "subject: model.engine");
    assert_eq!((kind, &*ty), (failure, "stuckproof.rule"));
}

#[test]
fn no_text_breaks_the_report_of_a_review() {
    let folder = tempfile::tempdir().expect("a folder");
    let texts: Vec<String> = HOSTILE.into_iter().chain(BREAKING).map(str::to_owned).collect();
    let long = format!("{}one", "x".repeat(2_000));
    let mut bundles = Vec::new();
    for (turn, text) in texts.iter().chain([&long, &long]).enumerate() {
        let answer = [Answer::Valid, Answer::Invalid, Answer::CannotTell][turn % 3];
        bundles.push(verdict(&format!("all/{text}"), answer, text, true));
        // Two paths that become one text are two all the same.
        bundles.push(verdict(&format!("all/{text}\u{1}"), Answer::Valid, text, false));
    }
    let subjects = texts.iter().map(|text| Decision {
        rule: "subject",
        item: text.clone(),
        passed: false,
        found: text.clone(),
    });
    let review = Review { subjects: subjects.collect(), bundles };
    let xml = reviewed_junit(&review, chrono::DateTime::UNIX_EPOCH);
    let text = std::str::from_utf8(&xml).expect("text");
    assert!(!text.contains("planted"), "a password is nobody's business");
    let report = read(text);
    let decisions: usize = review.bundles.iter().map(|verdict| verdict.decisions.len()).sum();
    assert_eq!(all(&report).count(), decisions + texts.len());
    let identities: BTreeSet<String> = all(&report)
        .filter(|case| !case.name.as_str().starts_with("subject"))
        .map(|case| format!("{:?} {:?}", case.classname, case.name))
        .collect();
    assert_eq!(identities.len(), decisions, "hosts drop cases of one name");
    let path = folder.path().join(JUNIT);
    fs::write(&path, &xml).expect("a file");
    assert_eq!(by_python(&path), counts(&report));
}

/// A job in whose header, too, every text is somebody else's.
fn hostile_header(texts: &[String]) -> Job {
    let text = |place: usize| texts[place % texts.len()].clone();
    let header = JobStarted { host: text(0), argv: texts.to_vec(), cwd: text(1), job: text(2), ..header() };
    let mut job = Job::with(&header);
    job.at(1).tell(build_start()).tell(start(&text(3), Some(&text(4)), 1));
    job.tell(message(Severity::Error, &text(5))).request(CancelSource::Api, &text(6));
    job.at(2).tell(returned(false)).exit(Some(1), None).lose(1);
    job.end(125);
    job
}

#[test]
fn no_text_breaks_the_report() {
    let texts: Vec<String> = HOSTILE.into_iter().chain(BREAKING).map(str::to_owned).collect();
    for turn in 0..texts.len() {
        let mut turned = texts.clone();
        turned.rotate_left(turn);
        let mut job = if turn % 2 == 0 { hostile_job(&turned) } else { hostile_header(&turned) };
        let xml = written(&job);
        let report = check(&job.bundle(), &xml);
        assert!(!xml.contains("planted"), "a password is nobody's business");
        if turn < 4 {
            assert_eq!(by_python(&job.folder.path().join(JUNIT)), counts(&report));
        }
    }
}

proptest! {
    #![proptest_config(cases(32))]

    #[test]
    fn any_text_makes_a_report_that_parses(texts in vec(text(), 1..8)) {
        for mut job in [hostile_job(&texts), hostile_header(&texts)] {
            let xml = written(&job);
            let forbidden = |c: char| (c.is_control() && !"\n\t".contains(c)) || matches!(c, '\u{fffe}' | '\u{ffff}');
            prop_assert!(!xml.contains(forbidden));
            check(&job.bundle(), &xml);
        }
    }
}
