//! Where an artifact belongs, and the names of what we put beside it.

use super::ArtifactError;
use crate::event::ArtifactKind;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// What a work folder's name ends with.
const WORK: &str = ".stuckproof";
/// The most links that a path may lead through, as the kernel counts them.
const MOST_LINKS: usize = 40;

/// A path that an artifact was declared by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The path, absolute, its folder without links.
    pub(super) path: PathBuf,
    /// What it leads to, in the same form.
    pub(super) target: PathBuf,
    /// Whether a folder is meant.
    pub(super) folder: bool,
}

impl Place {
    /// Finds out what a path means. Nothing has to be there but the folder that it lies in.
    pub(super) fn find(given: &Path) -> Result<Self, ArtifactError> {
        if given.to_str().is_none() {
            return Err(ArtifactError::Name { path: given.to_owned() });
        }
        let path = without_links(given, given)?;
        let mut target = path.clone();
        let mut links = 0;
        while fs::symlink_metadata(&target).is_ok_and(|facts| facts.is_symlink()) {
            let read = fs::read_link(&target).map_err(|e| ArtifactError::folder(given, e))?;
            target = without_links(&folder_of(&target).join(read), given)?;
            links += 1;
            if links > MOST_LINKS {
                return Err(ArtifactError::folder(given, io::Error::other("its links lead in a circle")));
            }
        }
        if target.to_str().is_none() {
            return Err(ArtifactError::Name { path: target });
        }
        let folder = target.is_dir() || given.as_os_str().as_bytes().ends_with(b"/");
        if folder && target.exists() && !target.is_dir() {
            return Err(ArtifactError::Kind { path: given.to_owned(), found: "a file", meant: "a folder" });
        }
        if !folder && target.exists() && !target.is_file() {
            return Err(ArtifactError::Kind { path: given.to_owned(), found: "no file", meant: "a file" });
        }
        Ok(Self { path, target, folder })
    }
}

/// The same path with the links of its folder resolved; what it names itself may be a link, or not there.
fn without_links(path: &Path, given: &Path) -> Result<PathBuf, ArtifactError> {
    let absolute = std::path::absolute(path).map_err(|e| ArtifactError::folder(given, e))?;
    match absolute.components().next_back() {
        Some(Component::Normal(name)) => {
            let folder = folder_of(&absolute);
            let real = fs::canonicalize(folder).map_err(|e| ArtifactError::folder(given, e))?;
            Ok(real.join(name))
        }
        // `..` names a folder that is there.
        _ => fs::canonicalize(&absolute).map_err(|e| ArtifactError::folder(given, e)),
    }
}

/// The folder that a path lies in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or_else(|| Path::new("/"))
}

/// The last part of a path.
pub(super) fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

/// The folder beside an artifact by which a job claims it.
pub(super) fn work(target: &Path) -> PathBuf {
    let mut name = name_of(target).to_owned();
    name.push(WORK);
    target.with_file_name(name)
}

/// The folder beside a timing cache in which one job has its copy; others have theirs beside it.
pub(super) fn shared_work(target: &Path, job: &str) -> PathBuf {
    let mut name = name_of(target).to_owned();
    name.push(format!("{WORK}-{job}"));
    target.with_file_name(name)
}

/// The place of its own to which the command of a job writes an artifact.
#[must_use]
pub fn own_place(kind: ArtifactKind, target: &Path, job: &str) -> PathBuf {
    let work = match kind {
        ArtifactKind::Engine => work(target),
        ArtifactKind::TimingCache => shared_work(target, job),
    };
    staging(&work, job, target)
}

/// The words that stand for that place in a command: of the `number`th engine, or of the timing cache.
#[must_use]
pub fn placeholders(kind: ArtifactKind, number: usize) -> Vec<String> {
    match kind {
        ArtifactKind::TimingCache => vec!["{timing_cache}".to_owned()],
        ArtifactKind::Engine => {
            let first = (number == 1).then(|| "{engine}".to_owned());
            first.into_iter().chain([format!("{{engine:{number}}}")]).collect()
        }
    }
}

/// The place in the work folder to which the command writes.
pub(super) fn staging(work: &Path, job: &str, target: &Path) -> PathBuf {
    work.join(job).join(name_of(target))
}

/// The place in the work folder for the copy of what was there before.
pub(super) fn kept(work: &Path) -> PathBuf {
    work.join("kept")
}

/// A path's bytes.
pub(super) fn bytes(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn spellings_of_one_path_give_one_work_folder() {
        let folder = tempfile::tempdir().unwrap();
        let real = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir(real.join("models")).unwrap();
        symlink(real.join("models"), real.join("alias")).unwrap();
        symlink("models/b.engine", real.join("current.engine")).unwrap();
        let work_of = |path: &str| work(&Place::find(&real.join(path)).unwrap().target);
        let expected = real.join("models/b.engine.stuckproof");
        for path in ["models/b.engine", "alias/b.engine", "current.engine", "models/../alias/./b.engine"] {
            assert_eq!(work_of(path), expected, "{path}");
        }
        let link = Place::find(&real.join("current.engine")).unwrap();
        assert_eq!((link.path, link.folder), (real.join("current.engine"), false));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_next_step() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Place::find(&folder.path().join("no/where.engine")).unwrap_err().to_string();
        assert!(missing.contains("make the folder first"), "{missing}");
        symlink("b", folder.path().join("a")).unwrap();
        symlink("a", folder.path().join("b")).unwrap();
        assert!(Place::find(&folder.path().join("a")).unwrap_err().to_string().contains("circle"));
        fs::write(folder.path().join("file"), "").unwrap();
        let slash = PathBuf::from(format!("{}/file/", folder.path().display()));
        assert!(Place::find(&slash).unwrap_err().to_string().contains("a folder"), "{slash:?}");
    }
}
