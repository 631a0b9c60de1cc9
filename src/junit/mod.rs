//! Test reports in the form that the CI hosts read, whatever they are about.
//!
//! Every text goes through one sanitiser first, for the crate that writes the file escapes mark-up only.

mod xml;

use junit_report::{Duration, OffsetDateTime, Report, TestCase, TestResult, TestSuite};

/// Some cases under one name.
#[derive(Debug)]
pub struct Suite(TestSuite);

/// One case before it is written.
#[derive(Debug)]
pub struct Case<'a> {
    /// Its name; hosts tell cases apart by this and the next.
    pub name: &'a str,
    /// What it belongs to.
    pub classname: &'a str,
    /// How long it took.
    pub ms: f64,
    /// What became of it.
    pub result: Outcome,
    /// What else there is to say of one that is wrong.
    pub text: String,
    /// What is said of one that is wrong for the host itself, as it stands.
    pub attachment: Option<String>,
}

/// What became of a case: its type, and why.
#[derive(Debug)]
pub enum Outcome {
    /// It passed.
    Success,
    /// What it asks for is not so.
    Failure(&'static str, String),
    /// It could not be asked.
    Error(String, String),
    /// It was not asked.
    Skipped(&'static str, String),
}

impl Suite {
    /// A suite of a host and a time, in nanoseconds since 1970.
    #[must_use]
    pub fn new(name: &str, host: &str, at_ns: i128) -> Self {
        let mut suite = TestSuite::new(&line(name));
        suite.hostname = line(host);
        suite.set_timestamp(
            OffsetDateTime::from_unix_timestamp_nanos(at_ns).unwrap_or(OffsetDateTime::UNIX_EPOCH),
        );
        Self(suite)
    }

    /// Adds a case with every text made safe.
    pub fn add(&mut self, told: Case) {
        let mut case = TestCase::success(&line(told.name), Duration::seconds_f64(seconds(told.ms)));
        case.set_classname(&line(told.classname));
        let whole = |why: &str| Some(xml::content(format!("{why}\n\n{}", told.text).trim_end()));
        let wrong = matches!(told.result, Outcome::Failure(..) | Outcome::Error(..));
        case.result = match told.result {
            Outcome::Success => TestResult::Success,
            Outcome::Failure(kind, why) => {
                TestResult::Failure { type_: kind.to_owned(), message: line(&why), cause: whole(&why) }
            }
            Outcome::Error(type_, why) => {
                TestResult::Error { type_, message: line(&why), cause: whole(&why) }
            }
            Outcome::Skipped(kind, why) => TestResult::SkippedWithCause {
                type_: kind.to_owned(),
                message: line(&why),
                cause: whole(&why),
            },
        };
        if let Some(attachment) = told.attachment.filter(|_| wrong) {
            case.set_system_out(&attachment);
        }
        self.0.add_testcase(case);
    }
}

/// The report of some suites.
///
/// # Panics
/// Never: memory takes everything.
#[must_use]
pub fn report(suites: impl IntoIterator<Item = Suite>) -> Vec<u8> {
    let mut report = Report::new();
    suites.into_iter().for_each(|suite| report.add_testsuite(suite.0));
    let mut xml = Vec::new();
    report.write_xml(&mut xml).expect("memory takes everything");
    xml.push(b'\n');
    xml
}

/// A text as it stands in an attribute: one line, with nothing that a reader would stumble over.
#[must_use]
pub fn line(text: &str) -> String {
    xml::line(text)
}

/// Seconds that every reader takes: finite, not negative.
fn seconds(ms: f64) -> f64 {
    if ms.is_finite() { (ms / 1e3).max(0.0) } else { 0.0 }
}
