//! What happened to the timing cache.

use super::inventory::Inventory;
use super::{Build, Evidence};
use crate::event::{ArtifactKind, LibraryAttached, TimingCacheMode};

/// What the builder did with it, or why nobody can tell. The library is that of the decisive build.
pub(super) fn mode(
    evidence: &Evidence,
    inventory: &Inventory,
    library: Option<&LibraryAttached>,
) -> Result<TimingCacheMode, &'static str> {
    let declared = inventory.artifacts.iter().find(|artifact| artifact.kind == ArtifactKind::TimingCache);
    if let Some(cache) = declared {
        return cache.timing_cache.ok_or("the job has not ended");
    }
    if library.is_some_and(|library| library.flavour == "tensorrt-rtx") {
        return Ok(TimingCacheMode::Cold);
    }
    let attached = |build: &Build| build.facts.as_ref().and_then(|facts| facts.timing_cache_attached);
    let answers: Vec<Option<bool>> = evidence.builds.iter().map(attached).collect();
    if answers.contains(&Some(true)) {
        Err("a builder had a timing cache attached, and none was declared (--timing-cache)")
    } else if answers.is_empty() || answers.contains(&None) {
        Err("no builder was seen that could be asked for its timing cache")
    } else {
        Ok(TimingCacheMode::Cold)
    }
}
