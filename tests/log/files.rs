//! Artifacts in the log, and what the evidence makes of them.

use crate::job::{COMMAND, Job, build_start, returned, rtx, start};
use crate::names::text;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use stuckproof::event::{
    AcceptedArtifact, ArtifactDeclared, ArtifactFacts, ArtifactKind, ArtifactMode, ArtifactOutcome,
    ArtifactSettled, ArtifactsAccepted, CachePolicy, CancelSource, EngineValidated, EventKind, SettledBy,
    State, TimingCacheMode, ValidationStatus,
};
use stuckproof::evidence::{CleanupStatus, RetryPolicy};

const ENGINE: &str = "/models/a.engine";

fn facts() -> BoxedStrategy<ArtifactFacts> {
    (any::<[u64; 3]>(), text(), text(), option::of(text()))
        .prop_map(|([bytes, files, inode], modified, stamp, sha256)| ArtifactFacts {
            bytes,
            files,
            modified,
            inode,
            stamp,
            sha256,
        })
        .boxed()
}

fn kind() -> impl Strategy<Value = ArtifactKind> {
    proptest::sample::select(vec![ArtifactKind::Engine, ArtifactKind::TimingCache])
}

fn outcome() -> impl Strategy<Value = ArtifactOutcome> {
    proptest::sample::select(vec![
        ArtifactOutcome::Published,
        ArtifactOutcome::Kept,
        ArtifactOutcome::Restored,
        ArtifactOutcome::Quarantined,
        ArtifactOutcome::Absent,
        ArtifactOutcome::Failed,
    ])
}

/// A few artifacts, so that declarations and settlements meet.
fn number() -> impl Strategy<Value = u32> {
    1..4_u32
}

/// What is put on record of the artifacts.
pub fn of_the_files() -> BoxedStrategy<EventKind> {
    let declared = (number(), kind(), any::<[bool; 3]>(), vec(text(), 4), option::of(facts())).prop_map(
        |(artifact, kind, [folder, staged, must_validate], words, previous)| {
            let [path, target, written, work] = <[String; 4]>::try_from(words).expect("four words");
            let policy = (kind == ArtifactKind::TimingCache).then_some(if must_validate {
                CachePolicy::Readonly
            } else {
                CachePolicy::Reuse
            });
            let mode = if staged { ArtifactMode::Staged } else { ArtifactMode::InPlace };
            EventKind::ArtifactDeclared(ArtifactDeclared {
                artifact,
                kind,
                folder,
                path,
                target,
                mode,
                written,
                work,
                policy,
                must_validate,
                previous,
            })
        },
    );
    let status = proptest::sample::select(vec![
        ValidationStatus::Pending,
        ValidationStatus::Pass,
        ValidationStatus::Fail,
    ]);
    let validated = (text(), status, any::<(Option<i32>, Option<i32>, u64)>(), option::of(text())).prop_map(
        |(command, status, (code, signal, duration_ns), reason)| {
            EventKind::EngineValidated(EngineValidated { command, status, code, signal, reason, duration_ns })
        },
    );
    let accepted = vec((number(), facts()), 0..3).prop_map(|artifacts| {
        let artifacts =
            artifacts.into_iter().map(|(artifact, facts)| AcceptedArtifact { artifact, facts }).collect();
        EventKind::ArtifactsAccepted(ArtifactsAccepted { artifacts })
    });
    let who = proptest::sample::select(vec![SettledBy::Runner, SettledBy::Successor]);
    let words = (text(), who, vec(option::of(text()), 4), vec(text(), 0..3));
    let settled = (number(), outcome(), words, option::of(facts()), option::of(facts())).prop_map(
        |(artifact, outcome, (reason, by, maybe, undeclared), after, partial)| {
            let [fault, previous_sha256, quarantine, content] =
                <[Option<String>; 4]>::try_from(maybe).expect("four words");
            EventKind::ArtifactSettled(ArtifactSettled {
                artifact,
                outcome,
                reason,
                fault,
                previous_sha256,
                after,
                partial,
                quarantine,
                content,
                timing_cache: (artifact == 2).then_some(TimingCacheMode::Updated),
                undeclared,
                by,
            })
        },
    );
    prop_oneof![declared.boxed(), validated.boxed(), accepted.boxed(), settled.boxed()].boxed()
}

