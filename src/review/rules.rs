//! The rules of a policy, each with what was found.

use super::{Decision, Policy, Verdict};
use crate::attempts::came_to;
use crate::event::{ArtifactKind, ArtifactOutcome, ValidationStatus};
use crate::evidence::{Bundle, CRITERIA, Evidence, Finding, findings};
use crate::seal::addendum::{Addendum, Kind, Status};
use crate::verify::{Answer, Report, Tried};
use chrono::{DateTime, Utc};
use serde_json::Value;

/// How many builds a decision names.
const BUILDS: usize = 20;
/// The rule on a job that was tried several times.
pub(super) const ATTEMPTS: &str = "attempts";

/// What the rules are asked with.
pub(super) struct Asked<'a> {
    pub(super) policy: &'a Policy,
    pub(super) reference: Option<&'a Value>,
    pub(super) now: DateTime<Utc>,
}

/// Judges a bundle that was verified.
pub(super) fn judge(report: Report, asked: &Asked) -> Verdict {
    let answer = report.answer();
    let verified = matches!(answer, Answer::Valid | Answer::NotSucceeded);
    let found = match report.faults.first() {
        Some(fault) => format!("{}: {} {}: {}", fault.rule.name(), fault.file, fault.field, fault.what),
        None => "it is what was sealed".to_owned(),
    };
    let mut decisions = vec![Decision { rule: "verify", item: String::new(), passed: verified, found }];
    if let Some(bundle) = report.bundle.as_ref().filter(|_| verified) {
        decisions.extend(rules(bundle, &report.addenda, asked));
        decisions.extend(drift(&report, asked));
    }
    let engines = report.bundle.as_ref().map(engines).unwrap_or_default();
    let job = report.bundle.map(|bundle| bundle.evidence.job);
    Verdict { bundle: report.path, job, answer, decisions, engines }
}

/// Judges a job by the last attempt at it, and tells of all of them.
pub(super) fn judge_last(mut tried: Tried, asked: &Asked) -> Verdict {
    let answer = tried.answer();
    let mut found: Vec<String> =
        tried.attempts.iter().zip(1..).map(|(report, number)| attempt(report, number)).collect();
    let fault = tried.faults.first();
    found.extend(
        fault.map(|fault| format!("{}: {} {}: {}", fault.rule.name(), fault.file, fault.field, fault.what)),
    );
    let of_attempts = Decision {
        rule: ATTEMPTS,
        item: String::new(),
        passed: matches!(answer, Answer::Valid | Answer::NotSucceeded),
        found: found.join("; "),
    };
    // A folder of attempts has at least one.
    let last = tried.attempts.pop().map(|last| judge(last, asked));
    let mut decisions = last.as_ref().map(|last| last.decisions.clone()).unwrap_or_default();
    decisions.retain(|decision| decision.rule != ATTEMPTS);
    decisions.push(of_attempts);
    let (job, engines) = last.map(|last| (last.job, last.engines)).unwrap_or_default();
    Verdict { bundle: tried.path, job, answer, decisions, engines }
}

/// What became of an attempt, in a few words.
fn attempt(report: &Report, number: u32) -> String {
    let found = match &report.bundle {
        Some(bundle) => came_to(bundle.evidence.state, bundle.evidence.cause.as_deref()),
        None => "it cannot be read".to_owned(),
    };
    format!("attempt {number}: {found}")
}

/// What is to be said of an attempt that is judged without the others.
fn one_of_several(evidence: &Evidence) -> Option<Decision> {
    let number = evidence.header.attempt.as_ref()?.number;
    let found =
        format!("it is attempt {number}, judged alone; give the folder of all attempts to see the others");
    Some(Decision { rule: ATTEMPTS, item: String::new(), passed: true, found })
}

