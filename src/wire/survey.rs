//! What is missing from a wire's folder, as far as the rest of it tells.
//!
//! A segment is made ahead of need, when the one before it is half full, and its header is written after its blocks are
//! there. So the end of a full segment promises a whole one after it, and the control page counts the first ones.

use super::layout::{SEGMENT_BYTES, SLOT, word};
use super::reader::{open_segment, parse_name, read_at, segment_path};
use super::{Control, ProcessKey, WireError};
use crate::clock::Anchor;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// So many slots at a segment's end tell whether it is full: some of them may have been reserved by a thread that died.
const LAST_SLOTS: usize = 16;

/// What is missing or cut in the wire of the job that began at `anchor`, each in words for a person. Whatever this finds
/// may have held records; a process that died while it made a segment leaves nothing that is found here.
///
/// # Errors
/// When the folder or the control page cannot be read.
pub fn damage(dir: &Path, anchor: Anchor) -> Result<Vec<String>, WireError> {
    let control = Control::open(dir)?;
    let mut found = Vec::new();
    if control.anchor()? != anchor {
        found.push("the control page is not the one of this job".to_owned());
    }
    let chains = last_segments(dir)?;
    let mut begun = 0;
    for (&key, &last) in &chains {
        begun += u64::from(chain(dir, key, last, &mut found)?);
    }
    let promised = control.processes()?;
    if begun < promised {
        found.push(format!(
            "{promised} processes have told of builders, and the segments of {begun} are there"
        ));
    }
    Ok(found)
}

/// The processes that have segments, each with the number of its last one.
fn last_segments(dir: &Path) -> Result<BTreeMap<ProcessKey, u64>, WireError> {
    let failed = |source| WireError::Read { path: dir.to_owned(), source };
    let mut chains = BTreeMap::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if let Some((key, number)) = name.to_str().and_then(parse_name) {
            let last = chains.entry(key).or_insert(number);
            *last = number.max(*last);
        }
    }
    Ok(chains)
}

/// Goes along a chain up to the first fault. Tells whether the chain has a beginning.
fn chain(dir: &Path, key: ProcessKey, last: u64, found: &mut Vec<String>) -> Result<bool, WireError> {
    let mut needed = last > 0;
    let mut number = 0;
    while let Some(file) = whole(dir, key, number)? {
        number += 1;
        needed = number < last || is_full(&file, dir)?;
    }
    if needed {
        let path = segment_path(dir, key, number);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        found.push(format!("the event segment {name} is missing, cut or damaged"));
    }
    Ok(number > 0)
}

/// The segment, where it is there, as long as it was made, and says itself what its name says.
fn whole(dir: &Path, key: ProcessKey, number: u64) -> Result<Option<File>, WireError> {
    let Some(file) = open_segment(dir, key, number)? else { return Ok(None) };
    let failed = |source| WireError::Read { path: segment_path(dir, key, number), source };
    let mut header = [0; 32];
    read_at(&file, &mut header, 0).map_err(failed)?;
    let says = (word(&header, 8) >> 32, word(&header, 16) as u32, word(&header, 24));
    let length = file.metadata().map_err(failed)?.len();
    let whole = says == (number, key.pid, key.registered.0) && length == SEGMENT_BYTES;
    Ok(whole.then_some(file))
}

/// Whether one of a segment's last slots was written.
fn is_full(file: &File, dir: &Path) -> Result<bool, WireError> {
    let mut end = [0; LAST_SLOTS * SLOT];
    let at = SEGMENT_BYTES - end.len() as u64;
    read_at(file, &mut end, at).map_err(|source| WireError::Read { path: dir.to_owned(), source })?;
    Ok(end.chunks_exact(SLOT).any(|slot| word(slot, 0) != 0))
}
