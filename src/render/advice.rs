//! What a state means and what to do next, in words for a tired reader.

use super::text::{Clean, Shade};
use crate::evidence::{Evidence, JobState};
use std::borrow::Cow;

/// What happened and what to do.
pub(super) struct Advice {
    pub what: Cow<'static, str>,
    pub next: Cow<'static, str>,
}

/// The word for a state and its shade.
pub(super) fn state(state: JobState) -> (&'static str, Shade) {
    match state {
        JobState::Running => ("running or lost", Shade::Warn),
        JobState::Cancelling => ("cancelling or lost", Shade::Warn),
        JobState::Succeeded => ("succeeded", Shade::Good),
        JobState::Cancelled => ("cancelled", Shade::Warn),
        JobState::Failed => ("failed", Shade::Bad),
    }
}

/// The advice on a job.
pub(super) fn of(evidence: &Evidence) -> Advice {
    match evidence.state {
        JobState::Running | JobState::Cancelling => advice(
            "The log has no end: the runner is still at work, or was lost.",
            "`stuckproof status` tells whether it still runs; where it was lost, `stuckproof finalize` finishes the bundle.",
        ),
        JobState::Succeeded => success(evidence),
        JobState::Cancelled => advice(
            "The builder acknowledged the stop and returned no engine.",
            "run it again when you like; do not use an engine file that the command left behind, it may be empty or old.",
        ),
        JobState::Failed => failure(evidence),
    }
}

fn success(evidence: &Evidence) -> Advice {
    let late = evidence.requests.iter().any(|request| request.outcome.as_deref() == Some("too_late"));
    if evidence.builds.is_empty() {
        advice(
            "The command said 0, but no build was seen: this says nothing about an engine.",
            "if it should have built one, check that it loads TensorRT as a shared library on this machine (not in a container).",
        )
    } else if late {
        advice(
            "The stop came too late: the builder returned its engine all the same.",
            "the engine is whole as far as the builder says; delete it if the stop was meant to discard it.",
        )
    } else {
        advice(
            "Every build returned an engine and the command said 0.",
            "nothing; the engine itself was not validated here.",
        )
    }
}

fn failure(evidence: &Evidence) -> Advice {
    match evidence.cause.as_deref() {
        Some("builder") => advice(
            "The builder returned no engine, and no stop was acknowledged.",
            "read the errors below, the first one first; the later ones are often its consequences.",
        ),
        Some("application_cancel") => advice(
            "The application's own progress monitor stopped the build.",
            "look at its step_complete: false, None, a wrong type and an exception all cancel.",
        ),
        Some("killed_by_runner") => advice(
            "The build did not stop by itself and stuckproof killed it.",
            "see the longest silences below; give a longer --grace if the build should have had time to obey.",
        ),
        Some("killed_by_host") => advice(
            "Somebody else's signal ended the build.",
            "look for the host's time limit, an operator or a service manager; the job's own log is in this bundle.",
        ),
        Some("oom") => advice(
            "The kernel ended the build for lack of memory.",
            "give the job more memory, or build fewer things at once.",
        ),
        Some("crash") => Advice {
            what: Cow::Borrowed("The builder's process crashed."),
            next: Cow::Owned(format!(
                "{} and {}; the phases below that were not finished say where it was.",
                read_output(evidence),
                look_at_core(evidence)
            )),
        },
        Some("runner_lost") => advice(
            "Stuckproof itself was ended before the job was.",
            "find out who killed it, and run the job again.",
        ),
        Some("artifact") => advice(
            "The build succeeded, and an artifact could not be put where it belongs.",
            "see the artifacts below; what was there before is there still or again.",
        ),
        Some("evidence_lost") => advice(
            "A part of the record was lost, so that the rest cannot be relied on.",
            "see the notes below, free some disk space and run the job again.",
        ),
        _ => command(evidence),
    }
}

/// The command failed where no build did.
fn command(evidence: &Evidence) -> Advice {
    let what = match (evidence.command.code, evidence.command.signal) {
        (Some(code), _) => Cow::Owned(format!("The command exited with {code}, and no build explains it.")),
        (None, Some(number)) => {
            Cow::Owned(format!("The command was ended by {}, and no build explains it.", signal(number)))
        }
        (None, None) => Cow::Borrowed("The command did not run to an end that was seen."),
    };
    Advice { what, next: Cow::Owned(read_output(evidence) + ".") }
}

/// What to do with the core, if there is one.
fn look_at_core(evidence: &Evidence) -> String {
    match (&evidence.command.core_file, evidence.command.core_dumped) {
        (Some(file), _) => format!("open the core {}", Clean::short(file)),
        (None, true) => "open the core, which the system keeps in its own place".to_owned(),
        (None, false) => "look for a core dump".to_owned(),
    }
}

/// Where the command's own words are.
fn read_output(evidence: &Evidence) -> String {
    let file = if evidence.header.streams == "separate" { "stderr.log" } else { "stdout.log" };
    format!("read the end of {file} in the bundle")
}

fn advice(what: &'static str, next: &'static str) -> Advice {
    Advice { what: Cow::Borrowed(what), next: Cow::Borrowed(next) }
}

/// What a note on a build means.
pub(super) fn note(note: &str) -> &'static str {
    match note {
        "too_late" => "The stop came too late for it.",
        "undelivered" => "The stop was not delivered to it: it reported no step after the request.",
        "builder_return_unobserved" => "The process ended before the builder returned.",
        _ => "A note that this version does not know is in evidence.json.",
    }
}

/// A signal's name where people know it by name.
pub(super) fn signal(number: i32) -> Cow<'static, str> {
    Cow::Borrowed(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        other => return Cow::Owned(format!("signal {other}")),
    })
}
