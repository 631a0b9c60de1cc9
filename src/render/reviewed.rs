//! A review, as a table for people and as Markdown for a page of the CI host.

use super::text::Clean;
use crate::review::{Review, Verdict};
use std::io::{self, Write};

/// Prints a review for people.
pub fn reviewed(review: &Review, out: &mut impl Write) -> io::Result<()> {
    for verdict in &review.bundles {
        let word = if verdict.passed() { "pass" } else { "FAIL" };
        writeln!(out, "{word}  {}", Clean::line(&verdict.bundle.to_string_lossy()))?;
        for decision in verdict.decisions.iter().filter(|decision| decision.is_told()) {
            writeln!(out, "      {}: {}", decision.rule, Clean::line(&decision.found))?;
        }
    }
    for subject in &review.subjects {
        let word = if subject.passed { "pass" } else { "FAIL" };
        writeln!(out, "{word}  subject: {}", Clean::line(&subject.found))?;
    }
    let passed = review.bundles.iter().filter(|verdict| verdict.passed()).count();
    writeln!(out, "{passed} of {} bundles passed", review.bundles.len())
}

/// Prints a review as Markdown.
pub fn reviewed_markdown(review: &Review, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "| | bundle | what decided |\n|---|---|---|")?;
    for verdict in &review.bundles {
        row(out, verdict.passed(), &verdict.bundle.to_string_lossy(), &decisive(verdict))?;
    }
    for subject in &review.subjects {
        row(out, subject.passed, "subject", &subject.found)?;
    }
    Ok(())
}

fn row(out: &mut impl Write, passed: bool, what: &str, why: &str) -> io::Result<()> {
    let word = if passed { "pass" } else { "**FAIL**" };
    writeln!(out, "| {word} | {} | {} |", cell(what), cell(why))
}

/// The rules that do not hold, or how many do, and what is to be told besides.
fn decisive(verdict: &Verdict) -> String {
    let told = verdict.decisions.iter().filter(|decision| decision.is_told());
    let told = told.map(|decision| format!("{}: {}", decision.rule, decision.found));
    let hold = verdict.passed().then(|| format!("{} rules hold", verdict.decisions.len()));
    hold.into_iter().chain(told).collect::<Vec<_>>().join("; ")
}

/// Text that neither ends a cell nor marks anything up.
fn cell(text: &str) -> String {
    let clean = Clean::line(text).to_string();
    clean.chars().fold(String::new(), |mut cell, c| {
        if "|\\`*_{}[]<>()#!~&@".contains(c) {
            cell.push('\\');
        }
        cell.push(c);
        cell
    })
}
