//! The files that an ONNX file keeps weights in.
//!
//! A walk over the wire format of protocol buffers: it enters what may hold a tensor and steps over the rest, so that a
//! model of gigabytes is walked without being read. The file may be anything: depth, fields and names have limits.

use super::file::open;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use thiserror::Error;

/// How deep messages may lie in each other. Graphs in graphs take three levels each.
const DEEPEST: u32 = 100;
/// How many fields are looked at.
const MOST_FIELDS: u64 = 20_000_000;
/// How many files may be named.
const MOST_FILES: usize = 4096;
/// The longest name of one, bytes.
const LONGEST_NAME: u64 = 4096;
/// The value of `data_location` that means a file.
const EXTERNAL: u64 = 1;

/// Why the files cannot be told.
#[derive(Debug, Error)]
pub(super) enum WalkError {
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("it is not what an ONNX file looks like, at byte {0}")]
    Malformed(u64),
    #[error("it has more of {0} than is looked at")]
    TooMuch(&'static str),
}

/// The messages that lead to a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Model,
    Training,
    Graph,
    Function,
    Node,
    Attribute,
    Sparse,
    Tensor,
    /// A pair of texts in a tensor.
    Pair,
}

impl Kind {
    /// What stands in a field, where it is of interest.
    fn inside(self, field: u64) -> Option<Self> {
        match (self, field) {
            (Self::Model, 7) | (Self::Training, 1 | 2) | (Self::Attribute, 6 | 11) => Some(Self::Graph),
            (Self::Model, 20) => Some(Self::Training),
            (Self::Model, 25) => Some(Self::Function),
            (Self::Graph, 1) | (Self::Function, 7) => Some(Self::Node),
            (Self::Node, 5) => Some(Self::Attribute),
            (Self::Graph, 5) | (Self::Attribute, 5 | 10) | (Self::Sparse, 1 | 2) => Some(Self::Tensor),
            (Self::Graph, 15) | (Self::Attribute, 22 | 23) => Some(Self::Sparse),
            (Self::Tensor, 13) => Some(Self::Pair),
            _ => None,
        }
    }
}

/// The names of the files, as the model gives them, in order.
pub(super) fn external_files(path: &Path) -> Result<BTreeSet<String>, WalkError> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    let mut walk =
        Walk { file: BufReader::with_capacity(64 << 10, file), at: 0, fields: 0, found: BTreeSet::new() };
    walk.message(Kind::Model, length, 0)?;
    Ok(walk.found)
}

struct Walk {
    file: BufReader<File>,
    at: u64,
    fields: u64,
    found: BTreeSet<String>,
}

/// What was met in one message.
#[derive(Default)]
struct Met {
    external: bool,
    location: Option<String>,
    key: String,
    value: String,
}

impl Walk {
    /// Walks a message up to its end.
    fn message(&mut self, kind: Kind, end: u64, depth: u32) -> Result<Met, WalkError> {
        if depth > DEEPEST {
            return Err(WalkError::TooMuch("messages in messages"));
        }
        let mut met = Met::default();
        while self.at < end {
            self.fields += 1;
            if self.fields > MOST_FIELDS {
                return Err(WalkError::TooMuch("fields"));
            }
            let tag = self.number(end)?;
            let field = tag >> 3;
            match tag & 7 {
                0 => {
                    let value = self.number(end)?;
                    met.external |= kind == Kind::Tensor && field == 14 && value == EXTERNAL;
                }
                1 => self.skip(8, end)?,
                2 => self.content(kind, field, end, depth, &mut met)?,
                5 => self.skip(4, end)?,
                _ => return Err(WalkError::Malformed(self.at)),
            }
        }
        if let (true, Some(location)) = (met.external, met.location.take()) {
            self.found.insert(location);
            if self.found.len() > MOST_FILES {
                return Err(WalkError::TooMuch("files"));
            }
        }
        Ok(met)
    }

    /// A field with a length: enters it, takes it as a text, or steps over it.
    fn content(
        &mut self,
        kind: Kind,
        field: u64,
        end: u64,
        depth: u32,
        met: &mut Met,
    ) -> Result<(), WalkError> {
        let length = self.number(end)?;
        let inner = self.at.checked_add(length).filter(|inner| *inner <= end);
        let inner = inner.ok_or(WalkError::Malformed(self.at))?;
        match (kind, field) {
            (Kind::Pair, 1) => met.key = self.text(length)?,
            (Kind::Pair, 2) => met.value = self.text(length)?,
            _ => match kind.inside(field) {
                Some(Kind::Pair) => {
                    let pair = self.message(Kind::Pair, inner, depth + 1)?;
                    if pair.key == "location" {
                        met.location = Some(pair.value);
                    }
                }
                Some(next) => drop(self.message(next, inner, depth + 1)?),
                None => self.skip(length, end)?,
            },
        }
        Ok(())
    }

    /// A number of one to ten bytes.
    fn number(&mut self, end: u64) -> Result<u64, WalkError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            if self.at >= end {
                break;
            }
            let mut byte = [0];
            self.file.read_exact(&mut byte)?;
            self.at += 1;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(value);
            }
        }
        Err(WalkError::Malformed(self.at))
    }

    fn skip(&mut self, length: u64, end: u64) -> Result<(), WalkError> {
        let after = self.at.checked_add(length).filter(|after| *after <= end);
        self.at = after.ok_or(WalkError::Malformed(self.at))?;
        let buffered = self.file.fill_buf()?.len() as u64;
        if length <= buffered {
            self.file.consume(length as usize);
            return Ok(());
        }
        let offset = i64::try_from(length).map_err(|_| WalkError::Malformed(self.at))?;
        Ok(self.file.seek_relative(offset)?)
    }

    fn text(&mut self, length: u64) -> Result<String, WalkError> {
        if length > LONGEST_NAME {
            return Err(WalkError::TooMuch("bytes in the name of a file"));
        }
        let mut bytes = vec![0; length as usize];
        self.file.read_exact(&mut bytes)?;
        self.at += length;
        String::from_utf8(bytes).map_err(|_| WalkError::Malformed(self.at))
    }
}

#[cfg(test)]
#[path = "onnx_tests.rs"]
mod tests;
