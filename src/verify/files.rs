//! The files of a bundle against its manifest.

use super::fault::{Faults, Rule};
use super::source::{Content, Source};
use crate::baseline::BASELINE;
use crate::digest::{Hex, Sum};
use crate::evidence::{DERIVED, EVENTS, document};
use crate::seal::{Entry, Listing, MANIFEST, Manifest, SIGNATURE, odd_path};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read};

/// The longest baseline that is read.
const LONGEST_BASELINE: u64 = 8 << 20;
/// The one format of manifests.
const FORMAT: u32 = 1;
/// The longest manifest that is read.
const LONGEST_MANIFEST: u64 = 16 << 20;

/// What was found of the files that something follows for.
#[derive(Default)]
pub(super) struct Held {
    /// The digests of the derived files.
    pub(super) derived: BTreeMap<&'static str, Hex>,
    /// The baseline.
    pub(super) baseline: Option<Vec<u8>>,
}

/// The manifest of a bundle, with its digest.
pub(super) struct Sealed {
    pub(super) manifest: Manifest,
    pub(super) digest: String,
}

/// Reads the manifest; `None` where there is none to go by.
pub(super) fn manifest(source: &Source, listing: &Listing, faults: &mut Faults) -> Option<Sealed> {
    let there = |name: &str| listing.files.iter().any(|file| file == name);
    if !there(MANIFEST) {
        if !listing.odd.iter().any(|odd| odd.name == MANIFEST) {
            faults.cannot_tell(
                Rule::Sealed,
                MANIFEST,
                "",
                "the bundle is not sealed; its job still runs, or `stuckproof finalize` must finish it",
            );
        }
        return None;
    }
    let bytes = match read(source, MANIFEST, LONGEST_MANIFEST) {
        Ok(bytes) => bytes,
        Err(e) => {
            faults.cannot_tell(Rule::Readable, MANIFEST, "", e.to_string());
            return None;
        }
    };
    let manifest: Manifest = match serde_json::from_slice(&bytes) {
        Ok(manifest) => manifest,
        Err(e) => {
            match format_of(&bytes) {
                Some(format) if format != u64::from(FORMAT) => {
                    let what = format!("its format is {format}, and this version knows {FORMAT} only");
                    faults.cannot_tell(Rule::Manifest, MANIFEST, "format", what);
                }
                _ => faults.invalid(Rule::Manifest, MANIFEST, "", format!("it is no manifest: {e}")),
            }
            return None;
        }
    };
    check_manifest(&manifest, &bytes, faults);
    Some(Sealed { manifest, digest: Hex::of(&bytes).to_string() })
}

/// The format of a document that may be of a later version.
pub(super) fn format_of(bytes: &[u8]) -> Option<u64> {
    let document: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    document.get("format")?.as_u64()
}

fn check_manifest(manifest: &Manifest, bytes: &[u8], faults: &mut Faults) {
    if manifest.format != FORMAT {
        let what = format!("it is {}, and this version knows {FORMAT} only", manifest.format);
        faults.cannot_tell(Rule::Manifest, MANIFEST, "format", what);
    }
    let mut invalid = |field: &str, what: String| faults.invalid(Rule::Manifest, MANIFEST, field, what);
    if document(manifest) != bytes {
        invalid("", "it is not in the form in which stuckproof writes it".to_owned());
    }
    if !is_digest(&manifest.chain.head) {
        invalid("chain.head", "it is no SHA-256".to_owned());
    }
    for (place, entry) in manifest.files.iter().enumerate() {
        let mut invalid =
            |field: &str, what: &str| invalid(&format!("files.{place}.{field}"), what.to_owned());
        if let Some(why) = odd_path(&entry.path) {
            invalid("path", &format!("the path {why}"));
        }
        if [MANIFEST, SIGNATURE].contains(&entry.path.as_str()) {
            invalid("path", "the seal does not list itself");
        }
        if !is_digest(&entry.sha256) {
            invalid("sha256", "it is no SHA-256");
        }
    }
    let mut folded: BTreeMap<String, usize> = BTreeMap::new();
    for (place, entry) in manifest.files.iter().enumerate() {
        if place > 0 && manifest.files[place - 1].path >= entry.path {
            invalid(&format!("files.{place}.path"), "it is listed twice or out of order".to_owned());
        }
        // On some systems these are one file.
        if folded.insert(entry.path.to_ascii_lowercase(), place).is_some() {
            invalid(
                &format!("files.{place}.path"),
                "it differs from another path in its case only".to_owned(),
            );
        }
    }
}

