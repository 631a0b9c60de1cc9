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
    let load = load(facts);
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

fn load(facts: &SilenceJudged) -> String {
    let used = format!("it used {} % of a core", facts.cpu_percent);
    match facts.starved_percent {
        None | Some(0) => used,
        Some(lacked) => format!("{used} and lacked {lacked} % that it could have used"),
    }
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silence() -> SilenceJudged {
        SilenceJudged {
            build: Some(1),
            phase: Some(2),
            phase_name: Some("Timing\n\u{1b}[2J::error::x".to_owned()),
            verdict: SilenceVerdict::Stalled,
            reason: "idle".to_owned(),
            silent_ns: 125_000_000_000,
            idle_ns: 61_000_000_000,
            cpu_percent: 0,
            starved_percent: None,
            gpu_percent: None,
            running: 0,
            blocked: 0,
            stopped: 0,
            expected_ns: None,
            threshold_ns: 60_000_000_000,
            earlier_stalls: 0,
        }
    }

    #[test]
    fn a_line_is_one_line_whatever_a_phase_is_called() {
        let facts = silence();
        let line = in_words(&facts);
        assert!(line.starts_with("stalled: silent for 2 min 05 s in \"Timing\\u{a}"), "{line}");
        assert!(line.ends_with("idle for 1 min 01 s: its threads sleep and nothing wakes them"), "{line}");
        assert!(!line.contains(['\n', '\u{1b}']));
    }

    #[test]
    fn a_starved_build_is_said_to_be_one() {
        let said = |starved_percent| {
            let reason = "long without history".to_owned();
            why(&SilenceJudged { reason, cpu_percent: 2, starved_percent, ..silence() })
        };
        let rest = "; no earlier build tells how long this takes";
        assert_eq!(said(None), format!("it used 2 % of a core{rest}"));
        assert_eq!(said(Some(0)), said(None));
        assert_eq!(
            said(Some(17)),
            format!("it used 2 % of a core and lacked 17 % that it could have used{rest}")
        );
    }
}
