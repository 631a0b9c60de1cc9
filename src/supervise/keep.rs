//! What the bundle keeps of the command's output: the first and the last half of the cap, without secrets.
//!
//! While the command runs, the middle of what has been carried to our stream is given back to the file system (a hole
//! is punched, which the command does not notice). At the end the file is replaced by its first half, one line that
//! says how much is missing, and its last half, with the secrets masked.

use crate::fsio::FsError;
use crate::mask::{self, Secrets};
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The files of the command's output.
const OUTPUT: [&str; 2] = ["stdout.log", "stderr.log"];
/// The file for what the user's own check of the engine says.
pub const VALIDATION: &str = "validation.log";

/// Does for a bundle what the runner would have done at the command's end: keeps `cap` bytes of each stream, without
/// secrets. None where the bundle keeps no output; the list says what could not be done.
#[must_use]
pub fn settle_output(bundle: &Path, cap: u64, secrets: &Arc<Secrets>) -> Option<Vec<FsError>> {
    let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|facts| facts.is_file());
    let files: Vec<PathBuf> = OUTPUT.iter().map(|name| bundle.join(name)).filter(is_file).collect();
    let settle = |path: &PathBuf| Keep::new(Some(cap), secrets).settle(path).err();
    (!files.is_empty()).then(|| files.iter().filter_map(settle).collect())
}

/// The same for what the user's own check of the engine said.
pub fn settle_validation(bundle: &Path, cap: u64, secrets: &Arc<Secrets>) -> Result<(), FsError> {
    let path = bundle.join(VALIDATION);
    let is_file = path.symlink_metadata().is_ok_and(|facts| facts.is_file());
    if is_file { Keep::new(Some(cap), secrets).settle(&path) } else { Ok(()) }
}

/// A hole grows by at least this much at a time.
const STRIDE: u64 = 1024 * 1024;

/// The rule for one stream, and how far its hole reaches.
#[derive(Debug, Clone)]
pub struct Keep {
    half: u64,
    /// What must stay on both sides of the hole besides the halves: a secret may lie across a border.
    margin: u64,
    hole_end: Arc<AtomicU64>,
    secrets: Arc<Secrets>,
}

impl Keep {
    /// Keeps `cap` bytes, nothing where there is none.
    #[must_use]
    pub fn new(cap: Option<u64>, secrets: &Arc<Secrets>) -> Self {
        let half = cap.unwrap_or_default() / 2;
        let margin = secrets.longest() as u64;
        let hole_end = Arc::new(AtomicU64::new(half.saturating_add(margin)));
        Self { half, margin, hole_end, secrets: Arc::clone(secrets) }
    }

    /// The same rule for another stream.
    #[must_use]
    pub fn for_one_more(&self) -> Self {
        Self::new(Some(self.half * 2), &self.secrets)
    }

    /// The stream was carried up to `offset`: punches what neither half will need.
    pub fn carried(&self, file: &File, offset: u64) {
        let end = offset.saturating_sub(self.half.saturating_add(self.margin));
        let start = self.hole_end.load(Ordering::Relaxed);
        if end < start.saturating_add(STRIDE) {
            return;
        }
        self.hole_end.store(end, Ordering::Relaxed);
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // A file system that knows no holes keeps the bytes until the end.
        let _ = rustix::fs::fallocate(file, mode, start, end - start);
    }

    /// Replaces the file at `path`, to which nothing is written any more, by what is kept of it. Where that cannot be
    /// done and there are secrets in it, nothing is kept.
    pub fn settle(&self, path: &Path) -> Result<(), FsError> {
        let file = File::open(path).map_err(|e| FsError::new("open", path, e))?;
        let length = file.metadata().map_err(|e| FsError::new("examine", path, e))?.len();
        let secret = self.holds_secrets(&file, length);
        if length <= self.half * 2 && !secret {
            return Ok(());
        }
        let kept = path.with_extension("log.part");
        let replaced = self.write_kept(&file, length, &kept).and_then(|()| std::fs::rename(&kept, path));
        replaced.map_err(|e| {
            if secret {
                // A part that was not written whole is no better.
                let _ = std::fs::remove_file(&kept);
                let _ = std::fs::remove_file(path);
                return FsError::new("mask the secrets in (so it was removed)", path, e);
            }
            FsError::new("shorten", path, e)
        })
    }

