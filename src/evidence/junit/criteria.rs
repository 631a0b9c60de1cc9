//! The eight criteria of the Stuck-Build Acceptance Test, judged on the evidence alone.

use crate::baseline::Baseline;
use crate::event::{ArtifactKind, ArtifactOutcome, InputKind};
use crate::evidence::config;
use crate::evidence::derive::FOREIGN_STATE;
use crate::evidence::{Build, BuildPhases, End, Evidence, Input, Inventory, JobState};

/// What became of a criterion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It holds.
    Held,
    /// It does not, for this reason.
    Failed(String),
    /// It says nothing about this build, for this reason.
    NotApplicable(String),
    /// This version cannot tell, for this reason.
    NotJudged(String),
}

use Finding::{Failed, Held, NotApplicable, NotJudged};

/// What is known of one build.
pub(super) struct Case<'a> {
    pub(super) evidence: &'a Evidence,
    pub(super) build: &'a Build,
    pub(super) phases: Option<&'a BuildPhases>,
    pub(super) inventory: &'a Inventory,
    pub(super) baseline: Result<&'a Baseline, &'a String>,
}

/// The criteria's names, in their order.
pub const NAMES: [&str; 8] = [
    "1 baseline",
    "2 phase tree",
    "3 one cancellation state",
    "4 cooperative acknowledgement",
    "5 honest terminal state",
    "6 artifacts",
    "7 timing cache",
    "8 recovery",
];

/// The findings on a build, in the order of the names.
pub(super) fn of_build(case: &Case) -> [Finding; 8] {
    [
        baseline(case),
        phase_tree(case),
        one_state(case.evidence),
        acknowledgement(case.evidence, case.build),
        terminal_state(case.evidence),
        artifacts(case.evidence, case.inventory),
        timing_cache(case),
        recovery(case.evidence),
    ]
}

/// The findings on a job in which no build was seen.
pub(super) fn of_job(evidence: &Evidence, inventory: &Inventory) -> [Finding; 8] {
    let unseen = || NotApplicable("no build was observed".to_owned());
    [
        unseen(),
        unseen(),
        one_state(evidence),
        unseen(),
        terminal_state(evidence),
        artifacts(evidence, inventory),
        unseen(),
        recovery(evidence),
    ]
}

fn baseline(case: &Case) -> Finding {
    let baseline = match case.baseline {
        Ok(baseline) => baseline,
        Err(why) => return Failed(why.clone()),
    };
    let first = case.phases.and_then(|build| {
        let starts = build.phases.iter().map(|phase| phase.start_ms);
        Some(build.started_ns + (starts.min_by(f64::total_cmp)? * 1e6) as u64)
    });
    if first.is_some_and(|first| baseline.t_ns > first) {
        return Failed("baseline.json was complete only after the first phase had begun".to_owned());
    }
    match (&case.build.library, &case.build.facts) {
        (None, _) => Failed("the library that built is not known".to_owned()),
        (_, None) => Failed("what the builder was given to build is not on record".to_owned()),
        (_, Some(facts)) if facts.incomplete => {
            Failed("what the builder was given to build is on record in part only".to_owned())
        }
        _ => inputs(&case.evidence.inputs, first),
    }
}

/// That every input was looked at before the first phase, and that what is in it is known.
fn inputs(inputs: &[Input], first: Option<u64>) -> Finding {
    let mut files = inputs.iter().filter(|input| input.kind != InputKind::Library).peekable();
    if files.peek().is_none() {
        return NotJudged(
            "host, GPU, library and configuration were recorded before the first phase, but no input is known: the \
             command names no ONNX file, and none was declared with --input"
                .to_owned(),
        );
    }
    if let Err(why) = config::contents(inputs) {
        return Failed(why);
    }
    match files.find(|input| first.is_some_and(|first| input.t_ns > first)) {
        Some(late) => {
            Failed(format!("the input {} was looked at only after the first phase had begun", late.path))
        }
        None => Held,
    }
}

fn phase_tree(case: &Case) -> Finding {
    if let Some(lost) = case.evidence.lost.first() {
        return Failed(format!("a part of the record was lost: {}", lost.reason));
    }
    let phases = case.phases.map_or(&[][..], |build| &build.phases);
    let orphan = phases.iter().find_map(|phase| Some((phase, phase.unknown_parent.as_ref()?)));
    if let Some((phase, parent)) = orphan {
        return Failed(format!("{} names a parent that was not open: {parent}", phase.name));
    }
    if let Some(open) = phases.iter().find(|phase| phase.end == End::Open) {
        return Failed(format!("{} was never closed", open.name));
    }
    if phases.is_empty() {
        return NotApplicable("the builder reported no phase".to_owned());
    }
    Held
}

