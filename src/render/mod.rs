//! Bundles for people.

mod advice;
mod annotations;
mod attempts;
mod diff;
mod host;
mod markdown;
mod phases;
pub mod quarantine;
mod reviewed;
mod status;
mod text;
mod verified;

pub use annotations::annotations;
pub use attempts::show as attempts;
pub use diff::{difference, difference_page};
pub use markdown::markdown;
pub use reviewed::{reviewed, reviewed_junit, reviewed_markdown};
pub use status::{live, past};
pub use verified::{verified, verified_attempts};

use crate::event::{Cancellability, HostReported, OpenPhase};
use crate::evidence::{Build, Bundle, ErrorLine, Evidence, Request};
use std::io::{self, Write};
use text::{Clean, Ms, Painter, command_line, count};

/// How many errors of one build are printed.
const ERRORS: usize = 40;

/// How to print.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// Whether the reader is a terminal that shows colours.
    pub color: bool,
}

/// Prints a bundle for a person: the verdict and what to do first, then what led to it.
pub fn show(bundle: &Bundle, out: &mut impl Write, style: Style) -> io::Result<()> {
    let evidence = &bundle.evidence;
    let paint = Painter::new(style.color);
    verdict(evidence, out, &paint)?;
    facts(bundle, out, &paint)?;
    host::show(bundle, out, &paint)?;
    requests(evidence, out, &paint)?;
    for build in &evidence.builds {
        one_build(bundle, build, out, &paint)?;
    }
    errors("Errors outside of any build", &evidence.errors, out, &paint)?;
    ladder(evidence, out, &paint)?;
    quarantine::artifacts(bundle, out, &paint)?;
    leftovers(evidence, out, &paint)?;
    notes(evidence, out, &paint)
}

fn verdict(evidence: &Evidence, out: &mut impl Write, paint: &Painter) -> io::Result<()> {
    let (word, shade) = advice::state(evidence.state);
    write!(out, "{}", paint.shade(shade, word))?;
    if let Some(cause) = &evidence.cause {
        write!(out, ": {}", Clean::short(cause))?;
    }
    writeln!(out)?;
    let advice = advice::of(evidence);
    writeln!(out, "  {}", advice.what)?;
    writeln!(out, "  Next: {}", advice.next)?;
    if let Some(policy) = evidence.retry.policy {
        let reasons: Vec<String> =
            evidence.retry.reasons.iter().map(|r| Clean::line(r).to_string()).collect();
        writeln!(out, "  Retry: {}, since {}", policy.name(), reasons.join(", and "))?;
    }
    Ok(())
}

fn facts(bundle: &Bundle, out: &mut impl Write, paint: &Painter) -> io::Result<()> {
    let evidence = &bundle.evidence;
    let header = &evidence.header;
    writeln!(out, "\n{}", paint.head("Job"))?;
    writeln!(out, "  name      {} on {}", Clean::short(&evidence.job), Clean::short(&header.host))?;
    writeln!(out, "  command   {}", command_line(&header.argv))?;
    writeln!(out, "  started   {}, ran {}", Clean::short(&evidence.started_at), Ms(evidence.duration_ms))?;
    for pause in &evidence.pauses {
        let length =
            pause.paused_ms.map_or_else(|| "until its end".to_owned(), |ms| format!("for {}", Ms(ms)));
        writeln!(out, "  paused    {length}, by {}", Clean::short(&pause.by))?;
    }
    writeln!(out, "  ended     {}", ending(evidence))?;
    if let Some(HostReported { status, told_by }) = &evidence.host_report {
        writeln!(out, "  host      says {} ({})", Clean::short(status), Clean::short(told_by))?;
    }
    for library in &evidence.libraries {
        let version = Clean::short(&library.version);
        let (flavour, path) = (Clean::short(&library.flavour), Clean::line(&library.path));
        let simulated = if library.simulated { " (simulated)" } else { "" };
        writeln!(out, "  builder   {flavour} {version}{simulated} in process {}: {path}", library.pid)?;
    }
    writeln!(out, "  bundle    {}", Clean::line(&bundle.path.to_string_lossy()))
}

