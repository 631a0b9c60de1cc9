//! Packed bundles that a stranger has made, one trick each, and the rule that must name it.

use crate::rig::{Place, STUCKPROOF};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};
use tar::{EntryType, Header};

/// Entries of an archive: paths and bytes.
type Entries = Vec<(String, Vec<u8>)>;

/// What a trick has to work with.
struct Good {
    /// The archive as it was packed.
    packed: Vec<u8>,
    /// The same, not compressed.
    tar: Vec<u8>,
    entries: Entries,
    job: String,
    /// The entries of another bundle.
    other: Entries,
}

/// A trick, the exit code, the beginning of the fault that must be named, and the archive.
type Trick = (&'static str, u8, &'static str, fn(&Good) -> Vec<u8>);

/// What no archive of ours is.
const FORM: [Trick; 40] = [
    ("nothing is in it", 2, "archive .", |_| Vec::new()),
    ("it is garbage", 2, "archive .", |_| b"all is well\n".repeat(100)),
    ("it is not compressed", 2, "archive .", |g| g.tar.clone()),
    ("garbage is compressed", 2, "archive ", |_| compress(&b"all is well\n".repeat(100))),
    ("an empty text is compressed", 2, "archive .", |_| compress(b"")),
    ("no entry is in it", 2, "archive .", |_| compress(&[0; 1024])),
    ("it is cut in its middle", 2, "archive .", |g| g.packed[..g.packed.len() / 2].to_vec()),
    ("its last byte is gone", 2, "archive .", |g| g.packed[..g.packed.len() - 1].to_vec()),
    ("a byte is behind it", 2, "archive .", |g| [&g.packed, &b"x"[..]].concat()),
    ("a byte of it is another", 2, "archive ", |g| {
        let mut packed = g.packed.clone();
        let middle = packed.len() / 2;
        packed[middle] ^= 0x10;
        packed
    }),
    ("it is in two frames", 2, "archive .", |g| {
        let (one, two) = g.tar.split_at(g.tar.len() / 2);
        [compress(one), compress(two)].concat()
    }),
    ("another archive is behind it", 2, "archive .", |g| [&g.packed[..], &g.packed].concat()),
    ("a frame to be skipped is before it", 2, "archive .", |g| [&skipped(), &g.packed[..]].concat()),
    ("a frame to be skipped is behind it", 2, "archive .", |g| [&g.packed[..], &skipped()].concat()),
    ("its window is larger than is read", 2, "archive .", |g| compress_with(27, &g.tar)),
    ("its end is one block", 2, "archive .", |g| compress(&g.tar[..g.tar.len() - 512])),
    ("its end is missing", 2, "archive .", |g| compress(&g.tar[..g.tar.len() - 1024])),
    ("its end is longer", 2, "archive .", |g| compress(&[&g.tar, &[0; 512][..]].concat())),
    ("text is behind its end", 2, "archive .", |g| compress(&[&g.tar, &b"all is well"[..]].concat())),
    ("text is between two entries", 2, "archive .", |g| {
        let length = g.entries[0].1.len();
        assert!(length % 512 > 0 && length % 512 < 500, "there is room between them");
        let mut tar = g.tar.clone();
        tar[512 + length + 3] = b'x';
        compress(&tar)
    }),
    ("an entry is in the parent", 2, "archive JOB/../../etc/passwd", |g| {
        with(g, &raw(&at(g, "../../etc/passwd")))
    }),
    ("an entry begins in the parent", 2, "archive ../etc/passwd", |g| with(g, &raw("../etc/passwd"))),
    ("an entry is absolute", 2, "archive /etc/passwd", |g| with(g, &raw("/etc/passwd"))),
    ("an entry is beside the folder", 2, "archive zzz/passwd", |g| with(g, &raw("zzz/passwd"))),
    ("an entry is in no folder", 2, "archive zzz", |g| with(g, &raw("zzz"))),
    ("an entry is hidden", 2, "archive JOB/.approved", |g| with(g, &raw(&at(g, ".approved")))),
    ("a name obeys a terminal", 2, "archive JOB/z\u{fffd}[2J", |g| with(g, &raw(&at(g, "z\u{1b}[2J")))),
    ("a name is no text", 2, "archive JOB/z\u{fffd}", |g| {
        with(
            g,
            &changed(&raw(&at(g, "zX")), |header| {
                let place = header.as_bytes().iter().position(|byte| *byte == b'X').expect("a name");
                header.as_mut_bytes()[place] = 0xff;
            }),
        )
    }),
    ("an entry is a symbolic link", 2, "archive JOB/zzz", |g| with(g, &link(g, EntryType::Symlink))),
    ("an entry is a hard link", 2, "archive JOB/zzz", |g| with(g, &link(g, EntryType::Link))),
    ("an entry is a device", 2, "archive JOB/zzz", |g| with(g, &link(g, EntryType::Char))),
    ("an entry is a pipe", 2, "archive JOB/zzz", |g| with(g, &link(g, EntryType::Fifo))),
    ("an entry is a folder", 2, "archive JOB/zzz", |g| with(g, &link(g, EntryType::Directory))),
    ("an entry is sparse", 2, "archive JOB/zzz", |g| with(g, &link(g, EntryType::GNUSparse))),
    ("an entry has a long name", 2, "archive JOB/zzz", |g| with(g, &link(g, EntryType::GNULongName))),
    ("an entry has a pax header", 2, "archive JOB/zzz", |g| with(g, &link(g, EntryType::XHeader))),
    ("an entry stands twice", 2, "archive JOB/summary.json", |g| {
        let (path, bytes) = g.entries.last().expect("entries");
        with(g, &entry(path, bytes))
    }),
    ("an entry is out of order", 2, "archive JOB/aaa", |g| with(g, &raw(&at(g, "aaa")))),
    ("an entry may be executed", 2, "archive JOB/zzz", |g| {
        with(g, &changed(&raw(&at(g, "zzz")), |header| header.set_mode(0o755)))
    }),
    ("an entry has more bytes than all disks", 2, "archive JOB/zzz", |g| {
        with(g, &changed(&raw(&at(g, "zzz")), |header| header.set_size(u64::MAX / 2)))
    }),
];

