//! The eight criteria of the Stuck-Build Acceptance Test, judged on the evidence alone.
//!
//! What is the same for every build of a job is found out once, however many builds there are, and no reason is longer
//! than a person reads: it stands at each of them.

use crate::baseline::Baseline;
use crate::event::{ArtifactKind, ArtifactOutcome, InputKind};
use crate::evidence::config;
use crate::evidence::derive::FOREIGN_STATE;
use crate::evidence::summary::cut;
use crate::evidence::{Artifact, Build, BuildPhases, End, Evidence, Input, Inventory, JobState, Phases};
use std::fmt;

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

/// The longest reason, characters.
const LONGEST_REASON: usize = 2_000;

/// What became of the criteria in one build, in many builds together, or in a job without any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// Whose they are.
    pub whose: Whose,
    /// A finding on each criterion, in the order of [`NAMES`].
    pub findings: [Finding; 8],
}

/// Whose findings they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Those of a job in which no build was seen.
    Job,
    /// Those of the build of this number.
    Build(u32),
    /// Those of so many builds together, which are not told one by one.
    Others(usize),
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Job => f.write_str("job"),
            Self::Build(number) => write!(f, "build {number}"),
            Self::Others(builds) => write!(f, "the other {builds} builds"),
        }
    }
}

/// What is known of the job.
pub(super) struct Grounds<'a> {
    evidence: &'a Evidence,
    baseline: Result<&'a Baseline, Finding>,
    inputs: Inputs<'a>,
    cache: Option<&'a Artifact>,
    /// Why the phase tree of no build can be whole.
    lost: Option<Finding>,
    asked: bool,
    one_state: Finding,
    terminal_state: Finding,
    artifacts: Finding,
    recovery: Finding,
}

