//! A sealed and signed bundle that a stranger has changed.

use super::chance::Chance;
use super::changes::{self, Bytes};
use super::seeds;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use stuckproof::evidence;
use stuckproof::review::{Policy, review};
use stuckproof::seal::{self, MANIFEST};
use stuckproof::sign::{PublicKey, SigningKey};
use stuckproof::verify::{Answer, Wanted, verify};

/// The key of RFC 8410, section 10.3, and its public half.
const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";

/// Everything that a folder holds, by name.
type Files = BTreeMap<String, Vec<u8>>;

/// What was sealed.
struct Original {
    files: Files,
    names: Vec<String>,
    wanted: Wanted,
}

static ORIGINAL: LazyLock<Original> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (bundle, wanted) = sealed(folder.path());
    let files = files(&bundle);
    Original { names: files.keys().cloned().collect(), files, wanted }
});

/// A sealed and signed bundle in a folder, and what its reader wants.
pub fn sealed(folder: &Path) -> (PathBuf, Wanted) {
    let at = |name: &str| folder.join(name);
    fs::write(at("key.pem"), PRIVATE).expect("the folder can be written");
    fs::write(at("key.pub.pem"), PUBLIC).expect("the folder can be written");
    let key = SigningKey::load(&at("key.pem")).expect("a key");
    let public = PublicKey::load(&at("key.pub.pem")).expect("a key");
    let bundle = at("bundle");
    fs::create_dir(&bundle).expect("the folder can be written");
    fs::write(bundle.join("events.jsonl"), seeds::lines(&seeds::story(true)))
        .expect("the folder can be written");
    fs::write(bundle.join("stdout.log"), "said\n").expect("the folder can be written");
    let written = evidence::write(&bundle).expect("a bundle");
    seal::seal(&written, Some(&key)).expect("a finished bundle");
    let wanted = Wanted { signers: vec![public], unsigned_will_do: false };
    assert_eq!(verify(&bundle, &wanted).answer(), Answer::Valid, "{:?}", verify(&bundle, &wanted).faults);
    (bundle, wanted)
}

/// The plain files of a folder; whatever else is there stands for itself.
fn files(folder: &Path) -> Files {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let named = entries.map(|entry| entry.expect("the folder can be read").path());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    named
        .map(|path| {
            let plain = path.symlink_metadata().is_ok_and(|facts| facts.is_file());
            let bytes = if plain { fs::read(&path).expect("a file") } else { b"not a file".to_vec() };
            (name(&path), bytes)
        })
        .collect()
}

/// The changes that the bytes say, one after the other, and then everything that can be done with a bundle.
pub fn run(bytes: &[u8]) {
    let original = &*ORIGINAL;
    let mut changes = Changes { files: original.files.clone(), bytes: Bytes(bytes), odd: None, seal: false };
    changes.make(original);
    let Changes { files: left, odd, .. } = changes;
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, bytes) in &left {
        fs::write(folder.path().join(name), bytes).expect("the folder can be written");
    }
    if let Some((name, odd)) = odd {
        put(&folder.path().join(name), odd);
    }
    let same = files(folder.path()) == original.files;
    judged(folder.path(), original, same);
    if let Ok(bundle) = evidence::load(folder.path()) {
        super::log::everything(&bundle);
    }
}

/// Nothing is valid but what was sealed.
fn judged(folder: &Path, original: &Original, same: bool) {
    let good = |answer| matches!(answer, Answer::Valid | Answer::NotSucceeded);
    let signed = verify(folder, &original.wanted);
    assert_eq!(good(signed.answer()), same, "{:?}", signed.faults);
    assert_eq!(signed.signer.is_some() && same, same, "whose it is, is known");
    let unsigned = verify(folder, &Wanted::default());
    if good(unsigned.answer()) && files(folder).get(MANIFEST) == original.files.get(MANIFEST) {
        let beside =
            |files: Files| files.into_iter().filter(|(name, _)| name != seal::SIGNATURE).collect::<Files>();
        assert_eq!(beside(files(folder)), beside(original.files.clone()), "the manifest is of other files");
    }
    let policy = Policy { criteria: (1..=8).collect(), ..Policy::default() };
    let reviewed = review(&[folder.to_owned()], &policy, None, &[], chrono::DateTime::UNIX_EPOCH);
    let reviewed = reviewed.expect("there is a bundle");
    assert!(reviewed.bundles[0].decisions[0].passed == good(unsigned.answer()));
}

/// Something that has no place in a bundle.
fn put(path: &Path, odd: u8) {
    let _ = fs::remove_file(path);
    let done = match odd % 4 {
        0 => fs::create_dir(path),
        1 => symlink("/etc/passwd", path),
        2 => symlink(path.file_name().expect("a name"), path),
        _ => rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).map_err(Into::into),
    };
    done.expect("the folder can be written");
}

/// The reading of the changes.
struct Changes<'a> {
    files: Files,
    bytes: Bytes<'a>,
    odd: Option<(String, u8)>,
    seal: bool,
}

impl Changes<'_> {
    fn make(&mut self, original: &Original) {
        while !self.bytes.is_over() {
            let name = &original.names[usize::from(self.bytes.byte()) % original.names.len()];
            self.one(name);
        }
        if self.seal {
            self.seal_again();
        }
    }

    fn one(&mut self, name: &str) {
        let change = self.bytes.change();
        let Some(file) = self.files.get_mut(name) else { return };
        match change.what % 10 {
            0..6 => change.make(file),
            6 => drop(self.files.remove(name)),
            7 => self.odd = Some((name.to_owned(), change.what / 10)),
            8 => drop(self.files.insert("added.log".to_owned(), change.payload)),
            _ => self.seal = true,
        }
    }

    /// The manifest of what is there now: a stranger can write one, and a signature is what they cannot.
    fn seal_again(&mut self) {
        let Some(manifest) = self.files.get(MANIFEST) else { return };
        let Ok(mut manifest) = serde_json::from_slice::<seal::Manifest>(manifest) else { return };
        for entry in &mut manifest.files {
            let bytes = self.files.get(&entry.path).map(Vec::as_slice).unwrap_or_default();
            entry.size = bytes.len() as u64;
            entry.sha256 = stuckproof::digest::sha256_hex(bytes);
        }
        if let Some(log) = self.files.get("events.jsonl") {
            let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
            let last = lines.last().and_then(|line| line.strip_suffix(b"\n")).unwrap_or_default();
            manifest.chain.seq = lines.len() as u64;
            manifest.chain.head = stuckproof::digest::sha256_hex(last);
        }
        self.files.insert(MANIFEST.to_owned(), evidence::document(&manifest));
    }
}

/// A seed: a few changes, each to a file.
pub fn seed(chance: &mut Chance) -> Vec<u8> {
    let mut seed = Vec::new();
    changes::seed(&mut seed, 4, b"{}[]\",:01nulltrue\n", chance);
    seed
}
