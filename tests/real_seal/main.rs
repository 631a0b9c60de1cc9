//! Sealed bundles of real builds: what is untouched verifies, and whatever is changed is named by its rule.

#[path = "../common/mod.rs"]
mod common;
mod scene;
mod tamper;
mod untouched;