/// Archives in the right form with a wrong bundle in them.
const CONTENT: [Trick; 12] = [
    ("nothing was done", 0, "", |g| pack(&g.entries)),
    ("the folder has another name", 2, "archive other", |g| {
        let other = |path: &String| path.replacen(&g.job, "other", 1);
        pack(&g.entries.iter().map(|(path, bytes)| (other(path), bytes.clone())).collect())
    }),
    ("a file is edited", 2, "digest stdout.log size", |g| edited(g, "stdout.log", b"all is well\n")),
    ("a file is another bundle's", 2, "digest evidence.json", |g| {
        let theirs = g.other.iter().find(|(path, _)| path.ends_with("evidence.json")).expect("a file");
        edited(g, "evidence.json", &theirs.1)
    }),
    ("a letter of the summary is another", 2, "digest summary.json sha256", |g| {
        edited(g, "summary.json", &replaced(g, "summary.json", "\"cpp\"", "\"Cpp\""))
    }),
    ("a state in the log is another", 2, "digest events.jsonl sha256", |g| {
        edited(
            g,
            "events.jsonl",
            &replaced(g, "events.jsonl", "\"cancel\":\"running\"", "\"cancel\":\"Running\""),
        )
    }),
    ("the manifest is edited", 2, "manifest manifest.json", |g| {
        edited(g, "manifest.json", &replaced(g, "manifest.json", "{\n", "{\n  \"approved\": true,\n"))
    }),
    ("a file is added", 2, "closed_world zzz.txt", |g| {
        let mut entries = g.entries.clone();
        entries.push((at(g, "zzz.txt"), Vec::new()));
        pack(&entries)
    }),
    ("a file is gone", 2, "missing stdout.log", |g| without(g, "stdout.log")),
    ("the manifest is gone", 3, "sealed manifest.json", |g| without(g, "manifest.json")),
    ("an addendum is edited", 2, "addendum JOB.addenda/0002.json previous", |g| {
        let path = format!("{}.addenda/0001.json", g.job);
        let mut entries = g.entries.clone();
        let own = entries.iter_mut().find(|(own, _)| *own == path).expect("an addendum");
        own.1 = String::from_utf8_lossy(&own.1).replace("\"pass\"", "\"fail\"").into_bytes();
        pack(&entries)
    }),
    ("an addendum is none", 2, "addendum JOB.addenda/9999.json", |g| {
        let mut entries = g.entries.clone();
        entries.push((format!("{}.addenda/9999.json", g.job), Vec::new()));
        entries.sort();
        pack(&entries)
    }),
];

