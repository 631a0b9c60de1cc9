//! A bundle's folder as a stranger may have made it: listed and opened without following a link out of it.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// More files than any bundle has.
pub const MOST_FILES: usize = 10_000;
/// Folders below each other: the wire is the only one of ours.
const DEEPEST: usize = 4;
/// Characters of file names that uploads of artifacts refuse, or that mean something to a shell or another system.
const FORBIDDEN: &str = "\"*:<>?\\|";

/// An open folder.
#[derive(Debug)]
pub struct Folder(OwnedFd);

/// What is in a folder and below it.
#[derive(Debug, Default)]
pub struct Listing {
    /// The plain files, in the order of their bytes; folders are told by `/`.
    pub files: Vec<String>,
    /// What else is there.
    pub odd: Vec<Odd>,
}

/// Something that has no place in a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Odd {
    /// Its name, with what a terminal would obey left out.
    pub name: String,
    /// What it is.
    pub what: Oddity,
}

/// Ways to have no place in a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Oddity {
    /// A symbolic link.
    Link,
    /// A file with this many names, so that it can be changed from elsewhere.
    Names(u64),
    /// Neither file nor folder.
    Special,
    /// A name that is not plain.
    Name(&'static str),
    /// More than is read.
    TooMuch(&'static str),
}

impl Oddity {
    /// In words, behind the name.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Link => "is a symbolic link".to_owned(),
            Self::Names(names) => format!("has {names} names, so that it can be changed from elsewhere"),
            Self::Special => "is neither a file nor a folder".to_owned(),
            Self::Name(why) => format!("has a name that {why}"),
            Self::TooMuch(what) => format!("goes beyond {what}"),
        }
    }
}

/// Why a path in a bundle is not plain, if it is not.
#[must_use]
pub fn odd_path(path: &str) -> Option<&'static str> {
    if path.split('/').count() > DEEPEST {
        return Some("lies too deep");
    }
    path.split('/').find_map(odd_name)
}

/// Why a name is not plain, if it is not.
fn odd_name(name: &str) -> Option<&'static str> {
    let strange = |c: char| !(c.is_ascii_graphic() || c == ' ') || FORBIDDEN.contains(c);
    match name {
        "" => Some("is empty"),
        "." | ".." => Some("leads out of its folder"),
        _ if name.len() > 200 => Some("is too long"),
        _ if name.contains(strange) => Some("holds a character that not every system can store"),
        _ if name.starts_with(['.', ' ']) => Some("begins with a dot or a space, so that uploads skip it"),
        _ if name.ends_with(['.', ' ']) => Some("ends with a dot or a space"),
        _ => None,
    }
}

impl Folder {
    /// Opens the folder at a path that the user gave, which may be a link.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, path, flags, Mode::empty())?))
    }

    /// Everything in the folder.
    pub fn list(&self) -> io::Result<Listing> {
        let mut listing = Listing::default();
        let mut folders = vec![(String::new(), self.0.try_clone()?)];
        while let Some((prefix, folder)) = folders.pop() {
            for entry in Dir::read_from(&folder)? {
                let entry = entry?;
                let name = entry.file_name();
                if name == c"." || name == c".." {
                    continue;
                }
                if listing.files.len() + listing.odd.len() >= MOST_FILES {
                    listing.put(&prefix, "", Oddity::TooMuch("10,000 files"));
                    return Ok(listing);
                }
                let Ok(text) = name.to_str() else {
                    listing.put(&prefix, &name.to_string_lossy(), Oddity::Name("is not UTF-8"));
                    continue;
                };
                if let Some(why) = odd_name(text) {
                    listing.put(&prefix, text, Oddity::Name(why));
                    continue;
                }
                let facts = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    // It has gone in this moment.
                    Err(Errno::NOENT) => continue,
                    facts => facts?,
                };
                match FileType::from_raw_mode(facts.st_mode) {
                    FileType::RegularFile if facts.st_nlink > 1 => {
                        listing.put(&prefix, text, Oddity::Names(facts.st_nlink));
                    }
                    FileType::RegularFile => listing.files.push(format!("{prefix}{text}")),
                    FileType::Directory if prefix.split('/').count() >= DEEPEST => {
                        listing.put(&prefix, text, Oddity::TooMuch("four folders below each other"));
                    }
                    FileType::Directory => {
                        folders.push((format!("{prefix}{text}/"), down(&folder, text)?));
                    }
                    FileType::Symlink => listing.put(&prefix, text, Oddity::Link),
                    _ => listing.put(&prefix, text, Oddity::Special),
                }
            }
        }
        listing.files.sort_unstable();
        Ok(listing)
    }

    /// Opens a plain file by its path in the folder. Links are not followed and pipes not waited for.
    pub fn file(&self, path: &str) -> io::Result<File> {
        let mut folder = self.0.try_clone()?;
        let mut parts = path.split('/').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_some() {
                folder = down(&folder, part)?;
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = File::from(openat(&folder, part, flags, Mode::empty())?);
            let facts = file.metadata()?;
            if facts.is_file() && facts.nlink() == 1 {
                return Ok(file);
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file with one name"))
    }
}

fn down(folder: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, flags, Mode::empty())?)
}

impl Listing {
    fn put(&mut self, prefix: &str, name: &str, what: Oddity) {
        let name = format!("{prefix}{name}");
        let name = name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(200).collect();
        self.odd.push(Odd { name, what });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_plain_files_are_listed_and_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("wire")).unwrap();
        for name in ["b.json", "a.log", "wire/control", ".hidden", "twice", "q?"] {
            std::fs::write(at(name), name).unwrap();
        }
        std::fs::hard_link(at("twice"), folder.path().join("wire").join("again")).unwrap();
        symlink("/etc/passwd", at("link")).unwrap();
        symlink("/etc", at("etc")).unwrap();
        rustix::fs::mkfifoat(CWD, at("pipe"), Mode::RWXU).unwrap();
        let open = Folder::open(folder.path()).unwrap();
        let listing = open.list().unwrap();
        assert_eq!(listing.files, ["a.log", "b.json", "wire/control"]);
        let mut odd: Vec<_> = listing.odd.iter().map(|odd| odd.name.as_str()).collect();
        odd.sort_unstable();
        assert_eq!(odd, [".hidden", "etc", "link", "pipe", "q?", "twice", "wire/again"]);
        assert!(open.file("wire/control").is_ok());
        for name in ["link", "etc/passwd", "pipe", "twice", "wire", "none", "a.log/x", ""] {
            assert!(open.file(name).is_err(), "{name}");
        }
    }

    #[test]
    fn paths_that_mean_something_elsewhere_are_not_plain() {
        for path in ["a", "wire/1-2.seg", "a b.json"] {
            assert_eq!(odd_path(path), None, "{path}");
        }
        for path in ["", "/a", "a//b", "../a", "a/..", ".a", "a.", "a\0", "ä", "a\\b", "C:x", "1/2/3/4/5"] {
            assert!(odd_path(path).is_some(), "{path}");
        }
    }
}
