//! Where the kernel has put the core of a command that crashed.

use crate::event::CommandExited;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The kernel keeps this many bytes of a process's name.
const NAME: usize = 15;

/// The core's file, if there is one that we can tell: a collector has its own place, and a pattern may hold what only
/// the kernel knows.
#[must_use]
pub fn of(pid: u32, program: &OsStr, exited: &CommandExited) -> Option<String> {
    let signal = exited.signal.filter(|_| exited.core_dumped)?;
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").ok()?;
    let with_pid = fs::read_to_string("/proc/sys/kernel/core_uses_pid").is_ok_and(|told| told.trim() != "0");
    let file = name(pattern.trim_end_matches('\n'), with_pid, pid, program, signal)?;
    // Where the name is not whole, the command was in the folder that we are in, unless it went elsewhere.
    let file = std::env::current_dir().ok()?.join(file);
    file.is_file().then(|| file.to_string_lossy().into_owned())
}

/// What the kernel makes of a pattern; see core(5).
fn name(pattern: &str, with_pid: bool, pid: u32, program: &OsStr, signal: i32) -> Option<PathBuf> {
    if pattern.is_empty() || pattern.starts_with('|') || pattern.starts_with('@') {
        return None;
    }
    let (mut name, mut named_pid) = (String::new(), false);
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match (letter, if letter == '%' { letters.next() } else { None }) {
            ('%', Some('%')) => name.push('%'),
            ('%', Some('p' | 'P')) => {
                named_pid = true;
                name += &pid.to_string();
            }
            ('%', Some('s')) => name += &signal.to_string(),
            ('%', Some('u')) => name += &rustix::process::getuid().as_raw().to_string(),
            ('%', Some('g')) => name += &rustix::process::getgid().as_raw().to_string(),
            ('%', Some('h')) => name += &rustix::system::uname().nodename().to_string_lossy(),
            ('%', Some('e')) => {
                let program = Path::new(program).file_name()?.to_string_lossy();
                name.extend(program.chars().take(NAME));
            }
            ('%', _) => return None,
            (other, _) => name.push(other),
        }
    }
    if with_pid && !named_pid {
        name.push('.');
        name += &pid.to_string();
    }
    Some(PathBuf::from(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pattern: &str, with_pid: bool) -> Option<String> {
        let name = name(pattern, with_pid, 77, OsStr::new("/opt/bin/trtexec"), 11);
        name.map(|n| n.to_string_lossy().into_owned())
    }

    #[test]
    fn a_pattern_is_read_as_the_kernel_reads_it() {
        assert_eq!(told("core", false).as_deref(), Some("core"));
        assert_eq!(told("core", true).as_deref(), Some("core.77"));
        assert_eq!(told("/cores/%e.%p.%s.100%%", true).as_deref(), Some("/cores/trtexec.77.11.100%"));
    }

    #[test]
    fn what_only_the_kernel_knows_is_not_guessed() {
        assert_eq!(told("|/usr/lib/systemd/systemd-coredump %P", false), None);
        assert_eq!(told("core.%t", false), None);
        assert_eq!(told("core.%", false), None);
        assert_eq!(told("", true), None);
    }

    #[test]
    fn without_a_core_there_is_no_file() {
        let exited = |signal, core_dumped| CommandExited {
            code: None,
            signal,
            core_dumped,
            core_file: None,
            oom_kills: None,
        };
        assert_eq!(of(1, OsStr::new("x"), &exited(Some(11), false)), None);
        assert_eq!(of(1, OsStr::new("x"), &exited(None, true)), None);
    }
}