fn ending(evidence: &Evidence) -> String {
    let command = &evidence.command;
    let how = match (command.pid, command.code, command.signal) {
        (None, ..) => "the command did not run".to_owned(),
        (_, Some(code), _) => format!("the command exited with {code}"),
        (_, None, Some(signal)) => format!("the command was ended by {}", advice::signal(signal)),
        (_, None, None) => "the command's end is not on record".to_owned(),
    };
    evidence.exit_code.map_or_else(|| how.clone(), |code| format!("{how}; stuckproof exited with {code}"))
}

fn requests(evidence: &Evidence, out: &mut impl Write, paint: &Painter) -> io::Result<()> {
    if evidence.requests.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", paint.head("Who asked for the stop"))?;
    for request in &evidence.requests {
        one_request(evidence, request, out)?;
    }
    Ok(())
}

fn one_request(evidence: &Evidence, request: &Request, out: &mut impl Write) -> io::Result<()> {
    let into = request.t_ns.saturating_sub(evidence.header.anchor_mono_ns) as f64 / 1e6;
    write!(out, "  {}. {} ({})", request.request, Clean::short(&request.via), request.source.name())?;
    if let Some(pid) = request.pid {
        write!(out, " from process {pid}")?;
    }
    write!(out, ", {} into the job", Ms(into))?;
    let outcome = request.outcome.as_deref().unwrap_or("no outcome yet");
    let effect = match (request.accepted, request.kill) {
        (true, _) => "accepted",
        (false, true) => "meant kill now",
        (false, false) => "changed nothing",
    };
    writeln!(out, ": {effect}, {}", Clean::short(&outcome.replace('_', " ")))?;
    if let Some(reason) = &request.reason {
        writeln!(out, "     reason given: {}", Clean::line(reason))?;
    }
    if request.accepted {
        writeln!(out, "     {}", latencies(evidence))?;
        open_branch(&request.open_branch, out)?;
    }
    Ok(())
}

fn latencies(evidence: &Evidence) -> String {
    let times = &evidence.times;
    let Some(acknowledged) = times.request_to_ack_ms else {
        return "no acknowledgement is on record".to_owned();
    };
    let returned = times.ack_to_return_ms.map(|ms| format!(", the builder returned {} later", Ms(ms)));
    let exited = times.return_to_exit_ms.map(|ms| format!(", the command exited {} after that", Ms(ms)));
    format!(
        "acknowledged after {}{}{}",
        Ms(acknowledged),
        returned.unwrap_or_default(),
        exited.unwrap_or_default()
    )
}

fn open_branch(branch: &[OpenPhase], out: &mut impl Write) -> io::Result<()> {
    for open in branch {
        let step =
            open.last_step.map_or_else(|| "no step yet".to_owned(), |step| format!("last step {step}"));
        let (name, for_ms) = (Clean::short(&open.name), Ms(open.open_ns as f64 / 1e6));
        writeln!(
            out,
            "     open then: {name} (build {}, {step} of {}, for {for_ms})",
            open.build, open.steps
        )?;
    }
    Ok(())
}

fn one_build(bundle: &Bundle, build: &Build, out: &mut impl Write, paint: &Painter) -> io::Result<()> {
    let (word, shade) = advice::state(build.state);
    let cause = build.cause.as_deref().map(|cause| format!(" ({})", Clean::short(cause))).unwrap_or_default();
    let title = paint.head(&format!("Build {}", build.build));
    writeln!(out, "\n{title}: {}{cause}", paint.shade(shade, word))?;
    writeln!(
        out,
        "  {} by {} in process {}: {}, {}, {}",
        Clean::short(&build.method),
        Clean::short(build.library.as_deref().unwrap_or("an unknown library")),
        build.pid,
        Ms(build.duration_ms),
        count(build.phases, "phase"),
        count(build.steps, "step"),
    )?;
    writeln!(out, "  {}", returned(build))?;
    for note in &build.notes {
        writeln!(out, "  {}", advice::note(note))?;
    }
    if let Some(tree) = bundle.phases.of_build(build.build) {
        phases::tree(tree, out)?;
    }
    silences(build, out)?;
    if let Some(waits) = &build.cancellability {
        cancellability(waits, out)?;
    }
    errors("  Errors", &build.errors, out, paint)
}

