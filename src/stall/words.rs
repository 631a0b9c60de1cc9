//! A verdict in words, for the one line of a log.

use crate::event::{SilenceJudged, SilenceVerdict};
use crate::shown::{Clean, Ms};

/// Where the silence is, how long it has lasted and what is known of it.
#[must_use]
pub fn in_words(facts: &SilenceJudged) -> String {
    let place = match (&facts.phase_name, facts.build) {
        (Some(name), _) => format!("in \"{}\"", Clean::short(name)),
        (None, Some(build)) => format!("in build {build}, outside of any phase"),
        (None, None) => "outside of any build".to_owned(),
    };
    format!("{}: silent for {} {place}; {}", facts.verdict.name(), Ms(ms(facts.silent_ns)), why(facts))
}

/// Why it is judged so.
#[must_use]
pub fn why(facts: &SilenceJudged) -> String {
    let idle = Ms(ms(facts.idle_ns));
    let load = format!("it used {} % of a core", facts.cpu_percent);
    let longest =
        facts.expected_ns.map(|ns| format!("earlier builds were silent here for up to {}", Ms(ms(ns))));
    match facts.reason.as_str() {
        "called back" => "the builder calls back".to_owned(),
        "history" => longest.unwrap_or_default(),
        "load" => format!("{load}, and no earlier build tells how long this takes"),
        "longer than history" => format!("{load}, but {}", longest.unwrap_or_default()),
        "long without history" => format!("{load}; no earlier build tells how long this takes"),
        "not explained yet" => {
            format!("idle for {idle} of {} that make a stall", Ms(ms(facts.threshold_ns)))
        }
        "no open build" if facts.verdict == SilenceVerdict::Advancing => "no build is open".to_owned(),
        "no open build" => format!("idle for {idle}, but no build is open that could be stuck"),
        "gpu unseen" => format!("idle for {idle}, but a GPU that cannot be seen may be at work"),
        "stopped" => format!(
            "idle for {idle}: threads are stopped, by a signal or a debugger; SIGCONT lets them go on"
        ),
        "blocked" => {
            format!("idle for {idle}: threads wait for a device or a file system that does not answer")
        }
        _ => format!("idle for {idle}: its threads sleep and nothing wakes them"),
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_whatever_a_phase_is_called() {
        let facts = SilenceJudged {
            build: Some(1),
            phase: Some(2),
            phase_name: Some("Timing\n\u{1b}[2J::error::x".to_owned()),
            verdict: SilenceVerdict::Stalled,
            reason: "idle".to_owned(),
            silent_ns: 125_000_000_000,
            idle_ns: 61_000_000_000,
            cpu_percent: 0,
            gpu_percent: None,
            running: 0,
            blocked: 0,
            stopped: 0,
            expected_ns: None,
            threshold_ns: 60_000_000_000,
            earlier_stalls: 0,
        };
        let line = in_words(&facts);
        assert!(line.starts_with("stalled: silent for 2 min 05 s in \"Timing\\u{a}"), "{line}");
        assert!(line.ends_with("idle for 1 min 01 s: its threads sleep and nothing wakes them"), "{line}");
        assert!(!line.contains(['\n', '\u{1b}']));
    }
}
