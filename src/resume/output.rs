//! The command's output, where the runner did not come to settle it.

use super::Known;
use super::seen::Seen;
use crate::event::{EventKind, EvidenceLost, OutputMasked};
use crate::supervise;
use std::path::Path;

/// What became of the output: nothing where the bundle keeps none, or where that is on record.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) masked: Option<OutputMasked>,
    pub(super) losses: Vec<EvidenceLost>,
}

/// Keeps of the output what the bundle is to hold, without secrets.
pub(super) fn settle(bundle: &Path, known: &Known, seen: &Seen) -> Output {
    let mut on_record = seen.own.iter().chain(&known.events);
    if on_record.any(|event| matches!(event.kind, EventKind::OutputMasked(_))) {
        return Output { masked: None, losses: check_of_engine(bundle, known, seen) };
    }
    let Some(faults) = supervise::settle_output(bundle, known.output_cap, &known.secrets) else {
        return Output::default();
    };
    let losses = faults.iter().map(|fault| EvidenceLost { records: 0, reason: fault.to_string() });
    let values = known.secrets.count();
    Output { masked: Some(OutputMasked { by: known.by.to_owned(), values }), losses: losses.collect() }
}

/// The same for the user's own check of the engine, where it was not seen to end: it runs after the command's output is
/// settled.
fn check_of_engine(bundle: &Path, known: &Known, seen: &Seen) -> Vec<EvidenceLost> {
    if seen.journal.is_validated() {
        return Vec::new();
    }
    let settled = supervise::settle_validation(bundle, known.output_cap, &known.secrets);
    settled.err().map(|fault| EvidenceLost { records: 0, reason: fault.to_string() }).into_iter().collect()
}