/// A frame that begins like ours.
fn frame(window: u32) -> zstd::Encoder<'static, Vec<u8>> {
    let mut frame = zstd::Encoder::new(Vec::new(), 1).expect("memory takes everything");
    frame.include_checksum(true).expect("a checksum");
    frame.include_contentsize(false).expect("no length");
    frame.window_log(window).expect("a window");
    frame
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    compress_with(21, bytes)
}

fn compress_with(window: u32, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame(window);
    frame.write_all(bytes).expect("memory takes everything");
    frame.finish().expect("memory takes everything")
}

/// A frame in which readers see nothing.
fn skipped() -> Vec<u8> {
    let text = b"all is well\n";
    [&0x184D_2A50_u32.to_le_bytes()[..], &(text.len() as u32).to_le_bytes(), text].concat()
}

/// An entry as stuckproof writes it, but for its path, which may be any.
fn entry(path: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = Header::new_ustar();
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(EntryType::Regular);
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_cksum();
    let padding = vec![0; (512 - bytes.len() % 512) % 512];
    [header.as_bytes(), bytes, &padding].concat()
}

fn raw(path: &str) -> Vec<u8> {
    entry(path, b"")
}

/// An entry whose header somebody has changed.
fn changed(entry: &[u8], change: impl FnOnce(&mut Header)) -> Vec<u8> {
    let mut header = Header::from_byte_slice(&entry[..512]).clone();
    change(&mut header);
    header.set_cksum();
    [header.as_bytes(), &entry[512..]].concat()
}

/// An entry of another kind that leads elsewhere.
fn link(good: &Good, kind: EntryType) -> Vec<u8> {
    changed(&raw(&at(good, "zzz")), |header| {
        header.set_entry_type(kind);
        header.set_link_name_literal("/etc/passwd").expect("a short name");
    })
}

fn at(good: &Good, file: &str) -> String {
    format!("{}/{file}", good.job)
}

/// The good archive with an entry more.
fn with(good: &Good, entry: &[u8]) -> Vec<u8> {
    compress(&[&good.tar[..good.tar.len() - 1024], entry, &[0; 1024]].concat())
}

fn pack(entries: &Entries) -> Vec<u8> {
    let mut tar: Vec<u8> = entries.iter().flat_map(|(path, bytes)| entry(path, bytes)).collect();
    tar.extend([0; 1024]);
    compress(&tar)
}

fn edited(good: &Good, file: &str, bytes: &[u8]) -> Vec<u8> {
    let path = at(good, file);
    let mut entries = good.entries.clone();
    let own = entries.iter_mut().find(|(own, _)| *own == path).expect("a file of the bundle");
    assert_ne!(own.1, bytes, "{file} is changed");
    own.1 = bytes.to_vec();
    pack(&entries)
}

