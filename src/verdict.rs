//! The state table: what became of each build, and of the job.
//!
//! Only the record decides: what the builder returned, whether our monitor answered a request, how the command ended,
//! and what we did to it ourselves. No message, no progress and no exit code of a build's own making is believed.

use crate::clock::Mono;
use crate::event::{CancelRequested, CommandExited, Event, EventKind, LadderRung, State, ValidationStatus};
use crate::exit::{self, End};
use std::collections::{BTreeMap, BTreeSet};

/// How the reason of a rung begins that was climbed in the place of a runner that died.
pub const RUNNER_LOST: &str = "the runner was lost";

/// The cause of a job that fails because a part of its record is missing.
pub const EVIDENCE_LOST: &str = "evidence_lost";

/// The cause of a job that fails because an artifact could not be put where it belongs.
pub const ARTIFACT: &str = "artifact";

/// What became of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The job's state.
    pub state: State,
    /// Its cause; `None` after a success.
    pub cause: Option<String>,
    /// Whether any builder was observed.
    pub observed: bool,
    /// The build that decides: the worst, and among equals the last.
    pub decisive: Option<u32>,
    /// What became of the user's own check of the engine. It is apart from the state.
    pub validation: ValidationStatus,
    /// Every build in the order of its number; [`build`](Self::build) finds one.
    pub builds: Vec<BuildVerdict>,
    /// Every request in the order of arrival.
    pub requests: Vec<RequestOutcome>,
}

impl Verdict {
    /// The verdict on a build.
    #[must_use]
    pub fn build(&self, number: u32) -> Option<&BuildVerdict> {
        self.builds.binary_search_by_key(&number, |build| build.build).ok().map(|place| &self.builds[place])
    }

    /// The exit code that follows from it. `unknown` counts as the command's own where its end is not on record;
    /// `deadline` says whether the accepted request was the deadline, `own_fault` whether evidence was lost.
    #[must_use]
    pub fn exit_code(
        &self,
        exited: Option<&CommandExited>,
        unknown: u8,
        deadline: bool,
        own_fault: bool,
    ) -> u8 {
        let end = match exited {
            Some(CommandExited { signal: Some(signal), .. }) => End::Signal(*signal),
            Some(CommandExited { code: Some(code), .. }) => End::Code(u8::try_from(*code).unwrap_or(unknown)),
            _ => End::Code(unknown),
        };
        let valid = matches!(self.validation, ValidationStatus::NotApplicable | ValidationStatus::Pass);
        let succeeded = self.state == State::Succeeded && valid;
        exit::of_job(exit::Outcome { end, succeeded, deadline, own_fault })
    }

    /// Nothing for a success; else what became of the job, in words.
    ///
    /// # Errors
    /// Those words.
    pub fn as_success(&self) -> Result<(), String> {
        let cause = self.cause.as_deref().unwrap_or("no cause is known");
        match self.state {
            State::Succeeded => Ok(()),
            State::Cancelled => Err(format!("the job was cancelled ({cause})")),
            State::Failed => Err(format!("the job failed ({cause})")),
        }
    }
}

/// What became of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildVerdict {
    /// The build.
    pub build: u32,
    /// Its state.
    pub state: State,
    /// Its cause; `None` after a success.
    pub cause: Option<String>,
    /// `too_late`, `undelivered`, `builder_return_unobserved`.
    pub notes: Vec<&'static str>,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestOutcome {
    /// Its number.
    pub request: u32,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A builder answered it and returned no engine.
    Delivered,
    /// An engine was returned all the same.
    TooLate,
    /// No builder answered it.
    Undelivered,
    /// Another request was first; this one changed nothing.
    RecordedOnly,
}

impl Outcome {
    /// As evidence says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::TooLate => "too_late",
            Self::Undelivered => "undelivered",
            Self::RecordedOnly => "recorded_only",
        }
    }
}

/// Judges the events of a job: all of them, before or after `jobEnded`.
#[must_use]
pub fn judge(events: &[Event]) -> Verdict {
    let mut judge = Judge::default();
    for event in events {
        judge.see(event);
    }
    judge.verdict()
}

/// Judges a job event by event, with memory for its builds and requests only.
#[derive(Debug, Default)]
pub struct Judge {
    observed: bool,
    builds: BTreeMap<u32, Build>,
    /// Every request's number, and whether it was accepted.
    requests: Vec<(u32, bool)>,
    /// The one that counts: the first that was accepted.
    accepted: Option<(Mono, CancelRequested)>,
    command: Option<u32>,
    exit: Option<(Mono, CommandExited)>,
    /// When our ladder first signalled, by the clock.
    signalled: Option<Mono>,
    /// Whether somebody climbed the ladder in the runner's place.
    runner_lost: bool,
    lost: bool,
    /// Faults of artifacts that no success may have.
    artifact_faults: u32,
    /// What became of the user's own check, where one was asked for.
    validation: Option<ValidationStatus>,
}

