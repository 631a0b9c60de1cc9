//! The phase tree, indented.

use super::text::{Clean, Ms, count};
use crate::evidence::{BuildPhases, End, Phase};
use std::collections::HashMap;
use std::io::{self, Write};

/// More siblings of one name than this become one line.
const REPEATS: usize = 4;
/// Lines of one build's tree.
const LINES: usize = 300;
/// Levels that are indented; deeper ones stand below one another.
const LEVELS: usize = 20;

/// A line of the tree: one phase, or several finished ones of the same name under the same parent.
struct Row<'a> {
    phases: Vec<&'a Phase>,
    depth: usize,
}

/// Prints a build's phases in the order of their start. Phases of one name under one parent become one line where
/// there are many; those that did not finish always stand alone.
pub(super) fn tree(build: &BuildPhases, out: &mut impl Write) -> io::Result<()> {
    let children = children(&build.phases);
    let mut stack: Vec<Row> = rows(children.get(&None), 0);
    if stack.is_empty() {
        return Ok(());
    }
    let mut printed = 0;
    let mut shown = 0;
    writeln!(out, "  {:>9}  {:>9}  phase", "duration", "steps")?;
    while let Some(row) = stack.pop() {
        if printed == LINES {
            let rest = count((build.phases.len() - shown) as u64, "more phase");
            return writeln!(out, "  and {rest}, all of them in phases.json");
        }
        printed += 1;
        shown += row.phases.len();
        print(&row, out)?;
        match row.phases[..] {
            [one] => stack.extend(rows(children.get(&Some(one.phase)), row.depth + 1)),
            _ => shown += hidden(&row.phases, &children),
        }
    }
    Ok(())
}

fn children(phases: &[Phase]) -> HashMap<Option<u64>, Vec<&Phase>> {
    let mut children: HashMap<Option<u64>, Vec<&Phase>> = HashMap::new();
    for phase in phases {
        children.entry(phase.parent).or_default().push(phase);
    }
    children
}

/// The rows of some siblings, last one first, as a stack wants them.
fn rows<'a>(siblings: Option<&Vec<&'a Phase>>, depth: usize) -> Vec<Row<'a>> {
    let siblings = siblings.map(Vec::as_slice).unwrap_or_default();
    let mut finished: HashMap<&str, usize> = HashMap::new();
    for phase in siblings.iter().filter(|phase| phase.end == End::Finished) {
        *finished.entry(&phase.name).or_default() += 1;
    }
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut rows: Vec<Row> = Vec::new();
    for &phase in siblings {
        let many = phase.end == End::Finished && finished[phase.name.as_str()] > REPEATS;
        if let Some(&place) = places.get(phase.name.as_str()).filter(|_| many) {
            rows[place].phases.push(phase);
            continue;
        }
        if many {
            places.insert(&phase.name, rows.len());
        }
        rows.push(Row { phases: vec![phase], depth });
    }
    rows.reverse();
    rows
}

/// How many phases lie below a folded row.
fn hidden(folded: &[&Phase], children: &HashMap<Option<u64>, Vec<&Phase>>) -> usize {
    let mut below = 0;
    let mut stack: Vec<u64> = folded.iter().map(|phase| phase.phase).collect();
    while let Some(parent) = stack.pop() {
        let found = children.get(&Some(parent)).map(Vec::as_slice).unwrap_or_default();
        below += found.len();
        stack.extend(found.iter().map(|phase| phase.phase));
    }
    below
}

fn print(row: &Row, out: &mut impl Write) -> io::Result<()> {
    let duration: f64 = row.phases.iter().map(|phase| phase.duration_ms).sum();
    let reported: u64 = row.phases.iter().map(|phase| u64::from(phase.reported)).sum();
    let announced: i64 = row.phases.iter().map(|phase| i64::from(phase.announced)).sum();
    let indent = "  ".repeat(row.depth.min(LEVELS));
    let name = Clean::short(&row.phases[0].name);
    let steps = format!("{reported}/{announced}");
    let duration = Ms(duration).to_string();
    writeln!(out, "  {duration:>9}  {steps:>9}  {indent}{name}{}", remark(&row.phases))
}

/// What is to be said of a row besides its numbers.
fn remark(phases: &[&Phase]) -> String {
    let [one] = phases else {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for phase in phases {
            least = least.min(phase.duration_ms);
            most = most.max(phase.duration_ms);
        }
        return format!(
            " ({} phases of this name together, {} to {} each)",
            phases.len(),
            Ms(least),
            Ms(most)
        );
    };
    let end = match (one.end, &one.reason) {
        (End::Finished, _) => String::new(),
        (End::Open, _) => " (still open)".to_owned(),
        (End::Aborted, reason) => {
            format!(" (not finished: {})", Clean::short(reason.as_deref().unwrap_or("no reason on record")))
        }
    };
    let parent = one.unknown_parent.as_deref();
    let parent = parent.map(|name| format!(" (its parent {} was not open)", Clean::short(name)));
    end + &parent.unwrap_or_default()
}
