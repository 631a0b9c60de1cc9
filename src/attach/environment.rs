//! The variables that the child gets.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// One variable of the child's environment that differs from ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The variable.
    pub name: OsString,
    /// Its new value.
    pub value: OsString,
    /// Why, for the evidence.
    pub why: String,
}

/// What to change in the child's environment so that the attach library is in every process of the job.
///
/// Ours comes last in `LD_PRELOAD`, so that other preloads keep their places and their `RTLD_NEXT`. A program built with
/// AddressSanitizer refuses to start behind any preload unless its link-order check is off.
#[must_use]
pub fn environment(library: &Path, wire: &Path, job: &str) -> Vec<Change> {
    let change =
        |name: &str, value: OsString, why: &str| Change { name: name.into(), value, why: why.to_owned() };
    vec![
        change(
            "LD_PRELOAD",
            appended("LD_PRELOAD", library.as_os_str()),
            "the attach library was added behind what was there",
        ),
        change(
            "ASAN_OPTIONS",
            appended("ASAN_OPTIONS", OsStr::new("verify_asan_link_order=0")),
            "programs built with AddressSanitizer would refuse to start behind a preload",
        ),
        change("STUCKPROOF_WIRE", wire.into(), "where the attach library records"),
        change("STUCKPROOF_JOB", job.into(), "a job inside this one joins it"),
    ]
}

fn appended(name: &str, addition: &OsStr) -> OsString {
    let mut value = std::env::var_os(name).unwrap_or_default();
    if !value.is_empty() {
        value.push(":");
    }
    value.push(addition);
    value
}
