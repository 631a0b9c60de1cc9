//! The state of a job, running or not, for people.

use super::text::{Clean, Ms, Painter, count};
use crate::evidence::Bundle;
use crate::supervise::{Live, LiveBuild, LivePhase, LiveRequest};
use std::io::{self, Write};

/// Prints how a running job is.
pub fn live(job: &Live, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}: {}, for {}", Clean::short(&job.job), Clean::short(&job.state), Ms(job.elapsed_ms))?;
    writeln!(out, "  bundle    {}", Clean::line(&job.bundle.to_string_lossy()))?;
    match job.command_pid {
        Some(pid) => writeln!(out, "  processes command {pid}, runner {}", job.runner_pid)?,
        None => writeln!(out, "  processes runner {}; the command has not started yet", job.runner_pid)?,
    }
    match job.last_callback_ms {
        Some(ms) => writeln!(out, "  builder   last called back {} ago", Ms(ms))?,
        None if job.libraries > 0 => writeln!(out, "  builder   seen, has not called back yet")?,
        None => writeln!(out, "  builder   none seen so far")?,
    }
    if let Some(silence) = &job.silence {
        writeln!(out, "  silence   {}", silence.words)?;
    }
    job.builds.iter().try_for_each(|build| one_build(build, &job.open_branch, out))?;
    if let Some(expected) = job.silence.as_ref().and_then(|silence| silence.expected.as_ref()) {
        let (total, rest) = (Ms(expected.total_ms), Ms(expected.rest_ms));
        let builds = count(u64::from(expected.builds), "earlier build");
        writeln!(out, "  expected  {total} in all, about {rest} left, by {builds}")?;
    }
    job.requests.iter().try_for_each(|request| one_request(request, out))
}

/// Prints what became of a job that does not run any more.
pub fn past(bundle: &Bundle, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{}: ", Clean::short(&bundle.evidence.job))?;
    super::verdict(&bundle.evidence, out, &Painter::new(false))?;
    let path = bundle.path.to_string_lossy();
    writeln!(out, "  for more: stuckproof show {}", Clean::line(&path))
}

fn one_build(build: &LiveBuild, open: &[LivePhase], out: &mut impl Write) -> io::Result<()> {
    let state = match build.state.as_str() {
        "running" => "running",
        "engine" => "returned an engine",
        _ => "returned nothing",
    };
    let LiveBuild { build: number, pid, method, elapsed_ms, .. } = build;
    let (method, elapsed) = (Clean::short(method), Ms(*elapsed_ms));
    writeln!(out, "  build {number}   {method} in process {pid}: {state}, {elapsed}")?;
    let branch = open.iter().filter(|phase| phase.build == *number);
    branch.enumerate().try_for_each(|(depth, phase)| {
        let step = phase.last_step.map_or("none".to_owned(), |s| s.to_string());
        let (name, open) = (Clean::short(&phase.name), Ms(phase.open_ms));
        let indent = 4 + 2 * depth.min(20);
        writeln!(out, "{:indent$}{name}: last step {step} of {}, open for {open}", "", phase.steps)
    })
}

fn one_request(request: &LiveRequest, out: &mut impl Write) -> io::Result<()> {
    let LiveRequest { request: number, via, accepted, ago_ms, acknowledged_after_ms } = request;
    let what = if *accepted { "asked to stop" } else { "asked as well" };
    write!(out, "  request {number} {what} by {} {} ago", Clean::short(via), Ms(*ago_ms))?;
    match acknowledged_after_ms {
        Some(ms) => writeln!(out, "; the builder answered after {}", Ms(*ms)),
        None if *accepted => writeln!(out, "; not answered yet"),
        None => writeln!(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> Live {
        Live {
            job: "j".to_owned(),
            state: "cancelling".to_owned(),
            bundle: "/b".into(),
            runner_pid: 1,
            command_pid: Some(2),
            started_at: String::new(),
            elapsed_ms: 61_000.0,
            libraries: 1,
            builds: vec![LiveBuild {
                build: 1,
                pid: 3,
                method: "buildSerializedNetwork".to_owned(),
                state: "running".to_owned(),
                elapsed_ms: 60_000.0,
            }],
            open_branch: vec![LivePhase {
                build: 1,
                phase: 1,
                name: "Timing \u{1b}[31mtactics".to_owned(),
                last_step: Some(3),
                steps: 6,
                open_ms: 12.0,
            }],
            last_callback_ms: Some(250.0),
            requests: vec![LiveRequest {
                request: 1,
                via: "SIGINT".to_owned(),
                accepted: true,
                ago_ms: 5.0,
                acknowledged_after_ms: None,
            }],
            silence: None,
        }
    }

    #[test]
    fn it_tells_what_the_builder_does_and_who_asked() {
        let mut out = Vec::new();
        live(&job(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("j: cancelling, for 1 min 01 s\n"), "{text}");
        assert!(text.contains("last called back 250 ms ago"), "{text}");
        assert!(text.contains("last step 3 of 6"), "{text}");
        assert!(text.contains("SIGINT 5.0 ms ago; not answered yet"), "{text}");
        assert!(!text.contains('\u{1b}'), "a name must not reach the terminal as it is");
    }
}
