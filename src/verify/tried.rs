//! A job that was tried several times: every attempt, and whether what lies beside them follows from them.
//!
//! The record of the attempts has no seal of its own. It needs none: each attempt's log, which is sealed, has the attempt's
//! number and the digest of the manifest before it, and the record is what follows from the attempts.

use super::fault::{Faults, Rule, Weight};
use super::files::{format_of, read};
use super::source::Source;
use super::{Answer, Fault, Report, Wanted, differ, verify};
use crate::attempts::{self, ATTEMPTS, Attempts};
use crate::evidence::{self, Bundle, EVENTS, document};
use std::path::{Path, PathBuf};

/// The longest record that is read.
const LONGEST: u64 = 16 << 20;

/// What was found of all attempts at one job.
#[derive(Debug)]
pub struct Tried {
    /// The folder of the attempts.
    pub path: PathBuf,
    /// What is wrong with the record of them.
    pub faults: Vec<Fault>,
    /// The attempts in their order; at least one.
    pub attempts: Vec<Report>,
}

impl Tried {
    /// The answer: that an earlier attempt failed is no fault of a job whose last one succeeded.
    #[must_use]
    pub fn answer(&self) -> Answer {
        let Some((last, earlier)) = self.attempts.split_last() else { return Answer::CannotTell };
        let earlier = earlier.iter().map(Report::answer).filter(|answer| *answer != Answer::NotSucceeded);
        let of_record = self.faults.iter().map(|fault| match fault.weight {
            Weight::Invalid => Answer::Invalid,
            Weight::CannotTell => Answer::CannotTell,
        });
        earlier.chain(of_record).fold(last.answer(), Answer::worse)
    }
}

/// Verifies every attempt in a folder, and the record of them.
#[must_use]
pub fn verify_attempts(path: &Path, wanted: &Wanted) -> Tried {
    let attempts: Vec<Report> = bundles(path).iter().map(|bundle| verify(bundle, wanted)).collect();
    let mut faults = Faults::default();
    match Source::folder(path) {
        Ok(folder) => check(path, &folder, &attempts, &mut faults),
        Err(e) => faults.cannot_tell(Rule::Readable, ".", "", format!("the folder cannot be opened: {e}")),
    }
    Tried { path: path.to_owned(), faults: faults.list, attempts }
}

/// The attempts' bundles. The first one is named even where it is missing, so that its absence is told.
fn bundles(folder: &Path) -> Vec<PathBuf> {
    let later = (2..).map(|number| folder.join(attempts::bundle_name(number)));
    let later = later.take_while(|bundle| bundle.symlink_metadata().is_ok());
    std::iter::once(folder.join(attempts::bundle_name(1))).chain(later).collect()
}

fn check(path: &Path, folder: &Source, attempts: &[Report], faults: &mut Faults) {
    alone(path, attempts.len(), faults);
    linked(attempts, faults);
    let bundles: Vec<&Bundle> = attempts.iter().filter_map(|report| report.bundle.as_ref()).collect();
    let Some(record) = record(folder, faults) else { return };
    if record.ended.is_none() {
        let what = "it has no end: the job is still being tried, or `stuckproof finalize` must finish it";
        faults.cannot_tell(Rule::Attempts, ATTEMPTS, "ended", what);
    }
    // What is wrong with an attempt is told there, and nothing can be compared with it.
    let (Some(last), true) = (bundles.last(), bundles.len() == attempts.len()) else { return };
    let version = &last.evidence.header.stuckproof;
    faults.foreign = (version != env!("CARGO_PKG_VERSION")).then(|| version.chars().take(40).collect());
    follows(&record, folder, &bundles, faults);
    let copies = evidence::files(last).into_iter().filter(|(name, _)| attempts::COPIED.contains(name));
    for (name, bytes) in copies {
        compare(folder, name, &bytes, "it is not that of the last attempt", faults);
    }
}

