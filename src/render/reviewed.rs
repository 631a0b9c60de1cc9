//! A review, as a table for people, as Markdown for a page of the CI host, and as a test report for its list of tests.

use super::text::Clean;
use crate::junit::{self, Case, Outcome, Suite};
use crate::review::{Decision, Review, Verdict};
use crate::verify::Answer;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
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

/// A review as a test report: a suite for each bundle with a case for each rule, and a suite for the engines.
#[must_use]
pub fn reviewed_junit(review: &Review, now: DateTime<Utc>) -> Vec<u8> {
    let at = i128::from(now.timestamp_nanos_opt().unwrap_or_default());
    let mut classes = Classes::default();
    let mut suites = Vec::new();
    for verdict in &review.bundles {
        let path = verdict.bundle.to_string_lossy();
        let mut suite = Suite::new(&format!("stuckproof review of {path}"), "", at);
        let class = classes.unused(&path);
        add_cases(&mut suite, &class, &verdict.decisions, verdict.answer);
        suites.push(suite);
    }
    if !review.subjects.is_empty() {
        let mut suite = Suite::new("stuckproof review of what ships", "", at);
        add_cases(&mut suite, "stuckproof.review.subjects", &review.subjects, Answer::Valid);
        suites.push(suite);
    }
    junit::report(suites)
}

fn add_cases(suite: &mut Suite, classname: &str, decisions: &[Decision], answer: Answer) {
    for Decision { rule, item, passed, found } in decisions {
        let name = if item.is_empty() { (*rule).to_owned() } else { format!("{rule}: {item}") };
        // What says that a bundle cannot be relied on is no test that failed.
        let of_bundle = ["verify", "attempts"].contains(rule);
        let result = match answer {
            _ if *passed => Outcome::Success,
            Answer::Invalid if of_bundle => Outcome::Error("stuckproof.invalid".to_owned(), found.clone()),
            Answer::CannotTell if of_bundle => {
                Outcome::Error("stuckproof.cannot_tell".to_owned(), found.clone())
            }
            _ => Outcome::Failure("stuckproof.rule", found.clone()),
        };
        let (text, attachment) = (String::new(), None);
        suite.add(Case { name: &name, classname, ms: 0.0, result, text, attachment });
    }
}

/// Class names. Hosts drop all but one of the cases whose names are the same, and two paths may become one text.
#[derive(Default)]
struct Classes(BTreeMap<String, u32>);

impl Classes {
    fn unused(&mut self, path: &str) -> String {
        let path = junit::line(path);
        let times = self.0.entry(path.clone()).or_default();
        *times += 1;
        // A long name is cut at its end, so what tells two apart comes first.
        if *times == 1 {
            format!("stuckproof.review.{path}")
        } else {
            format!("stuckproof.review-{times}.{path}")
        }
    }
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
