//! Files that survive a crash: written whole or not at all, and folders that nobody else can reach into.
//!
//! A name is published by `rename` after its bytes are on disk, and the folder is synced after it, so that a reader
//! (or a machine that comes up again) sees the old file or the new one and never a part.

use rustix::fs::{CWD, FallocateFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::process::Resource;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What went wrong with a file, and what to do about it.
#[derive(Debug, Error)]
pub enum FsError {
    /// The system refused.
    #[error("cannot {action} {path}: {source}{hint}", path = .path.display(), hint = hint(action, .source))]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A folder that must be ours alone is not.
    #[error("{path} {fault}; remove it, or set XDG_RUNTIME_DIR to a folder that only you can enter", path = .path.display())]
    NotPrivate {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        fault: String,
    },
}

impl FsError {
    /// Pairs the system's answer with what was tried.
    #[must_use]
    pub fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_path_buf(), source }
    }

    /// Whether there was no room.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self.kind(), Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
    }

    /// Whether something was there already.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.kind() == Some(io::ErrorKind::AlreadyExists)
    }

    fn kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            Self::NotPrivate { .. } => None,
        }
    }
}

/// The next step, for the answers that people meet.
fn hint(action: &str, error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied if action.starts_with("read") || action == "list" => {
            " (run this as a user that may read it)"
        }
        io::ErrorKind::PermissionDenied => " (give a folder that you may write to)",
        io::ErrorKind::ReadOnlyFilesystem => {
            " (give a folder on a file system that is not mounted read-only)"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            " (free some space or give another folder)"
        }
        io::ErrorKind::NotADirectory => " (a part of this path is a file)",
        _ => "",
    }
}

/// Writes several files of one folder, each whole (temporary name, sync, rename), with one sync of the folder for all.
pub fn write_all_atomic(folder: &Path, files: &[(&str, &[u8])]) -> Result<(), FsError> {
    for (name, bytes) in files {
        write_temporary(&temporary(folder, name), bytes, File::sync_all)?;
    }
    publish_all(folder, files)?;
    sync_folder(folder)
}

/// The same for what a folder is not complete without: on a full disk it takes the room that was reserved in the folder.
/// Not before the disk says so: room that is given back early goes to whoever fills the disk.
pub fn write_all_at_last(folder: &Path, files: &[(&str, &[u8])]) -> Result<(), FsError> {
    match write_all_atomic(folder, files) {
        Err(e) if e.is_full() && release(folder)? => write_all_atomic(folder, files),
        written => written,
    }
}

/// The same for what closes a folder: by the time that it has its name, the room that was reserved is given back.
pub fn write_all_closing(folder: &Path, files: &[(&str, &[u8])]) -> Result<(), FsError> {
    let write = || {
        files
            .iter()
            .try_for_each(|(name, bytes)| write_temporary(&temporary(folder, name), bytes, File::sync_all))
    };
    match write() {
        Err(e) if e.is_full() && release(folder)? => write()?,
        written => written?,
    }
    release(folder)?;
    publish_all(folder, files)?;
    sync_folder(folder)
}

/// Writes several files of one folder, each whole (temporary name, rename) for every reader and after every kill, but
/// not after a power cut: for what can be derived again.
pub fn write_all_whole(folder: &Path, files: &[(&str, &[u8])]) -> Result<(), FsError> {
    for (name, bytes) in files {
        write_temporary(&temporary(folder, name), bytes, |_| Ok(()))?;
    }
    publish_all(folder, files)
}

fn publish_all(folder: &Path, files: &[(&str, &[u8])]) -> Result<(), FsError> {
    for (name, _) in files {
        let path = folder.join(name);
        std::fs::rename(temporary(folder, name), &path).map_err(|e| FsError::new("publish", &path, e))?;
    }
    Ok(())
}

/// The name that a file has until it is whole. It starts with no dot: artifact uploads skip hidden files, and a
/// leftover should be seen.
fn temporary(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.part-{}", std::process::id()))
}

/// The name that a file was to get, where this is the name that it has until then.
#[must_use]
pub fn unfinished_name(file: &str) -> Option<&str> {
    let (name, process) = file.rsplit_once(".part-")?;
    (!process.is_empty() && process.bytes().all(|digit| digit.is_ascii_digit())).then_some(name)
}