/// The record, where it is one.
fn record(folder: &Source, faults: &mut Faults) -> Option<Attempts> {
    let bytes = match read(folder, ATTEMPTS, LONGEST) {
        Ok(bytes) => bytes,
        Err(e) => {
            faults.cannot_tell(Rule::Readable, ATTEMPTS, "", e.to_string());
            return None;
        }
    };
    match (serde_json::from_slice(&bytes), format_of(&bytes)) {
        (Ok(record), _) => Some(record),
        (Err(_), Some(format)) if format != 1 => {
            let what = format!("its format is {format}, and this version knows 1 only");
            faults.cannot_tell(Rule::Attempts, ATTEMPTS, "format", what);
            None
        }
        (Err(e), _) => {
            faults.invalid(Rule::Attempts, ATTEMPTS, "", format!("it is no record of attempts: {e}"));
            None
        }
    }
}

/// The record is what follows from the attempts, and each of them but the last was one after which another may come.
fn follows(record: &Attempts, folder: &Source, bundles: &[&Bundle], faults: &mut Faults) {
    let wanted = document(&Attempts::of(record.retries, record.ended.clone(), bundles));
    compare(folder, ATTEMPTS, &wanted, "it is not what follows from the attempts beside it", faults);
    if bundles.len() as u64 > u64::from(record.retries) + 1 {
        let what = format!("there are {} attempts, more than it allows", bundles.len());
        faults.by_our_rules(Rule::Attempts, ATTEMPTS, "retries", what);
    }
    for (number, bundle) in (1..bundles.len()).zip(bundles) {
        if let Err(why) = attempts::again(&bundle.evidence) {
            let what = format!("no attempt follows this one: {why}");
            faults.by_our_rules(Rule::Attempts, &file(number, EVENTS), "", what);
        }
    }
}

fn compare(folder: &Source, name: &str, wanted: &[u8], what: &str, faults: &mut Faults) {
    match read(folder, name, LONGEST) {
        Ok(bytes) if bytes == wanted => {}
        Ok(bytes) => faults.by_our_rules(Rule::Attempts, name, &differ::first(wanted, &bytes), what),
        Err(e) => faults.invalid(Rule::Attempts, name, "", format!("it cannot be read: {e}")),
    }
}

/// Each attempt has its number and names the manifest of the one before, so that none was taken away or exchanged.
fn linked(attempts: &[Report], faults: &mut Faults) {
    let mut previous: Option<&Report> = None;
    for (number, report) in (1..).zip(attempts) {
        let before = previous.replace(report);
        let Some(bundle) = &report.bundle else { continue };
        let name = file(number, EVENTS);
        let Some(own) = &bundle.evidence.header.attempt else {
            let what = "its log says that the job was tried once; this bundle is of another job";
            faults.invalid(Rule::Attempts, &name, "attempt", what);
            continue;
        };
        if usize::try_from(own.number).ok() != Some(number) {
            let what = format!(
                "its log says that it is attempt {}; an attempt was taken away, added or renamed",
                own.number
            );
            faults.invalid(Rule::Attempts, &name, "attempt.number", what);
        }
        // Without a manifest before it, that is what is told.
        if before.is_some_and(|before| before.manifest.is_some() && before.manifest != own.previous) {
            let what = "it does not follow the attempt before it; that one was exchanged";
            faults.invalid(Rule::Attempts, &name, "attempt.previous", what);
        }
    }
}

/// There is no attempt beside those that follow each other.
fn alone(path: &Path, count: usize, faults: &mut Faults) {
    let beyond = |name: &str| {
        let number: Option<usize> = name.strip_prefix("attempt-").and_then(|number| number.parse().ok());
        number.is_some_and(|number| number == 0 || number > count)
    };
    let names = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    for name in names.iter().filter(|name| beyond(name)) {
        faults.invalid(Rule::Attempts, name, "", "attempts are missing between it and those before");
    }
}

fn file(attempt: usize, name: &str) -> String {
    format!("attempt-{attempt}/{name}")
}
