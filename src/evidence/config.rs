//! The hash of what a builder was given to build.
//!
//! It covers the library's flavour and version and everything that the builder itself said at the start of the build:
//! configuration, targets, network inputs, outputs and kinds of layers, profiles. It does not cover what no builder tells,
//! above all the weights, and names of paths, machines and times are no part of it: equal inputs give equal hashes
//! anywhere.

use crate::digest;
use crate::event::{BuildFacts, LibraryAttached};
use serde_json::json;

/// SHA-256, 64 hexadecimal digits, over the canonical JSON of the inputs: keys in the order of the alphabet, no white
/// space.
pub(super) fn hash(library: &LibraryAttached, facts: &BuildFacts) -> String {
    // serde_json keeps the keys of a value in order, so its text is canonical.
    let inputs = json!({ "flavour": library.flavour, "version": library.version, "facts": facts });
    digest::sha256_hex(inputs.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ProfileShape;

    fn library(version: &str, path: &str) -> LibraryAttached {
        LibraryAttached {
            pid: 1,
            flavour: "tensorrt-rtx".to_owned(),
            version: version.to_owned(),
            path: path.to_owned(),
            python: true,
            proven: "library".to_owned(),
            messages_unobserved: None,
            simulated: false,
        }
    }

    #[test]
    fn what_changes_the_engine_changes_the_hash_and_nothing_else_does() {
        let facts = BuildFacts { network_flags: 1, layers: 3, ..BuildFacts::default() };
        let first = hash(&library("1.7.1.116", "/a"), &facts);
        assert_eq!(first, hash(&library("1.7.1.116", "/b"), &facts), "a path is no input");
        let mut hashes = vec![hash(&library("1.7.1.117", "/a"), &facts)];
        let edits: [fn(&mut BuildFacts); 5] = [
            |f| f.layers = 4,
            |f| f.compute_capabilities = vec![89],
            |f| f.config = [("flags".to_owned(), 1)].into(),
            |f| f.network_flags = 2,
            |f| {
                let (min, opt, max) = ("1".to_owned(), "2".to_owned(), "4".to_owned());
                f.profiles.push(ProfileShape { profile: 0, input: "x".to_owned(), min, opt, max });
            },
        ];
        for edit in edits {
            let mut other = facts.clone();
            edit(&mut other);
            hashes.push(hash(&library("1.7.1.116", "/a"), &other));
        }
        hashes.push(first);
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 7, "each change gives a hash of its own");
    }
}