fn rules(bundle: &Bundle, addenda: &[Addendum], asked: &Asked) -> Vec<Decision> {
    let Asked { policy, now, .. } = asked;
    let (evidence, summary) = (&bundle.evidence, &bundle.summary);
    let decide = |rule, passed, found: String| Decision { rule, item: String::new(), passed, found };
    let mut made = vec![decide(
        "states",
        policy.states.contains(&evidence.state),
        came_to(evidence.state, evidence.cause.as_deref()),
    )];
    made.extend(one_of_several(evidence));
    if policy.observed {
        made.push(decide(
            "observed",
            !evidence.builds.is_empty(),
            format!("{} builds", evidence.builds.len()),
        ));
    }
    if !policy.simulated {
        let simulated = summary.tensorrt_version.contains("(simulated)");
        made.push(decide("simulated", !simulated, summary.tensorrt_version.clone()));
    }
    made.extend(policy.criteria.iter().map(|&number| criterion(bundle, number)));
    if let Some(most) = policy.max_cancel_latency_ms {
        let took = summary.cancel_latency_ms;
        let found = took.map_or("nothing was acknowledged".to_owned(), |ms| format!("{ms} ms"));
        // Where nobody asked there is nothing to measure.
        let passed = took.map_or(summary.cancel_source.is_none(), |ms| ms <= most);
        made.push(decide("max_cancel_latency_ms", passed, found));
    }
    if !policy.gpu_skus.is_empty() {
        let passed = summary.gpu_sku.as_ref().is_some_and(|sku| policy.gpu_skus.contains(sku));
        made.push(decide(
            "gpu_skus",
            passed,
            summary.gpu_sku.clone().unwrap_or_else(|| "none is known".to_owned()),
        ));
    }
    if !policy.tensorrt_versions.is_empty() {
        let version = &summary.tensorrt_version;
        let passed = policy.tensorrt_versions.iter().any(|start| version.starts_with(start));
        made.push(decide("tensorrt_versions", passed, version.clone()));
    }
    if let Ok(Some(most)) = policy.max_age() {
        let age = DateTime::parse_from_rfc3339(&evidence.started_at).ok();
        let age = age.and_then(|at| (*now - at.with_timezone(&Utc)).to_std().ok());
        // A job of the future has a wrong clock, and no age that could be relied on.
        made.push(decide(
            "max_age",
            age.is_some_and(|age| age <= most),
            format!("started at {}", evidence.started_at),
        ));
    }
    if policy.validated {
        made.push(validated(summary.validation_status, addenda));
    }
    made
}

/// A criterion in every build: it holds or does not apply.
fn criterion(bundle: &Bundle, number: usize) -> Decision {
    let mut found = CRITERIA[number - 1].to_owned();
    let mut wrong_in = 0;
    for on in findings(bundle) {
        let wrong = match &on.findings[number - 1] {
            Finding::Held | Finding::NotApplicable(_) => continue,
            Finding::Failed(why) | Finding::NotJudged(why) => why,
        };
        wrong_in += 1;
        if wrong_in <= BUILDS {
            found.extend(["; ", &on.whose.to_string(), ": ", wrong]);
        }
    }
    if wrong_in > BUILDS {
        found.push_str("; and in further builds");
    }
    let item = CRITERIA[number - 1].to_owned();
    Decision { rule: "criteria", item, passed: wrong_in == 0, found }
}

fn validated(in_the_job: ValidationStatus, addenda: &[Addendum]) -> Decision {
    let later = addenda.iter().rev().find(|addendum| addendum.kind == Kind::Validation);
    let (passed, found) = match (later, in_the_job) {
        (Some(later), _) => (later.status == Status::Pass, format!("addendum {}", later.number)),
        (None, ValidationStatus::Pass) => (true, "in the job".to_owned()),
        (None, _) => (false, "no validation has passed".to_owned()),
    };
    Decision { rule: "validated", item: String::new(), passed, found }
}

/// The fields that must be those of the reference.
fn drift(report: &Report, asked: &Asked) -> Vec<Decision> {
    let Some(reference) = asked.reference else { return Vec::new() };
    let own = baseline(report);
    let decide = |pointer: &String| {
        let (wanted, found) = match &own {
            Ok(own) => (reference.pointer(pointer), own.pointer(pointer)),
            Err(why) => {
                return Decision { rule: "drift", item: pointer.clone(), passed: false, found: why.clone() };
            }
        };
        let text = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
        let found_text = format!("{pointer}: {}, the reference has {}", text(found), text(wanted));
        Decision {
            rule: "drift",
            item: pointer.clone(),
            passed: found.is_some() && found == wanted,
            found: found_text,
        }
    };
    asked.policy.drift.iter().map(decide).collect()
}

/// The baseline of a bundle that was verified.
pub(super) fn baseline(report: &Report) -> Result<Value, String> {
    let bundle = report.bundle.as_ref().ok_or("nothing follows from its log")?;
    let baseline = bundle.baseline.as_ref().map_err(Clone::clone)?;
    serde_json::to_value(baseline).map_err(|e| e.to_string())
}

/// Digests of the engines that were published.
fn engines(bundle: &Bundle) -> Vec<String> {
    let published = bundle.inventory.artifacts.iter().filter(|artifact| {
        artifact.kind == ArtifactKind::Engine && artifact.outcome == Some(ArtifactOutcome::Published)
    });
    published.filter_map(|artifact| artifact.after.as_ref()?.sha256.clone()).collect()
}
