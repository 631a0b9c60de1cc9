//! The answers that follow from a bundle alone.

use super::{Answer, Question, Word};
use crate::event::{ArtifactKind, ValidationStatus};
use crate::evidence::{Bundle, Evidence, JobState, RetryPolicy};
use crate::shown::Clean;

/// Whether to go on and whether to stop, of a job whose runner does not answer.
pub(super) fn first_two(evidence: &Evidence) -> Vec<Answer> {
    let questions = [Question::Continue, Question::Cancel];
    if evidence.finished {
        let over = format!("the job has ended: {}", outcome(evidence));
        return questions.map(|q| Answer::new(q, Word::NotApplicable, [over.clone()])).into();
    }
    let facts = [
        "the log has no end".to_owned(),
        "no runner on this machine answers for the job, so it is lost, or runs elsewhere".to_owned(),
    ];
    let finalize =
        format!("`stuckproof finalize` where it ran, once process {} is gone", evidence.header.runner_pid);
    let answer = |question| Answer::new(question, Word::CannotTell, facts.clone()).next(&*finalize);
    questions.map(answer).into()
}

fn outcome(evidence: &Evidence) -> String {
    let state = match evidence.state {
        JobState::Running => "running",
        JobState::Cancelling => "cancelling",
        JobState::Succeeded => "succeeded",
        JobState::Cancelled => "cancelled",
        JobState::Failed => "failed",
    };
    let cause = evidence.cause.as_ref().map(|cause| format!(" ({})", Clean::short(cause)));
    state.to_owned() + &cause.unwrap_or_default()
}

/// Whether a retry may use the timing cache.
pub(super) fn timing_cache(bundle: &Bundle) -> Answer {
    let evidence = &bundle.evidence;
    let question = Question::TimingCache;
    let declared = bundle.inventory.artifacts.iter().any(|a| a.kind == ArtifactKind::TimingCache);
    let attached = evidence
        .builds
        .iter()
        .any(|b| b.facts.as_ref().is_some_and(|f| f.timing_cache_attached == Some(true)));
    let rtx =
        !evidence.libraries.is_empty() && evidence.libraries.iter().all(|l| l.flavour == "tensorrt-rtx");
    let reasons = evidence.retry.reasons.clone();
    match evidence.retry.policy {
        _ if rtx => {
            Answer::new(question, Word::NotApplicable, ["TensorRT-RTX has no timing cache".to_owned()])
        }
        None if evidence.state == JobState::Succeeded => Answer::new(question, Word::NotApplicable, reasons),
        None => Answer::new(question, Word::CannotTell, reasons)
            .next("ask again when the job has ended: what becomes of the cache depends on how it ends"),
        Some(RetryPolicy::RetryWithCache) => Answer::new(question, Word::Yes, reasons),
        Some(RetryPolicy::RetryCold) if !declared && attached => {
            let unknown =
                "the builder had a timing cache that was not declared, so nothing is known of its file";
            Answer::new(question, Word::CannotTell, reasons.into_iter().chain([unknown.to_owned()]))
                .next("build cold, or declare the file with --timing-cache")
        }
        Some(RetryPolicy::RetryCold) => {
            Answer::new(question, Word::No, reasons).next("build again without the timing cache")
        }
        Some(RetryPolicy::Rollback | RetryPolicy::Investigate) => {
            Answer::new(question, Word::No, reasons).next("find the cause before anything is built again")
        }
    }
}

/// Whether to go back to a known engine.
pub(super) fn rollback(bundle: &Bundle) -> Answer {
    let evidence = &bundle.evidence;
    let question = Question::Rollback;
    let mut engines = bundle.inventory.artifacts.iter().filter(|a| a.kind == ArtifactKind::Engine).peekable();
    let declared = engines.peek().is_some();
    let kept: Vec<String> = engines
        .filter(|engine| engine.is_intact())
        .map(|engine| format!("{} is what it was before the job, byte for byte", Clean::line(&engine.path)))
        .collect();
    let validation = evidence.validation.as_ref().map(|validation| validation.status);
    match (evidence.retry.policy, evidence.state) {
        (Some(RetryPolicy::Rollback), _) => {
            Answer::new(question, Word::Yes, evidence.retry.reasons.iter().cloned().chain(kept))
        }
        (_, JobState::Running | JobState::Cancelling) => {
            Answer::new(question, Word::CannotTell, ["the job has not ended".to_owned()])
        }
        (_, JobState::Succeeded) => {
            let checked = match validation {
                Some(ValidationStatus::Pass) => "the engine passed the check that was asked for",
                Some(ValidationStatus::Fail) => {
                    "the engine failed its check, and no previous engine is known"
                }
                _ => "the engine itself was not checked",
            };
            let built = "every build returned an engine".to_owned();
            let word = if validation == Some(ValidationStatus::Fail) { Word::CannotTell } else { Word::No };
            Answer::new(question, word, [built, checked.to_owned()])
        }
        _ if !declared => {
            let unknown = "no engine was declared, so nothing is known of a previous one".to_owned();
            Answer::new(question, Word::CannotTell, [unknown])
                .next("declare the engine with --engine next time")
        }
        _ if kept.is_empty() => {
            let nothing = "there was no previous engine, or it is not known to be whole".to_owned();
            Answer::new(question, Word::No, [nothing])
        }
        _ => Answer::new(question, Word::No, ["it has happened already".to_owned()].into_iter().chain(kept)),
    }
}
