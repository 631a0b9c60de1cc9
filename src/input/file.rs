//! One file: what it is, and the digest of what is in it.

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use thiserror::Error;

/// Bytes that are read at once.
const CHUNK: usize = 1 << 20;

/// Why a file cannot be an input.
#[derive(Debug, Error)]
pub enum InputError {
    /// It is not there, or may not be read.
    #[error("the input {path} cannot be read: {source}; --input takes a file that is there before the command starts", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// It is a folder, or something else that has no content of its own.
    #[error("the input {path} is not a file; give each file of a folder with an --input of its own", path = .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
}

/// An input as it was when it was looked at.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) input: u32,
    pub(super) path: PathBuf,
    pub(super) identity: Result<Identity, String>,
}

/// What tells a file from others and from itself after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) bytes: u64,
    pub(super) modified_ns: i64,
    pub(super) inode: u64,
    device: u64,
    /// It changes with every write, also where the time of the last change was set back.
    changed: (i64, i64),
}

impl Identity {
    fn of(facts: &Metadata) -> Self {
        Self {
            bytes: facts.len(),
            modified_ns: facts.mtime().saturating_mul(1_000_000_000).saturating_add(facts.mtime_nsec()),
            inode: facts.ino(),
            device: facts.dev(),
            changed: (facts.ctime(), facts.ctime_nsec()),
        }
    }

    /// What is different, if anything is.
    pub(super) fn difference(&self, path: &Path) -> Option<String> {
        let now = match identify(path) {
            Ok(now) if now == *self => return None,
            Ok(now) => now,
            Err(why) => return Some(why),
        };
        Some(if (now.inode, now.device) != (self.inode, self.device) {
            "another file stands at its path".to_owned()
        } else if now.bytes != self.bytes {
            format!("it has {} bytes, and had {}", now.bytes, self.bytes)
        } else {
            "it was written to, or its attributes were changed".to_owned()
        })
    }
}

/// Looks at a file.
pub(super) fn identify(path: &Path) -> Result<Identity, String> {
    let facts = std::fs::metadata(path).map_err(|e| format!("it cannot be looked at: {e}"))?;
    if facts.is_file() { Ok(Identity::of(&facts)) } else { Err("it is not a file".to_owned()) }
}

/// Whether a file that the user declared can be one.
pub(super) fn check(path: &Path) -> Result<(), InputError> {
    let unreadable = |source| InputError::Unreadable { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(unreadable)?.is_file() {
        open(path).map(drop).map_err(unreadable)
    } else {
        Err(InputError::NotAFile { path: path.to_owned() })
    }
}

/// Opens a file without ever waiting for a pipe.
pub(super) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

/// SHA-256 of what is in a file, or why there is none. It ends early when `stop` is set.
pub(super) fn digest(path: &Path, identity: &Identity, stop: &AtomicBool) -> Result<String, String> {
    let unread = |e: io::Error| format!("it cannot be read: {e}");
    let mut file = open(path).map_err(unread)?;
    if Identity::of(&file.metadata().map_err(unread)?) != *identity {
        return Err("it changed before it could be read".to_owned());
    }
    // Only speed depends on it.
    let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::Sequential);
    let mut digest = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err("the job ended before it was read to its end".to_owned());
        }
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => digest.update(&chunk[..read]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(unread(e)),
        }
    }
    Ok(crate::digest::Hex::from(digest).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256_hex;

    #[test]
    fn a_file_is_read_as_it_was_identified_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        let content = vec![7; 3 * CHUNK + 5];
        std::fs::write(&path, &content).unwrap();
        let identity = identify(&path).unwrap();
        let never = AtomicBool::new(false);
        assert_eq!(digest(&path, &identity, &never), Ok(sha256_hex(&content)));
        assert_eq!(identity.difference(&path), None);
        let stopped = digest(&path, &identity, &AtomicBool::new(true)).unwrap_err();
        assert!(stopped.contains("before it was read"), "{stopped}");
        std::fs::write(&path, "shorter").unwrap();
        assert!(digest(&path, &identity, &never).unwrap_err().contains("changed"));
        assert!(identity.difference(&path).unwrap().starts_with("it has 7 bytes"));
        std::fs::remove_file(&path).unwrap();
        assert!(identity.difference(&path).unwrap().contains("No such file"));
    }

    #[test]
    fn a_change_that_hides_its_time_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        std::fs::write(&path, "before").unwrap();
        let identity = identify(&path).unwrap();
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(10));
        std::fs::write(&path, "behind").unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        assert!(identity.difference(&path).unwrap().contains("written to"));
    }

    #[test]
    fn what_is_no_file_is_no_input() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(check(folder.path()), Err(InputError::NotAFile { .. })));
        assert!(matches!(check(Path::new("/dev/zero")), Err(InputError::NotAFile { .. })));
        let missing = check(&folder.path().join("missing")).unwrap_err();
        assert!(missing.to_string().contains("before the command starts"), "{missing}");
    }
}
