//! How long things took. A phase is matched by the names on the way to it, and among equals by its place.

use super::{Change, Section, Threshold};
use crate::evidence::{BuildPhases, Bundle};
use std::collections::{BTreeMap, HashMap};

/// More changes are counted only.
const MOST: usize = 20;
/// What stands between the names of a path.
const UNDER: &str = " › ";

/// Compares the durations, the largest changes first.
pub(super) fn compare(a: &Bundle, b: &Bundle, threshold: Threshold) -> Section {
    let sides = [durations(a), durations(b)];
    let mut changes: Vec<(f64, Change)> = Vec::new();
    for (what, first) in &sides[0] {
        let second = sides[1].get(what).copied();
        changes.extend(change(what, Some(*first), second, threshold));
    }
    for (what, second) in sides[1].iter().filter(|(what, _)| !sides[0].contains_key(*what)) {
        changes.extend(change(what, None, Some(*second), threshold));
    }
    changes.sort_by(|one, other| other.0.total_cmp(&one.0).then_with(|| one.1.what.cmp(&other.1.what)));
    let more = changes.len().saturating_sub(MOST) as u64;
    let changes = changes.into_iter().take(MOST).map(|(_, change)| change).collect();
    Section { name: "durations".to_owned(), times: true, changes, more }
}

fn change(what: &str, a: Option<f64>, b: Option<f64>, threshold: Threshold) -> Option<(f64, Change)> {
    let (first, second) = (a.unwrap_or_default(), b.unwrap_or_default());
    let by = (first - second).abs();
    let large = by >= threshold.ms && by * 100.0 >= threshold.percent * first.max(second);
    let shown = |ms: Option<f64>| ms.map(|ms| format!("{ms:.1} ms"));
    large.then(|| (by, Change { what: what.to_owned(), a: shown(a), b: shown(b) }))
}

/// Every duration with its path.
fn durations(bundle: &Bundle) -> BTreeMap<String, f64> {
    let evidence = &bundle.evidence;
    let mut found = BTreeMap::from([("the job".to_owned(), evidence.duration_ms)]);
    let several = evidence.builds.len() > 1;
    for build in &bundle.phases.builds {
        let name = if several { format!("build {}", build.build) } else { "the build".to_owned() };
        found.insert(name.clone(), build.duration_ms);
        of_phases(build, &name, &mut found);
    }
    found
}

fn of_phases(build: &BuildPhases, root: &str, found: &mut BTreeMap<String, f64>) {
    // Parents stand before their children, so that each path can be put together from its parent's.
    let mut paths: HashMap<u64, String> = HashMap::new();
    let mut seen: HashMap<String, u64> = HashMap::new();
    for phase in &build.phases {
        let above = phase.parent.and_then(|parent| paths.get(&parent)).map_or(root, String::as_str);
        let path = format!("{above}{UNDER}{}", phase.name);
        let number = seen.entry(path.clone()).or_default();
        *number += 1;
        let path = if *number == 1 { path } else { format!("{path} ({number})") };
        found.insert(path.clone(), phase.duration_ms);
        paths.insert(phase.phase, path);
    }
}
