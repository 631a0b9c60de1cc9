//! The quarantine afterwards: what is in it, and how it leaves. Nothing in an entry is believed: a name that leads
//! elsewhere, a link, or a record that does not fit its folder is refused.

use super::super::{copy, facts, place};
use super::{FOLDER, RECORD, Record, remove};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use thiserror::Error;

/// The longest record that is read.
const MOST_BYTES: u64 = 1 << 20;

/// Why an entry cannot be used.
#[derive(Debug, Error)]
pub enum QuarantineError {
    /// It is none, or was changed.
    #[error("{folder} is no entry of a quarantine that can be trusted: {why}; look at it yourself", folder = .folder.display())]
    Entry {
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The content is not what was set aside.
    #[error("{file} is not what was set aside: its SHA-256 is {found}, and the record says {expected}; it was changed since", file = .file.display())]
    Changed {
        /// The file.
        file: PathBuf,
        /// The digest now.
        found: String,
        /// The digest on record.
        expected: String,
    },
    /// Something is in the way.
    #[error("{path} exists; give --force to replace it, or another path", path = .0.display())]
    Exists(PathBuf),
    /// The system refused.
    #[error("cannot {action} {path}: {source}", path = .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

/// An entry.
#[derive(Debug, Clone)]
pub struct Shelved {
    /// Its folder.
    pub folder: PathBuf,
    /// Its record.
    pub record: Record,
    /// What it takes on disk, bytes.
    pub bytes: u64,
}

impl Shelved {
    /// What was set aside; none where the command wrote other files only.
    #[must_use]
    pub fn content(&self) -> Option<PathBuf> {
        let path = self.folder.join(&self.record.name);
        let real = fs::symlink_metadata(&path).is_ok_and(|facts| facts.is_file() || facts.is_dir());
        real.then_some(path)
    }

    /// The digest of the content as it is now; none where there is none.
    pub fn digest(&self) -> Result<Option<String>, QuarantineError> {
        let Some(content) = self.content() else { return Ok(None) };
        facts::digest(&content).map(Some).map_err(failed("read", &content))
    }
}

fn failed<'a>(action: &'static str, path: &'a Path) -> impl Fn(io::Error) -> QuarantineError + 'a {
    move |source| QuarantineError::Io { action, path: path.to_owned(), source }
}

/// Reads one entry.
pub fn open(folder: &Path) -> Result<Shelved, QuarantineError> {
    let refuse = |why: &str| QuarantineError::Entry { folder: folder.to_owned(), why: why.to_owned() };
    let absolute = std::path::absolute(folder).map_err(failed("find", folder))?;
    if !fs::symlink_metadata(&absolute).map_err(failed("examine", folder))?.is_dir() {
        return Err(refuse("it is not a folder"));
    }
    let path = absolute.join(RECORD);
    let file = fs::symlink_metadata(&path).map_err(|_| refuse("it has no record.json"))?;
    if !file.is_file() || file.len() > MOST_BYTES {
        return Err(refuse("its record.json is no file of ours"));
    }
    let mut text = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut text));
    read.map_err(failed("read", &path))?;
    let record: Record = serde_json::from_slice(&text).map_err(|e| refuse(&format!("record.json: {e}")))?;
    let mut parts = Path::new(&record.name).components();
    if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) || record.name == RECORD {
        return Err(refuse("its record names a file elsewhere"));
    }
    if place::name_of(&absolute) != format!("{}-{}", record.job, record.artifact).as_str() {
        return Err(refuse("its record is of another entry"));
    }
    if fs::symlink_metadata(absolute.join(&record.name)).is_ok_and(|facts| facts.is_symlink()) {
        return Err(refuse("its content is a link"));
    }
    let bytes = facts::of(&absolute).map_err(failed("examine", folder))?.map_or(0, |facts| facts.bytes);
    Ok(Shelved { folder: absolute, record, bytes })
}

/// The entries in the quarantines of some folders, oldest first, and what could not be used.
#[must_use]
pub fn find(folders: &[PathBuf]) -> (Vec<Shelved>, Vec<QuarantineError>) {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for folder in folders {
        let own = place::name_of(&std::path::absolute(folder).unwrap_or_default()) == FOLDER;
        let shelf = if own { folder.clone() } else { folder.join(FOLDER) };
        let entries = match fs::read_dir(&shelf) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && folder.is_dir() => continue,
            Err(source) => {
                faults.push(QuarantineError::Io { action: "list", path: shelf, source });
                continue;
            }
            Ok(entries) => entries,
        };
        for entry in entries.flatten() {
            match open(&entry.path()) {
                Ok(entry) => found.push(entry),
                Err(fault) => faults.push(fault),
            }
        }
    }
    found.sort_by(|a, b| (&a.record.at, &a.folder).cmp(&(&b.record.at, &b.folder)));
    (found, faults)
}