fn write_temporary(
    path: &Path,
    bytes: &[u8],
    settle: impl Fn(&File) -> io::Result<()>,
) -> Result<(), FsError> {
    let mut file = File::create(path).map_err(|e| FsError::new("create", path, e))?;
    let written = file.write_all(bytes).and_then(|()| settle(&file));
    written.map_err(|e| {
        // The error is what matters; a leftover of a failed write is of no use to anybody.
        let _ = std::fs::remove_file(path);
        FsError::new("write", path, e)
    })
}

/// A file that is written piece by piece and has no name of its own before it is whole. Dropped without one, it is gone.
#[derive(Debug)]
pub struct Staged {
    file: File,
    path: PathBuf,
    wanted: PathBuf,
}

impl Staged {
    /// Begins the file that is to be at `path`.
    pub fn create(path: &Path) -> Result<Self, FsError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let part = temporary(path.parent().unwrap_or(Path::new("")), &name);
        let file = File::create(&part).map_err(|e| FsError::new("create", &part, e))?;
        Ok(Self { file, path: part, wanted: path.to_owned() })
    }

    /// What its bytes are written to.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Where it is until it has its name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name once it is on disk, and tells whether that was free: what has the name already stays.
    pub fn publish_new(self) -> Result<bool, FsError> {
        self.file.sync_all().map_err(|e| FsError::new("write", &self.path, e))?;
        match self.rename() {
            Err(Errno::EXIST) => return Ok(false),
            renamed => renamed.map_err(|e| FsError::new("publish", &self.wanted, e.into()))?,
        }
        sync_folder(self.wanted.parent().unwrap_or(Path::new("")))?;
        Ok(true)
    }

    fn rename(&self) -> Result<(), Errno> {
        let (from, to) = (&self.path, &self.wanted);
        match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // Some file systems cannot promise it; there a file that comes in this moment is replaced.
            Err(Errno::INVAL | Errno::NOSYS) if to.symlink_metadata().is_ok() => Err(Errno::EXIST),
            Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::rename(from, to),
            renamed => renamed,
        }
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Once it has its name, there is nothing here any more.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Puts a folder's names on disk.
pub fn sync_folder(folder: &Path) -> Result<(), FsError> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let opened = File::open(folder).map_err(|e| FsError::new("open", folder, e))?;
    match opened.sync_all() {
        // Some file systems have no sync for folders; their renames are as durable as they get.
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other.map_err(|e| FsError::new("sync", folder, e)),
    }
}

/// Creates a file that must not exist yet and can only grow.
pub fn create_append_only(path: &Path) -> Result<File, FsError> {
    let options = &mut OpenOptions::new();
    options.append(true).create_new(true).mode(0o644).open(path).map_err(|e| FsError::new("create", path, e))
}

/// The file whose room on the disk is for the end of a record.
pub const RESERVE: &str = "reserve.bin";
/// Its bytes: enough for the end of most logs and what follows from them.
const RESERVED: u64 = 256 << 10;

/// Takes room on the disk of a folder, for what must be written even when the disk is full by then.
pub fn reserve(folder: &Path) -> Result<(), FsError> {
    // Beyond the limit on a file's size the system would end this process.
    if rustix::process::getrlimit(Resource::Fsize).current.is_some_and(|limit| limit < RESERVED) {
        return Ok(());
    }
    let path = folder.join(RESERVE);
    let file = create_append_only(&path)?;
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, RESERVED) {
        // Some file systems cannot promise room. There a full disk keeps the record's end until somebody makes room.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
        reserved => reserved.map_err(|e| FsError::new("reserve room with", &path, e.into())),
    }
}

/// Gives the room back, and tells whether it was still taken.
pub fn release(folder: &Path) -> Result<bool, FsError> {
    let path = folder.join(RESERVE);
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(FsError::new("remove", &path, e)),
    }
}