/// What is known of the files that the builds were made from.
enum Inputs<'a> {
    /// There are none.
    None,
    /// What is in one of them is not known.
    Unknown(Finding),
    /// What is in them is known; this one was looked at last.
    Known(&'a Input),
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

impl Finding {
    /// With a reason that can stand at every build.
    fn short(self) -> Self {
        match self {
            Held => Held,
            Failed(why) => Failed(cut(&why, LONGEST_REASON)),
            NotApplicable(why) => NotApplicable(cut(&why, LONGEST_REASON)),
            NotJudged(why) => NotJudged(cut(&why, LONGEST_REASON)),
        }
    }
}

impl<'a> Grounds<'a> {
    pub(super) fn of(
        evidence: &'a Evidence,
        inventory: &'a Inventory,
        baseline: Result<&'a Baseline, &'a String>,
    ) -> Self {
        let lost = evidence.lost.first();
        let lost = lost.map(|lost| Failed(format!("a part of the record was lost: {}", lost.reason)).short());
        Self {
            evidence,
            baseline: baseline.map_err(|why| Failed(why.clone()).short()),
            inputs: Inputs::of(&evidence.inputs),
            cache: inventory.artifacts.iter().find(|artifact| artifact.kind == ArtifactKind::TimingCache),
            lost,
            asked: evidence.requests.iter().any(|request| request.accepted),
            one_state: one_state(evidence).short(),
            terminal_state: terminal_state(evidence).short(),
            artifacts: artifacts(evidence, inventory).short(),
            recovery: recovery(evidence).short(),
        }
    }

    /// The findings on a job: on each of its first builds, and on all others together.
    pub(super) fn findings(&self, builds: &[Build], phases: &Phases, most: usize) -> Vec<Findings> {
        if builds.is_empty() {
            return vec![Findings { whose: Whose::Job, findings: self.of_job() }];
        }
        let of_build = |build: &Build| Findings {
            whose: Whose::Build(build.build),
            findings: self.of_build(build, phases.of_build(build.build)),
        };
        let (first, others) = builds.split_at(builds.len().min(most));
        let mut all: Vec<Findings> = first.iter().map(of_build).collect();
        if let Some(findings) = others.iter().map(of_build).map(in_one).reduce(worse_of_each) {
            all.push(Findings { whose: Whose::Others(others.len()), findings });
        }
        all
    }

    /// The findings on a build, in the order of the names.
    fn of_build(&self, build: &Build, phases: Option<&BuildPhases>) -> [Finding; 8] {
        [
            baseline(self, build, phases).short(),
            phase_tree(self, phases).short(),
            self.one_state.clone(),
            acknowledgement(self, build).short(),
            self.terminal_state.clone(),
            self.artifacts.clone(),
            timing_cache(self, build).short(),
            self.recovery.clone(),
        ]
    }

    /// The findings on a job in which no build was seen.
    fn of_job(&self) -> [Finding; 8] {
        let unseen = || NotApplicable("no build was observed".to_owned());
        [
            unseen(),
            unseen(),
            self.one_state.clone(),
            unseen(),
            self.terminal_state.clone(),
            self.artifacts.clone(),
            unseen(),
            self.recovery.clone(),
        ]
    }
}

/// The findings on a build among many, each with its number.
fn in_one(Findings { whose, findings }: Findings) -> [Finding; 8] {
    findings.map(|finding| match finding {
        Failed(why) => Failed(format!("{whose}: {why}")),
        NotJudged(why) => NotJudged(format!("{whose}: {why}")),
        held => held,
    })
}

/// What is to be said of two builds together: of each criterion the worse finding, and of equals the first.
fn worse_of_each(mut one: [Finding; 8], other: [Finding; 8]) -> [Finding; 8] {
    let badness = |finding: &Finding| match finding {
        NotApplicable(_) => 0,
        Held => 1,
        NotJudged(_) => 2,
        Failed(_) => 3,
    };
    for (one, other) in one.iter_mut().zip(other) {
        if badness(&other) > badness(one) {
            *one = other;
        }
    }
    one
}

impl<'a> Inputs<'a> {
    fn of(inputs: &'a [Input]) -> Self {
        let files = inputs.iter().filter(|input| input.kind != InputKind::Library);
        match (files.max_by_key(|input| input.t_ns), config::contents(inputs)) {
            (None, _) => Self::None,
            (_, Err(why)) => Self::Unknown(Failed(why).short()),
            (Some(last), Ok(_)) => Self::Known(last),
        }
    }
}

fn baseline(grounds: &Grounds, build: &Build, phases: Option<&BuildPhases>) -> Finding {
    let baseline = match &grounds.baseline {
        Ok(baseline) => baseline,
        Err(failed) => return failed.clone(),
    };
    let first = phases.and_then(|build| {
        let starts = build.phases.iter().map(|phase| phase.start_ms);
        Some(build.started_ns + (starts.min_by(f64::total_cmp)? * 1e6) as u64)
    });
    if first.is_some_and(|first| baseline.t_ns > first) {
        return Failed("baseline.json was complete only after the first phase had begun".to_owned());
    }
    match (&build.library, &build.facts) {
        (None, _) => Failed("the library that built is not known".to_owned()),
        (_, None) => Failed("what the builder was given to build is not on record".to_owned()),
        (_, Some(facts)) if facts.incomplete => {
            Failed("what the builder was given to build is on record in part only".to_owned())
        }
        _ => inputs(&grounds.inputs, first),
    }
}

/// That every input was looked at before the first phase, and that what is in it is known.
fn inputs(inputs: &Inputs, first: Option<u64>) -> Finding {
    match inputs {
        Inputs::None => NotJudged(
            "host, GPU, library and configuration were recorded before the first phase, but no input is known: the \
             command names no ONNX file, and none was declared with --input"
                .to_owned(),
        ),
        Inputs::Unknown(failed) => failed.clone(),
        Inputs::Known(last) if first.is_some_and(|first| last.t_ns > first) => {
            let path = cut(&last.path, LONGEST_REASON);
            Failed(format!("the input {path} was looked at only after the first phase had begun"))
        }
        Inputs::Known(_) => Held,
    }
}

fn phase_tree(grounds: &Grounds, phases: Option<&BuildPhases>) -> Finding {
    if let Some(lost) = &grounds.lost {
        return lost.clone();
    }
    let phases = phases.map_or(&[][..], |build| &build.phases);
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

fn acknowledgement(grounds: &Grounds, build: &Build) -> Finding {
    let evidence = grounds.evidence;
    if !grounds.asked {
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

fn timing_cache(grounds: &Grounds, build: &Build) -> Finding {
    let rtx = build.library.as_ref().is_some_and(|library| library.starts_with("TensorRT-RTX"));
    let asked = build.facts.as_ref().and_then(|facts| facts.timing_cache_attached);
    match (grounds.cache, asked) {
        _ if rtx => NotApplicable("TensorRT-RTX has no timing cache".to_owned()),
        (Some(cache), _) if cache.outcome == Some(ArtifactOutcome::Failed) => {
            Failed(cut(cache.reason.as_deref().unwrap_or_default(), LONGEST_REASON))
        }
        (Some(cache), _) if cache.timing_cache.is_none() => {
            Failed(format!("{} has not been put in order", cut(&cache.path, LONGEST_REASON)))
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
