//! Processes that may still tell something of a job.

use std::fs;
use std::path::Path;

/// The processes of a job that are in the command's group or have its wire mapped, each with its name. Daemons that the
/// command left on purpose are neither. Nobody can be named without `/proc`.
pub(super) fn of_job(job: &str, command: Option<u32>, wire: Option<&Path>) -> Vec<String> {
    let mark = format!("STUCKPROOF_JOB={job}");
    let wire = wire.and_then(|wire| fs::canonicalize(wire).ok());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_meant = |&pid: &u32| {
        has_variable(pid, &mark)
            && (command.is_some_and(|command| group(pid) == Some(command))
                || wire.as_deref().is_some_and(|wire| has_mapped(pid, wire)))
    };
    pids.filter(is_meant).map(|pid| format!("{} ({pid})", name(pid))).collect()
}

fn has_variable(pid: u32, wanted: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|&byte| byte == 0).any(|variable| variable == wanted.as_bytes())
}

/// The process group: the third field after the name, which stands in brackets and may hold anything.
fn group(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 1..].split_whitespace().nth(2)?.parse().ok()
}

fn has_mapped(pid: u32, folder: &Path) -> bool {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let files = maps.lines().filter_map(|line| line.find('/').map(|start| &line[start..]));
    files.map(Path::new).any(|file| file.starts_with(folder))
}

fn name(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
