//! The first two answers while the job runs.

use super::{Answer, Question, Word};
use crate::event::SilenceVerdict;
use crate::evidence::Evidence;
use crate::shown::{Clean, Ms};
use crate::stall;
use crate::supervise::{Live, LiveExpected, LiveSilence};

/// Whether to go on and whether to stop: the two sides of one verdict.
pub(super) fn answers(evidence: &Evidence, live: &Live) -> Vec<Answer> {
    let (go_on, stop) = words(live);
    let facts = facts(evidence, live);
    let answer = |question, word| Answer::new(question, word, facts.clone());
    let (mut go_on, mut stop) = (answer(Question::Continue, go_on), answer(Question::Cancel, stop));
    let job = Clean::short(&live.job);
    match verdict(live) {
        _ if live.state == "cancelling" => go_on = go_on.next("wait for its end"),
        Some(SilenceVerdict::Stalled) => {
            stop = stop.next(format!(
                "`stuckproof cancel {job}`; a stalled builder will hardly answer, and is then killed when the grace is over"
            ));
        }
        Some(SilenceVerdict::SlowUnexplained) => {
            go_on = go_on
                .next(format!("ask again in a minute; `stuckproof status {job}` tells what it is doing"));
        }
        _ => {}
    }
    vec![go_on, stop]
}

fn words(live: &Live) -> (Word, Word) {
    if live.state == "cancelling" {
        return (Word::No, Word::NotApplicable);
    }
    match verdict(live) {
        Some(SilenceVerdict::Advancing | SilenceVerdict::SlowExpected) => (Word::Yes, Word::No),
        None | Some(SilenceVerdict::SlowUnexplained) => (Word::CannotTell, Word::CannotTell),
        Some(SilenceVerdict::Stalled) => (Word::No, Word::Yes),
    }
}

fn verdict(live: &Live) -> Option<SilenceVerdict> {
    live.silence.as_ref().map(|silence| silence.facts.verdict)
}

fn facts(evidence: &Evidence, live: &Live) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(request) = live.requests.iter().find(|request| request.accepted) {
        let how = Clean::short(&request.via);
        let answered = request.acknowledged_after_ms.map_or_else(
            || "the builder has not answered yet".to_owned(),
            |ms| format!("the builder answered after {}", Ms(ms)),
        );
        facts.push(format!("a stop was asked for by {how} {} ago, and {answered}", Ms(request.ago_ms)));
    }
    match &live.silence {
        Some(silence) => facts.extend(about(silence, live)),
        None => facts.push("the command does not run yet".to_owned()),
    }
    facts.extend(live.silence.as_ref().and_then(|silence| silence.expected.as_ref()).map(expected));
    let errors: usize = evidence.builds.iter().map(|build| build.errors.len()).sum();
    if errors > 0 {
        facts
            .push(format!("the builder has written {errors} error lines so far; `stuckproof show` has them"));
    }
    facts
}

fn about(silence: &LiveSilence, live: &Live) -> Vec<String> {
    let facts = &silence.facts;
    let mut about = vec![match (facts.build, live.last_callback_ms) {
        (None, _) if live.libraries == 0 => "no TensorRT builder was met so far".to_owned(),
        (None, _) => "no build is open".to_owned(),
        (Some(_), Some(ms)) => format!("the builder last called back {} ago", Ms(ms)),
        (Some(build), None) => format!("build {build} has not called back yet"),
    }];
    if facts.verdict != SilenceVerdict::Advancing {
        about.push(stall::why(facts));
    }
    if facts.earlier_stalls > 0 {
        about.push(format!("{} earlier jobs stalled in this phase", facts.earlier_stalls));
    }
    if let Some(open) = live.open_branch.last() {
        let name = Clean::short(&open.name);
        let step = open.last_step.map_or_else(|| "none".to_owned(), |step| step.to_string());
        about.push(format!(
            "\"{name}\" is open for {}: last step {step} of {}",
            Ms(open.open_ms),
            open.steps
        ));
    }
    about
}

fn expected(expected: &LiveExpected) -> String {
    let LiveExpected { builds, total_ms, rest_ms, .. } = expected;
    let of = if *builds == 1 { "1 earlier build".to_owned() } else { format!("{builds} earlier builds") };
    format!("by {of} it takes {} in all, and {} are left", Ms(*total_ms), Ms(*rest_ms))
}
