//! One change at a time, and the rule that must name it.

use crate::common::text;
use crate::scene::{Keys, Victim, cancelled, copy, digest, judge, succeeded};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use stuckproof::verify::Wanted;

/// The bundles and keys that a table needs.
struct Stage {
    folder: tempfile::TempDir,
    keys: Keys,
    stranger: Keys,
    good: PathBuf,
    other: PathBuf,
}

/// What a change gets: the bundle to change, and the rest of the stage.
struct Scene<'a> {
    victim: Victim,
    stage: &'a Stage,
}

/// A change, what it must be answered with, and the beginning of the fault that must be among those named.
type Change = (&'static str, u8, &'static str, fn(&Scene));

impl Stage {
    fn set() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let keys = Keys::make(folder.path(), "ours");
        let stranger = Keys::make(folder.path(), "theirs");
        let (good, other) = (folder.path().join("good"), folder.path().join("other"));
        copy(&succeeded(&keys).place.bundle(), &good);
        copy(&cancelled(&folder.path().join("middle")).place.bundle(), &other);
        sign(&other, &keys);
        Self { folder, keys, stranger, good, other }
    }

    /// Makes each change to a bundle of its own and looks at the answer.
    fn play(&self, changes: &[Change], wanted: &Wanted) {
        let mut failures = Vec::new();
        for (name, code, fault, change) in changes {
            let path = self.folder.path().join("victim");
            copy(&self.good, &path);
            let scene = Scene { victim: Victim { path: path.clone() }, stage: self };
            change(&scene);
            let (found, faults) = judge(&path, wanted);
            let named = faults.iter().any(|told| told.starts_with(fault)) || faults.is_empty() && *code == 0;
            if found != *code || !named {
                failures.push(format!("{name}: wanted {code} with {fault:?}, got {found} with {faults:#?}"));
            }
            for folder in [path.clone(), scene.victim.addendum("")] {
                // Not every change leaves one.
                let _ = fs::remove_dir_all(folder);
            }
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}

fn sign(bundle: &Path, keys: &Keys) {
    Victim { path: bundle.to_owned() }.verb("finalize", &["--sign", &text(&keys.private)]);
}

/// The log and what follows from it.
const RECORD: [Change; 24] = [
    ("a line is edited", 2, "chain events.jsonl line 7", |s| {
        s.victim.lines(|lines| lines[5] = lines[5].replacen("\"t\":", "\"t\":1", 1));
    }),
    ("a line is edited and the chain made good", 2, "digest events.jsonl sha256", |s| {
        s.victim.lines_chained(|lines| lines[5] = lines[5].replacen("ing", "inG", 1));
    }),
    ("and the chain's head is another", 2, "chain_head manifest.json chain.head", |s| {
        s.victim.lines_chained(|lines| lines[5] = lines[5].replacen("\"t\":", "\"t\":1", 1));
    }),
    ("a line is edited, and the manifest made good", 2, "derived evidence.json builds.0.pid", |s| {
        s.victim.lines_chained(|lines| {
            let start = lines.iter().position(|line| line.contains("buildStarted")).expect("a build");
            lines[start] = lines[start].replacen("\"pid\":", "\"pid\":1", 1);
        });
        s.victim.reseal();
    }),
    ("a line is dropped", 2, "sequence events.jsonl line 6", |s| {
        s.victim.lines(|lines| drop(lines.remove(5)));
    }),
    ("a line is dropped and the rest made good", 2, "chain_head manifest.json chain.seq", |s| {
        s.victim.lines_chained(|lines| drop(lines.remove(5)));
    }),
    ("two lines change places", 2, "sequence events.jsonl line 7", |s| {
        s.victim.lines(|lines| lines.swap(6, 7));
    }),
    ("the end is cut off", 2, "terminal events.jsonl", |s| s.victim.lines(|lines| drop(lines.pop()))),
    ("the last line is torn", 2, "terminal events.jsonl", |s| {
        let log = s.victim.bytes("events.jsonl");
        s.victim.write("events.jsonl", &log[..log.len() - 40]);
    }),
    ("the log is empty", 2, "sequence events.jsonl line 1", |s| s.victim.write("events.jsonl", "")),
    ("the end is replayed", 2, "terminal events.jsonl", |s| {
        s.victim.lines(|lines| lines.push(lines[lines.len() - 1].clone()));
    }),
    ("the end is replayed and everything made good", 2, "terminal events.jsonl", |s| {
        s.victim.lines_chained(|lines| lines.push(lines[lines.len() - 1].clone()));
        s.victim.reseal();
        s.victim.unsign();
    }),
    ("an event stands after the end", 2, "terminal events.jsonl", |s| {
        s.victim.lines_chained(|lines| lines.push(lines[5].clone()));
        s.victim.reseal();
        s.victim.unsign();
    }),
    ("the header stands twice", 2, "sequence events.jsonl line 2", |s| {
        s.victim.lines_chained(|lines| lines.insert(1, lines[0].clone()));
        s.victim.reseal();
        s.victim.unsign();
    }),
    ("a key stands twice in a line", 2, "record events.jsonl line 6", |s| {
        s.victim
            .lines_chained(|lines| lines[5] = lines[5].replacen("\"build\":", "\"build\":1,\"build\":", 1));
        s.victim.reseal();
        s.victim.unsign();
    }),
    ("a key is added to a line", 2, "record events.jsonl line 3", |s| {
        s.victim
            .lines_chained(|lines| lines[2] = lines[2].replacen(",\"build\":", ",\"more\":1,\"build\":", 1));
        s.victim.forge();
    }),
    ("a line is spaced out", 2, "record events.jsonl line 3", |s| {
        s.victim.lines_chained(|lines| lines[2] = lines[2].replacen(",\"build\":", ", \"build\":", 1));
        s.victim.forge();
    }),
    ("a letter is written as its number", 2, "record events.jsonl line 1", |s| {
        s.victim.lines_chained(|lines| lines[0] = lines[0].replacen("\"separate\"", "\"\\u0073eparate\"", 1));
        s.victim.forge();
    }),
    ("an event is of no kind", 2, "record events.jsonl line 6", |s| {
        s.victim.lines_chained(|lines| lines[5] = lines[5].replacen("\"event\":\"", "\"event\":\"x", 1));
        s.victim.reseal();
        s.victim.unsign();
    }),
    ("a number is larger than any", 2, "record events.jsonl line 6", |s| {
        s.victim.lines(|lines| lines[5] = lines[5].replacen("\"t\":", "\"t\":99999999999999999999", 1));
    }),
    ("a line is nested deeper than any", 2, "record events.jsonl line 6", |s| {
        let deep = format!("\"build\":{}{}", "[".repeat(100_000), "]".repeat(100_000));
        s.victim.lines(|lines| lines[5] = lines[5].replacen("\"build\":1", &deep, 1));
    }),
    ("an event is moved in time on the wall only", 2, "record events.jsonl line 6", |s| {
        s.victim.lines_chained(|lines| lines[5] = lines[5].replacen("\"wall\":\"2", "\"wall\":\"3", 1));
        s.victim.forge();
    }),
    ("an event is in another state", 2, "record events.jsonl line 6", |s| {
        s.victim.lines_chained(|lines| {
            lines[5] = lines[5].replacen("\"cancel\":\"running\"", "\"cancel\":\"cancelling\"", 1);
        });
        s.victim.forge();
    }),
    ("the exit code is another", 2, "state events.jsonl", |s| {
        s.victim.lines_chained(|lines| {
            let last = lines.len() - 1;
            lines[last] = lines[last].replacen("\"exitCode\":0", "\"exitCode\":7", 1);
        });
        s.victim.forge();
    }),
];

/// The files.
const FILES: [Change; 31] = [
    ("the summary is edited", 2, "derived summary.json tensorrtVersion", |s| {
        s.victim.replace("summary.json", "TensorRT-RTX 1.7", "TensorRT-RTX 1.8");
    }),
    ("the summary is edited, by its digest", 2, "digest summary.json sha256", |s| {
        s.victim.replace("summary.json", "TensorRT-RTX 1.7", "TensorRT-RTX 1.8");
    }),
    ("the summary is edited and the manifest made good", 2, "derived summary.json language", |s| {
        s.victim.replace("summary.json", "\"cpp\"", "\"python\"");
        s.victim.reseal();
    }),
    ("a twelfth field is in the summary", 2, "derived summary.json approved", |s| {
        s.victim.replace("summary.json", "{\n", "{\n  \"approved\": true,\n");
        s.victim.reseal();
    }),
    ("a key stands twice in the summary", 2, "derived summary.json", |s| {
        s.victim.replace("summary.json", "{\n", "{\n  \"language\": \"cpp\",\n");
        s.victim.reseal();
    }),
    ("the state in the evidence is another", 2, "derived evidence.json state", |s| {
        s.victim.replace("evidence.json", "\"state\": \"succeeded\"", "\"state\": \"failed\"");
        s.victim.reseal();
    }),
    ("a count in the evidence is another", 2, "derived evidence.json counts.steps", |s| {
        let right = s.victim.text("evidence.json");
        let at = right.rfind("\"steps\": ").expect("counts") + "\"steps\": ".len();
        s.victim.write("evidence.json", format!("{}1{}", &right[..at], &right[at..]));
        s.victim.reseal();
    }),
    ("the engine was never returned", 2, "derived evidence.json builds.0.engine", |s| {
        s.victim.replace("evidence.json", "\"engine\": true", "\"engine\": false");
        s.victim.reseal();
    }),
    ("a phase is another", 2, "derived phases.json builds.0.phases.0.name", |s| {
        s.victim.replace("phases.json", "\"name\":\"", "\"name\":\"x");
        s.victim.reseal();
    }),
    ("a failure is taken out of the report", 2, "derived junit.xml", |s| {
        s.victim.replace("junit.xml", "1 baseline", "1 Baseline");
        s.victim.reseal();
    }),
    ("the baseline is edited", 2, "digest baseline.json", |s| {
        s.victim.replace("baseline.json", "\"kernel\"", "\"Kernel\"");
    }),
    ("the baseline is of another job", 2, "job baseline.json job", |s| {
        fs::copy(s.stage.other.join("baseline.json"), s.victim.file("baseline.json")).expect("a file");
        s.victim.forge();
    }),
    ("a field is added to the baseline", 2, "baseline baseline.json", |s| {
        s.victim.replace("baseline.json", "{\n", "{\n  \"more\": 1,\n");
        s.victim.forge();
    }),
    ("a key stands twice in the baseline", 2, "baseline baseline.json", |s| {
        s.victim.replace("baseline.json", "{\n", "{\n  \"format\": 1,\n");
        s.victim.forge();
    }),
    ("a file is added", 2, "closed_world notes.txt", |s| s.victim.write("notes.txt", "all is well")),
    ("a file is added beside the wire", 2, "closed_world wire/1-1.seg", |s| {
        fs::create_dir(s.victim.file("wire")).expect("a folder");
        s.victim.write("wire/1-1.seg", "");
    }),
    ("a file is gone", 2, "missing stdout.log", |s| {
        fs::remove_file(s.victim.file("stdout.log")).expect("gone");
    }),
    ("a derived file is gone and the manifest made good", 2, "missing junit.xml", |s| {
        fs::remove_file(s.victim.file("junit.xml")).expect("gone");
        s.victim.reseal();
    }),
    ("the log is gone", 2, "missing events.jsonl", |s| {
        fs::remove_file(s.victim.file("events.jsonl")).expect("gone");
    }),
    ("the output is edited", 2, "digest stdout.log size", |s| s.victim.write("stdout.log", "all is well\n")),
    ("a file is another bundle's", 2, "derived evidence.json", |s| {
        fs::copy(s.stage.other.join("evidence.json"), s.victim.file("evidence.json")).expect("a file");
    }),
    ("a file is a link", 2, "plain_files stdout.log", |s| {
        fs::remove_file(s.victim.file("stdout.log")).expect("gone");
        symlink("/etc/hostname", s.victim.file("stdout.log")).expect("a link");
    }),
    ("the log is a link to the right bytes", 2, "plain_files events.jsonl", |s| {
        let log = s.victim.file("events.jsonl");
        fs::remove_file(&log).expect("gone");
        symlink(s.stage.good.join("events.jsonl"), log).expect("a link");
    }),
    ("the manifest is a link to the right bytes", 2, "plain_files manifest.json", |s| {
        let manifest = s.victim.file("manifest.json");
        fs::remove_file(&manifest).expect("gone");
        symlink(s.stage.good.join("manifest.json"), manifest).expect("a link");
    }),
    ("a file is a pipe that nobody writes", 2, "plain_files evidence.json", |s| {
        fs::remove_file(s.victim.file("evidence.json")).expect("gone");
        mkfifoat(CWD, s.victim.file("evidence.json"), Mode::RWXU).expect("a pipe");
    }),
    ("a socket is added", 2, "plain_files socket", |s| {
        drop(UnixListener::bind(s.victim.file("socket")).expect("a socket"));
    }),
    ("a file has a name elsewhere", 2, "plain_files stderr.log", |s| {
        let outside = s.stage.folder.path().join("outside");
        fs::hard_link(s.victim.file("stderr.log"), &outside).expect("a second name");
    }),
    ("a file is a folder", 2, "missing stdout.log", |s| {
        fs::remove_file(s.victim.file("stdout.log")).expect("gone");
        fs::create_dir(s.victim.file("stdout.log")).expect("a folder");
    }),
    ("a hidden file is added", 2, "plain_files .approved", |s| s.victim.write(".approved", "")),
    ("a name turns the direction of writing", 2, "plain_files lmx.\u{202e}", |s| {
        s.victim.write("lmx.\u{202e}gpj", "");
    }),
    ("a name ends a line", 2, "plain_files a\u{fffd}valid", |s| s.victim.write("a\nvalid", "")),
];

/// The manifest.
const MANIFEST: [Change; 17] = [
    ("it is gone", 3, "sealed manifest.json", |s| {
        fs::remove_file(s.victim.file("manifest.json")).expect("gone");
    }),
    ("it is empty", 2, "manifest manifest.json", |s| s.victim.write("manifest.json", "")),
    ("it is of a later format", 3, "manifest manifest.json format", |s| {
        s.victim.replace("manifest.json", "\"format\": 1", "\"format\": 2");
        s.victim.unsign();
    }),
    ("a path leads out", 2, "manifest manifest.json files.0.path", |s| {
        s.victim.replace("manifest.json", "\"baseline.json\"", "\"../baseline.json\"");
    }),
    ("a path is absolute", 2, "manifest manifest.json files.0.path", |s| {
        s.victim.replace("manifest.json", "\"baseline.json\"", "\"/etc/passwd\"");
    }),
    ("a path is a device of another system", 2, "manifest manifest.json files.0.path", |s| {
        s.victim.replace("manifest.json", "\"baseline.json\"", "\"C:baseline.json\"");
    }),
    ("a path holds a zero", 2, "manifest manifest.json files.0.path", |s| {
        s.victim.replace("manifest.json", "\"baseline.json\"", "\"baseline.json\\u0000.txt\"");
    }),
    ("a path is listed twice", 2, "manifest manifest.json files.1.path", |s| {
        s.victim.replace("manifest.json", "\"events.jsonl\"", "\"baseline.json\"");
    }),
    ("a path differs in its case only", 2, "manifest manifest.json files.1.path", |s| {
        s.victim.write("Baseline.json", "");
        s.victim.reseal();
    }),
    ("the order is another", 2, "manifest manifest.json files.1.path", |s| {
        s.victim.replace("manifest.json", "\"baseline.json\"", "\"zzz.json\"");
    }),
    ("it lists itself", 2, "manifest manifest.json files.0.path", |s| {
        s.victim.replace("manifest.json", "\"baseline.json\"", "\"manifest.json\"");
    }),
    ("a digest is written in capitals", 2, "manifest manifest.json files.0.sha256", |s| {
        let own = digest(s.victim.bytes("baseline.json"));
        s.victim.replace("manifest.json", &own, &own.to_uppercase());
    }),
    ("a size is larger than any", 2, "digest baseline.json size", |s| {
        let size = format!("\"size\": {}", s.victim.bytes("baseline.json").len());
        s.victim.replace("manifest.json", &size, "\"size\": 18446744073709551615");
    }),
    ("a field is added", 2, "manifest manifest.json", |s| {
        s.victim.replace("manifest.json", "{\n", "{\n  \"approved\": true,\n");
    }),
    ("a key stands twice", 2, "manifest manifest.json", |s| {
        s.victim.replace("manifest.json", "{\n", "{\n  \"format\": 1,\n");
    }),
    ("the head of the chain is another", 2, "chain_head manifest.json chain.head", |s| {
        let last = s.victim.text("events.jsonl").lines().last().expect("a line").to_owned();
        s.victim.replace("manifest.json", &digest(last), &"0".repeat(64));
        s.victim.unsign();
    }),
    ("the job is another", 2, "job manifest.json job", |s| {
        s.victim.replace("manifest.json", "\"job\": \"", "\"job\": \"x");
        s.victim.unsign();
    }),
];

/// The signature, where one is asked for.
const SIGNATURE: [Change; 16] = [
    ("it is gone", 3, "signed manifest.sig.json", |s| s.victim.unsign()),
    ("everything is computed again and it is gone", 3, "signed manifest.sig.json", |s| {
        s.victim.write("stdout.log", "all is well\n");
        s.victim.forge();
    }),
    ("everything is computed again and it stays", 2, "statement manifest.sig.json payload.subject", |s| {
        s.victim.write("stdout.log", "all is well\n");
        s.victim.derive();
        s.victim.reseal();
    }),
    ("everything is computed again and a stranger signs", 2, "signer manifest.sig.json", |s| {
        s.victim.write("stdout.log", "all is well\n");
        s.victim.forge();
        sign(&s.victim.path, &s.stage.stranger);
    }),
    ("it is a stranger's", 2, "signer manifest.sig.json", |s| {
        s.victim.unsign();
        sign(&s.victim.path, &s.stage.stranger);
    }),
    ("a stranger signs in our name", 2, "signer manifest.sig.json", |s| {
        let ours = keyid(&s.victim);
        s.victim.unsign();
        sign(&s.victim.path, &s.stage.stranger);
        s.victim.replace("manifest.sig.json", &keyid(&s.victim), &ours);
    }),
    ("we sign in nobody's name", 2, "statement manifest.sig.json signatures.0.keyid", |s| {
        s.victim.replace("manifest.sig.json", &keyid(&s.victim), "nobody");
    }),
    ("it is another bundle's", 2, "statement manifest.sig.json payload.subject", |s| {
        let other = s.stage.other.join("manifest.sig.json");
        fs::copy(other, s.victim.file("manifest.sig.json")).expect("a file");
    }),
    ("its payload is edited", 2, "signer manifest.sig.json", |s| {
        // The first letter of the payload is that of a brace; another of the same kind is a space.
        s.victim.replace("manifest.sig.json", "\"payload\": \"ew", "\"payload\": \"fQ");
    }),
    ("its payload is not base64", 2, "statement manifest.sig.json", |s| {
        s.victim.replace("manifest.sig.json", "\"payload\": \"", "\"payload\": \"*");
    }),
    ("its type is another", 2, "statement manifest.sig.json", |s| {
        s.victim.replace("manifest.sig.json", "vnd.in-toto+json", "json");
    }),
    ("it has no signature", 2, "statement manifest.sig.json", |s| {
        let text = s.victim.text("manifest.sig.json");
        let start = text.find("\"signatures\": ").expect("a list");
        s.victim.write("manifest.sig.json", format!("{}\"signatures\": []\n}}\n", &text[..start]));
    }),
    ("it is cut", 2, "statement manifest.sig.json", |s| {
        let bytes = s.victim.bytes("manifest.sig.json");
        s.victim.write("manifest.sig.json", &bytes[..bytes.len() / 2]);
    }),
    ("a key stands twice in it", 2, "statement manifest.sig.json", |s| {
        s.victim.replace("manifest.sig.json", "{\n", "{\n  \"payloadType\": \"x\",\n");
    }),
    ("it is spaced out", 2, "statement manifest.sig.json", |s| {
        s.victim.replace("manifest.sig.json", "{\n", "{ \n");
    }),
    ("it is a link", 2, "plain_files manifest.sig.json", |s| {
        let signature = s.victim.file("manifest.sig.json");
        fs::remove_file(&signature).expect("gone");
        symlink(s.stage.good.join("manifest.sig.json"), signature).expect("a link");
    }),
];

/// The addenda of a signed bundle with two of them, both signed.
const ADDENDA: [Change; 9] = [
    ("both are right", 0, "", |s| add_two(s)),
    ("one is edited", 2, "addendum victim.addenda/0002.json previous", |s| {
        add_two(s);
        let path = s.victim.addendum("0001.json");
        let text = fs::read_to_string(&path).expect("an addendum").replace("\"pass\"", "\"fail\"");
        fs::write(path, text).expect("an addendum");
    }),
    ("the last is edited", 2, "statement victim.addenda/0002.sig.json payload.", |s| {
        add_two(s);
        let path = s.victim.addendum("0002.json");
        let text = fs::read_to_string(&path).expect("an addendum").replace("\"fail\"", "\"pass\"");
        fs::write(path, text).expect("an addendum");
    }),
    ("the first is gone", 2, "addendum victim.addenda/0002.json", |s| {
        add_two(s);
        for name in ["0001.json", "0001.sig.json"] {
            fs::remove_file(s.victim.addendum(name)).expect("gone");
        }
    }),
    ("one is not signed", 3, "signed victim.addenda/0003.sig.json", |s| {
        add_two(s);
        s.victim.verb("addendum", &["--kind", "release", "--status", "pass"]);
    }),
    ("one is signed by a stranger", 2, "signer victim.addenda/0003.sig.json", |s| {
        add_two(s);
        add(&s.victim, "pass", &s.stage.stranger);
    }),
    ("they are another bundle's", 2, "addendum victim.addenda/0001.json manifest", |s| {
        let other = Victim { path: s.stage.folder.path().join("with addenda") };
        copy(&s.stage.other, &other.path);
        add(&other, "pass", &s.stage.keys);
        fs::rename(other.addendum(""), s.victim.addendum("")).expect("moved");
        fs::remove_dir_all(&other.path).expect("gone");
    }),
    ("something lies among them", 2, "addendum victim.addenda/approved", |s| {
        add_two(s);
        fs::write(s.victim.addendum("approved"), "").expect("a file");
    }),
    ("one is a link", 2, "plain_files victim.addenda/0003.json", |s| {
        add_two(s);
        symlink("0001.json", s.victim.addendum("0003.json")).expect("a link");
    }),
];

/// A bundle of another version, of which this one cannot judge the meaning; its bytes it can.
const VERSION: [Change; 4] = [
    ("its files follow from the log all the same", 0, "", |s| {
        s.victim.replace("manifest.json", VERSIONED, "\"stuckproof\": \"9.9.9\"");
        s.victim.unsign();
    }),
    ("its files do not follow from the log", 3, "derived summary.json language", |s| {
        s.victim.replace("summary.json", "\"cpp\"", "\"python\"");
        s.victim.replace("manifest.json", VERSIONED, "\"stuckproof\": \"9.9.9\"");
        s.victim.forge_nothing_but_the_seal();
    }),
    ("its log has an event that we do not know", 3, "record events.jsonl line 6", |s| {
        s.victim.lines_chained(|lines| lines[5] = lines[5].replacen("\"event\":\"", "\"event\":\"x", 1));
        s.victim.replace("manifest.json", VERSIONED, "\"stuckproof\": \"9.9.9\"");
        s.victim.forge_nothing_but_the_seal();
    }),
    ("its bytes are not those that were sealed", 2, "digest stdout.log", |s| {
        s.victim.write("stdout.log", "all is well\n");
        s.victim.replace("manifest.json", VERSIONED, "\"stuckproof\": \"9.9.9\"");
        s.victim.unsign();
    }),
];

const VERSIONED: &str = concat!("\"stuckproof\": \"", env!("CARGO_PKG_VERSION"), "\"");

fn keyid(victim: &Victim) -> String {
    let text = victim.text("manifest.sig.json");
    let start = text.find("\"keyid\": \"").expect("a key") + "\"keyid\": \"".len();
    text[start..start + 64].to_owned()
}

fn add(victim: &Victim, status: &str, keys: &Keys) {
    let key = text(&keys.private);
    victim.verb("addendum", &["--kind", "validation", "--status", status, "--sign", &key]);
}

fn add_two(scene: &Scene) {
    add(&scene.victim, "pass", &scene.stage.keys);
    add(&scene.victim, "fail", &scene.stage.keys);
}

#[test]
fn every_change_is_named_by_its_rule() {
    let stage = Stage::set();
    let anybody = Wanted::default();
    let ours = stage.keys.wanted();
    stage.play(&RECORD, &anybody);
    stage.play(&FILES, &anybody);
    stage.play(&MANIFEST, &anybody);
    stage.play(&VERSION, &anybody);
    stage.play(&SIGNATURE, &ours);
    stage.play(&ADDENDA, &ours);
    // A state that the record does not bear out, with everything else made good.
    let victim = Victim { path: stage.folder.path().join("other victim") };
    copy(&stage.other, &victim.path);
    victim.lines_chained(|lines| {
        let last = lines.len() - 1;
        lines[last] = lines[last].replace(
            "\"state\":\"cancelled\",\"cause\":\"service\"",
            "\"state\":\"succeeded\",\"cause\":null",
        );
    });
    victim.forge();
    let (code, faults) = judge(&victim.path, &anybody);
    assert!(code == 2 && faults.iter().any(|fault| fault.starts_with("state ")), "{code} {faults:?}");
}
