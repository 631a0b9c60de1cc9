//! How long a cancel would have had to wait, had it come at a random moment of a build.
//!
//! A build can obey only at a `stepComplete`. A request that falls into a gap between two of them waits for the gap's
//! end; over a gap of length g that wait is uniform on (0, g). With T the length of the build:
//! mean = Σ g² / 2T, and P(wait ≤ w) = Σ min(g, w) / T, which is inverted exactly. After the last step no
//! acknowledgement can come any more: that tail counts with the wait until the builder returns, and its share of T is
//! given on its own.

use crate::clock::round_ms;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The waits of one build, as evidence holds them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Cancellability {
    /// Mean wait, milliseconds.
    pub mean_ms: f64,
    /// Median wait, milliseconds.
    pub p50_ms: f64,
    /// The wait that 95 % of all moments stay within, milliseconds.
    pub p95_ms: f64,
    /// The wait that 99 % of all moments stay within, milliseconds.
    pub p99_ms: f64,
    /// The longest wait, milliseconds.
    pub worst_ms: f64,
    /// The name of the phase that was innermost for most of the longest wait, or null where no phase was open.
    pub worst_phase: Option<String>,
    /// Its instance, or null.
    pub worst_phase_instance: Option<u64>,
    /// The share of the build after its last step, from 0 to 1, in which no cancel can be delivered any more.
    pub undeliverable_share: f64,
}

/// Mean, quantiles and maximum, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waits {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
}

/// The gaps of a build. Memory does not grow with their number: gaps that agree in their first twelve bits share a
/// bin, which keeps their count and sum, so that quantiles are right to a part in 4,096 and the rest is exact.
#[derive(Debug, Clone, Default)]
pub(super) struct Gaps {
    bins: BTreeMap<u32, Bin>,
    total: u64,
    squares: u128,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    count: u64,
    sum: u64,
}

impl Gaps {
    /// Adds a gap of `ns` nanoseconds.
    pub(super) fn add(&mut self, ns: u64) {
        let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(12);
        let bin = self.bins.entry((shift << 12) | (ns >> shift) as u32).or_default();
        bin.count += 1;
        bin.sum = bin.sum.saturating_add(ns);
        self.total = self.total.saturating_add(ns);
        self.squares = self.squares.saturating_add(u128::from(ns) * u128::from(ns));
    }

    /// The length of all gaps, nanoseconds: the length of the build.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The waits, or `None` for a build of no length.
    pub(super) fn waits(&self) -> Option<Waits> {
        (self.total > 0).then(|| Waits {
            mean: self.squares as f64 / 2.0 / self.total as f64,
            p50: self.quantile(0.50),
            p95: self.quantile(0.95),
            p99: self.quantile(0.99),
        })
    }

    /// The w with P(wait ≤ w) = `share`: between two neighbouring gap lengths that sum is a straight line in w.
    fn quantile(&self, share: f64) -> f64 {
        let wanted = share * self.total as f64;
        let mut shorter = 0.0;
        let mut longer = self.bins.values().map(|bin| bin.count).sum::<u64>() as f64;
        for bin in self.bins.values() {
            let wait = (wanted - shorter) / longer;
            if wait <= bin.sum as f64 / bin.count as f64 {
                return wait;
            }
            shorter += bin.sum as f64;
            longer -= bin.count as f64;
        }
        self.bins.last_key_value().map_or(0.0, |(_, bin)| bin.sum as f64 / bin.count as f64)
    }
}

impl Cancellability {
    /// From the gaps, the longest of them with its phase, and the tail after the last step.
    pub(super) fn new(gaps: &Gaps, worst: u64, phase: Option<(u64, &str)>, tail: u64) -> Option<Self> {
        let waits = gaps.waits()?;
        let ms = |ns: f64| round_ms(ns.round() as u64);
        Some(Self {
            mean_ms: ms(waits.mean),
            p50_ms: ms(waits.p50),
            p95_ms: ms(waits.p95),
            p99_ms: ms(waits.p99),
            worst_ms: round_ms(worst),
            worst_phase: phase.map(|(_, name)| name.to_owned()),
            worst_phase_instance: phase.map(|(instance, _)| instance),
            undeliverable_share: (tail as f64 / gaps.total() as f64 * 1e6).round() / 1e6,
        })
    }
}
