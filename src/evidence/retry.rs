//! The recommendation: what to do next, and why. A function of the evidence and the inventory and of nothing else.
//!
//! | what became of the job | recommendation |
//! |---|---|
//! | succeeded | none |
//! | succeeded, but the check of the engine failed | `rollback` where the previous engine is intact, else `investigate` |
//! | succeeded, but the check did not come to its end | as a cancelled one |
//! | not succeeded, and it and an earlier job stalled in one phase | `investigate`, with what to try |
//! | cancelled | `retry_with_cache` where a declared timing cache is whole, else `retry_cold` |
//! | killed by us or by the host, or the runner was lost | `retry_cold`: whoever wrote the cache was killed |
//! | an artifact could not be put where it belongs | `rollback` where the previous engine is intact, else `investigate` |
//! | anything else: builder, crash, memory, command, evidence | `investigate`: the same again would end the same |

use super::inventory::{Artifact, Inventory};
use super::summary::RetryPolicy;
use super::{Evidence, JobState};
use crate::event::{ArtifactKind, ArtifactOutcome, ValidationStatus};
use crate::verdict::ARTIFACT;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What to do next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Retry {
    /// The recommendation; null after a success and before the end.
    pub policy: Option<RetryPolicy>,
    /// Its reasons.
    pub reasons: Vec<String>,
}

/// The recommendation.
pub(super) fn of(evidence: &Evidence, inventory: &Inventory) -> Retry {
    let validation = evidence.validation.as_ref().map(|validation| validation.status);
    let cause = evidence.cause.as_deref().unwrap_or("no cause is on record");
    match (evidence.state, validation) {
        (JobState::Running | JobState::Cancelling, _) => none("the job has not ended"),
        (JobState::Succeeded, Some(ValidationStatus::Fail)) => {
            back(inventory, "the check of the engine failed")
        }
        (JobState::Succeeded, Some(ValidationStatus::Pending)) => {
            again(inventory, "the check of the engine did not come to its end")
        }
        (JobState::Succeeded, _) => none("the job succeeded"),
        (_, _) if let Some(stalled) = stalled_again(evidence) => stalled,
        (JobState::Cancelled, _) => again(inventory, "the build was stopped, and nothing was wrong with it"),
        (JobState::Failed, _) => match cause {
            "killed_by_runner" | "killed_by_host" | "runner_lost" => Retry {
                policy: Some(RetryPolicy::RetryCold),
                reasons: vec![
                    format!("something stopped the build ({cause}), and no error of its own is known"),
                    "whoever is killed may leave a timing cache half written".to_owned(),
                ],
            },
            ARTIFACT => back(inventory, "an artifact could not be put where it belongs"),
            _ => investigate(
                inventory,
                &format!("the cause is {cause}: the same again would end the same way"),
            ),
        },
    }
}

/// Where the same phase has stalled before, another try would most likely stall as well.
fn stalled_again(evidence: &Evidence) -> Option<Retry> {
    let stalled =
        evidence.silences.stalls.iter().map(|judged| &judged.facts).find(|f| f.earlier_stalls > 0)?;
    let name = stalled.phase_name.as_deref().unwrap_or("one phase");
    let reasons = vec![
        format!("this build and {} earlier stalled in \"{name}\"", stalled.earlier_stalls),
        "try a reduced tactic search: a lower builder optimization level, or fewer tactic sources".to_owned(),
        "try without the timing cache: what it assumes may hold no more on this GPU or driver".to_owned(),
        "check the target GPU: that it is the one that the build is made for, and that nothing else holds it"
            .to_owned(),
    ];
    Some(Retry { policy: Some(RetryPolicy::Investigate), reasons })
}

fn none(why: &str) -> Retry {
    Retry { policy: None, reasons: vec![why.to_owned()] }
}

fn again(inventory: &Inventory, why: &str) -> Retry {
    let caches = || inventory.artifacts.iter().filter(|a| a.kind == ArtifactKind::TimingCache);
    let whole = |cache: &Artifact| {
        let there = cache.after.as_ref().is_some_and(|after| after.bytes > 0);
        there
            && cache.fault.is_none()
            && matches!(cache.outcome, Some(ArtifactOutcome::Kept | ArtifactOutcome::Restored))
    };
    let (policy, cache) = match (caches().next().is_some(), caches().all(whole)) {
        (true, true) => (RetryPolicy::RetryWithCache, "the timing cache is as it was before the job"),
        (true, false) => (RetryPolicy::RetryCold, "the timing cache is not known to be whole"),
        (false, _) => (RetryPolicy::RetryCold, "no timing cache was declared"),
    };
    Retry { policy: Some(policy), reasons: vec![why.to_owned(), cache.to_owned()] }
}

fn back(inventory: &Inventory, why: &str) -> Retry {
    if !has_rollback(inventory) {
        return investigate(inventory, why);
    }
    let intact = "the previous engine is at its path, byte for byte".to_owned();
    Retry { policy: Some(RetryPolicy::Rollback), reasons: vec![why.to_owned(), intact] }
}

fn investigate(inventory: &Inventory, why: &str) -> Retry {
    let mut reasons = vec![why.to_owned()];
    if has_rollback(inventory) {
        reasons.push("the previous engine is at its path meanwhile, byte for byte".to_owned());
    }
    Retry { policy: Some(RetryPolicy::Investigate), reasons }
}

/// Whether there is something to go back to: every engine of the job is known to be what it was before.
fn has_rollback(inventory: &Inventory) -> bool {
    let mut engines = inventory.artifacts.iter().filter(|a| a.kind == ArtifactKind::Engine).peekable();
    engines.peek().is_some() && engines.all(Artifact::is_intact)
}