fn returned(build: &Build) -> String {
    match (build.engine, build.bytes) {
        (Some(true), Some(bytes)) => format!("It returned an engine of {bytes} bytes."),
        (Some(true), None) => "It returned an engine.".to_owned(),
        (Some(false), _) => "It returned no engine.".to_owned(),
        (None, _) => "Its return is not on record.".to_owned(),
    }
}

fn silences(build: &Build, out: &mut impl Write) -> io::Result<()> {
    if build.longest_silences.is_empty() {
        return Ok(());
    }
    writeln!(out, "  Longest silences")?;
    for silence in &build.longest_silences {
        let (length, from) = (Ms(silence.ms).to_string(), Ms(silence.from_ms));
        let place = match silence.phase_name.as_deref() {
            Some(name) => format!("in {}", Clean::short(name)),
            None => "outside of any phase".to_owned(),
        };
        writeln!(out, "    {length:>9}  {place}, {from} into the build")?;
    }
    Ok(())
}

fn cancellability(waits: &Cancellability, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "  A cancel at a random moment of this build would have waited")?;
    writeln!(
        out,
        "    mean {}, p50 {}, p95 {}, p99 {}",
        Ms(waits.mean_ms),
        Ms(waits.p50_ms),
        Ms(waits.p95_ms),
        Ms(waits.p99_ms)
    )?;
    let phase = waits.worst_phase.as_deref().unwrap_or("no phase");
    writeln!(out, "    at worst {}, in {}", Ms(waits.worst_ms), Clean::short(phase))?;
    let share = waits.undeliverable_share * 100.0;
    writeln!(
        out,
        "    {share:.1} % of the build lies after its last step, where nothing can answer a cancel any more"
    )
}

fn errors(title: &str, errors: &[ErrorLine], out: &mut impl Write, paint: &Painter) -> io::Result<()> {
    if errors.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "{}{}",
        if title.starts_with(' ') { "" } else { "\n" },
        paint.head(&format!("{title}, in order"))
    )?;
    for error in errors.iter().take(ERRORS) {
        let code = error.code.map(|code| format!(" (code {code})")).unwrap_or_default();
        let place =
            error.phase_name.as_deref().map(|name| format!(" in {}", Clean::short(name))).unwrap_or_default();
        writeln!(out, "    {}{code}{place}:", Clean::short(&error.severity.replace('_', " ")))?;
        for line in error.text.lines().filter(|line| !line.trim().is_empty()) {
            writeln!(out, "      {}", Clean::line(line))?;
        }
    }
    match errors.len().saturating_sub(ERRORS) {
        0 => Ok(()),
        more => writeln!(out, "    and {more} more, all of them in evidence.json"),
    }
}

fn ladder(evidence: &Evidence, out: &mut impl Write, paint: &Painter) -> io::Result<()> {
    if evidence.ladder.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", paint.head("What stuckproof did to stop it"))?;
    for rung in &evidence.ladder {
        let since =
            rung.since_request_ms.map(|ms| format!(", {} after the request", Ms(ms))).unwrap_or_default();
        writeln!(out, "  {}: {}{since}", Clean::short(&rung.rung), Clean::short(&rung.why))?;
    }
    Ok(())
}

fn leftovers(evidence: &Evidence, out: &mut impl Write, paint: &Painter) -> io::Result<()> {
    if evidence.leftovers.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", paint.head("What outlived the command"))?;
    for leftover in &evidence.leftovers {
        let (name, action) = (Clean::short(&leftover.name), Clean::short(&leftover.action));
        writeln!(out, "  {name} (process {}, session {}): {action}", leftover.pid, leftover.session)?;
    }
    Ok(())
}

fn notes(evidence: &Evidence, out: &mut impl Write, paint: &Painter) -> io::Result<()> {
    let lost =
        evidence.lost.iter().map(|lost| format!("{} lost: {}", count(lost.records, "record"), lost.reason));
    let notes: Vec<String> = lost.chain(evidence.notes.iter().cloned()).collect();
    if notes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", paint.head("Notes"))?;
    notes.iter().try_for_each(|note| writeln!(out, "  {}", Clean::line(note)))
}