#[derive(Debug)]
struct Build {
    pid: u32,
    /// The request that our monitor answered first.
    answered: Option<u32>,
    /// Whether the application's monitor said false before ours did.
    declined: bool,
    returned: Option<(Mono, bool)>,
}

impl Judge {
    /// Takes the next event.
    pub fn see(&mut self, event: &Event) {
        match &event.kind {
            EventKind::CommandStarted(command) => self.command = Some(command.pid),
            EventKind::LibraryAttached(_) => self.observed = true,
            EventKind::BuildStarted(start) => {
                self.observed = true;
                let build = Build { pid: start.pid, answered: None, declined: false, returned: None };
                self.builds.entry(start.build).or_insert(build);
            }
            EventKind::StepCompleted(step) if step.answered.is_some() => {
                if let Some(build) = self.builds.get_mut(&step.build) {
                    build.answered = build.answered.or(step.answered);
                }
            }
            EventKind::ApplicationDeclined(declined) => {
                if let Some(build) = self.builds.get_mut(&declined.build) {
                    build.declined |= build.answered.is_none();
                }
            }
            EventKind::BuildReturned(returned) => {
                if let Some(build) = self.builds.get_mut(&returned.build) {
                    build.returned = Some((event.at, returned.engine));
                }
            }
            EventKind::CancelRequested(request) => {
                self.requests.push((request.request, request.accepted));
                if request.accepted && self.accepted.is_none() {
                    self.accepted = Some((event.at, request.clone()));
                }
            }
            EventKind::LadderRung(LadderRung { group, why, .. }) => {
                let at = group.map(|_| event.at);
                self.signalled = self.signalled.into_iter().chain(at).min();
                self.runner_lost |= why.starts_with(RUNNER_LOST);
            }
            EventKind::CommandExited(exit) => self.exit = Some((event.at, exit.clone())),
            EventKind::EvidenceLost(_) => self.lost = true,
            EventKind::ArtifactDeclared(declared) if declared.must_validate => {
                self.validation.get_or_insert(ValidationStatus::Pending);
            }
            EventKind::EngineValidated(validated) => self.validation = Some(validated.status),
            EventKind::ArtifactSettled(settled) => self.artifact_faults += u32::from(settled.fault.is_some()),
            _ => {}
        }
    }