/// Makes a folder that only this user can enter, or checks that the one there is such a folder: a real folder (no
/// link), owned by this user, closed to group and others.
pub fn private_folder(path: &Path) -> Result<(), FsError> {
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(FsError::new("create", path, e)),
    }
    let facts = std::fs::symlink_metadata(path).map_err(|e| FsError::new("examine", path, e))?;
    let fault = if facts.is_dir() {
        let owner = facts.uid();
        let mode = facts.permissions().mode() & 0o777;
        if owner != rustix::process::geteuid().as_raw() {
            Some(format!("belongs to user {owner}"))
        } else if mode & 0o077 != 0 {
            Some(format!("has mode {mode:o}, so that others can enter it"))
        } else {
            None
        }
    } else {
        Some("is not a folder".to_owned())
    };
    match fault {
        Some(fault) => Err(FsError::NotPrivate { path: path.to_path_buf(), fault }),
        None => Ok(()),
    }
}

/// The folder of this user for sockets and locks: `$XDG_RUNTIME_DIR/stuckproof`, else `stuckproof-<uid>` in the
/// folder for temporary files. It is created where needed and is always private.
pub fn runtime_folder() -> Result<PathBuf, FsError> {
    let uid = rustix::process::geteuid().as_raw();
    let path = match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(folder) if folder.is_absolute() && folder.is_dir() => folder.join("stuckproof"),
        _ => std::env::temp_dir().join(format!("stuckproof-{uid}")),
    };
    private_folder(&path)?;
    Ok(path)
}

/// A lock that the kernel gives back when its holder dies, however it dies.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Creates `path`, locked from the moment at which it has that name, and holding `bytes`.
    pub fn publish(path: &Path, bytes: &[u8]) -> Result<Self, FsError> {
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let hidden = temporary(folder, &path.file_name().unwrap_or_default().to_string_lossy());
        let mut file = File::create(&hidden).map_err(|e| FsError::new("create", &hidden, e))?;
        let published = file
            .lock()
            .and_then(|()| file.write_all(bytes))
            .and_then(|()| std::fs::rename(&hidden, path))
            .map_err(|e| FsError::new("publish", path, e));
        published.map(|()| Self { _file: file })
    }

    /// Whether somebody holds the lock of `path`. A file that does not exist is not held.
    pub fn held(path: &Path) -> Result<bool, FsError> {
        let file = match rustix::fs::openat(
            rustix::fs::CWD,
            path,
            OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
        ) {
            Ok(fd) => File::from(fd),
            Err(rustix::io::Errno::NOENT) => return Ok(false),
            Err(e) => return Err(FsError::new("open", path, e.into())),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(e)) => Err(FsError::new("examine the lock of", path, e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_leaves_no_leftover() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("summary.json");
        write_all_atomic(folder.path(), &[("summary.json", b"old")]).unwrap();
        write_all_atomic(folder.path(), &[("summary.json", b"new")]).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_staged_file_gets_its_name_once_and_takes_nobody_elses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.tar.zst");
        let names = || std::fs::read_dir(folder.path()).unwrap().count();
        drop(Staged::create(&path).unwrap());
        assert_eq!(names(), 0, "what is not published is gone");
        for (bytes, free) in [("first", true), ("second", false)] {
            let staged = Staged::create(&path).unwrap();
            staged.file().write_all(bytes.as_bytes()).unwrap();
            assert_eq!(staged.publish_new().unwrap(), free);
            assert_eq!(std::fs::read(&path).unwrap(), b"first");
            assert_eq!(names(), 1);
        }
    }

    #[test]
    fn an_append_only_file_is_never_an_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        create_append_only(&path).unwrap();
        assert!(create_append_only(&path).is_err());
    }

    #[test]
    fn room_is_reserved_once_and_given_back() {
        let folder = tempfile::tempdir().unwrap();
        reserve(folder.path()).unwrap();
        let blocks = std::fs::metadata(folder.path().join(RESERVE)).unwrap().blocks();
        assert!(blocks * 512 >= RESERVED, "{blocks} blocks");
        assert!(release(folder.path()).unwrap());
        assert!(!release(folder.path()).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_private_folder_is_closed_and_a_foreign_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own");
        private_folder(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        private_folder(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
        assert!(private_folder(&path).unwrap_err().to_string().contains("others can enter"));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert!(private_folder(&link).unwrap_err().to_string().contains("not a folder"));
    }

    #[test]
    fn a_lock_is_held_as_long_as_its_holder_lives() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.json");
        assert!(!Lock::held(&path).unwrap());
        let lock = Lock::publish(&path, b"{}").unwrap();
        assert!(Lock::held(&path).unwrap());
        drop(lock);
        assert!(!Lock::held(&path).unwrap());
    }
}
