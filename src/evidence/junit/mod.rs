//! `junit.xml`: the acceptance test's criteria as test cases, for the CI hosts' own pages.
//!
//! A job that was cancelled, timed out or killed is an error with a type of its own, never skipped, and from its first
//! moment on a job has a report that fails.

mod criteria;

use crate::baseline::Baseline;
use crate::cancel::Via;
use crate::event::JobStarted;
use crate::evidence::{Build, Bundle, ErrorLine, Evidence, Inventory, JobState, Phases};
use crate::junit::{self, Outcome, Suite};
use crate::mask;
pub use criteria::{Finding, NAMES};

use std::fmt::Write;
use std::path::Path;

/// How many errors of a build its case tells.
const ERRORS: usize = 40;
/// Causes that have a type of their own; what a log names besides is `stuckproof.failed`.
const CAUSES: [&str; 10] = [
    "builder",
    "application_cancel",
    "killed_by_runner",
    "killed_by_host",
    "oom",
    "crash",
    "runner_lost",
    "command",
    "artifact",
    "evidence_lost",
];
/// Causes for which nobody's test has failed: something stopped it.
const STOPPED: [&str; 6] =
    ["killed_by_runner", "killed_by_host", "oom", "crash", "runner_lost", "evidence_lost"];

/// What the report tells of.
pub(super) struct Source<'a> {
    pub(super) evidence: &'a Evidence,
    pub(super) phases: &'a Phases,
    pub(super) inventory: &'a Inventory,
    pub(super) baseline: Result<&'a Baseline, &'a String>,
}

/// The report.
pub(super) fn report(source: &Source) -> Vec<u8> {
    let builds = source.evidence.builds.iter().map(|build| source.build(build));
    junit::report(std::iter::once(source.job()).chain(builds))
}

/// What became of the criteria in one build, or in a job without any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// The build; `None` for a job in which none was seen.
    pub build: Option<u32>,
    /// A finding on each criterion, in the order of [`NAMES`].
    pub findings: [Finding; 8],
}

/// What became of the criteria in each build of a bundle.
#[must_use]
pub fn findings(bundle: &Bundle) -> Vec<Findings> {
    let source = bundle.report_source();
    let builds = bundle.evidence.builds.iter();
    let of_build =
        builds.map(|build| Findings { build: Some(build.build), findings: source.findings(build) });
    let mut found: Vec<Findings> = of_build.collect();
    if found.is_empty() {
        found.push(Findings { build: None, findings: criteria::of_job(&bundle.evidence, &bundle.inventory) });
    }
    found
}

impl Source<'_> {
    fn job(&self) -> Suite {
        let evidence = self.evidence;
        let classname = "stuckproof.job";
        let mut suite = self.suite("stuckproof job");
        suite.add(junit::Case {
            name: "the job",
            classname,
            ms: evidence.duration_ms,
            result: self.ending(evidence.state, evidence.cause.as_deref()),
            text: self.story(),
            attachment: self.attachment(),
        });
        if evidence.builds.is_empty() {
            self.add_findings(&mut suite, classname, criteria::of_job(evidence, self.inventory));
        }
        suite
    }

    fn build(&self, build: &Build) -> Suite {
        let classname = format!("stuckproof.build-{}", build.build);
        let mut suite = self.suite(&format!("stuckproof build {}", build.build));
        suite.add(junit::Case {
            name: "the build",
            classname: &classname,
            ms: build.duration_ms,
            result: self.ending(build.state, build.cause.as_deref()),
            text: errors(&build.errors),
            attachment: self.attachment(),
        });
        self.add_findings(&mut suite, &classname, self.findings(build));
        suite
    }

    fn findings(&self, build: &Build) -> [Finding; 8] {
        let phases = self.phases.builds.iter().find(|phases| phases.build == build.build);
        let (inventory, baseline) = (self.inventory, self.baseline);
        criteria::of_build(&criteria::Case { evidence: self.evidence, build, phases, inventory, baseline })
    }

    fn suite(&self, name: &str) -> Suite {
        let header = &self.evidence.header;
        Suite::new(name, &header.host, i128::from(header.anchor_wall_ns))
    }

    fn add_findings(&self, suite: &mut Suite, classname: &str, findings: [Finding; 8]) {
        for (name, finding) in NAMES.into_iter().zip(findings) {
            let result = match finding {
                Finding::Held => Outcome::Success,
                Finding::Failed(why) => Outcome::Failure("stuckproof.criterion", why),
                Finding::NotApplicable(why) => Outcome::Skipped("stuckproof.not_applicable", why),
                Finding::NotJudged(why) => Outcome::Skipped("stuckproof.not_judged", why),
            };
            suite.add(junit::Case {
                name,
                classname,
                ms: 0.0,
                result,
                text: String::new(),
                attachment: self.attachment(),
            });
        }
    }

    /// The result of a job's or a build's own case.
    fn ending(&self, state: JobState, cause: Option<&str>) -> Outcome {
        let why = cause.unwrap_or("no cause is on record");
        let timed_out = self
            .evidence
            .requests
            .iter()
            .any(|r| r.accepted && Via::beginning_with(&r.via).is_some_and(Via::is_limit));
        match state {
            JobState::Succeeded => Outcome::Success,
            JobState::Running | JobState::Cancelling => {
                Outcome::Error("stuckproof.unfinished".to_owned(), "the run did not finish".to_owned())
            }
            JobState::Cancelled | JobState::Failed
                if timed_out && (state == JobState::Cancelled || why == "killed_by_runner") =>
            {
                Outcome::Error("stuckproof.timed_out".to_owned(), format!("the deadline came: {why}"))
            }
            JobState::Cancelled => {
                Outcome::Error("stuckproof.cancelled".to_owned(), format!("cancelled: {why}"))
            }
            JobState::Failed => match CAUSES.iter().find(|known| **known == why) {
                Some(known) if STOPPED.contains(known) => {
                    Outcome::Error(format!("stuckproof.{known}"), format!("failed: {known}"))
                }
                _ => Outcome::Failure("stuckproof.failed", format!("failed: {why}")),
            },
        }
    }

    /// The line by which GitLab finds the evidence, where that lies below the job's folder: other paths it ignores.
    fn attachment(&self) -> Option<String> {
        let JobStarted { bundle, cwd, .. } = &self.evidence.header;
        let path = Path::new(bundle).strip_prefix(cwd).ok()?.join(super::EVIDENCE);
        let path = path.to_str()?;
        let plain = junit::line(path) == path && !path.contains(['[', ']', '|']);
        plain.then(|| format!("[[ATTACHMENT|{path}]]"))
    }

    /// What the job was, in a few lines.
    fn story(&self) -> String {
        let evidence = self.evidence;
        let mut text = format!("job {} on {}\n", evidence.job, evidence.header.host);
        // Writing to memory cannot fail.
        let _ = writeln!(text, "command: {}", mask::words(&evidence.header.argv).join(" "));
        for note in &evidence.notes {
            let _ = writeln!(text, "{note}");
        }
        text + &errors(&evidence.errors)
    }
}

fn errors(errors: &[ErrorLine]) -> String {
    let mut text: Vec<String> = errors
        .iter()
        .take(ERRORS)
        .map(|error| format!("{}: {}", error.severity.replace('_', " "), error.text.trim_end()))
        .collect();
    if errors.len() > ERRORS {
        text.push(format!("and {} more, all of them in evidence.json", errors.len() - ERRORS));
    }
    text.join("\n")
}