fn engine(bytes: u64) -> ArtifactFacts {
    ArtifactFacts {
        bytes,
        files: 1,
        modified: "2027-01-15T08:00:00.000000Z".to_owned(),
        inode: bytes,
        stamp: "5".repeat(64),
        sha256: Some("a".repeat(64)),
    }
}

fn declared(kind: ArtifactKind, previous: bool) -> ArtifactDeclared {
    let (artifact, path) = match kind {
        ArtifactKind::Engine => (1, ENGINE),
        ArtifactKind::TimingCache => (2, "/models/a.cache"),
    };
    ArtifactDeclared {
        artifact,
        kind,
        folder: false,
        path: path.to_owned(),
        target: path.to_owned(),
        mode: ArtifactMode::InPlace,
        written: path.to_owned(),
        work: format!("{path}.stuckproof"),
        policy: (kind == ArtifactKind::TimingCache).then_some(CachePolicy::Reuse),
        must_validate: false,
        previous: previous.then(|| engine(7)),
    }
}

fn settled(artifact: u32, outcome: ArtifactOutcome) -> ArtifactSettled {
    let there = !matches!(outcome, ArtifactOutcome::Absent | ArtifactOutcome::Quarantined);
    ArtifactSettled {
        artifact,
        outcome,
        reason: "so it is".to_owned(),
        fault: None,
        previous_sha256: None,
        after: there.then(|| engine(7)),
        partial: None,
        quarantine: None,
        content: None,
        timing_cache: (artifact == 2).then_some(TimingCacheMode::Reused),
        undeclared: Vec::new(),
        by: SettledBy::Runner,
    }
}

fn build(job: &mut Job, engine: bool) {
    job.at(40).tell_of(COMMAND, 0, rtx(true)).at(50).tell(build_start());
    job.tell(start("Building engine", None, 1)).at(90).tell(returned(engine));
}

/// A build whose engine was checked and published.
pub fn published() -> Job {
    let mut job = Job::new();
    job.event(EventKind::ArtifactDeclared(ArtifactDeclared {
        must_validate: true,
        ..declared(ArtifactKind::Engine, false)
    }));
    build(&mut job, true);
    job.at(100).exit(Some(0), None);
    job.at(200).event(EventKind::EngineValidated(EngineValidated {
        command: "check {engine}".to_owned(),
        status: ValidationStatus::Pass,
        code: Some(0),
        signal: None,
        reason: None,
        duration_ns: 90_000_000,
    }));
    let artifacts = vec![AcceptedArtifact { artifact: 1, facts: engine(9) }];
    job.event(EventKind::ArtifactsAccepted(ArtifactsAccepted { artifacts }));
    job.at(210).event(EventKind::ArtifactSettled(ArtifactSettled {
        after: Some(engine(9)),
        content: Some("TensorRT-RTX engine".to_owned()),
        undeclared: vec!["/models/b.engine".to_owned()],
        ..settled(1, ArtifactOutcome::Published)
    }));
    job.end(0);
    job
}

/// A build that is stopped and leaves half an engine and a cache that nobody has touched.
pub fn put_back() -> Job {
    let mut job = Job::new();
    for kind in [ArtifactKind::Engine, ArtifactKind::TimingCache] {
        job.event(EventKind::ArtifactDeclared(declared(kind, true)));
    }
    job.at(40).tell_of(COMMAND, 0, rtx(true)).at(50).tell(build_start());
    job.tell(start("Building engine", None, 1)).at(60).request(CancelSource::Ci, "SIGTERM");
    job.at(70).tell(crate::job::step("Building engine", 0, 1)).at(90).tell(returned(false));
    job.at(100).exit(Some(1), None);
    job.at(110).event(EventKind::ArtifactSettled(ArtifactSettled {
        partial: Some(engine(3)),
        quarantine: Some("/models/stuckproof-quarantine/bold-otter-1".to_owned()),
        ..settled(1, ArtifactOutcome::Restored)
    }));
    job.at(120).event(EventKind::ArtifactSettled(settled(2, ArtifactOutcome::Kept)));
    job.end(1);
    job
}

#[test]
fn an_engine_that_was_checked_and_published() {
    let mut job = published();
    let bundle = job.bundle();
    assert_eq!(bundle.summary.validation_status, ValidationStatus::Pass);
    assert_eq!(bundle.summary.cleanup_status, Some(CleanupStatus::Cleaned));
    assert_eq!(bundle.summary.retry_policy, None);
    insta::assert_snapshot!("published", crate::shown::shown(&mut job));
}

