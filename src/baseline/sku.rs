//! The GPU of a build: the one that NVML names, or the target of a build without one.

use super::Baseline;
use crate::event::BuildFacts;

/// `TensorRT` numbers compute capabilities from here on as NVIDIA does; below stand values of other meanings.
const FIRST_CAPABILITY: i64 = 50;

impl Baseline {
    /// The SKU of a build of which the builder said `facts`, or why there is none to name.
    ///
    /// # Errors
    /// The reason for there being none.
    pub fn sku(&self, facts: Option<&BuildFacts>) -> Result<String, String> {
        let mut names: Vec<&str> = self.gpu.in_use.iter().map(|device| device.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        match (names.as_slice(), self.gpu.usable) {
            ([name], _) => Ok((*name).to_owned()),
            ([], Some(false)) => facts
                .and_then(target)
                .ok_or_else(|| format!("{}, and the builder named no target", self.no_gpu())),
            ([], _) => Err(self.no_gpu()),
            (several, _) => {
                Err(format!("the command could use GPUs of several kinds: {}", several.join(", ")))
            }
        }
    }

    fn no_gpu(&self) -> String {
        let why = ["gpu.inUse", "gpu.usable", "gpu.devices", "gpu"].iter().find_map(|f| self.nulls.get(*f));
        why.cloned().unwrap_or_else(|| "no GPU is on record".to_owned())
    }
}

/// What a build is made for.
fn target(facts: &BuildFacts) -> Option<String> {
    let capabilities =
        facts.compute_capabilities.iter().filter(|&&capability| capability >= FIRST_CAPABILITY);
    let names: Vec<String> = capabilities.map(|capability| format!("SM{capability}")).collect();
    match names.as_slice() {
        [] => None,
        [name] => Some(format!("none (target {name})")),
        several => Some(format!("none (targets {})", several.join(", "))),
    }
}
