//! The folder of a job's evidence, and the folder of its wire.

use crate::fsio::{self, FsError, Lock};
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Where bundles go unless the user says otherwise.
pub const DEFAULT_FOLDER: &str = "stuckproof-evidence";
/// The file in the wire's folder whose lock says that the runner lives.
const RUNNER_LOCK: &str = "runner.lock";

/// File systems that cannot be trusted with shared mappings, by the number that statfs(2) gives.
const NO_SHARED_MAPPINGS: [(u64, &str); 6] = [
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9P"),
    (0x6969, "NFS"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB"),
    (0x517B, "SMB"),
];

/// Why there is no bundle.
#[derive(Debug, Error)]
pub enum BundleError {
    /// Something is there.
    #[error("{path} exists and is not an empty folder; nothing was changed; give another --bundle, or move the old one away", path = .0.display())]
    Exists(PathBuf),
    /// The folder cannot be made or written.
    #[error(transparent)]
    Folder(#[from] FsError),
}

/// A job's folders.
#[derive(Debug)]
pub struct Bundle {
    shown: PathBuf,
    absolute: PathBuf,
    wire: PathBuf,
    wire_why: String,
    _runner: Option<Lock>,
}

impl Bundle {
    /// Creates the folders: `wanted`, which must be new or empty, or one named after the job.
    pub fn create(wanted: Option<&Path>, job: &str) -> Result<Self, BundleError> {
        let shown = place(wanted, job);
        create_empty(&shown)?;
        let absolute = fs::canonicalize(&shown).map_err(|e| FsError::new("find", &shown, e))?;
        let came_first =
            |e: FsError| if e.is_taken() { BundleError::Exists(shown.clone()) } else { e.into() };
        // Another job may be given the same folder at the same moment, and come first.
        fsio::reserve(&absolute).map_err(came_first)?;
        let (wire, wire_why) = wire_place(&absolute, job)?;
        match fs::DirBuilder::new().mode(0o700).create(&wire) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(BundleError::Exists(shown)),
            Err(e) => return Err(FsError::new("create", &wire, e).into()),
        }
        // Some file systems have no locks; there a job inside this one is not told apart and keeps its own evidence.
        let runner = Lock::publish(&wire.join(RUNNER_LOCK), b"").ok();
        Ok(Self { shown, absolute, wire, wire_why, _runner: runner })
    }

    /// The bundle's path as the user would write it.
    #[must_use]
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// The bundle's absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.absolute
    }

    /// A file in the bundle.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.absolute.join(name)
    }

    /// The wire's folder.
    #[must_use]
    pub fn wire(&self) -> &Path {
        &self.wire
    }

    /// Where the wire lies and why, for the evidence.
    #[must_use]
    pub fn wire_place(&self) -> String {
        format!("{}: {}", self.wire.display(), self.wire_why)
    }

    /// What to say where the folder is not at its place any more. Its files stay open and are written to their end, so
    /// that one which was only moved can be finished where it is.
    pub(super) fn taken_away(&self) -> Option<String> {
        let shown = self.shown.display();
        (!self.absolute.is_dir()).then(|| {
            format!(
                "{shown} was moved or removed while the job ran; where it was moved, run `stuckproof finalize` on it; \
                 where something cleans up there, give another --bundle"
            )
        })
    }

    /// Takes the wire away, once everything in it is in the log.
    pub fn remove_wire(&self) -> Result<(), FsError> {
        fs::remove_dir_all(&self.wire).map_err(|e| FsError::new("remove", &self.wire, e))
    }
}

/// Where a job's bundle is to be: in `wanted`, or in a folder named after the job.
pub(super) fn place(wanted: Option<&Path>, job: &str) -> PathBuf {
    wanted.map_or_else(|| Path::new(DEFAULT_FOLDER).join(job), Path::to_path_buf)
}

/// Whether a wire's folder belongs to a runner that lives.
#[must_use]
pub fn runner_lives(wire: &Path) -> bool {
    Lock::held(&wire.join(RUNNER_LOCK)).unwrap_or(false)
}

/// Makes a folder, or checks that the one there is empty.
pub fn create_empty(folder: &Path) -> Result<(), BundleError> {
    match fs::read_dir(folder).map(Iterator::count) {
        Ok(0) => Ok(()),
        Ok(_) => Err(BundleError::Exists(folder.to_path_buf())),
        Err(_) if folder.is_file() => Err(BundleError::Exists(folder.to_path_buf())),
        Err(_) => {
            let created = fs::create_dir_all(folder);
            created.map_err(|e| FsError::new("create the bundle's folder", folder, e).into())
        }
    }
}

fn wire_place(bundle: &Path, job: &str) -> Result<(PathBuf, String), FsError> {
    match unmappable(bundle) {
        None => Ok((bundle.join("wire"), "in the bundle".to_owned())),
        Some(kind) => {
            let why = format!("the bundle's file system ({kind}) cannot be trusted with shared mappings");
            Ok((fsio::runtime_folder()?.join(format!("{job}.wire")), why))
        }
    }
}

fn unmappable(folder: &Path) -> Option<&'static str> {
    kind_without_mappings(rustix::fs::statfs(folder).ok()?.f_type as u64)
}

fn kind_without_mappings(number: u64) -> Option<&'static str> {
    // The number has 32 bits; some architectures hand it over sign-extended.
    let number = number & 0xFFFF_FFFF;
    NO_SHARED_MAPPINGS.iter().find(|(kind, _)| *kind == number).map(|(_, name)| *name)
}

/// A name for a job, unique on the host: the time, the runner's process and a random end, of `0-9a-z-` only.
#[must_use]
pub fn new_job(now: chrono::DateTime<chrono::Utc>) -> String {
    let random = std::hash::RandomState::new().build_hasher().finish() & 0xFFFF;
    format!("{}-{}-{random:04x}", now.format("%Y%m%dt%H%M%Sz"), std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_new_or_was_empty() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = Bundle::create(Some(folder.path()), "j").unwrap();
        assert!(runner_lives(bundle.wire()));
        let again = Bundle::create(Some(folder.path()), "k").unwrap_err();
        assert!(again.to_string().contains("nothing was changed"), "{again}");
        let wire = bundle.wire().to_path_buf();
        drop(bundle);
        assert!(!runner_lives(&wire));
    }

    #[test]
    fn a_file_is_no_place_for_a_bundle() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "precious").unwrap();
        assert!(matches!(Bundle::create(Some(&file), "j"), Err(BundleError::Exists(_))));
        assert!(matches!(Bundle::create(Some(&file.join("x")), "j"), Err(BundleError::Folder(_))));
        assert_eq!(fs::read(&file).unwrap(), b"precious");
    }

    #[test]
    fn file_systems_that_cannot_map_are_known() {
        assert_eq!(kind_without_mappings(0x6969), Some("NFS"));
        assert_eq!(kind_without_mappings(0xFFFF_FFFF_FF53_4D42), Some("CIFS"));
        let (ext4, tmpfs, overlay) = (0xEF53, 0x0102_1994, 0x794C_7630);
        assert!([ext4, tmpfs, overlay].into_iter().all(|kind| kind_without_mappings(kind).is_none()));
    }

    #[test]
    fn a_name_fits_into_file_names_and_sockets() {
        let job = new_job(chrono::DateTime::from_timestamp(1_700_000_000, 0).unwrap());
        assert!(job.starts_with("20231114t221320z-"), "{job}");
        assert!(job.chars().all(|c| c.is_ascii_digit() || c.is_ascii_lowercase() || c == '-'));
        assert!(job.len() < 40);
    }
}
