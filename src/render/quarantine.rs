//! The quarantine for people.

use super::text::{Clean, Painter};
use crate::artifact::quarantine::Shelved;
use crate::event::{ArtifactOutcome, ValidationStatus};
use crate::evidence::Bundle;
use std::io::{self, Write};

/// One entry in a line.
pub fn line(entry: &Shelved, out: &mut impl Write) -> io::Result<()> {
    let record = &entry.record;
    writeln!(
        out,
        "{}  {:>12} bytes  {}  was to become {}",
        Clean::short(&record.at),
        entry.bytes,
        Clean::line(&entry.folder.to_string_lossy()),
        Clean::line(&record.path)
    )
}

/// One entry. `digest` is that of its content now.
pub fn show(entry: &Shelved, digest: Option<&str>, out: &mut impl Write) -> io::Result<()> {
    let record = &entry.record;
    let expected = record.facts.as_ref().and_then(|facts| facts.sha256.as_deref());
    writeln!(out, "entry     {}", Clean::line(&entry.folder.to_string_lossy()))?;
    writeln!(
        out,
        "content   {}, {} bytes with all that is beside it",
        Clean::line(&record.name),
        entry.bytes
    )?;
    writeln!(out, "meant for {}", Clean::line(&record.path))?;
    writeln!(out, "job       {}", Clean::short(&record.job))?;
    writeln!(out, "set aside {}, since {}", Clean::short(&record.at), Clean::line(&record.reason))?;
    writeln!(out, "SHA-256   {}", digest.unwrap_or("none: the content is not in it"))?;
    match (digest, expected) {
        (Some(now), Some(then)) if now == then => writeln!(out, "It is what was set aside."),
        (Some(_), Some(then)) => {
            writeln!(
                out,
                "It was changed since it was set aside: then its SHA-256 was {}.",
                Clean::short(then)
            )
        }
        _ => {
            writeln!(out, "Whether it is what was set aside is not known: there was no time for its digest.")
        }
    }
}

/// What became of a job's artifacts.
pub(super) fn artifacts(bundle: &Bundle, out: &mut impl Write, paint: &Painter) -> io::Result<()> {
    let artifacts = &bundle.inventory.artifacts;
    if artifacts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{}", paint.head("Artifacts"))?;
    for artifact in artifacts {
        let outcome = artifact.outcome.map_or("not settled", outcome);
        let reason = artifact.reason.as_deref().map(|reason| format!(": {}", Clean::line(reason)));
        writeln!(out, "  {}", Clean::line(&artifact.path))?;
        writeln!(out, "    {outcome}{}", reason.unwrap_or_default())?;
        if let Some(place) = &artifact.quarantine {
            writeln!(out, "    set aside in {}", Clean::line(place))?;
        }
        for other in &artifact.undeclared {
            writeln!(out, "    not declared, and looks like an engine: {}", Clean::line(other))?;
        }
    }
    if let Some(validation) = &bundle.evidence.validation {
        let status = match validation.status {
            ValidationStatus::Pass => "passed",
            ValidationStatus::Fail => "failed; its words are in validation.log",
            ValidationStatus::Pending | ValidationStatus::NotApplicable => "did not come to its end",
        };
        writeln!(out, "  The check of the engine {status}.")?;
    }
    Ok(())
}

fn outcome(outcome: ArtifactOutcome) -> &'static str {
    match outcome {
        ArtifactOutcome::Published => "published",
        ArtifactOutcome::Kept => "what was there before was not touched",
        ArtifactOutcome::Restored => "what was there before is there again",
        ArtifactOutcome::Quarantined => "nothing is there; what was written is in the quarantine",
        ArtifactOutcome::Absent => "nothing is there",
        ArtifactOutcome::Failed => "could not be put in order",
    }
}
