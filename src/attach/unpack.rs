//! Putting embedded files on disk where nobody else can change them and the loader may execute them.
//!
//! The path of each carries the digest of its content, so that versions never collide; it is written under a temporary
//! name and renamed, so that two first runs cannot meet half a file; and it is compared byte by byte before each use.

use super::AttachError;
use crate::digest;
use rustix::fs::StatVfsMountFlags;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The library itself, built by `build.rs`.
pub(super) static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/attach.so"));

/// The attach library's path, with the right content, in a folder that only this user can change.
///
/// # Errors
/// When no folder will do; the error names each with its reason.
pub fn unpack() -> Result<PathBuf, AttachError> {
    in_some_folder(unpack_into)
}

/// The path of a file of this name and content, in a folder that only this user can change.
///
/// # Errors
/// When no folder will do; the error names each with its reason.
pub fn place(name: &str, content: &[u8]) -> Result<PathBuf, AttachError> {
    in_some_folder(|folder| {
        usable(folder)?;
        let own = folder.join(&digest::sha256_hex(content)[..16]);
        private_folder(&own)?;
        put(&own, own.join(name), content)
    })
}

fn in_some_folder(put: impl Fn(&Path) -> Result<PathBuf, AttachError>) -> Result<PathBuf, AttachError> {
    let mut tried = Vec::new();
    for folder in folders() {
        match put(&folder) {
            Ok(path) => return Ok(path),
            Err(error) => tried.push(format!("{}: {error}", folder.display())),
        }
    }
    Err(AttachError::NoPlace { tried })
}

/// Where the library may live, best first: `LD_PRELOAD` is split at spaces and colons, so a path with one cannot serve.
fn folders() -> Vec<PathBuf> {
    let uid = rustix::process::geteuid().as_raw();
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")));
    let private = |parent: PathBuf| parent.join(format!("stuckproof-{uid}"));
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    [cache.map(|parent| parent.join("stuckproof")), Some(private(std::env::temp_dir())), runtime.map(private)]
        .into_iter()
        .flatten()
        .chain([private(PathBuf::from("/dev/shm"))])
        .collect()
}

fn unpack_into(folder: &Path) -> Result<PathBuf, AttachError> {
    usable(folder)?;
    put(folder, folder.join(format!("attach-{}.so", &digest::sha256_hex(LIBRARY)[..16])), LIBRARY)
}

/// Makes the folder, and checks that it is private and that the loader can use what lies in it.
fn usable(folder: &Path) -> Result<(), AttachError> {
    let unusable = |why: &str| AttachError::NotPrivate { path: folder.to_owned(), why: why.to_owned() };
    if !folder.is_absolute() || folder.to_string_lossy().contains([' ', ':', '$', '\t', '\n']) {
        return Err(unusable("the loader cannot take its path"));
    }
    private_folder(folder)?;
    let mount = rustix::fs::statvfs(folder)
        .map_err(|error| AttachError::File { path: folder.to_owned(), source: error.into() })?;
    if mount.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(unusable("its file system is mounted noexec"));
    }
    Ok(())
}

/// Gives the file its content, unless it has it.
fn put(folder: &Path, path: PathBuf, content: &[u8]) -> Result<PathBuf, AttachError> {
    if !is_ours(&path, content)? {
        write(folder, &path, content).map_err(|source| AttachError::File { path: path.clone(), source })?;
        if !is_ours(&path, content)? {
            return Err(AttachError::NotPrivate {
                path,
                why: "its content does not stay as written".to_owned(),
            });
        }
    }
    Ok(path)
}

/// Makes the folder 0700, or checks that it is ours alone. The last component must be no link.
fn private_folder(folder: &Path) -> Result<(), AttachError> {
    let failed = |source| AttachError::File { path: folder.to_owned(), source };
    if let Some(parent) = folder.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let found = fs::symlink_metadata(folder).map_err(failed)?;
    let why = if !found.is_dir() {
        "it is no folder"
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        "it belongs to another user"
    } else if found.permissions().mode() & 0o022 != 0 {
        "others may write to it"
    } else {
        return Ok(());
    };
    Err(AttachError::NotPrivate { path: folder.to_owned(), why: why.to_owned() })
}

/// Whether the file is there with exactly our content, ours, and not writable by others.
fn is_ours(path: &Path, content: &[u8]) -> Result<bool, AttachError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(AttachError::File { path: path.to_owned(), source }),
    };
    let private = found.is_file()
        && found.uid() == rustix::process::geteuid().as_raw()
        && found.permissions().mode() & 0o022 == 0;
    Ok(private && fs::read(path).is_ok_and(|found| found == content))
}

fn write(folder: &Path, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix("unpacking-").tempfile_in(folder)?;
    file.write_all(content)?;
    File::set_permissions(file.as_file(), fs::Permissions::from_mode(0o500))?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacks_once_and_mends_a_changed_file() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("private");
        let path = unpack_into(&folder).unwrap();
        assert_eq!(fs::read(&path).unwrap(), LIBRARY);
        let before = fs::metadata(&path).unwrap().ino();
        assert_eq!(fs::metadata(unpack_into(&folder).unwrap()).unwrap().ino(), before, "written twice");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(&path, b"something else").unwrap();
        assert_eq!(fs::read(unpack_into(&folder).unwrap()).unwrap(), LIBRARY);
    }

    #[test]
    fn refuses_what_others_can_change() {
        let parent = tempfile::tempdir().unwrap();
        let open = parent.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(unpack_into(&open), Err(AttachError::NotPrivate { .. })));
        let link = parent.path().join("link");
        std::os::unix::fs::symlink(parent.path(), &link).unwrap();
        assert!(matches!(unpack_into(&link), Err(AttachError::NotPrivate { .. })));
    }

    #[test]
    fn refuses_a_path_that_the_loader_would_split() {
        let parent = tempfile::tempdir().unwrap();
        assert!(unpack_into(&parent.path().join("with space")).is_err());
        assert!(unpack_into(&parent.path().join("with:colon")).is_err());
    }

    #[test]
    fn first_runs_at_the_same_time_agree() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("private");
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| unpack_into(&folder).unwrap())).collect();
            for one in all {
                assert_eq!(fs::read(one.join().unwrap()).unwrap(), LIBRARY);
            }
        });
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "something was left behind");
    }
}
