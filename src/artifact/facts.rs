//! What a file or folder is at one moment.

use super::place;
use crate::clock;
use crate::digest::{Hex, sha256_hex};
use crate::event::ArtifactFacts;
use std::fmt::Write;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most files that a folder may hold. An engine has a handful; more are a folder named by mistake.
const MOST_FILES: usize = 10_000;

/// The facts of what is at a path, without its digest; none where nothing is there.
pub(super) fn of(path: &Path) -> io::Result<Option<ArtifactFacts>> {
    let own = match fs::symlink_metadata(path) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        other => other?,
    };
    let mut facts = ArtifactFacts {
        bytes: 0,
        files: 0,
        modified: String::new(),
        inode: own.ino(),
        stamp: String::new(),
        sha256: None,
    };
    let mut list = format!("{}\n", own.ino());
    let mut latest = 0;
    for (name, file) in listing(path, &own)? {
        facts.bytes += file.len();
        facts.files += 1;
        let modified = nanoseconds(file.mtime(), file.mtime_nsec());
        latest = latest.max(modified);
        let changed = nanoseconds(file.ctime(), file.ctime_nsec());
        // Writing to memory cannot fail.
        let _ = writeln!(list, "{} {} {modified} {changed} {}", file.len(), file.ino(), name.display());
    }
    facts.modified = clock::rfc3339(u64::try_from(latest).unwrap_or(0));
    facts.stamp = sha256_hex(list.as_bytes());
    Ok(Some(facts))
}

/// The digest of the content of a file or folder.
pub(super) fn digest(path: &Path) -> io::Result<String> {
    let own = fs::symlink_metadata(path)?;
    if !own.is_dir() {
        return digest_of_file(path, &own);
    }
    let mut list = String::new();
    for (name, file) in listing(path, &own)? {
        // Writing to memory cannot fail.
        let _ = writeln!(list, "{}  {}", digest_of_file(&path.join(&name), &file)?, name.display());
    }
    Ok(sha256_hex(list.as_bytes()))
}

/// A link in a folder counts as what it says, and is not followed.
fn digest_of_file(path: &Path, facts: &Metadata) -> io::Result<String> {
    if facts.is_symlink() {
        return Ok(sha256_hex(place::bytes(&fs::read_link(path)?)));
    }
    Ok(Hex::of_all(File::open(path)?)?.0.to_string())
}

/// Every file of a folder and of those below it, in the order of the names; of a file itself alone.
pub(super) fn listing(path: &Path, own: &Metadata) -> io::Result<Vec<(PathBuf, Metadata)>> {
    if !own.is_dir() {
        return Ok(vec![(PathBuf::new(), own.clone())]);
    }
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(path.join(&folder))? {
            let entry = entry?;
            let name = folder.join(entry.file_name());
            let facts = entry.metadata()?;
            if facts.is_dir() {
                folders.push(name);
            } else if facts.is_file() || facts.is_symlink() {
                found.push((name, facts));
            } else {
                return Err(io::Error::other(format!("{} is neither a file nor a folder", name.display())));
            }
            if found.len() + folders.len() > MOST_FILES {
                return Err(io::Error::other(format!("it holds more than {MOST_FILES} files")));
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// A time of a file in nanoseconds since the Unix epoch.
pub(super) fn nanoseconds(seconds: i64, rest: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_changes_with_whatever_touches_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine");
        assert_eq!(of(&path).unwrap(), None);
        fs::write(&path, "one").unwrap();
        let first = of(&path).unwrap().unwrap();
        assert_eq!((first.bytes, first.files), (3, 1));
        assert_eq!(of(&path).unwrap().unwrap(), first);
        std::thread::sleep(std::time::Duration::from_millis(20));
        fs::write(&path, "two").unwrap();
        assert_ne!(of(&path).unwrap().unwrap().stamp, first.stamp);
    }

    #[test]
    fn a_folder_is_digested_by_its_files_and_their_names() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("b"), "abc").unwrap();
        fs::write(folder.path().join("sub/a"), "").unwrap();
        let facts = of(folder.path()).unwrap().unwrap();
        assert_eq!((facts.bytes, facts.files), (3, 2));
        let list = format!("{}  b\n{}  sub/a\n", sha256_hex(b"abc"), sha256_hex(b""));
        assert_eq!(digest(folder.path()).unwrap(), sha256_hex(list.as_bytes()));
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        let with_link = digest(folder.path()).unwrap();
        fs::remove_file(folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/etc/hosts", folder.path().join("link")).unwrap();
        assert_ne!(digest(folder.path()).unwrap(), with_link);
    }
}