    /// A file that cannot be read may hold any.
    fn holds_secrets(&self, file: &File, length: u64) -> bool {
        let found =
            |range| mask::copy(&self.secrets, file, 0..length, range, &mut io::sink()).unwrap_or(true);
        !self.secrets.is_empty()
            && if length <= self.half * 2 {
                found(0..length)
            } else {
                found(0..self.half) || found(length - self.half..length)
            }
    }

    fn write_kept(&self, file: &File, length: u64, to: &Path) -> io::Result<()> {
        let mut out = io::BufWriter::new(File::create(to)?);
        if length <= self.half * 2 {
            mask::copy(&self.secrets, file, 0..length, 0..length, &mut out)?;
            return out.flush();
        }
        // The middle was given back but for the margins, and reads as zeros.
        mask::copy(&self.secrets, file, 0..length, 0..self.half, &mut out)?;
        if self.half > 0 && !ends_line(file, self.half)? {
            out.write_all(b"\n")?;
        }
        writeln!(out, "[stuckproof: {} bytes were left out here]", length - self.half * 2)?;
        mask::copy(&self.secrets, file, 0..length, length - self.half..length, &mut out)?;
        out.flush()
    }
}

fn ends_line(file: &File, offset: u64) -> io::Result<bool> {
    let mut last = [0];
    file.read_exact_at(&mut last, offset - 1)?;
    Ok(last == *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn keep(cap: u64, secrets: &[&str]) -> Keep {
        Keep::new(Some(cap), &Arc::new(Secrets::new(secrets.iter().map(Into::into))))
    }

    #[test]
    fn both_halves_and_a_line_between_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        std::fs::write(&path, "0123456789abcdefghij").unwrap();
        keep(8, &[]).settle(&path).unwrap();
        let kept = std::fs::read_to_string(&path).unwrap();
        assert_eq!(kept, "0123\n[stuckproof: 12 bytes were left out here]\nghij");
    }

    #[test]
    fn what_fits_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        std::fs::write(&path, "0123456789").unwrap();
        keep(10, &[]).settle(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "0123456789");
        keep(0, &[]).settle(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[stuckproof: 10 bytes were left out here]\n");
    }

    #[test]
    fn the_middle_is_given_back_while_the_command_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        let line = "0123456789abcde\n".repeat(1024 * 1024);
        std::fs::write(&path, &line).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let keep = keep(4 * STRIDE, &[]);
        keep.carried(&file, line.len() as u64);
        let blocks = file.metadata().unwrap().blocks() * 512;
        assert!(blocks <= 5 * STRIDE, "{blocks} bytes are still taken");
        keep.settle(&path).unwrap();
        let kept = std::fs::read(&path).unwrap();
        let half = 2 * STRIDE as usize;
        assert_eq!(&kept[..half], &line.as_bytes()[..half]);
        assert_eq!(&kept[kept.len() - half..], &line.as_bytes()[line.len() - half..]);
    }

    #[test]
    fn secrets_are_masked_in_what_fits_and_at_both_sides_of_a_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        let kept = |cap, text: &str| {
            std::fs::write(&path, text).unwrap();
            keep(cap, &["planted-secret"]).settle(&path).unwrap();
            std::fs::read_to_string(&path).unwrap()
        };
        assert_eq!(kept(100, "a planted-secret b"), "a (masked) b");
        let cut = kept(16, "head planted-secret middle planted-secret tail");
        assert_eq!(cut, "head (masked)\n[stuckproof: 30 bytes were left out here]\n(masked) tail");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_border_needs_is_not_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        let secret = "planted-secret";
        let half = STRIDE as usize;
        let mut text = vec![b'.'; 8 * half];
        for border in [half, 7 * half] {
            text[border - 4..border - 4 + secret.len()].copy_from_slice(secret.as_bytes());
        }
        std::fs::write(&path, &text).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let keep = keep(2 * STRIDE, &[secret]);
        keep.carried(&file, text.len() as u64);
        keep.settle(&path).unwrap();
        let kept = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
        assert!(kept.contains("..(masked)\n[stuckproof: "), "the end of the first half");
        assert!(kept.contains(" left out here]\n(masked).."), "the beginning of the last half");
    }

    #[test]
    fn where_secrets_cannot_be_masked_nothing_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        std::fs::write(&path, "a planted-secret b").unwrap();
        std::fs::create_dir(path.with_extension("log.part")).unwrap();
        let error = keep(100, &["planted-secret"]).settle(&path).unwrap_err();
        assert!(error.to_string().contains("so it was removed"), "{error}");
        assert!(!path.exists());
    }
}
