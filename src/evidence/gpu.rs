//! The GPU of the decisive build.

use super::model::Evidence;
use crate::baseline::Baseline;

/// The SKU, or why there is none to name.
pub(super) fn sku(evidence: &Evidence, baseline: Result<&Baseline, &String>) -> Result<String, String> {
    let decisive = evidence.builds.iter().find(|build| Some(build.build) == evidence.decisive_build);
    baseline.map_err(Clone::clone)?.sku(decisive.and_then(|build| build.facts.as_ref()))
}
