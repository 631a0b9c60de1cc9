//! The hash of what a builder was given to build.
//!
//! It covers the library's flavour and version, everything that the builder itself said at the start of the build
//! (configuration, targets, network inputs, outputs and kinds of layers, profiles), and what is in the files that the job
//! was given. Paths, machines and times are no part of it: equal inputs give equal hashes anywhere.

use super::model::Input;
use crate::digest;
use crate::event::{BuildFacts, InputKind, LibraryAttached};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The digests of a job's inputs, or why one of them is not known. The library is none of them: its version says enough,
/// and it may be linked anew without a change.
pub(super) fn contents(inputs: &[Input]) -> Result<BTreeSet<&str>, String> {
    let files = inputs.iter().filter(|input| input.kind != InputKind::Library);
    files
        .map(|input| input.sha256.as_deref().filter(|_| input.changed.is_none()).ok_or_else(|| gap(input)))
        .collect()
}

/// Why an input's content is not known.
pub(super) fn gap(input: &Input) -> String {
    let why = match (&input.changed, &input.reason) {
        (Some(what), _) => format!("changed while the job ran: {what}"),
        (None, Some(why)) => format!("has no digest: {why}"),
        (None, None) => "has no digest yet".to_owned(),
    };
    format!("the input {} {why}", input.path)
}

/// What stands for a library. It and the inputs are digested by themselves, since they are the same for any number of
/// builds.
pub(super) fn library(library: &LibraryAttached) -> String {
    canonical(&json!({
        "flavour": library.flavour,
        "version": library.version,
        "simulated": library.simulated,
    }))
}

/// What stands for the contents of the inputs.
pub(super) fn inputs(contents: &BTreeSet<&str>) -> String {
    canonical(&json!(contents))
}

/// The hash of a build's configuration.
pub(super) fn hash(library: &str, facts: &BuildFacts, inputs: &str) -> String {
    canonical(&json!({ "facts": facts, "inputs": inputs, "library": library }))
}

/// SHA-256, 64 hexadecimal digits, over canonical JSON: keys in the order of the alphabet, no white space. `serde_json`
/// keeps the keys of a value in order.
fn canonical(value: &Value) -> String {
    digest::sha256_hex(value.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ProfileShape;

    fn attached(version: &str, path: &str) -> LibraryAttached {
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
        let hash = |of: &LibraryAttached, facts: &BuildFacts, contents: &[&str]| {
            super::hash(&library(of), facts, &inputs(&contents.iter().copied().collect()))
        };
        let (usual, none) = (attached("1.7.1.116", "/a"), &[]);
        let first = hash(&usual, &facts, none);
        assert_eq!(first, hash(&attached("1.7.1.116", "/b"), &facts, none), "a path is no input");
        let mut hashes = vec![hash(&attached("1.7.1.117", "/a"), &facts, none)];
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
            hashes.push(hash(&usual, &other, none));
        }
        let simulated = LibraryAttached { simulated: true, ..usual.clone() };
        hashes.push(hash(&simulated, &facts, none));
        hashes.push(hash(&usual, &facts, &["one"]));
        hashes.push(hash(&usual, &facts, &["one", "two"]));
        hashes.push(first);
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 10, "each change gives a hash of its own");
    }

    #[test]
    fn an_input_that_is_not_known_leaves_no_contents() {
        let input = |kind, sha256: Option<&str>, changed: Option<&str>| Input {
            input: 1,
            kind,
            path: "m.onnx".to_owned(),
            of: None,
            bytes: Some(1),
            modified_ns: Some(1),
            inode: Some(1),
            build_id: None,
            at: String::new(),
            t_ns: 1,
            sha256: sha256.map(str::to_owned),
            changed: changed.map(str::to_owned),
            reason: sha256.is_none().then(|| "it cannot be read".to_owned()),
        };
        let whole =
            [input(InputKind::Argument, Some("b"), None), input(InputKind::External, Some("a"), None)];
        assert_eq!(contents(&whole), Ok(BTreeSet::from(["a", "b"])));
        assert_eq!(contents(&[input(InputKind::Library, None, Some("x"))]), Ok(BTreeSet::new()));
        let unread = contents(&[input(InputKind::Declared, None, None)]).unwrap_err();
        assert_eq!(unread, "the input m.onnx has no digest: it cannot be read");
        let changed = contents(&[input(InputKind::Declared, Some("a"), Some("it has 2 bytes"))]).unwrap_err();
        assert_eq!(changed, "the input m.onnx changed while the job ran: it has 2 bytes");
    }
}
