//! Combining two timing caches with the library that made them.
//!
//! What is in a cache only its library knows. So a small program (`cpp/cache/combine.cpp`, embedded like the attach
//! library) opens the very library that the job had mapped and calls its `ITimingCache::combine`, in a process of its own:
//! a library that crashes or hangs harms nobody.

use crate::attach;
use crate::event::LibraryAttached;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The program, built by `build.rs`.
static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/combine"));
/// More than a library takes to make a builder, also on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(1);
/// How often the program is looked at.
const TICK: Duration = Duration::from_millis(5);

/// Puts the program where it can be run.
///
/// # Errors
/// When no folder will do, in words.
pub fn program() -> Result<PathBuf, String> {
    attach::place("stuckproof-combine", PROGRAM).map_err(|e| e.to_string())
}

/// Writes what two caches know into a new file, by the program. What both know is taken from the base.
///
/// # Errors
/// Why there is no such file, in words.
pub fn combine(
    program: &Path,
    library: &LibraryAttached,
    base: &Path,
    ours: &Path,
    out: &Path,
) -> Result<(), String> {
    let mut version = library.version.split('.').chain(std::iter::repeat("0"));
    let child = Command::new(program)
        .arg(&library.path)
        .arg(&library.flavour)
        .args(version.by_ref().take(4))
        .args([base, ours, out])
        .env("LD_LIBRARY_PATH", search_path(Path::new(&library.path)))
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let said = wait(child.map_err(|e| format!("the program that combines timing caches cannot start: {e}"))?);
    if said.is_err() {
        // Nobody must take a part for the whole.
        let _ = std::fs::remove_file(out);
    }
    said
}

/// The library's own neighbours are found as they were by the job.
fn search_path(library: &Path) -> OsString {
    let mut path = library.parent().unwrap_or(Path::new("/")).as_os_str().to_owned();
    if let Some(present) = std::env::var_os("LD_LIBRARY_PATH") {
        path.push(":");
        path.push(present);
    }
    path
}

fn wait(mut child: Child) -> Result<(), String> {
    let began = Instant::now();
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Ok(status),
            Ok(None) if began.elapsed() < PATIENCE => std::thread::sleep(TICK),
            Ok(None) => {
                break Err(format!("the library did not come to an end within {} s", PATIENCE.as_secs()));
            }
            Err(e) => break Err(format!("the program that combines timing caches was lost: {e}")),
        }
    };
    let Ok(status) = ended else {
        // It may have ended in this moment.
        let _ = child.kill();
        let _ = child.wait();
        return ended.map(drop);
    };
    if status.success() {
        return Ok(());
    }
    let mut said = String::new();
    if let Some(mut stream) = child.stderr.take() {
        // What cannot be read is not told.
        let _ = stream.by_ref().take(4096).read_to_string(&mut said);
    }
    Err(said.lines().last().map_or_else(|| format!("the library ended with {status}"), str::to_owned))
}
