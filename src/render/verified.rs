//! What a verification found, for people: one line for the bundle and one for each fault.

use super::text::Clean;
use crate::seal::addendum::{Addendum, Kind, Status};
use crate::verify::{Answer, Fault, Report, Tried};
use std::io::{self, Write};
use std::path::Path;

/// Prints a report.
pub fn verified(report: &Report, out: &mut impl Write) -> io::Result<()> {
    head(&report.path, report.answer(), "", out)?;
    report.faults.iter().try_for_each(|fault| one_fault(fault, out))?;
    if let Some(manifest) = &report.manifest {
        writeln!(out, "  manifest  SHA-256 {manifest}")?;
        match &report.signer {
            Some(signer) => writeln!(out, "  signer    {signer}")?,
            None => writeln!(
                out,
                "  signer    nobody vouches for it: no signature of an allowed signer was checked"
            )?,
        }
    }
    report.addenda.iter().try_for_each(|addendum| one_addendum(addendum, out))
}

/// Prints the reports on all attempts at a job, and then what holds of them together.
pub fn verified_attempts(tried: &Tried, out: &mut impl Write) -> io::Result<()> {
    tried.attempts.iter().try_for_each(|report| verified(report, out))?;
    let count = tried.attempts.len();
    let whose =
        if count == 1 { " (1 attempt)".to_owned() } else { format!(" (the last of {count} attempts)") };
    head(&tried.path, tried.answer(), &whose, out)?;
    tried.faults.iter().try_for_each(|fault| one_fault(fault, out))
}

fn head(path: &Path, answer: Answer, whose: &str, out: &mut impl Write) -> io::Result<()> {
    let answer = match answer {
        Answer::Valid => "valid, and the job succeeded",
        Answer::NotSucceeded => "valid, but the job did not succeed",
        Answer::Invalid => "INVALID",
        Answer::CannotTell => "cannot tell",
    };
    writeln!(out, "{}: {answer}{whose}", Clean::line(&path.to_string_lossy()))
}

fn one_fault(fault: &Fault, out: &mut impl Write) -> io::Result<()> {
    write!(out, "  {}: {}", fault.rule.name(), Clean::line(&fault.file))?;
    if !fault.field.is_empty() {
        write!(out, " {}", Clean::short(&fault.field))?;
    }
    writeln!(out, ": {}", Clean::line(&fault.what))
}

fn one_addendum(addendum: &Addendum, out: &mut impl Write) -> io::Result<()> {
    let kind = match addendum.kind {
        Kind::Validation => "validation",
        Kind::Release => "release from quarantine",
        Kind::LateRequest => "request to stop",
    };
    let status = match addendum.status {
        Status::Pass => "pass",
        Status::Fail => "fail",
        Status::TooLate => "too late",
    };
    writeln!(
        out,
        "  later     {}: {kind}: {status}: {}",
        Clean::short(&addendum.at),
        Clean::line(&addendum.note)
    )
}