/// Takes the content out of the quarantine to a path, and removes the entry. Nothing is replaced without `force`.
pub fn release(entry: &Shelved, to: &Path, force: bool) -> Result<(), QuarantineError> {
    let content = entry.content().ok_or_else(|| QuarantineError::Entry {
        folder: entry.folder.clone(),
        why: "what its record names is not in it".to_owned(),
    })?;
    let expected = entry.record.facts.as_ref().and_then(|facts| facts.sha256.clone());
    if let (Some(expected), Some(found)) = (expected, entry.digest()?)
        && expected != found
    {
        return Err(QuarantineError::Changed { file: content, found, expected });
    }
    if fs::symlink_metadata(to).is_ok() {
        if !force {
            return Err(QuarantineError::Exists(to.to_owned()));
        }
        if fs::symlink_metadata(to).is_ok_and(|facts| facts.is_dir()) {
            copy::remove(to).map_err(failed("replace", to))?;
        }
    }
    match fs::rename(&content, to) {
        Err(e) if e.kind() == io::ErrorKind::CrossesDevices => {
            let mut part = to.as_os_str().to_owned();
            part.push(".stuckproof-part");
            let part = PathBuf::from(part);
            let copied = copy::copy(&content, &part).and_then(|()| fs::rename(&part, to));
            if copied.is_err() {
                // What matters is why it was not copied.
                let _ = copy::remove(&part);
            }
            copied.map_err(failed("copy the content to", to))?;
        }
        moved => moved.map_err(failed("move the content to", to))?,
    }
    remove(&entry.folder).map_err(failed("remove", &entry.folder))
}

/// Removes entries, the oldest first: those that were set aside before a moment, and then as many as it takes to keep no
/// more than some bytes. Gives those that were removed.
pub fn purge(
    entries: Vec<Shelved>,
    before: Option<&str>,
    keep_bytes: Option<u64>,
) -> Result<Vec<Shelved>, QuarantineError> {
    let mut left: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let mut removed = Vec::new();
    for entry in entries {
        let old = before.is_some_and(|before| *entry.record.at < *before);
        if old || keep_bytes.is_some_and(|keep| left > keep) {
            remove(&entry.folder).map_err(failed("remove", &entry.folder))?;
            left = left.saturating_sub(entry.bytes);
            removed.push(entry);
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256_hex;
    use crate::event::ArtifactKind;
    use std::os::unix::fs::symlink;

    fn entry(folder: &Path, job: &str, at: &str, edit: impl FnOnce(&mut Record)) -> PathBuf {
        let place = folder.join(FOLDER).join(format!("{job}-1"));
        fs::create_dir_all(&place).unwrap();
        let mut facts = {
            fs::write(place.join("engine"), "half").unwrap();
            facts::of(&place.join("engine")).unwrap()
        };
        facts.as_mut().unwrap().sha256 = Some(sha256_hex(b"half"));
        let mut record = Record {
            format: 1,
            job: job.to_owned(),
            artifact: 1,
            kind: ArtifactKind::Engine,
            path: "/models/engine".to_owned(),
            name: "engine".to_owned(),
            at: at.to_owned(),
            reason: "r".to_owned(),
            facts,
        };
        edit(&mut record);
        fs::write(place.join(RECORD), serde_json::to_vec(&record).unwrap()).unwrap();
        place
    }

    #[test]
    fn hostile_records_are_refused() {
        let edits: [fn(&mut Record); 6] = [
            |r| r.name = "../../victim".to_owned(),
            |r| r.name = "/etc/passwd".to_owned(),
            |r| r.name = "..".to_owned(),
            |r| r.name = String::new(),
            |r| r.name = RECORD.to_owned(),
            |r| r.job = "other".to_owned(),
        ];
        for edit in edits {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("victim"), "x").unwrap();
            let place = entry(folder.path(), "j", "2026", edit);
            assert!(matches!(open(&place), Err(QuarantineError::Entry { .. })));
            let (found, faults) = find(&[folder.path().to_owned()]);
            assert_eq!((found.len(), faults.len()), (0, 1));
        }
    }

    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let place = entry(folder.path(), "j", "2026", |_| {});
        symlink(&place, folder.path().join("k-1")).unwrap();
        assert!(open(&folder.path().join("k-1")).is_err());
        fs::remove_file(place.join("engine")).unwrap();
        symlink("/etc/passwd", place.join("engine")).unwrap();
        assert!(open(&place).is_err());
    }

    #[test]
    fn a_release_replaces_nothing_unasked_and_gives_nothing_that_was_changed() {
        let folder = tempfile::tempdir().unwrap();
        let place = entry(folder.path(), "j", "2026", |_| {});
        let to = folder.path().join("out");
        fs::write(&to, "precious").unwrap();
        assert!(matches!(release(&open(&place).unwrap(), &to, false), Err(QuarantineError::Exists(_))));
        fs::write(place.join("engine"), "changed").unwrap();
        assert!(matches!(release(&open(&place).unwrap(), &to, true), Err(QuarantineError::Changed { .. })));
        assert_eq!(fs::read(&to).unwrap(), b"precious");
        fs::write(place.join("engine"), "half").unwrap();
        release(&open(&place).unwrap(), &to, true).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"half");
        assert!(!folder.path().join(FOLDER).exists());
    }

    #[test]
    fn a_purge_takes_the_oldest_first() {
        let folder = tempfile::tempdir().unwrap();
        for (job, at) in [("c", "2026-03"), ("a", "2026-01"), ("b", "2026-02")] {
            entry(folder.path(), job, at, |_| {});
        }
        let entries = || find(&[folder.path().to_owned()]).0;
        let jobs = |entries: &[Shelved]| entries.iter().map(|e| e.record.job.clone()).collect::<Vec<_>>();
        assert_eq!(jobs(&entries()), ["a", "b", "c"]);
        assert_eq!(jobs(&purge(entries(), Some("2026-01-15"), None).unwrap()), ["a"]);
        let each = entries()[0].bytes;
        assert_eq!(jobs(&purge(entries(), None, Some(each)).unwrap()), ["b"]);
        assert!(purge(entries(), None, Some(u64::MAX)).unwrap().is_empty());
    }
}
