//! How much of the command's output the bundle keeps: the first and the last half of the cap.
//!
//! While the command runs, the middle of what has been carried to our stream is given back to the file system (a hole
//! is punched, which the command does not notice). At the end the file is replaced by its first half, one line that
//! says how much is missing, and its last half.

use crate::fsio::FsError;
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A hole grows by at least this much at a time.
const STRIDE: u64 = 1024 * 1024;

/// The rule for one stream, and how far its hole reaches.
#[derive(Debug, Clone)]
pub struct Keep {
    half: u64,
    hole_end: Arc<AtomicU64>,
}

impl Keep {
    /// Keeps `cap` bytes.
    #[must_use]
    pub fn new(cap: u64) -> Self {
        Self { half: cap / 2, hole_end: Arc::new(AtomicU64::new(cap / 2)) }
    }

    /// The same rule for another stream.
    #[must_use]
    pub fn for_one_more(&self) -> Self {
        Self::new(self.half * 2)
    }

    /// The stream was carried up to `offset`: punches what neither half will need.
    pub fn carried(&self, file: &File, offset: u64) {
        let end = offset.saturating_sub(self.half);
        let start = self.hole_end.load(Ordering::Relaxed);
        if end < start.saturating_add(STRIDE) {
            return;
        }
        self.hole_end.store(end, Ordering::Relaxed);
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // A file system that knows no holes keeps the bytes until the end.
        let _ = rustix::fs::fallocate(file, mode, start, end - start);
    }

    /// Replaces the file at `path`, to which nothing is written any more, by what is kept of it.
    pub fn cut(&self, path: &Path) -> Result<(), FsError> {
        let file = File::open(path).map_err(|e| FsError::new("open", path, e))?;
        let length = file.metadata().map_err(|e| FsError::new("examine", path, e))?.len();
        if length <= self.half * 2 {
            return Ok(());
        }
        let kept = path.with_extension("log.part");
        self.write_kept(&file, length, &kept)
            .and_then(|()| std::fs::rename(&kept, path))
            .map_err(|e| FsError::new("shorten", path, e))
    }

    fn write_kept(&self, file: &File, length: u64, to: &Path) -> io::Result<()> {
        let mut out = io::BufWriter::new(File::create(to)?);
        copy(file, 0, self.half, &mut out)?;
        if self.half > 0 && !ends_line(file, self.half)? {
            out.write_all(b"\n")?;
        }
        writeln!(out, "[stuckproof: {} bytes were left out here]", length - self.half * 2)?;
        copy(file, length - self.half, self.half, &mut out)?;
        out.flush()
    }
}

fn ends_line(file: &File, offset: u64) -> io::Result<bool> {
    let mut last = [0];
    file.read_exact_at(&mut last, offset - 1)?;
    Ok(last == *b"\n")
}

fn copy(file: &File, from: u64, length: u64, out: &mut impl Write) -> io::Result<()> {
    let mut chunk = vec![0; 256 * 1024];
    let mut done = 0;
    while done < length {
        let want = usize::try_from(length - done).unwrap_or(usize::MAX).min(chunk.len());
        file.read_exact_at(&mut chunk[..want], from + done)?;
        out.write_all(&chunk[..want])?;
        done += want as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn both_halves_and_a_line_between_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        std::fs::write(&path, "0123456789abcdefghij").unwrap();
        Keep::new(8).cut(&path).unwrap();
        let kept = std::fs::read_to_string(&path).unwrap();
        assert_eq!(kept, "0123\n[stuckproof: 12 bytes were left out here]\nghij");
    }

    #[test]
    fn what_fits_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        std::fs::write(&path, "0123456789").unwrap();
        Keep::new(10).cut(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "0123456789");
        Keep::new(0).cut(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "[stuckproof: 10 bytes were left out here]\n");
    }

    #[test]
    fn the_middle_is_given_back_while_the_command_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stdout.log");
        let line = "0123456789abcde\n".repeat(1024 * 1024);
        std::fs::write(&path, &line).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let keep = Keep::new(4 * STRIDE);
        keep.carried(&file, line.len() as u64);
        let blocks = file.metadata().unwrap().blocks() * 512;
        assert!(blocks <= 5 * STRIDE, "{blocks} bytes are still taken");
        keep.cut(&path).unwrap();
        let kept = std::fs::read(&path).unwrap();
        let half = 2 * STRIDE as usize;
        assert_eq!(&kept[..half], &line.as_bytes()[..half]);
        assert_eq!(&kept[kept.len() - half..], &line.as_bytes()[line.len() - half..]);
    }
}
