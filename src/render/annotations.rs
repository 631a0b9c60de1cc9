//! A bundle as annotations of a GitHub job: workflow commands on standard output.
//!
//! A command is a line of its own, so that a foreign text with a line break would be one as well: it is escaped as the
//! runner asks for, after everything that cannot be printed has been replaced.

use super::advice;
use super::text::Clean;
use crate::evidence::{Bundle, JobState};
use std::io::{self, Write};

/// The runner keeps so many of each level for a step.
const KEPT: usize = 10;

/// Prints the commands.
pub fn annotations(bundle: &Bundle, out: &mut impl Write) -> io::Result<()> {
    let evidence = &bundle.evidence;
    let (word, _) = advice::state(evidence.state);
    let level = match evidence.state {
        JobState::Succeeded => "notice",
        JobState::Cancelled => "warning",
        JobState::Failed | JobState::Running | JobState::Cancelling => "error",
    };
    let cause = evidence.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
    let told = advice::of(evidence);
    put(out, level, &format!("TensorRT build {word}{cause}"), &format!("{} Next: {}", told.what, told.next))?;
    let errors = evidence.builds.iter().flat_map(|build| &build.errors).chain(&evidence.errors);
    for error in errors.take(KEPT - 1) {
        let phase = error.phase_name.as_deref().unwrap_or("no phase");
        put(out, "error", &format!("TensorRT: in {phase}"), &error.text)?;
    }
    let warnings = &evidence.header.warnings;
    warnings.iter().take(KEPT - 1).try_for_each(|warning| put(out, "warning", "Stuckproof", warning))
}

fn put(out: &mut impl Write, level: &str, title: &str, message: &str) -> io::Result<()> {
    let title = escaped(&Clean::short(title).to_string()).replace(':', "%3A").replace(',', "%2C");
    writeln!(out, "::{level} title={title}::{}", escaped(&Clean::line(message).to_string()))
}

/// As the runner takes it. Line breaks are gone by now; they are escaped all the same.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}
