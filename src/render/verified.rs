//! What a verification found, for people: one line for the bundle and one for each fault.

use super::text::Clean;
use crate::seal::addendum::{Addendum, Kind, Status};
use crate::verify::{Answer, Fault, Report};
use std::io::{self, Write};

/// Prints a report.
pub fn verified(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let answer = match report.answer() {
        Answer::Valid => "valid, and the job succeeded",
        Answer::NotSucceeded => "valid, but the job did not succeed",
        Answer::Invalid => "INVALID",
        Answer::CannotTell => "cannot tell",
    };
    writeln!(out, "{}: {answer}", Clean::line(&report.path.to_string_lossy()))?;
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
    };
    let status = match addendum.status {
        Status::Pass => "pass",
        Status::Fail => "fail",
    };
    writeln!(
        out,
        "  later     {}: {kind}: {status}: {}",
        Clean::short(&addendum.at),
        Clean::line(&addendum.note)
    )
}