fn replaced(good: &Good, file: &str, old: &str, new: &str) -> Vec<u8> {
    let path = at(good, file);
    let own = good.entries.iter().find(|(own, _)| *own == path).expect("a file of the bundle");
    let text = String::from_utf8(own.1.clone()).expect("text");
    assert!(text.contains(old), "{file} has no {old}");
    text.replacen(old, new, 1).into_bytes()
}

fn without(good: &Good, file: &str) -> Vec<u8> {
    let path = at(good, file);
    pack(&good.entries.iter().filter(|(own, _)| *own != path).cloned().collect())
}

/// What an archive holds, as the crate reads it.
fn entries(tar: &[u8]) -> Entries {
    let mut archive = tar::Archive::new(tar);
    let read = |entry: std::io::Result<tar::Entry<&[u8]>>| {
        let mut entry = entry.expect("an entry");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("its bytes");
        (entry.path().expect("a path").to_string_lossy().into_owned(), bytes)
    };
    archive.entries().expect("entries").map(read).collect()
}

/// A bundle with two addenda, packed, beside another one.
fn stage(place: &Place) -> Good {
    place.ran(&[], "echo one").assert_code(0);
    for status in ["pass", "fail"] {
        place.verb(&["addendum", "bundle", "--kind", "validation", "--status", status]).assert_code(0);
    }
    place.verb(&["run", "--bundle", "other", "--", "true"]).assert_code(0);
    let unpacked = |bundle: &str| {
        place.verb(&["pack", bundle]).assert_code(0);
        let packed = fs::read(place.path(&format!("{bundle}.tar.zst"))).unwrap();
        let tar = zstd::decode_all(packed.as_slice()).expect("it is compressed");
        (packed, tar)
    };
    let (packed, tar) = unpacked("bundle");
    let job = place.json("evidence.json")["job"].as_str().expect("a name").to_owned();
    Good { entries: entries(&tar), packed, tar, job, other: entries(&unpacked("other").1) }
}

/// The exit code and the faults of the archive `victim.tar.zst`.
fn judge(place: &Place) -> (i32, Vec<String>) {
    let done = place.verb(&["verify", "victim.tar.zst", "--format", "json"]);
    let reports: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let word = |fault: &Value, name: &str| fault[name].as_str().expect("a text").to_owned();
    let told = |f: &Value| format!("{} {} {}", word(f, "rule"), word(f, "file"), word(f, "field"));
    let faults = reports[0]["faults"].as_array().expect("a list").iter().map(told).collect();
    (done.status.code().expect("it ends by itself"), faults)
}

