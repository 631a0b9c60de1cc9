//! Bundles of real builds, and a stranger who changes them: with stock tools and with nothing of stuckproof's own seal.

use crate::common::bundle::Bundle;
use crate::common::job::{Ended, Place, run, start, stuckproof};
use crate::common::{NO_SIGNALS, client, model, script, text, wait_for};
use rustix::process::Signal;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use stuckproof::evidence;
use stuckproof::sign::PublicKey;
use stuckproof::verify::{Report, Wanted, verify};

/// A pair of keys in files, made by OpenSSL.
pub struct Keys {
    pub private: PathBuf,
    pub public: PathBuf,
}

impl Keys {
    pub fn make(folder: &Path, name: &str) -> Self {
        let (private, public) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.pub.pem")));
        openssl(&["genpkey", "-algorithm", "ed25519", "-out", &text(&private)]);
        openssl(&["pkey", "-in", &text(&private), "-pubout", "-out", &text(&public)]);
        Self { private, public }
    }

    pub fn wanted(&self) -> Wanted {
        let key = PublicKey::load(&self.public).expect("a key that OpenSSL has made");
        Wanted { signers: vec![key], unsigned_will_do: false }
    }
}

fn openssl(arguments: &[&str]) {
    let done = Command::new("openssl").args(arguments).output().expect("openssl starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A real build that succeeds, signed.
pub fn succeeded(keys: &Keys) -> Ended {
    let engine = keys.private.with_extension("engine");
    let ended = run(
        &["--sign", &text(&keys.private)],
        &[client("linked"), "20".to_owned(), "64".to_owned(), text(engine)],
    );
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    ended
}

/// A real build that is cancelled, and what its bundle was like in the middle: as a machine that lost its power leaves
/// it.
pub fn cancelled(middle: &Path) -> Ended {
    let place = Place::new();
    let job = start(place, &NO_SIGNALS, &script("swallow_cancel.py", &[&model("slow")]));
    job.wait_for_event("stepCompleted");
    copy(&job.place().bundle(), middle);
    job.signal(Signal::TERM);
    let ended = job.end();
    ended.bundle().assert_state("cancelled", Some("service"));
    ended
}

/// Finishes a bundle by hand.
pub fn finalize(bundle: &Path) {
    // Whoever reads the processes of the job a moment later still sees those that just end.
    wait_for("the bundle to be finished by hand", || {
        let done = stuckproof().arg("finalize").arg(bundle).output().expect("stuckproof starts");
        done.status.success().then_some(())
    });
    assert!(Bundle::is_finished(bundle));
}

/// Copies a folder as it is.
pub fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp starts");
    assert!(done.success() || to.join("events.jsonl").exists());
}

/// Verifies, in the words of a table: the answer's exit code and the rules that are broken.
pub fn judge(bundle: &Path, wanted: &Wanted) -> (u8, Vec<String>) {
    let report: Report = verify(bundle, wanted);
    let told =
        |fault: &stuckproof::verify::Fault| format!("{} {} {}", fault.rule.name(), fault.file, fault.field);
    (report.answer().exit_code(), report.faults.iter().map(told).collect())
}

/// A bundle that somebody changes.
pub struct Victim {
    pub path: PathBuf,
}

impl Victim {
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.file(name)).expect("a file of the bundle")
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).expect("text")
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.file(name), bytes).expect("a file of the bundle");
    }

    /// Replaces the first place where a text stands, which must be there.
    pub fn replace(&self, name: &str, old: &str, new: &str) {
        let text = self.text(name);
        assert!(text.contains(old), "{name} has no {old}");
        self.write(name, text.replacen(old, new, 1));
    }

    /// Changes the lines of the log.
    pub fn lines(&self, edit: impl FnOnce(&mut Vec<String>)) {
        let mut lines: Vec<String> = self.text("events.jsonl").lines().map(str::to_owned).collect();
        edit(&mut lines);
        self.write("events.jsonl", lines.join("\n") + "\n");
    }

    /// The same, then numbers them and computes the chain again, as anybody can.
    pub fn lines_chained(&self, edit: impl FnOnce(&mut Vec<String>)) {
        self.lines(|lines| {
            edit(lines);
            let mut previous = "0".repeat(64);
            for (place, line) in lines.iter_mut().enumerate() {
                let rest = line[line.find(",\"t\":").expect("a line has its time")..].to_owned();
                *line = format!("{{\"seq\":{},\"prev\":\"{previous}\"{rest}", place + 1);
                previous = digest(line);
            }
        });
    }

    /// Computes every derived file again, as anybody can who has stuckproof.
    pub fn derive(&self) {
        evidence::write(&self.path).expect("a log that can be read");
    }

    /// Computes the manifest again, as anybody can.
    pub fn reseal(&self) {
        let log = self.text("events.jsonl");
        let last = log.lines().last().unwrap_or_default();
        let old: Value = serde_json::from_slice(&self.bytes("manifest.json")).expect("JSON");
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).expect("a folder") {
            let name = entry.expect("an entry").file_name().into_string().expect("text");
            if !name.starts_with("manifest.") {
                names.push(name);
            }
        }
        names.sort();
        let mut text = format!(
            "{{\n  \"format\": 1,\n  \"job\": {},\n  \"stuckproof\": {},\n  \"chain\": {{\n    \"seq\": {},\n    \"head\": \"{}\"\n  }},\n  \"files\": [",
            old["job"],
            old["stuckproof"],
            log.lines().count(),
            digest(last)
        );
        for (place, name) in names.iter().enumerate() {
            let bytes = self.bytes(name);
            let comma = if place == 0 { "" } else { "," };
            let (size, sha256) = (bytes.len(), digest(&bytes));
            write!(
                text,
                "{comma}\n    {{\n      \"path\": \"{name}\",\n      \"size\": {size},\n      \"sha256\": \"{sha256}\"\n    }}"
            )
            .expect("text can always be written to");
        }
        text.push_str("\n  ]\n}\n");
        self.write("manifest.json", text);
    }

    /// Computes everything again and keeps no signature.
    pub fn forge(&self) {
        self.derive();
        self.forge_nothing_but_the_seal();
    }

    /// Computes the manifest again and keeps no signature.
    pub fn forge_nothing_but_the_seal(&self) {
        self.reseal();
        self.unsign();
    }

    pub fn unsign(&self) {
        // A bundle that never had one is as good.
        let _ = fs::remove_file(self.file("manifest.sig.json"));
    }

    /// Runs a verb on the bundle.
    pub fn verb(&self, verb: &str, arguments: &[&str]) {
        let done =
            stuckproof().arg(verb).arg(&self.path).args(arguments).output().expect("stuckproof starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// A file of the addenda.
    pub fn addendum(&self, name: &str) -> PathBuf {
        let mut folder = self.path.clone().into_os_string();
        folder.push(".addenda");
        PathBuf::from(folder).join(name)
    }
}

pub fn digest(bytes: impl AsRef<[u8]>) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("text can always be written to");
        text
    })
}
