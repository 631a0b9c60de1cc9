//! `stuckproof quarantine`.

use super::{duration, fail, say, size};
use crate::artifact::quarantine::{self, QuarantineError, Shelved};
use crate::clock::{self, Anchor};
use crate::exit;
use crate::render;
use clap::{Args, Subcommand};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List what was set aside
    List {
        /// Folders of artifacts
        #[arg(value_name = "DIR", default_value = ".")]
        folders: Vec<PathBuf>,
    },
    /// Tell what an entry is, and whether it is still what was set aside
    Show {
        /// The entry's folder
        #[arg(value_name = "ENTRY", default_value = ".")]
        entry: PathBuf,
    },
    /// Take the content of an entry out, and remove the entry
    Release {
        /// The entry's folder
        #[arg(value_name = "ENTRY", default_value = ".")]
        entry: PathBuf,
        /// Where it goes
        #[arg(long, value_name = "PATH")]
        to: PathBuf,
        /// Replace what is there
        #[arg(long)]
        force: bool,
    },
    /// Remove entries, the oldest first
    #[command(group = clap::ArgGroup::new("what").required(true).multiple(true))]
    Purge {
        /// Folders of artifacts
        #[arg(value_name = "DIR", default_value = ".")]
        folders: Vec<PathBuf>,
        /// Those that were set aside longer ago than this
        #[arg(long, value_name = "DURATION", value_parser = duration::parse, group = "what")]
        older_than: Option<Duration>,
        /// As many as it takes to keep no more than this
        #[arg(long, value_name = "SIZE", value_parser = size::parse, group = "what")]
        keep_bytes: Option<u64>,
    },
}

/// Does what was asked for; entries that cannot be used are named, and do not keep the others from it.
pub(super) fn main(options: &Options) -> ExitCode {
    let done = match &options.action {
        Action::List { folders } => Ok(list(folders)),
        Action::Show { entry } => show(entry),
        Action::Release { entry, to, force } => release(entry, to, *force),
        Action::Purge { folders, older_than, keep_bytes } => purge(folders, *older_than, *keep_bytes),
    };
    done.unwrap_or_else(|e| fail(&e))
}

fn list(folders: &[PathBuf]) -> ExitCode {
    let (entries, faults) = quarantine::find(folders);
    print(|out| entries.iter().try_for_each(|entry| render::quarantine::line(entry, out)));
    told(&faults)
}

fn show(entry: &Path) -> Result<ExitCode, QuarantineError> {
    let entry = quarantine::open(entry)?;
    let digest = entry.digest()?;
    print(|out| render::quarantine::show(&entry, digest.as_deref(), out));
    Ok(ExitCode::SUCCESS)
}

fn release(entry: &Path, to: &Path, force: bool) -> Result<ExitCode, QuarantineError> {
    let entry = quarantine::open(entry)?;
    quarantine::release(&entry, to, force)?;
    say(&format!("{} is out of the quarantine; nothing says that it is whole", to.display()));
    Ok(ExitCode::SUCCESS)
}

fn purge(
    folders: &[PathBuf],
    older_than: Option<Duration>,
    keep_bytes: Option<u64>,
) -> Result<ExitCode, QuarantineError> {
    let (entries, faults) = quarantine::find(folders);
    let before = older_than.map(|age| {
        let age = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        clock::rfc3339(Anchor::now().wall_ns.saturating_sub(age))
    });
    let removed: Vec<Shelved> = quarantine::purge(entries, before.as_deref(), keep_bytes)?;
    print(|out| removed.iter().try_for_each(|entry| render::quarantine::line(entry, out)));
    Ok(told(&faults))
}

/// Names what could not be used.
fn told(faults: &[QuarantineError]) -> ExitCode {
    for fault in faults {
        say(&fault.to_string());
    }
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(exit::OWN_FAULT) }
}

fn print(text: impl FnOnce(&mut io::StdoutLock<'_>) -> io::Result<()>) {
    let mut out = io::stdout().lock();
    // A reader that is gone wanted no more.
    let _ = text(&mut out).and_then(|()| out.flush());
}