#[test]
fn an_engine_that_was_put_back() {
    let mut job = put_back();
    let bundle = job.bundle();
    assert_eq!(bundle.summary.cleanup_status, Some(CleanupStatus::Quarantined));
    assert_eq!(bundle.summary.retry_policy, Some(RetryPolicy::RetryWithCache));
    assert_eq!(bundle.evidence.times.ack_to_cleaned_ms, Some(50.0));
    insta::assert_snapshot!("put-back", crate::shown::shown(&mut job));
}

#[test]
fn what_could_not_be_published_is_no_success() {
    let mut job = Job::new();
    job.event(EventKind::ArtifactDeclared(declared(ArtifactKind::Engine, false)));
    build(&mut job, true);
    job.at(100).exit(Some(0), None);
    let fault = Some("the command wrote nothing".to_owned());
    job.event(EventKind::ArtifactSettled(ArtifactSettled { fault, ..settled(1, ArtifactOutcome::Absent) }));
    let verdict = job.end(123);
    assert_eq!((verdict.state, verdict.cause.as_deref()), (State::Failed, Some("artifact")));
    assert_eq!(job.bundle().summary.retry_policy, Some(RetryPolicy::Investigate));
}

#[test]
fn a_check_that_failed_sends_back_to_what_is_known() {
    for (previous, policy) in [(true, RetryPolicy::Rollback), (false, RetryPolicy::Investigate)] {
        let mut job = Job::new();
        let engine = ArtifactDeclared { must_validate: true, ..declared(ArtifactKind::Engine, previous) };
        job.event(EventKind::ArtifactDeclared(engine));
        build(&mut job, true);
        job.at(100).exit(Some(0), None);
        job.event(EventKind::EngineValidated(EngineValidated {
            command: "false".to_owned(),
            status: ValidationStatus::Fail,
            code: Some(1),
            signal: None,
            reason: None,
            duration_ns: 1,
        }));
        let outcome = if previous { ArtifactOutcome::Restored } else { ArtifactOutcome::Quarantined };
        job.event(EventKind::ArtifactSettled(settled(1, outcome)));
        let verdict = job.end(123);
        assert_eq!((verdict.state, verdict.validation), (State::Succeeded, ValidationStatus::Fail));
        let exited = verdict.exit_code(
            Some(&stuckproof::event::CommandExited {
                code: Some(0),
                signal: None,
                core_dumped: false,
                core_file: None,
                oom_kills: None,
            }),
            125,
            false,
            false,
        );
        assert_eq!(exited, 123, "the build succeeded, and the job is no green one");
        assert_eq!(job.bundle().summary.retry_policy, Some(policy));
    }
}

fn ending() -> impl Strategy<Value = (Option<i32>, Option<i32>, bool)> {
    (option::of(0..2_i32), option::of(prop_oneof![Just(9), Just(11), Just(15)]), any::<bool>())
}

proptest! {
    #[test]
    fn nobody_is_sent_back_to_an_engine_that_is_not_known_to_be_whole(
        previous: bool,
        outcome in outcome(),
        fault: bool,
        (code, signal, engine) in ending(),
        checked in option::of(any::<bool>()),
    ) {
        let mut job = Job::new();
        let must_validate = checked.is_some();
        job.event(EventKind::ArtifactDeclared(ArtifactDeclared {
            must_validate,
            ..declared(ArtifactKind::Engine, previous)
        }));
        build(&mut job, engine);
        job.at(100).exit(code, if code.is_some() { None } else { signal });
        if let Some(passed) = checked {
            job.event(EventKind::EngineValidated(EngineValidated {
                command: String::new(),
                status: if passed { ValidationStatus::Pass } else { ValidationStatus::Fail },
                code: Some(i32::from(!passed)),
                signal: None,
                reason: None,
                duration_ns: 0,
            }));
        }
        let fault = fault.then(|| "a fault".to_owned());
        job.event(EventKind::ArtifactSettled(ArtifactSettled { fault: fault.clone(), ..settled(1, outcome) }));
        job.end(1);
        let bundle = job.bundle();
        let whole = matches!(outcome, ArtifactOutcome::Kept | ArtifactOutcome::Restored);
        if bundle.summary.retry_policy == Some(RetryPolicy::Rollback) {
            prop_assert!(previous && whole);
        }
        let green = bundle.evidence.state == stuckproof::evidence::JobState::Succeeded && checked != Some(false);
        prop_assert_eq!(bundle.summary.retry_policy.is_none(), green);
    }
}
