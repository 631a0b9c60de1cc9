//! What a build does, act by act.

use super::SimulateError;
use super::script::{Act, Fault, Severity};

/// An act as its line has it.
pub(super) struct Written<'a> {
    pub kind: &'static str,
    pub number: i64,
    pub ns: i64,
    pub open: bool,
    pub name: &'a str,
    pub parent: &'a str,
}

impl<'a> Written<'a> {
    pub fn of(act: &'a Act) -> Result<Self, SimulateError> {
        let (kind, belongs) = the_one_kind(act)?;
        check_keys(act, kind, belongs)?;
        let ns = act.silence.or(act.each).or(act.over);
        let plain = Self {
            kind,
            number: 0,
            ns: ns.map_or(-1, |ns| i64::try_from(ns).unwrap_or(i64::MAX)),
            open: act.open.unwrap_or(false),
            name: "",
            parent: act.parent.as_deref().unwrap_or(""),
        };
        let number = |value: Option<u64>| value.map_or(0, |value| i64::try_from(value).unwrap_or(i64::MAX));
        Ok(match act {
            Act { phase: Some(name), .. } => Self { name, number: act.steps.unwrap_or(1).into(), ..plain },
            Act { step: Some(step), .. } => {
                Self { number: (*step).into(), name: act.of.as_deref().unwrap_or(""), ..plain }
            }
            Act { finish: Some(name), .. } | Act { tactic: Some(name), .. } => Self { name, ..plain },
            Act { message: Some(text), .. } => {
                Self { name: text, number: act.severity.unwrap_or(Severity::Warning) as i64, ..plain }
            }
            Act { threads: Some(count), .. } | Act { times: Some(count), .. } => {
                Self { number: (*count).into(), ..plain }
            }
            Act { fault: Some(fault), .. } => {
                Self { name: fault_name(*fault), number: act.code.unwrap_or(0).into(), ..plain }
            }
            _ => Self { number: number(act.grow), ..plain },
        })
    }
}

/// What an act does, and which of the other keys belong to that.
fn the_one_kind(act: &Act) -> Result<(&'static str, &'static [&'static str]), SimulateError> {
    let kinds: [(&str, bool, &[&str]); 10] = [
        ("phase", act.phase.is_some(), &["steps", "each", "parent", "open", "do"]),
        ("step", act.step.is_some(), &["of"]),
        ("finish", act.finish.is_some(), &[]),
        ("silence", act.silence.is_some(), &[]),
        ("message", act.message.is_some(), &["severity"]),
        ("tactic", act.tactic.is_some(), &["each"]),
        ("threads", act.threads.is_some(), &["do"]),
        ("times", act.times.is_some(), &["do"]),
        ("fault", act.fault.is_some(), &["code", "over"]),
        ("grow", act.grow.is_some(), &["over"]),
    ];
    let mut given = kinds.iter().filter(|(_, given, _)| *given);
    match (given.next(), given.next()) {
        (Some(&(kind, _, belongs)), None) => Ok((kind, belongs)),
        _ => Err(SimulateError::Kind { known: kinds.map(|(kind, ..)| kind).join(", ") }),
    }
}

fn check_keys(act: &Act, kind: &'static str, belongs: &[&str]) -> Result<(), SimulateError> {
    let given = [
        ("steps", act.steps.is_some()),
        ("each", act.each.is_some()),
        ("parent", act.parent.is_some()),
        ("open", act.open.is_some()),
        ("of", act.of.is_some()),
        ("severity", act.severity.is_some()),
        ("code", act.code.is_some()),
        ("over", act.over.is_some()),
        ("do", act.acts.is_some()),
    ];
    match given.iter().find(|(key, given)| *given && !belongs.contains(key)) {
        Some((key, _)) => Err(SimulateError::Key { key, kind }),
        None => Ok(()),
    }
}

fn fault_name(fault: Fault) -> &'static str {
    match fault {
        Fault::Crash => "crash",
        Fault::Abort => "abort",
        Fault::Exit => "exit",
        Fault::Hang => "hang",
        Fault::Spin => "spin",
        Fault::Deadlock => "deadlock",
        Fault::Stop => "stop",
    }
}
