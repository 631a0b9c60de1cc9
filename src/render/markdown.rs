//! A bundle as a page of Markdown, for the summary of a CI job.
//!
//! Every text that is not ours goes through [`Code`], so that nothing in a phase's name or an error makes a heading, a link
//! or a picture on the page. Lists are cut: the page stays far below the mebibyte at which a host would drop it.

use super::advice;
use super::text::{Clean, Ms, command_line, count};
use crate::evidence::{Build, Bundle, Evidence};
use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};

/// How many entries of a list are printed.
const ENTRIES: usize = 10;

/// A foreign text within a page.
struct Code<'a>(Clean<'a>);

impl Display for Code<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<code>")?;
        for c in self.0.to_string().chars() {
            // Whatever punctuation means to a reader of Markdown, as a number it means itself.
            if c.is_ascii_punctuation() { write!(f, "&#{};", u32::from(c))? } else { f.write_char(c)? }
        }
        f.write_str("</code>")
    }
}

fn short(text: &str) -> Code<'_> {
    Code(Clean::short(text))
}

fn line(text: &str) -> Code<'_> {
    Code(Clean::line(text))
}

/// Prints the page.
pub fn markdown(bundle: &Bundle, out: &mut impl Write) -> io::Result<()> {
    let evidence = &bundle.evidence;
    let (word, _) = advice::state(evidence.state);
    write!(out, "### TensorRT build: {word}")?;
    if let Some(cause) = &evidence.cause {
        write!(out, " ({})", short(cause))?;
    }
    let told = advice::of(evidence);
    writeln!(out, "\n\n{} **Next:** {}\n", plain(&told.what), plain(&told.next))?;
    table(bundle, out)?;
    stop(evidence, out)?;
    entries("Builds", &evidence.builds, out, build)?;
    let errors: Vec<_> =
        evidence.builds.iter().flat_map(|build| &build.errors).chain(&evidence.errors).collect();
    entries("Errors, in order", &errors, out, |error| {
        format!("{} {}", short(&error.severity), line(error.text.lines().next().unwrap_or_default()))
    })?;
    let lost = evidence.lost.iter().map(|lost| &lost.reason);
    let notes: Vec<_> = lost.chain(&evidence.notes).collect();
    entries("Notes", &notes, out, |note| line(note).to_string())
}

/// Our own words, which can quote foreign ones.
fn plain(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('[', "&#91;").replace('!', "&#33;")
}

fn table(bundle: &Bundle, out: &mut impl Write) -> io::Result<()> {
    let (evidence, summary) = (&bundle.evidence, &bundle.summary);
    writeln!(out, "| | |\n|---|---|")?;
    let mut row = |name: &str, value: &dyn Display| writeln!(out, "| {name} | {value} |");
    row("Job", &short(&evidence.job))?;
    row("Command", &line(&command_line(&evidence.header.argv)))?;
    row("TensorRT", &short(&summary.tensorrt_version))?;
    if let Some(sku) = &summary.gpu_sku {
        row("GPU", &short(sku))?;
    }
    row("Ran for", &Ms(evidence.duration_ms))?;
    if let Some(report) = &evidence.host_report {
        row("The host says", &short(&report.status))?;
    }
    writeln!(out)
}

/// Who asked for the stop, and what came of it.
fn stop(evidence: &Evidence, out: &mut impl Write) -> io::Result<()> {
    let Some(request) = evidence.requests.iter().find(|request| request.accepted) else { return Ok(()) };
    write!(out, "**Stop** asked for by {} ({})", short(&request.via), request.source.name())?;
    if let Some(reason) = &request.reason {
        write!(out, ", because {}", line(reason))?;
    }
    match evidence.times.request_to_ack_ms {
        Some(ms) => write!(out, "; the builder answered after {}", Ms(ms))?,
        None => write!(out, "; no answer is on record")?,
    }
    if let Some(open) = request.open_branch.last() {
        write!(out, "; open then: {}, for {}", short(&open.name), Ms(open.open_ns as f64 / 1e6))?;
    }
    for rung in &evidence.ladder {
        let age = rung.since_request_ms.map(|ms| format!(" after {}", Ms(ms))).unwrap_or_default();
        write!(out, "; {}{age}", short(&rung.rung))?;
    }
    writeln!(out, ".\n")
}

fn build(build: &Build) -> String {
    let (word, _) = advice::state(build.state);
    let slow = build.longest_silences.first().map(|silence| {
        let name = silence.phase_name.as_deref().unwrap_or("no phase");
        format!("; longest silence {} in {}", Ms(silence.ms), short(name))
    });
    format!(
        "build {}: {word}, {}, {}{}",
        build.build,
        Ms(build.duration_ms),
        count(build.steps, "step"),
        slow.unwrap_or_default()
    )
}

fn entries<T>(title: &str, all: &[T], out: &mut impl Write, show: impl Fn(&T) -> String) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(out, "**{title}**\n")?;
    for one in all.iter().take(ENTRIES) {
        writeln!(out, "- {}", show(one))?;
    }
    match all.len().saturating_sub(ENTRIES) {
        0 => writeln!(out),
        more => writeln!(out, "- and {more} more, all of them in <code>evidence.json</code>\n"),
    }
}
