//! The GPU of a build: the one that NVML names, or the target of a build without one.

use super::model::{Build, Evidence};
use crate::baseline::Baseline;

/// `TensorRT` numbers compute capabilities from here on as NVIDIA does; below stand values of other meanings.
const FIRST_CAPABILITY: i64 = 50;

/// The SKU, or why there is none to name.
pub(super) fn sku(evidence: &Evidence, baseline: Result<&Baseline, &String>) -> Result<String, String> {
    let baseline = baseline.map_err(Clone::clone)?;
    let mut names: Vec<&str> = baseline.gpu.in_use.iter().map(|device| device.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    match (names.as_slice(), baseline.gpu.usable) {
        ([name], _) => Ok((*name).to_owned()),
        ([], Some(false)) => {
            target(evidence).ok_or_else(|| format!("{}, and the builder named no target", reason(baseline)))
        }
        ([], _) => Err(reason(baseline)),
        (several, _) => Err(format!("the command could use GPUs of several kinds: {}", several.join(", "))),
    }
}

/// What the decisive build was made for.
fn target(evidence: &Evidence) -> Option<String> {
    let decides = |build: &&Build| Some(build.build) == evidence.decisive_build;
    let facts = evidence.builds.iter().find(decides)?.facts.as_ref()?;
    let capabilities =
        facts.compute_capabilities.iter().filter(|&&capability| capability >= FIRST_CAPABILITY);
    let names: Vec<String> = capabilities.map(|capability| format!("SM{capability}")).collect();
    match names.as_slice() {
        [] => None,
        [name] => Some(format!("none (target {name})")),
        several => Some(format!("none (targets {})", several.join(", "))),
    }
}

fn reason(baseline: &Baseline) -> String {
    let why =
        ["gpu.inUse", "gpu.usable", "gpu.devices", "gpu"].iter().find_map(|field| baseline.nulls.get(*field));
    why.cloned().unwrap_or_else(|| "no GPU is on record".to_owned())
}
