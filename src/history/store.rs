//! The folder.

use super::entry::{Entry, Key, Outcome};
use super::expect::Expectation;
use crate::digest;
use crate::event::{Likeness, plain};
use crate::fsio::{FsError, write_all_atomic};
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Builds of one key that are kept; the oldest go first.
const KEPT: usize = 32;
/// Files of one configuration that are looked at, at most.
const LISTED: usize = 4_096;
/// An entry is shorter than this.
const LONGEST: u64 = 512 * 1024;
/// What a writer that was killed has left behind for so long, nobody needs.
const STALE: Duration = Duration::from_hours(24);
/// Notes on files that could not be used, at most.
const NOTES: usize = 5;

/// A store of earlier builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    folder: PathBuf,
}

impl History {
    /// The store in a folder, which need not be there yet.
    #[must_use]
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf() }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What earlier builds like this one make expect: those of the same key, else of the same configuration and GPU, else
    /// of the same configuration.
    #[must_use]
    pub fn find(&self, key: Key) -> Expectation {
        let folder = self.shelf(&key);
        let (mut names, mut notes) = match list(&folder) {
            Ok(names) => (names, Vec::new()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => (Vec::new(), Vec::new()),
            Err(e) => (Vec::new(), vec![format!("{} cannot be listed: {e}", folder.display())]),
        };
        let own = label(&key);
        // Newest first, those of the same key before all others.
        names.sort_by_key(|name| std::cmp::Reverse((name.starts_with(&own), age(name).to_owned())));
        let same = names.iter().take_while(|name| name.starts_with(&own)).count();
        let exact = read_all(&folder, &names[..same.min(KEPT)], &key.shape, &mut notes);
        if exact.iter().any(|entry| entry.outcome == Outcome::Succeeded) || names.len() == same {
            let likeness = if exact.is_empty() { Likeness::None } else { Likeness::Same };
            return Expectation::of(key, likeness, &exact, notes);
        }
        let others =
            read_all(&folder, &names[same..names.len().min(same + 2 * KEPT)], &key.shape, &mut notes);
        let (likeness, mut alike) = most_alike(&key, others);
        if alike.is_empty() {
            let likeness = if exact.is_empty() { Likeness::None } else { Likeness::Same };
            return Expectation::of(key, likeness, &exact, notes);
        }
        // Where this configuration stalled before, it counts, whatever the others say of its length.
        alike.extend(exact);
        Expectation::of(key, likeness, &alike, notes)
    }

    /// Keeps an entry; an older one of the same build is replaced. The oldest beyond what is kept are removed.
    ///
    /// # Errors
    /// When the folder cannot be made or written.
    ///
    /// # Panics
    /// Never: an entry is numbers and texts.
    pub fn keep(&self, entry: &Entry) -> Result<(), FsError> {
        let folder = self.shelf(&entry.key);
        fs::create_dir_all(&folder).map_err(|e| FsError::new("create the history's folder", &folder, e))?;
        let mut json = plain(serde_json::to_vec(entry).expect("numbers and texts serialise"));
        json.push(b'\n');
        let own = label(&entry.key);
        write_all_atomic(&folder, &[(&format!("{own}-{}-{}.json", entry.job, entry.build), &json)])?;
        prune(&folder, &own);
        Ok(())
    }

    fn shelf(&self, key: &Key) -> PathBuf {
        let mut shape = digest::sha256_hex(key.shape.as_bytes());
        shape.truncate(24);
        self.folder.join(shape)
    }
}

/// What the names of a key's files begin with.
fn label(key: &Key) -> String {
    let mut label = digest::sha256_hex(format!("{}\0{}", key.sku, key.cache).as_bytes());
    label.truncate(8);
    label
}

/// The part of a name that grows with time: jobs are named after it.
fn age(name: &str) -> &str {
    name.split_once('-').map_or("", |(_, rest)| rest)
}

fn list(folder: &Path) -> io::Result<Vec<String>> {
    let names = fs::read_dir(folder)?.take(LISTED).flatten().filter_map(|e| e.file_name().into_string().ok());
    Ok(names
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "json"))
        .collect())
}

/// Reads entries in their order; what cannot be used is passed over.
fn read_all(folder: &Path, names: &[String], shape: &str, notes: &mut Vec<String>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for name in names {
        match read(&folder.join(name), shape) {
            Ok(entry) => entries.push(entry),
            Err(why) if notes.len() < NOTES => notes.push(format!("{name} was passed over: it {why}")),
            Err(_) => {}
        }
    }
    entries
}

fn read(path: &Path, shape: &str) -> Result<Entry, String> {
    let unreadable = |e: io::Error| format!("cannot be read: {e}");
    // A link or a pipe was not put there by us, and a pipe would be waited for.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = rustix::fs::openat(rustix::fs::CWD, path, flags, Mode::empty());
    let file = File::from(file.map_err(|e| unreadable(e.into()))?);
    let facts = file.metadata().map_err(unreadable)?;
    if !facts.is_file() || facts.len() > LONGEST {
        return Err("is no entry: it is no file, or far too long".to_owned());
    }
    let mut json = Vec::new();
    file.take(LONGEST).read_to_end(&mut json).map_err(unreadable)?;
    let entry: Entry = serde_json::from_slice(&json).map_err(|e| format!("is not what was written: {e}"))?;
    entry.fault(shape).map_or(Ok(entry), |fault| Err(fault.to_owned()))
}

/// Of builds with other keys, those that are most like this one: on the same GPU, else on the GPU of the newest.
fn most_alike(key: &Key, entries: Vec<Entry>) -> (Likeness, Vec<Entry>) {
    let whole = |entry: &&Entry| entry.outcome == Outcome::Succeeded;
    let here = entries.iter().filter(whole).any(|entry| entry.key.sku == key.sku);
    let newest = entries.iter().find(whole).map(|entry| entry.key.sku.clone());
    let (likeness, sku) = match (here, newest) {
        (true, _) => (Likeness::OtherCache, key.sku.clone()),
        (false, Some(sku)) => (Likeness::OtherGpu, sku),
        (false, None) => (Likeness::None, String::new()),
    };
    (likeness, entries.into_iter().filter(|entry| entry.key.sku == sku).collect())
}

/// Removes what is too old. Another job may remove the same at the same moment, and nothing depends on it.
fn prune(folder: &Path, own: &str) {
    let mut mine: Vec<String> =
        list(folder).unwrap_or_default().into_iter().filter(|name| name.starts_with(own)).collect();
    mine.sort_unstable();
    for name in mine.iter().take(mine.len().saturating_sub(KEPT)) {
        let _ = fs::remove_file(folder.join(name));
    }
    for entry in fs::read_dir(folder).into_iter().flatten().take(LISTED).flatten() {
        let part = entry.file_name().to_string_lossy().contains(".json.part-");
        let age = entry.metadata().and_then(|facts| facts.modified()).ok().and_then(|at| at.elapsed().ok());
        if part && age.is_some_and(|age| age > STALE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests;
