//! A finished bundle, read as a stranger would: plain JSON, none of stuckproof's own types.

use super::{environment, repository};
use quick_junit::TestCaseStatus;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The summary's fields.
const SUMMARY_FIELDS: [&str; 11] = [
    "buildConfigHash",
    "cancelLatencyMs",
    "cancelSource",
    "cleanupStatus",
    "framework",
    "gpuSku",
    "language",
    "retryPolicy",
    "tensorrtVersion",
    "timingCacheMode",
    "validationStatus",
];

/// What a bundle holds.
pub struct Bundle {
    /// The folder.
    pub path: PathBuf,
    /// The log's lines.
    pub events: Vec<Value>,
    /// `evidence.json`
    pub evidence: Value,
    /// `summary.json`
    pub summary: Value,
}

impl Bundle {
    /// Reads a finished bundle and checks what holds for every one: the chain, the numbers, the one end, the schema.
    pub fn load(path: &Path) -> Self {
        let bundle = Self::load_whoever_finished(path);
        bundle.check_baseline(&json(path, "baseline.json"));
        bundle
    }

    /// The same but for the baseline: the runner may have been lost, or the disk full, before it had looked around.
    pub fn load_whoever_finished(path: &Path) -> Self {
        let log = std::fs::read_to_string(path.join("events.jsonl")).expect("the bundle has a log");
        let events = log.lines().map(|l| serde_json::from_str(l).expect("a line is JSON")).collect();
        let bundle = Self {
            path: path.to_owned(),
            events,
            evidence: json(path, "evidence.json"),
            summary: json(path, "summary.json"),
        };
        check_chain(&log, &bundle.events);
        bundle.check_report();
        bundle.check_end();
        bundle.check_summary();
        bundle.check_counts();
        assert_fits_schema(&bundle.path);
        bundle
    }

    /// Whether somebody has finished the bundle: the log and the evidence have their end, and the wire is gone unless
    /// something was lost.
    pub fn is_finished(path: &Path) -> bool {
        let evidence = std::fs::read(path.join("evidence.json")).unwrap_or_default();
        let evidence: Value = serde_json::from_slice(&evidence).unwrap_or_default();
        let ended = !Self::lines_so_far(path, &["\"event\":\"jobEnded\""]).is_empty();
        evidence["finished"] == true
            && ended
            && (evidence["lost"] != serde_json::json!([]) || !path.join("wire").exists())
    }

