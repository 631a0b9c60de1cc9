//! Copies of files and folders, which share their blocks with the original where the file system can do that.

use super::facts;
use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Copies a file or folder to a place where nothing is, with permissions and times, and puts it on disk.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let own = fs::symlink_metadata(from)?;
    if !own.is_dir() {
        return copy_file(from, to);
    }
    fs::create_dir(to)?;
    for (name, entry) in facts::listing(from, &own)? {
        let (from, to) = (from.join(&name), to.join(&name));
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        if entry.is_symlink() {
            symlink(fs::read_link(from)?, to)?;
        } else {
            copy_file(&from, &to)?;
        }
    }
    fs::set_permissions(to, own.permissions())
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut copy = File::create_new(to)?;
    if rustix::fs::ioctl_ficlone(&copy, &source).is_err() {
        io::copy(&mut source, &mut copy)?;
    }
    let facts = source.metadata()?;
    copy.set_permissions(facts.permissions())?;
    copy.set_times(FileTimes::new().set_modified(facts.modified()?))?;
    copy.sync_all()
}

/// Puts the content of a file, or of every file of a folder, on disk.
pub(super) fn sync(path: &Path) -> io::Result<()> {
    let own = fs::symlink_metadata(path)?;
    for (name, entry) in facts::listing(path, &own)? {
        if entry.is_file() {
            let file = if own.is_dir() { File::open(path.join(name))? } else { File::open(path)? };
            file.sync_all()?;
        }
    }
    Ok(())
}

/// Removes a file or folder; nothing there is no error.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(e) => Err(e),
    };
    match removed {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Gives two folders each other's name at once; where the file system cannot do that, the old one makes room first.
pub(super) fn exchange(new: &Path, old: &Path) -> io::Result<()> {
    let here = rustix::fs::CWD;
    match rustix::fs::renameat_with(here, new, here, old, rustix::fs::RenameFlags::EXCHANGE) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            let aside = new.with_extension("old");
            fs::rename(old, &aside)?;
            fs::rename(new, old)?;
            remove(&aside)
        }
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_copy_has_the_content_the_permissions_and_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("from/sub")).unwrap();
        fs::write(path("from/sub/a"), vec![7; 3_000_000]).unwrap();
        fs::set_permissions(path("from/sub/a"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("sub/a", path("from/link")).unwrap();
        copy(&path("from"), &path("to")).unwrap();
        assert_eq!(fs::read(path("to/sub/a")).unwrap(), vec![7; 3_000_000]);
        let facts = |name: &str| fs::metadata(path(name)).unwrap();
        assert_eq!(facts("to/sub/a").permissions().mode() & 0o777, 0o640);
        assert_eq!(facts("to/sub/a").modified().unwrap(), facts("from/sub/a").modified().unwrap());
        assert_eq!(fs::read_link(path("to/link")).unwrap(), Path::new("sub/a"));
        assert!(copy(&path("from"), &path("to")).is_err(), "nothing is overwritten");
    }
}
