//! Names for phases that are the same from build to build: the path of names, and which of several equal ones it is.

use crate::digest;
use std::collections::BTreeMap;

/// So many different phases of one build are told apart; what comes after is not remembered.
const MOST: usize = 20_000;
/// Digits of a key.
const DIGITS: usize = 16;

/// Gives the phases of one build their keys. Keys have one length, however deep a tree is.
#[derive(Debug, Default)]
pub struct Paths {
    open: BTreeMap<u64, String>,
    counts: BTreeMap<String, u32>,
}

impl Paths {
    /// A phase began. None where too many are known already.
    pub fn open(&mut self, phase: u64, parent: Option<u64>, name: &str) -> Option<String> {
        let parent = parent.and_then(|parent| self.open.get(&parent)).map_or("", String::as_str);
        let path = key(&[parent, name]);
        if self.counts.len() >= MOST && !self.counts.contains_key(&path) {
            return None;
        }
        let count = self.counts.entry(path.clone()).or_default();
        *count += 1;
        let key = key(&[&path, &count.to_string()]);
        self.open.insert(phase, key.clone());
        Some(key)
    }

    /// A phase ended.
    pub fn close(&mut self, phase: u64) {
        self.open.remove(&phase);
    }

    /// The key of an open phase.
    #[must_use]
    pub fn key(&self, phase: u64) -> Option<&str> {
        self.open.get(&phase).map(String::as_str)
    }
}

fn key(parts: &[&str]) -> String {
    let mut all = digest::sha256_hex(parts.join("\0").as_bytes());
    all.truncate(DIGITS);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_builds_have_equal_keys_and_equal_names_different_ones() {
        let keys = |offset: u64| {
            let mut paths = Paths::default();
            let root = paths.open(offset, None, "Build").unwrap();
            let first = paths.open(offset + 1, Some(offset), "Timing").unwrap();
            paths.close(offset + 1);
            let second = paths.open(offset + 2, Some(offset), "Timing").unwrap();
            let below = paths.open(offset + 3, Some(offset + 2), "Timing").unwrap();
            assert_eq!(paths.key(offset + 3), Some(below.as_str()));
            assert_eq!(paths.key(offset + 1), None);
            [root, first, second, below]
        };
        let (one, other) = (keys(1), keys(100));
        assert_eq!(one, other);
        let different: std::collections::BTreeSet<_> = one.iter().collect();
        assert_eq!(different.len(), 4);
    }

    #[test]
    fn a_build_of_endless_names_is_not_remembered_to_its_end() {
        let mut paths = Paths::default();
        for phase in 0..MOST as u64 + 10 {
            let known = paths.open(phase, None, &phase.to_string()).is_some();
            paths.close(phase);
            assert_eq!(known, phase < MOST as u64);
        }
        assert!(paths.open(0, None, "0").is_some());
    }
}