fn one_state(evidence: &Evidence) -> Finding {
    let requests = &evidence.requests;
    if requests.is_empty() {
        return NotApplicable("nobody asked for a stop".to_owned());
    }
    if requests.iter().zip(1..).any(|(request, number)| request.request != number) {
        return Failed("the numbers of the requests leave one out".to_owned());
    }
    if !requests[0].accepted || requests.iter().skip(1).any(|request| request.accepted) {
        return Failed("another request than the first was accepted".to_owned());
    }
    if let Some(open) = requests.iter().find(|request| request.outcome.is_none()) {
        return Failed(format!("request {} has no outcome", open.request));
    }
    Held
}

fn acknowledgement(evidence: &Evidence, build: &Build) -> Finding {
    if !evidence.requests.iter().any(|request| request.accepted) {
        return NotApplicable("nobody asked for a stop".to_owned());
    }
    let noted = |note: &str| build.notes.iter().any(|n| n == note);
    match (build.request_to_ack_ms, evidence.header.grace_ms) {
        (Some(ms), Some(limit)) if ms > limit as f64 => {
            Failed(format!("acknowledged after {ms} ms, later than the limit of {limit} ms"))
        }
        (Some(_), _) => Held,
        (None, _) if noted("too_late") => {
            NotApplicable("the request came after the last step that could answer it".to_owned())
        }
        (None, _) if noted("undelivered") => {
            let end = build.cause.as_deref().unwrap_or("unknown");
            Failed(format!("no step answered the request; what ended the build: {end}"))
        }
        (None, _) if !evidence.finished => Failed("the request has not been answered".to_owned()),
        (None, _) => NotApplicable("the build was over when the request came".to_owned()),
    }
}

fn terminal_state(evidence: &Evidence) -> Finding {
    if !evidence.finished {
        return Failed("the log has no end".to_owned());
    }
    if evidence.notes.iter().any(|note| note == FOREIGN_STATE) {
        return Failed(FOREIGN_STATE.to_owned());
    }
    Held
}

fn artifacts(evidence: &Evidence, inventory: &Inventory) -> Finding {
    if inventory.artifacts.is_empty() {
        return NotJudged(
            "no artifact was declared (--engine); look at the engine's path yourself".to_owned(),
        );
    }
    let succeeded = evidence.state == JobState::Succeeded;
    for artifact in &inventory.artifacts {
        let Some(outcome) = artifact.outcome else {
            return Failed(format!("{} has not been put in order", artifact.path));
        };
        if outcome == ArtifactOutcome::Failed || (succeeded && artifact.fault.is_some()) {
            return Failed(artifact.reason.clone().unwrap_or_default());
        }
        if outcome == ArtifactOutcome::Published && !succeeded {
            return Failed(format!("{} was published, although the job did not succeed", artifact.path));
        }
        if let Some(other) = artifact.undeclared.first().filter(|_| !succeeded) {
            return Failed(format!(
                "{other} was written meanwhile, looks like an engine and was not declared"
            ));
        }
    }
    Held
}

fn timing_cache(case: &Case) -> Finding {
    let declared =
        case.inventory.artifacts.iter().find(|artifact| artifact.kind == ArtifactKind::TimingCache);
    let rtx = case.build.library.as_ref().is_some_and(|library| library.starts_with("TensorRT-RTX"));
    let asked = case.build.facts.as_ref().and_then(|facts| facts.timing_cache_attached);
    match (declared, asked) {
        _ if rtx => NotApplicable("TensorRT-RTX has no timing cache".to_owned()),
        (Some(cache), _) if cache.outcome == Some(ArtifactOutcome::Failed) => {
            Failed(cache.reason.clone().unwrap_or_default())
        }
        (Some(cache), _) if cache.timing_cache.is_none() => {
            Failed(format!("{} has not been put in order", cache.path))
        }
        (Some(_), _) | (None, Some(false)) => Held,
        (None, Some(true)) => {
            Failed("a timing cache was attached that nobody declared (--timing-cache)".to_owned())
        }
        (None, None) => NotJudged("the builder could not be asked for its timing cache".to_owned()),
    }
}

fn recovery(evidence: &Evidence) -> Finding {
    if !evidence.finished {
        return Failed("the log has no end: processes of the job may still run".to_owned());
    }
    let succeeded = evidence.state == JobState::Succeeded;
    if let Some(left) = evidence.leftovers.iter().find(|leftover| !succeeded && leftover.action == "left") {
        return Failed(format!("process {} ({}) was still there after the job", left.pid, left.name));
    }
    NotJudged(
        "no process of the job is known to have outlived it; this version reads no GPU memory afterwards"
            .to_owned(),
    )
}
