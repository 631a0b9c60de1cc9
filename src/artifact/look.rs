//! What a file's first bytes say of it.

use super::facts::nanoseconds;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The marks of engines, and what they stand for.
const MARKS: [([u8; 4], &str); 3] =
    [(*b"ftrt", "TensorRT engine"), (*b"ptrt", "TensorRT engine"), (*b"vtrt", "TensorRT-RTX engine")];
/// What stands for all other beginnings.
const UNKNOWN: &str = "unknown";
/// The kernel stamps files with a clock that is behind by up to one of its ticks.
const TICK_NS: i128 = 10_000_000;

/// What an engine's first bytes say; of a folder's files the first that says anything.
pub(super) fn content(path: &Path) -> &'static str {
    let Ok(own) = fs::symlink_metadata(path) else { return UNKNOWN };
    let files = super::facts::listing(path, &own).unwrap_or_default();
    let found = files.iter().find_map(|(name, facts)| {
        let file = if own.is_dir() { path.join(name) } else { path.to_owned() };
        if facts.is_file() { mark(&file) } else { None }
    });
    found.unwrap_or(UNKNOWN)
}

fn mark(file: &Path) -> Option<&'static str> {
    let mut first = [0; 4];
    File::open(file).and_then(|mut file| file.read_exact(&mut first)).ok()?;
    MARKS.iter().find(|(mark, _)| *mark == first).map(|(_, name)| *name)
}

/// Files in a folder that look like engines and changed since a moment, without those of these names.
pub(super) fn undeclared(folder: &Path, since_wall_ns: u64, known: &[&Path]) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| {
        // Links are not followed: what they lead to is somewhere else.
        entry.metadata().is_ok_and(|facts| {
            let changed = nanoseconds(facts.ctime(), facts.ctime_nsec());
            facts.is_file() && changed >= i128::from(since_wall_ns) - TICK_NS
        })
    });
    let paths = files.map(|entry| entry.path()).filter(|path| !known.contains(&path.as_path()));
    let mut found: Vec<String> =
        paths.filter(|path| mark(path).is_some()).map(|path| path.to_string_lossy().into_owned()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_known_by_their_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (bytes, content_of) in
            [(&b"vtrt\0\0"[..], "TensorRT-RTX engine"), (b"ftrt", "TensorRT engine"), (b"ft", UNKNOWN)]
        {
            fs::write(path("a"), bytes).unwrap();
            assert_eq!(content(&path("a")), content_of);
        }
        assert_eq!(content(&path("none")), UNKNOWN);
        fs::write(path("b"), "vtrt").unwrap();
        assert_eq!(content(folder.path()), "TensorRT-RTX engine");
        let b = path("b").to_string_lossy().into_owned();
        assert_eq!(undeclared(folder.path(), 0, &[&path("a")]), [&*b]);
        assert!(undeclared(folder.path(), 0, &[&path("b")]).is_empty());
        assert!(undeclared(folder.path(), u64::MAX, &[]).is_empty(), "it was there before");
        std::os::unix::fs::symlink(b, path("c")).unwrap();
        assert_eq!(undeclared(folder.path(), 0, &[]).len(), 1);
    }
}