    /// The whole lines that the log of a running job has by now and that hold all of these texts. Only they are parsed:
    /// a test that waits must not take the builder's core.
    pub fn lines_so_far(path: &Path, texts: &[&str]) -> Vec<Value> {
        let log = std::fs::read_to_string(path.join("events.jsonl")).unwrap_or_default();
        let wanted = log.lines().filter(|line| texts.iter().all(|text| line.contains(text)));
        wanted.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The events of a kind.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |e| e["event"] == kind)
    }

    /// The builds in `evidence.json`.
    pub fn builds(&self) -> &[Value] {
        self.evidence["builds"].as_array().expect("builds is a list")
    }

    /// The one build.
    pub fn build(&self) -> &Value {
        assert_eq!(self.builds().len(), 1, "one build: {:#}", self.evidence);
        &self.builds()[0]
    }

    /// Asserts the job's state and cause.
    pub fn assert_state(&self, state: &str, cause: Option<&str>) {
        let found = (self.evidence["state"].as_str(), self.evidence["cause"].as_str());
        assert_eq!(found, (Some(state), cause), "{:#}", self.evidence);
    }

    /// An interval of the accepted request in milliseconds.
    pub fn time(&self, name: &str) -> f64 {
        self.evidence["times"][name]
            .as_f64()
            .unwrap_or_else(|| panic!("no {name} in {:#}", self.evidence["times"]))
    }

    /// It is of this job, was there before the first phase, and gives a reason for each null.
    fn check_baseline(&self, baseline: &Value) {
        assert_eq!(baseline["job"], self.evidence["job"]);
        if let Some(first) = self.of_kind("phaseStarted").next() {
            assert!(baseline["tNs"].as_u64() < first["t"].as_u64(), "recorded before the first phase");
        }
        let reasons = baseline["nulls"].as_object().expect("an object");
        let mut path = Vec::new();
        for_each_null(baseline, &mut path, &mut |path: &[String]| {
            let told = (1..=path.len()).any(|part| reasons.contains_key(&path[..part].join(".")));
            assert!(told, "{} is null without a reason", path.join("."));
        });
    }

    /// It has a case for the job, for each build and for each criterion, and fails unless the job succeeded.
    fn check_report(&self) {
        let xml = std::fs::read_to_string(self.path.join("junit.xml")).expect("the bundle has a report");
        let report = quick_junit::Report::deserialize_from_str(&xml).expect("the report is JUnit");
        let cases: Vec<_> = report.test_suites.iter().flat_map(|suite| &suite.test_cases).collect();
        let builds = self.builds().len();
        assert_eq!(cases.len(), if builds == 0 { 9 } else { 1 + 9 * builds });
        let passed = matches!(cases[0].status, TestCaseStatus::Success { .. });
        assert_eq!(passed, self.evidence["state"] == "succeeded", "{:?}", cases[0]);
    }

    fn check_end(&self) {
        assert_eq!(self.events[0]["event"], "jobStarted");
        assert_eq!(self.of_kind("jobEnded").count(), 1, "one terminal record");
        let last = self.events.last().expect("a log has lines");
        assert_eq!(last["event"], "jobEnded");
        assert_eq!(self.evidence["finished"], true);
        for field in ["state", "cause", "observed", "exitCode"] {
            assert_eq!(last[field], self.evidence[field], "log and evidence agree on {field}");
        }
    }

    fn check_summary(&self) {
        let fields: Vec<&str> =
            self.summary.as_object().expect("an object").keys().map(String::as_str).collect();
        let mut sorted = fields.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, SUMMARY_FIELDS);
        let reasons = self.evidence["nulls"].as_object().expect("an object");
        for field in fields.iter().filter(|f| self.summary[**f].is_null()) {
            assert!(reasons.contains_key(*field), "summary's {field} is null without a reason");
        }
    }

    fn check_counts(&self) {
        let counts = &self.evidence["counts"];
        let kinds = [
            ("builds", "buildStarted"),
            ("phases", "phaseStarted"),
            ("steps", "stepCompleted"),
            ("messages", "message"),
        ];
        assert_eq!(counts["events"], self.events.len());
        for (count, kind) in kinds {
            assert_eq!(counts[count], self.of_kind(kind).count(), "{count}");
        }
    }
}

/// Checks every file of a bundle, or of all attempts at a job, against the checked-in schema with a validator that is not
/// ours.
pub fn assert_fits_schema(path: &Path) {
    let script = repository().join("scripts/validate.py");
    let output = Command::new(environment("python")).arg(script).arg(path).output().expect("python starts");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "it does not fit its schema:\n{said}");
}

fn json(path: &Path, name: &str) -> Value {
    let text = std::fs::read(path.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Every line has its number and the hash of the line before.
fn check_chain(log: &str, events: &[Value]) {
    assert!(log.ends_with('\n'), "the last line is whole");
    let mut previous = "0".repeat(64);
    for (index, (line, event)) in log.lines().zip(events).enumerate() {
        assert_eq!(event["seq"], index + 1, "line {}", index + 1);
        assert_eq!(event["prev"], previous, "line {}", index + 1);
        previous = hex(&Sha256::digest(line));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("text can always be written to");
        text
    })
}

/// Calls for the path of every null in a document.
fn for_each_null(value: &Value, path: &mut Vec<String>, call: &mut impl FnMut(&[String])) {
    let mut inside = |name: String, value: &Value| {
        path.push(name);
        for_each_null(value, path, call);
        path.pop();
    };
    match value {
        Value::Null => call(path),
        Value::Object(map) => map.iter().for_each(|(name, value)| inside(name.clone(), value)),
        Value::Array(list) => {
            for (place, value) in list.iter().enumerate() {
                inside(place.to_string(), value);
            }
        }
        _ => {}
    }
}
