//! The events on silences, as generated and as a job has them.

use crate::names::text;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use stuckproof::event::{BuildExpected, EventKind, Likeness, SilenceJudged, SilenceVerdict};

fn expected() -> impl Strategy<Value = EventKind> {
    let likeness = select(vec![Likeness::Same, Likeness::OtherCache, Likeness::OtherGpu, Likeness::None]);
    let words = proptest::collection::vec(text(), 3..5);
    (any::<[u32; 3]>(), words, likeness, any::<(Option<u64>, u64)>()).prop_map(
        |([build, builds, stalls], mut notes, likeness, (total_ns, longest_idle_ns))| {
            let [shape, sku, cache] =
                <[String; 3]>::try_from(notes.drain(..3).collect::<Vec<_>>()).expect("three words");
            EventKind::BuildExpected(BuildExpected {
                build,
                shape,
                sku,
                cache,
                likeness,
                builds,
                stalls,
                total_ns,
                longest_idle_ns,
                notes,
            })
        },
    )
}

fn judged() -> impl Strategy<Value = EventKind> {
    let verdicts = [
        SilenceVerdict::Advancing,
        SilenceVerdict::SlowExpected,
        SilenceVerdict::SlowUnexplained,
        SilenceVerdict::Stalled,
    ];
    let place = (any::<Option<u32>>(), any::<Option<u64>>(), option::of(text()));
    let rest = any::<([u32; 5], [Option<u32>; 2], [u64; 3], Option<u64>)>();
    (select(verdicts.to_vec()), text(), place, rest).prop_map(
        |(
            verdict,
            reason,
            (build, phase, phase_name),
            (counts, [gpu_percent, starved_percent], times, expected_ns),
        )| {
            let [cpu_percent, running, blocked, stopped, earlier_stalls] = counts;
            let [silent_ns, idle_ns, threshold_ns] = times;
            EventKind::SilenceJudged(SilenceJudged {
                build,
                phase,
                phase_name,
                verdict,
                reason,
                silent_ns,
                idle_ns,
                cpu_percent,
                starved_percent,
                gpu_percent,
                running,
                blocked,
                stopped,
                expected_ns,
                threshold_ns,
                earlier_stalls,
            })
        },
    )
}

/// Any event on silences.
pub fn kinds() -> impl Strategy<Value = EventKind> {
    prop_oneof![expected(), judged()]
}

/// What earlier builds made expect of build 1.
pub fn of_earlier_builds(builds: u32, stalls: u32) -> EventKind {
    EventKind::BuildExpected(BuildExpected {
        build: 1,
        shape: "5a".repeat(32),
        sku: "none (target SM89)".to_owned(),
        cache: "none".to_owned(),
        likeness: if builds + stalls == 0 { Likeness::None } else { Likeness::Same },
        builds,
        stalls,
        total_ns: (builds > 0).then_some(40_000_000_000),
        longest_idle_ns: 0,
        notes: Vec::new(),
    })
}

/// A verdict on build 1 in a phase, after so many seconds of silence.
pub fn verdict(verdict: SilenceVerdict, reason: &str, phase: u64, seconds: u64) -> SilenceJudged {
    let idle = matches!(reason, "idle" | "stopped" | "blocked" | "not explained yet");
    SilenceJudged {
        build: Some(1),
        phase: Some(phase),
        phase_name: Some("Timing graph nodes".to_owned()),
        verdict,
        reason: reason.to_owned(),
        silent_ns: seconds * 1_000_000_000,
        idle_ns: if idle { seconds * 1_000_000_000 } else { 0 },
        cpu_percent: if idle { 0 } else { 99 },
        starved_percent: Some(0),
        gpu_percent: None,
        running: u32::from(!idle),
        blocked: 0,
        stopped: 0,
        expected_ns: None,
        threshold_ns: 60_000_000_000,
        earlier_stalls: 0,
    }
}
