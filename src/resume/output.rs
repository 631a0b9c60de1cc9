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
        return Output::default();
    }
    let Some(faults) = supervise::settle_output(bundle, known.output_cap, &known.secrets) else {
        return Output::default();
    };
    let losses = faults.iter().map(|fault| EvidenceLost { records: 0, reason: fault.to_string() });
    let values = known.secrets.count();
    Output { masked: Some(OutputMasked { by: known.by.to_owned(), values }), losses: losses.collect() }
}
