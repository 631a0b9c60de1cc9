//! What we write fits the schema, says a validator that is not ours.

use crate::common::environment;
use crate::files::published;
use crate::job::Job;
use crate::names::HOSTILE;
use crate::shown::{cancelled, failed, hostile_job, killed, two_builds, unobserved};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use stuckproof::evidence;

/// The kinds of lines that there are.
const KINDS: usize = 34;

/// Whether the validator accepts some bundles, and what it says.
fn validate<'a>(bundles: impl IntoIterator<Item = &'a Path>) -> (bool, String) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/validate.py");
    let output =
        Command::new(environment("python")).arg(script).args(bundles).output().expect("python starts");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

fn kinds(job: &Job) -> Vec<&'static str> {
    job.events.iter().map(|event| event.kind.name()).collect()
}

#[test]
fn every_kind_of_line_and_every_file_fits_the_schema() {
    let mut jobs = vec![cancelled(), failed(), killed(), two_builds(), unobserved(), published()];
    jobs.push(hostile_job(&HOSTILE.map(str::to_owned)));
    let all: BTreeSet<&str> = jobs.iter().flat_map(kinds).collect();
    assert_eq!(all.len(), KINDS, "{all:?}");
    let mut unfinished = cancelled();
    unfinished.sync();
    let log = fs::read_to_string(unfinished.log()).expect("the log");
    let (early, _) = log.split_at(log.find("\"event\":\"cancelAcknowledged\"").expect("it is there"));
    let whole = early.rfind('\n').expect("a line") + 1;
    fs::write(unfinished.log(), &early[..whole]).expect("the log can be cut");
    jobs.push(unfinished);
    for job in &jobs {
        evidence::write(job.folder.path()).expect("the bundle can be written");
    }
    let (accepted, said) = validate(jobs.iter().map(|job| job.folder.path()));
    assert!(accepted, "{said}");
}

#[test]
fn a_misspelt_a_missing_and_an_added_field_are_refused() {
    let spoiled = [
        ("\"engine\":", "\"engin\":"),
        (",\"bytes\":null", ""),
        ("\"messages\":", "\"more\":1,\"messages\":"),
    ];
    for (field, instead) in spoiled {
        let job = failed();
        evidence::write(job.folder.path()).expect("the bundle can be written");
        let log = fs::read_to_string(job.log()).expect("the log");
        assert!(log.contains(field));
        fs::write(job.log(), log.replace(field, instead)).expect("the log can be changed");
        let (accepted, said) = validate([job.folder.path()]);
        assert!(!accepted && said.contains("events.jsonl"), "{field}: {said}");
    }
}