    /// The verdict on what was seen so far, as if nothing more came.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let builds: Vec<BuildVerdict> =
            self.builds.iter().map(|(&number, build)| self.build(number, build)).collect();
        let decisive = builds.iter().max_by_key(|build| (badness(build.state), build.build));
        let (state, cause) = match decisive {
            _ if self.lost => (State::Failed, Some(EVIDENCE_LOST.to_owned())),
            None => self.without_build(),
            Some(worst) if worst.state == State::Succeeded => self.after_success(),
            Some(worst) => (worst.state, worst.cause.clone()),
        };
        let spoilt = state == State::Succeeded && self.artifact_faults > 0;
        let (state, cause) = if spoilt { (State::Failed, Some(ARTIFACT.to_owned())) } else { (state, cause) };
        Verdict {
            state,
            cause,
            validation: self.validation.unwrap_or(ValidationStatus::NotApplicable),
            observed: self.observed,
            decisive: decisive.map(|build| build.build),
            requests: self.outcomes(),
            builds,
        }
    }

    /// The rows of the state table.
    fn build(&self, number: u32, build: &Build) -> BuildVerdict {
        let request = self.request_for(build);
        let delivered = request.is_some_and(|request| build.answered == Some(request.request));
        let engine = matches!(build.returned, Some((_, true)));
        let (state, cause) = match build.returned {
            Some((_, true)) => (State::Succeeded, None),
            Some((_, false)) => without_engine(build, request.filter(|_| delivered), "builder"),
            None => match self.death(build) {
                None => without_engine(build, request.filter(|_| delivered), "command"),
                Some(death) => (State::Failed, Some(death)),
            },
        };
        let too_late = (request.is_some() && engine).then_some("too_late");
        let undelivered = (request.is_some() && !engine && !delivered).then_some("undelivered");
        let unobserved = build.returned.is_none().then_some("builder_return_unobserved");
        let notes = [too_late, undelivered, unobserved].into_iter().flatten().collect();
        BuildVerdict { build: number, state, cause: cause.map(str::to_owned), notes }
    }

    /// The accepted request, where it came before the builder had returned.
    fn request_for(&self, build: &Build) -> Option<&CancelRequested> {
        let (at, request) = self.accepted.as_ref()?;
        build.returned.is_none_or(|(returned, _)| *at <= returned).then_some(request)
    }

    /// What ended the process of a build that was not seen to return; `None` where it ended by itself, with an exit.
    fn death(&self, build: &Build) -> Option<&'static str> {
        let Some((exited, exit)) = &self.exit else { return Some("runner_lost") };
        let own = self.command == Some(build.pid);
        if self.signalled.is_some_and(|signalled| !own || signalled <= *exited) {
            return Some(self.killer());
        }
        if own { exit.signal.map(|signal| signal_cause(signal, exit)) } else { death_of_another(exit) }
    }

    /// The job whose builds all succeeded: the command has the last word.
    fn after_success(&self) -> (State, Option<String>) {
        let cause = match &self.exit {
            None => "runner_lost",
            Some((_, CommandExited { code: Some(0), .. })) => return (State::Succeeded, None),
            Some((at, _)) if self.signalled.is_some_and(|signalled| signalled <= *at) => self.killer(),
            Some((_, exit)) => exit.signal.map_or("command", |signal| signal_cause(signal, exit)),
        };
        (State::Failed, Some(cause.to_owned()))
    }

    /// Why the ladder was climbed.
    fn killer(&self) -> &'static str {
        if self.runner_lost { "runner_lost" } else { "killed_by_runner" }
    }

    /// The job in which no build was seen.
    fn without_build(&self) -> (State, Option<String>) {
        match &self.exit {
            Some((_, CommandExited { code: Some(0), .. })) => (State::Succeeded, None),
            exit if exit.is_none() || self.runner_lost => (State::Failed, Some("runner_lost".to_owned())),
            _ => (State::Failed, Some("command".to_owned())),
        }
    }

    /// The outcome of every request. What is asked of the builds is asked once, however many requests there are.
    fn outcomes(&self) -> Vec<RequestOutcome> {
        let engine = |build: &&Build| matches!(build.returned, Some((_, true)));
        let without = || self.builds.values().filter(|build| !engine(build));
        let answered: BTreeSet<u32> = without().filter_map(|build| build.answered).collect();
        let missed = without().any(|build| self.request_for(build).is_some());
        let too_late = !missed && self.builds.values().any(|build| engine(&build));
        let outcome = |&(request, accepted)| {
            let outcome = match (accepted, answered.contains(&request)) {
                (false, _) => Outcome::RecordedOnly,
                (true, true) => Outcome::Delivered,
                (true, false) if too_late => Outcome::TooLate,
                (true, false) => Outcome::Undelivered,
            };
            RequestOutcome { request, outcome }
        };
        self.requests.iter().map(outcome).collect()
    }
}

/// A build that ended by itself and gave no engine; `delivered` is the request that our monitor answered.
fn without_engine(
    build: &Build,
    delivered: Option<&CancelRequested>,
    otherwise: &'static str,
) -> (State, Option<&'static str>) {
    match delivered {
        _ if build.declined => (State::Failed, Some("application_cancel")),
        Some(request) => (State::Cancelled, Some(request.source.name())),
        None => (State::Failed, Some(otherwise)),
    }
}

/// The fate of a process that is not the command's own, as far as the command's exit tells: shells say 128+n.
fn death_of_another(exit: &CommandExited) -> Option<&'static str> {
    let told = exit.code.map(|code| code - 128).filter(|signal| (1..=64).contains(signal));
    match exit.signal.or(told) {
        Some(signal) => Some(signal_cause(signal, exit)),
        None => exit.oom_kills.filter(|&kills| kills > 0).map(|_| "oom"),
    }
}

/// The cause that a signal of somebody else's stands for.
fn signal_cause(signal: i32, exit: &CommandExited) -> &'static str {
    const KILL: i32 = 9;
    const ILL_TRAP_ABRT_BUS_FPE_SEGV_SYS: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];
    if ILL_TRAP_ABRT_BUS_FPE_SEGV_SYS.contains(&signal) {
        "crash"
    } else if signal == KILL && exit.oom_kills.is_some_and(|kills| kills > 0) {
        "oom"
    } else {
        "killed_by_host"
    }
}

fn badness(state: State) -> u8 {
    match state {
        State::Succeeded => 0,
        State::Cancelled => 1,
        State::Failed => 2,
    }
}