fn is_digest(text: &str) -> bool {
    Hex::parse(text).is_some()
}

/// What is in the folder and not in the manifest, and the other way round.
pub(super) fn closed_world(manifest: &Manifest, listing: &Listing, faults: &mut Faults) {
    for odd in &listing.odd {
        faults.invalid(Rule::PlainFiles, &odd.name, "", odd.what.in_words());
    }
    let seal = [MANIFEST, SIGNATURE];
    let listed: BTreeMap<&str, &Entry> = manifest.files.iter().map(|e| (e.path.as_str(), e)).collect();
    for file in listing.files.iter().filter(|file| !seal.contains(&file.as_str())) {
        if !listed.contains_key(file.as_str()) {
            faults.invalid(Rule::ClosedWorld, file, "", "it is not in the manifest: it was added later");
        }
    }
    let odd: BTreeSet<&str> = listing.odd.iter().map(|odd| odd.name.as_str()).collect();
    for path in listed.keys().filter(|path| !odd.contains(*path)) {
        if listing.files.binary_search_by(|file| file.as_str().cmp(path)).is_err() {
            faults.invalid(Rule::Missing, path, "", "it is in the manifest and not in the folder");
        }
    }
    if !listed.contains_key(EVENTS) {
        faults.invalid(Rule::Missing, EVENTS, "", "every bundle has it, and the manifest does not list it");
    }
}

/// Digests every file but the log. What follows from the log is compared by its digest, so that no file of a stranger's
/// has to be held in memory, however long it is.
pub(super) fn digests(source: &Source, manifest: &Manifest, listing: &Listing, faults: &mut Faults) -> Held {
    let mut held = Held::default();
    let there = |entry: &&Entry| listing.files.binary_search(&entry.path).is_ok() && entry.path != EVENTS;
    for entry in manifest.files.iter().filter(there) {
        let digested = if entry.path == BASELINE {
            read(source, BASELINE, LONGEST_BASELINE).map(|bytes| {
                let digest = (Hex::of(&bytes), bytes.len() as u64);
                held.baseline = Some(bytes);
                digest
            })
        } else {
            source.file(&entry.path).and_then(Hex::of_all)
        };
        match digested {
            Ok((sha256, size)) => {
                let name = DERIVED.into_iter().find(|name| *name == entry.path);
                held.derived.extend(name.map(|name| (name, sha256)));
                compare(entry, &sha256, size, faults);
            }
            Err(e) => faults.cannot_tell(Rule::Readable, &entry.path, "", e.to_string()),
        }
    }
    held
}

/// A file's digest against the manifest's.
pub(super) fn compare(entry: &Entry, sha256: &Hex, size: u64, faults: &mut Faults) {
    let file = &entry.path;
    if size != entry.size {
        let what = format!("it has {size} bytes, and {} were sealed", entry.size);
        faults.invalid(Rule::Digest, file, "size", what);
    } else if sha256.as_bytes().as_slice() != entry.sha256.as_bytes() {
        faults.invalid(Rule::Digest, file, "sha256", "its bytes are not those that were sealed");
    }
}

/// A whole file of limited length.
pub(super) fn read(source: &Source, name: &str, longest: u64) -> io::Result<Vec<u8>> {
    let file = source.file(name)?;
    let length = file.length;
    if length > longest {
        let what = format!("it has {length} bytes, more than are read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    file.take(longest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The log, digested while it is read.
pub(super) struct Digesting {
    inner: BufReader<Content>,
    pub(super) sum: Sum,
}

impl Digesting {
    pub(super) fn new(file: Content) -> Self {
        Self { inner: BufReader::with_capacity(256 << 10, file), sum: Sum::default() }
    }

    /// Reads what nobody wanted.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        loop {
            let length = self.fill_buf()?.len();
            if length == 0 {
                return Ok(());
            }
            self.consume(length);
        }
    }
}

impl Read for Digesting {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.sum.add(&into[..read]);
        Ok(read)
    }
}

impl BufRead for Digesting {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.sum.add(&self.inner.buffer()[..amount]);
        self.inner.consume(amount);
    }
}
