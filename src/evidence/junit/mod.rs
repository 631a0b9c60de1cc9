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
pub use criteria::{Finding, Findings, NAMES, Whose};

use criteria::Grounds;

use std::fmt::Write;
use std::path::Path;

/// How many errors of a build its case tells.
const ERRORS: usize = 40;
/// How many builds have a suite of their own. No page of a host shows more, and the report must not outgrow the log.
const BUILDS: usize = 1_000;
/// The class of the job's own cases.
const JOB: &str = "stuckproof.job";
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
    let writer = Writer::of(source);
    let all = writer.grounds.findings(&source.evidence.builds, source.phases, BUILDS);
    let mut builds = source.evidence.builds.iter();
    let mut suites = vec![writer.job()];
    for Findings { whose, findings } in all {
        match (whose, builds.as_slice()) {
            (Whose::Build(_), [build, ..]) => {
                suites.push(writer.build(build, findings));
                builds.next();
            }
            (Whose::Others(_), others) => suites.push(writer.others(others, findings)),
            _ => writer.add_findings(&mut suites[0], JOB, findings),
        }
    }
    junit::report(suites)
}

/// What became of the criteria in the builds of a bundle: in each of the first thousand, and in all others together.
#[must_use]
pub fn findings(bundle: &Bundle) -> Vec<Findings> {
    let grounds = Grounds::of(&bundle.evidence, &bundle.inventory, bundle.baseline.as_ref());
    grounds.findings(&bundle.evidence.builds, &bundle.phases, BUILDS)
}

/// The report in the making, with what stands in each of its suites.
struct Writer<'a> {
    evidence: &'a Evidence,
    grounds: Grounds<'a>,
    attachment: Option<String>,
    /// Whether a limit of the user's own asked for the stop.
    timed_out: bool,
}

impl<'a> Writer<'a> {
    fn of(source: &Source<'a>) -> Self {
        let evidence = source.evidence;
        let mut accepted = evidence.requests.iter().filter(|request| request.accepted);
        Self {
            evidence,
            grounds: Grounds::of(evidence, source.inventory, source.baseline),
            attachment: attachment(&evidence.header),
            timed_out: accepted.any(|r| Via::beginning_with(&r.via).is_some_and(Via::is_limit)),
        }
    }

    fn job(&self) -> Suite {
        let evidence = self.evidence;
        let mut suite = self.suite("stuckproof job");
        suite.add(junit::Case {
            name: "the job",
            classname: JOB,
            ms: evidence.duration_ms,
            result: self.ending(evidence.state, evidence.cause.as_deref()),
            text: self.story(),
            attachment: self.attachment.clone(),
        });
        suite
    }

    fn build(&self, build: &Build, findings: [Finding; 8]) -> Suite {
        let classname = format!("stuckproof.build-{}", build.build);
        let mut suite = self.suite(&format!("stuckproof build {}", build.build));
        suite.add(junit::Case {
            name: "the build",
            classname: &classname,
            ms: build.duration_ms,
            result: self.ending(build.state, build.cause.as_deref()),
            text: errors(&build.errors),
            attachment: self.attachment.clone(),
        });
        self.add_findings(&mut suite, &classname, findings);
        suite
    }

    /// The suite of the builds that have none of their own; its first case fails unless all of them succeeded.
    fn others(&self, builds: &[Build], findings: [Finding; 8]) -> Suite {
        let classname = "stuckproof.other-builds";
        let mut suite = self.suite("stuckproof other builds");
        let failed = builds.iter().filter(|build| build.state != JobState::Succeeded).count();
        let result = match failed {
            0 => Outcome::Success,
            _ => Outcome::Failure(
                "stuckproof.failed",
                format!("{failed} of {} more builds did not succeed", builds.len()),
            ),
        };
        let text = "They have no suites of their own; all of them are in evidence.json.".to_owned();
        suite.add(junit::Case {
            name: "the builds",
            classname,
            ms: 0.0,
            result,
            text,
            attachment: self.attachment.clone(),
        });
        self.add_findings(&mut suite, classname, findings);
        suite
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
                attachment: self.attachment.clone(),
            });
        }
    }

    /// The result of a job's or a build's own case.
    fn ending(&self, state: JobState, cause: Option<&str>) -> Outcome {
        let why = cause.unwrap_or("no cause is on record");
        match state {
            JobState::Succeeded => Outcome::Success,
            JobState::Running | JobState::Cancelling => {
                Outcome::Error("stuckproof.unfinished".to_owned(), "the run did not finish".to_owned())
            }
            JobState::Cancelled | JobState::Failed
                if self.timed_out && (state == JobState::Cancelled || why == "killed_by_runner") =>
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

/// The line by which GitLab finds the evidence, where that lies below the job's folder: other paths it ignores.
fn attachment(JobStarted { bundle, cwd, .. }: &JobStarted) -> Option<String> {
    let path = Path::new(bundle).strip_prefix(cwd).ok()?.join(super::EVIDENCE);
    let path = path.to_str()?;
    let plain = junit::line(path) == path && !path.contains(['[', ']', '|']);
    plain.then(|| format!("[[ATTACHMENT|{path}]]"))
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
