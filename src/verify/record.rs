//! The log, and what follows from it.

use super::differ;
use super::fault::{Faults, Rule};
use super::files::{Digesting, Held, Sealed, compare, read};
use super::source::Source;
use crate::baseline::{self, BASELINE, Baseline};
use crate::digest::Hex;
use crate::event::{Encoder, Ending, EventKind, Line, LogFault, LogReader};
use crate::evidence::{self, Bundle, EVENTS, EvidenceError, document};
use crate::seal::MANIFEST;
use std::path::Path;

/// The longest derived file in which the place is looked for where it differs.
const LONGEST: u64 = 8 << 20;

/// Reads the log once: its digest, its lines, and the bundle that follows from them.
pub(super) fn check(
    path: &Path,
    source: &Source,
    sealed: &Sealed,
    held: &Held,
    faults: &mut Faults,
) -> Option<Bundle> {
    let entry = sealed.manifest.files.iter().find(|entry| entry.path == EVENTS)?;
    // One that is not there, or is no plain file, is told of already.
    let mut log = Digesting::new(source.file(EVENTS).ok()?);
    let baseline = read_baseline(held.baseline.as_ref(), faults);
    let mut lines = Lines::default();
    let derived =
        evidence::read(path, LogReader::new(&mut log), baseline, |line, text| lines.see(line, text));
    match log.drain() {
        Ok(()) => compare(entry, &log.sum.hex(), log.sum.bytes(), faults),
        Err(e) => faults.cannot_tell(Rule::Readable, EVENTS, "", e.to_string()),
    }
    if let Some(line) = lines.strange {
        let what = "the line is not what stuckproof writes for such an event";
        faults.by_our_rules(Rule::Record, EVENTS, &format!("line {line}"), what);
    }
    let bundle = match derived {
        Ok(bundle) => bundle,
        Err(EvidenceError::Log { fault, .. }) => {
            of_log(&fault, faults);
            return None;
        }
        Err(e) => {
            faults.invalid(Rule::Sequence, EVENTS, "line 1", e.to_string());
            return None;
        }
    };
    of_record(&bundle, sealed, faults);
    compare_derived(&bundle, source, held, faults);
    Some(bundle)
}

/// The lines as they would be written again.
#[derive(Default)]
struct Lines {
    encoder: Option<Encoder>,
    again: Vec<u8>,
    /// The first line that differs.
    strange: Option<u64>,
    count: u64,
}

impl Lines {
    fn see(&mut self, line: &Line, text: &[u8]) {
        self.count += 1;
        if self.strange.is_some() {
            return;
        }
        if let EventKind::JobStarted(header) = &line.event.kind {
            self.encoder.get_or_insert_with(|| Encoder::new(header.anchor()));
        }
        let Some(encoder) = &mut self.encoder else { return };
        self.again.clear();
        encoder.rewrite(line, &mut self.again);
        if self.again.strip_suffix(b"\n") != Some(text) {
            self.strange = Some(self.count);
        }
    }
}

fn of_log(fault: &LogFault, faults: &mut Faults) {
    let (rule, line) = match fault {
        LogFault::Io { line, .. } => {
            return faults.cannot_tell(Rule::Readable, EVENTS, &format!("line {line}"), fault.to_string());
        }
        LogFault::UnknownEvent { line, .. } | LogFault::Unreadable { line, .. } => {
            return faults.by_our_rules(Rule::Record, EVENTS, &format!("line {line}"), fault.to_string());
        }
        LogFault::TooLong { line } => (Rule::Record, line),
        LogFault::Sequence { line, .. } | LogFault::Header { line } => (Rule::Sequence, line),
        LogFault::Chain { line } => (Rule::Chain, line),
        LogFault::AfterEnd { line } => (Rule::Terminal, line),
    };
    faults.invalid(rule, EVENTS, &format!("line {line}"), fault.to_string());
}

fn of_record(bundle: &Bundle, sealed: &Sealed, faults: &mut Faults) {
    bundle.faults.iter().for_each(|fault| of_log(fault, faults));
    match bundle.ending {
        Ending::Ended => {}
        Ending::Open => faults.invalid(Rule::Terminal, EVENTS, "", "the log is sealed and has no end"),
        Ending::Torn { .. } => {
            faults.invalid(Rule::Terminal, EVENTS, "", "the log is sealed and its last line is not whole");
        }
    }
    if !bundle.follows {
        let what = "the state, the cause or the exit code on record does not follow from the events";
        faults.by_our_rules(Rule::State, EVENTS, &format!("line {}", bundle.lines), what);
    }
    let manifest = &sealed.manifest;
    if manifest.chain.head.as_bytes() != bundle.head.as_bytes() {
        faults.invalid(
            Rule::ChainHead,
            MANIFEST,
            "chain.head",
            "it is not the digest of the log's last line",
        );
    }
    if manifest.chain.seq != bundle.lines {
        let what = format!("it is {}, and the log has {} lines", manifest.chain.seq, bundle.lines);
        faults.invalid(Rule::ChainHead, MANIFEST, "chain.seq", what);
    }
    if manifest.job != bundle.evidence.job {
        faults.invalid(Rule::Job, MANIFEST, "job", "it is not the job that the log is of");
    }
    if let Ok(baseline) = &bundle.baseline
        && baseline.job != bundle.evidence.job
    {
        faults.invalid(Rule::Job, BASELINE, "job", "it is not the job that the log is of");
    }
}

/// The baseline comes from no log; it must at least be in the form in which it is written.
fn read_baseline(bytes: Option<&Vec<u8>>, faults: &mut Faults) -> Result<Baseline, String> {
    let Some(bytes) = bytes else { return Err(baseline::missing()) };
    let read = baseline::parse(bytes);
    match &read {
        Err(why) => faults.by_our_rules(Rule::Baseline, BASELINE, "", why.clone()),
        Ok(baseline) => {
            let again = document(baseline);
            if again != *bytes {
                let what = "it is not in the form in which stuckproof writes it";
                faults.by_our_rules(Rule::Baseline, BASELINE, &differ::first(&again, bytes), what);
            }
        }
    }
    read
}

/// The derived files, byte for byte: so their schema, their counts and their state are right as well.
fn compare_derived(bundle: &Bundle, source: &Source, held: &Held, faults: &mut Faults) {
    // From a log with faults nothing follows that could be compared.
    if !bundle.faults.is_empty() {
        return;
    }
    for (name, wanted) in evidence::files(bundle) {
        let Some(found) = held.derived.get(name) else {
            faults.by_our_rules(Rule::Missing, name, "", "it follows from the log and is not in the bundle");
            continue;
        };
        let digest = Hex::of(&wanted);
        if *found == digest {
            continue;
        }
        let what = format!("it does not follow from the log (SHA-256 of what does: {digest})");
        let short = (wanted.len() as u64 <= LONGEST).then(|| read(source, name, LONGEST).ok()).flatten();
        let place = short.map(|found| differ::first(&wanted, &found)).unwrap_or_default();
        faults.by_our_rules(Rule::Derived, name, &place, what);
    }
}