#[test]
fn every_trick_is_named_by_its_rule() {
    let place = Place::new();
    let good = stage(&place);
    let mut failures = Vec::new();
    for (name, code, fault, trick) in FORM.iter().chain(&CONTENT) {
        fs::write(place.path("victim.tar.zst"), trick(&good)).unwrap();
        let fault = fault.replace("JOB", &good.job);
        let (found, faults) = judge(&place);
        let named = faults.iter().any(|told| told.starts_with(&fault)) || faults.is_empty() && *code == 0;
        if found != i32::from(*code) || !named {
            failures.push(format!("{name}: wanted {code} with {fault:?}, got {found} with {faults:#?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(crate::rig::names(&place.path("")).iter().filter(|name| name.contains("passwd")).count(), 0);
}

#[test]
fn no_part_of_an_archive_is_valid_and_no_changed_byte_changes_what_is_in_a_valid_one() {
    let place = Place::new();
    let good = stage(&place);
    let path = place.path("victim.tar.zst");
    let judge =
        || stuckproof::verify::verify(&path, &stuckproof::verify::Wanted::default()).answer().exit_code();
    fs::write(&path, &good.packed).unwrap();
    assert_eq!(judge(), 0);
    for length in (0..good.packed.len()).step_by(97) {
        fs::write(&path, &good.packed[..length]).unwrap();
        assert_eq!(judge(), 2, "the first {length} bytes");
    }
    for at in (0..good.packed.len()).step_by(61).chain(0..20) {
        let mut packed = good.packed.clone();
        packed[at] ^= 1 << (at % 8);
        fs::write(&path, &packed).unwrap();
        // Some bits of the compression mean nothing; what is in the archive is the same then.
        let same = || zstd::decode_all(packed.as_slice()).is_ok_and(|tar| tar == good.tar);
        assert!(judge() == 2 || same(), "byte {at}");
    }
}

fn write_zeros(frame: &mut zstd::Encoder<Vec<u8>>, size: u64) {
    const CHUNK: usize = 4 << 20;
    let chunk = vec![0; CHUNK];
    for _ in 0..size / CHUNK as u64 {
        frame.write_all(&chunk).expect("memory takes everything");
    }
}

/// Gigabytes of zeros between other bytes, compressed.
fn zeros(before: &[u8], size: u64, after: &[u8]) -> Vec<u8> {
    let mut frame = frame(21);
    frame.write_all(before).expect("memory takes everything");
    write_zeros(&mut frame, size);
    frame.write_all(after).expect("memory takes everything");
    frame.finish().expect("memory takes everything")
}

/// What says that it is a file of that many zeros.
fn declared(path: &str, size: u64) -> Vec<u8> {
    changed(&raw(path), |header| header.set_size(size))
}

#[test]
fn bombs_are_refused_before_they_take_memory_or_disk() {
    const HUGE: u64 = 2 << 30;
    const EACH: u64 = 96 << 20;
    let place = Place::new();
    let good = stage(&place);
    let one = zeros(&declared(&at(&good, "a"), HUGE), HUGE, &[0; 1024]);
    let many: Vec<u8> = (0..20).flat_map(|n| declared(&at(&good, &format!("a{n:02}")), EACH)).collect();
    let mut frame = frame(21);
    for header in many.chunks(512) {
        frame.write_all(header).unwrap();
        write_zeros(&mut frame, EACH);
    }
    let many = frame.finish().unwrap();
    let behind = zeros(&good.tar, HUGE, &[]);
    let crowd: Vec<u8> = (0..20_000).flat_map(|n| raw(&at(&good, &format!("a{n:05}")))).collect();
    for (name, bomb) in [("one", one), ("many", many), ("behind", behind), ("crowd", compress(&crowd))] {
        assert!(bomb.len() < 2 << 20, "{name} has {} bytes", bomb.len());
        fs::write(place.path("victim.tar.zst"), bomb).unwrap();
        // 300 MiB of address space hold no bomb, nor do files of 300 MiB.
        let script = format!("ulimit -v 307200; ulimit -f 307200; exec {STUCKPROOF} verify victim.tar.zst");
        let mut command = Command::new("bash");
        place.furnish(&mut command);
        let begun = Instant::now();
        let done = command.args(["-c", &script]).output().unwrap();
        let took = begun.elapsed();
        let said = String::from_utf8_lossy(&done.stdout);
        assert_eq!(done.status.code(), Some(2), "{name}: {said} {}", String::from_utf8_lossy(&done.stderr));
        assert!(said.contains("\n  archive: "), "{name}: {said}");
        assert!(took < Duration::from_secs(30), "{name} took {took:?}");
    }
}

#[test]
fn what_is_no_file_is_not_waited_for_and_a_folder_of_that_name_is_one() {
    let place = Place::new();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, place.path("victim.tar.zst"), mode).unwrap();
    assert_eq!(judge(&place), (3, vec!["readable . ".to_owned()]));
    fs::remove_file(place.path("victim.tar.zst")).unwrap();
    assert_eq!(judge(&place), (3, vec!["readable . ".to_owned()]));
    place.verb(&["run", "--bundle", "victim.tar.zst", "--", "true"]).assert_code(0);
    assert_eq!(judge(&place), (0, Vec::new()));
}
