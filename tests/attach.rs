//! The attach library: its layouts against the official headers, its symbols, and its code under the sanitizers.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use stuckproof::clock::Anchor;
use stuckproof::wire::{Body, Control, Losses, Reader, Record, Unread};

const STRICT: [&str; 5] = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pthread"];

fn compile(arguments: &[&str]) {
    let output = Command::new("g++").args(STRICT).args(arguments).output().expect("g++ runs");
    assert!(output.status.success(), "{arguments:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// Where the official headers lie: a package that is locked and downloaded, and never built.
fn headers() -> PathBuf {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked"])
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let manifest =
        packages.iter().find(|p| p["name"] == "trtx-sys").expect("trtx-sys is locked")["manifest_path"]
            .as_str()
            .unwrap();
    Path::new(manifest).parent().unwrap().join("TensorRT-Headers")
}

#[test]
fn layouts_agree_with_the_official_headers() {
    let headers = headers();
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("check");
    for (set, flavour, major, minor) in [
        ("TRT-RTX-1.3", "rtx", 1, 3),
        ("TRT-RTX-1.4", "rtx", 1, 4),
        ("TRT-RTX-1.5", "rtx", 1, 5),
        ("TRT-RTX-1.6", "rtx", 1, 6),
        ("TRT-RTX-1.7", "rtx", 1, 7),
        ("TRT-Enterprise-11.4", "tensorrt", 11, 4),
    ] {
        let include = headers.join(set);
        compile(&[
            "-isystem",
            headers.to_str().unwrap(),
            "-isystem",
            include.to_str().unwrap(),
            &format!("-DFLAVOUR={flavour}"),
            &format!("-DMAJOR={major}"),
            &format!("-DMINOR={minor}"),
            "cpp/tests/layouts_check.cpp",
            "-o",
            program.to_str().unwrap(),
        ]);
        let output = Command::new(&program).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{set}: {said}");
        let checked: u32 = said.split_whitespace().next().and_then(|n| n.parse().ok()).expect("a count");
        assert!(checked >= 45 && said.contains(" 0 faults"), "{set}: {said}");
    }
}

#[test]
fn exports_two_functions_and_requires_none() {
    let library = stuckproof::attach::unpack().unwrap();
    let output = Command::new("nm").arg("-D").arg(&library).output().expect("nm runs");
    let said = String::from_utf8(output.stdout).unwrap();
    let mut symbols: Vec<(&str, &str)> = said
        .lines()
        .map(|line| {
            let mut words = line.split_whitespace().rev();
            let name = words.next().unwrap();
            (words.next().unwrap(), name)
        })
        .collect();
    symbols.sort_unstable();
    assert_eq!(
        symbols,
        [
            ("T", "createInferBuilder_INTERNAL"),
            ("T", "dlsym"),
            ("w", "clock_gettime"),
            ("w", "dl_iterate_phdr"),
            ("w", "environ"),
            ("w", "getauxval"),
        ]
    );
    let output = Command::new("readelf").args(["-dW"]).arg(&library).output().expect("readelf runs");
    let said = String::from_utf8(output.stdout).unwrap();
    for absent in ["NEEDED", "INIT", "VERNEED", "TEXTREL"] {
        assert!(!said.contains(absent), "the library has {absent}:\n{said}");
    }
}

/// The library's code as one program with a stand-in for the builder library.
struct Stress {
    folder: tempfile::TempDir,
}

struct Outcome {
    records: Vec<Record>,
    unread: Unread,
    losses: Losses,
    output: Output,
}

impl Stress {
    fn build(sanitizer: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().to_str().unwrap();
        let sanitize = format!("-fsanitize={sanitizer}");
        let library = format!("{at}/libtensorrt_rtx.so.1");
        let common = ["-g", "-O1", &sanitize, "-fno-sanitize-recover=all"];
        let shared = ["-fPIC", "-shared", "cpp/tests/fake_builder.cpp", "-o", &library];
        compile(&[&common[..], &shared[..]].concat());
        let (search, program) = (format!("-Wl,-rpath,{at}"), format!("{at}/stress"));
        let sources = ["recorder", "elf", "library", "vtable", "monitor", "logger", "facts", "builder"]
            .map(|name| format!("cpp/{name}.cpp"));
        let mut arguments = common.to_vec();
        arguments.push("cpp/tests/stress.cpp");
        arguments.extend(sources.iter().map(String::as_str));
        arguments.extend([library.as_str(), search.as_str(), "-o", program.as_str()]);
        compile(&arguments);
        Self { folder }
    }

    fn run(&self, wire: &Path, arguments: &[&str]) -> Outcome {
        let control = Control::create(wire, Anchor::now()).unwrap();
        let output = Command::new(self.folder.path().join("stress"))
            .args(arguments)
            .env("STUCKPROOF_WIRE", wire)
            .output()
            .unwrap();
        let mut records = Vec::new();
        let unread = Reader::new(wire).finish(&mut records).unwrap();
        Outcome { records, unread, losses: control.losses().unwrap(), output }
    }

    fn run_and_check(&self, arguments: &[&str]) {
        let wire = tempfile::tempdir().unwrap();
        let outcome = self.run(wire.path(), arguments);
        let said = String::from_utf8_lossy(&outcome.output.stdout);
        let errors = String::from_utf8_lossy(&outcome.output.stderr);
        assert!(outcome.output.status.success(), "{arguments:?}: {said}{errors}");
        let made: Vec<usize> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let count = |wanted: fn(&Body) -> bool| outcome.records.iter().filter(|r| wanted(&r.body)).count();
        assert_eq!(count(|body| matches!(body, Body::BuildStart { .. })), made[0], "builds begun");
        assert_eq!(count(|body| matches!(body, Body::BuildReturn { .. })), made[0], "builds returned");
        assert_eq!(count(|body| matches!(body, Body::Step { .. })), made[1], "steps");
        assert_eq!(count(|body| matches!(body, Body::Message { .. })), made[0] * 3, "warnings");
        assert_eq!((outcome.unread, outcome.losses.records), (Unread::default(), 0));
        check_order(&outcome.records);
    }
}

/// In each build and phase the steps come in their order, between the phase's start and its finish.
fn check_order(records: &[Record]) {
    let mut open = std::collections::HashMap::new();
    for record in records {
        let key = |name: &str| (record.process, record.build, record.tid, name.to_owned());
        match &record.body {
            Body::PhaseStart { name, .. } => {
                assert!(open.insert(key(name), 0).is_none(), "{name} began twice");
            }
            Body::Step { name, step, .. } => {
                let next = open.get_mut(&key(name)).expect("a step of an open phase");
                assert_eq!(*step, *next);
                *next += 1;
            }
            Body::PhaseFinish { name } => {
                assert!(open.remove(&key(name)).is_some(), "{name} was not open");
            }
            _ => {}
        }
    }
    assert!(open.is_empty());
}

#[test]
fn address_and_undefined_behaviour_sanitizers_are_content() {
    let stress = Stress::build("address,undefined");
    stress.run_and_check(&["4", "40", "100", "own"]);
    stress.run_and_check(&["4", "40", "100", "shared"]);
    stress.run_and_check(&["1", "40", "100", "fork"]);
}

#[test]
fn thread_sanitizer_is_content() {
    let stress = Stress::build("thread");
    stress.run_and_check(&["6", "25", "100", "own"]);
    stress.run_and_check(&["6", "25", "100", "shared"]);
    stress.run_and_check(&["1", "25", "100", "fork"]);
}

#[test]
fn a_missing_or_full_wire_harms_no_build_and_is_counted() {
    let stress = Stress::build("address,undefined");
    // No room at all: a limit on file sizes below one segment.
    let wire = tempfile::tempdir().unwrap();
    let control = Control::create(wire.path(), Anchor::now()).unwrap();
    let script = "ulimit -f 100; exec \"$0\" 2 10 50 own";
    let limited = Command::new("sh")
        .args(["-c", script])
        .arg(stress.folder.path().join("stress"))
        .env("STUCKPROOF_WIRE", wire.path())
        .output()
        .unwrap();
    assert!(limited.status.success(), "{}", String::from_utf8_lossy(&limited.stderr));
    let losses = control.losses().unwrap();
    assert!(losses.records > 2 * 10 * 150, "{losses:?}");
    assert_eq!(losses.what, "an event segment could not be allocated on disk");
    // The folder has vanished: nothing to count into, and still no harm.
    let gone = Command::new(stress.folder.path().join("stress"))
        .args(["2", "10", "50", "own"])
        .env("STUCKPROOF_WIRE", wire.path().join("gone"))
        .output()
        .unwrap();
    assert!(gone.status.success(), "{}", String::from_utf8_lossy(&gone.stderr));
    assert!(String::from_utf8_lossy(&gone.stdout).contains("builds 20"));
}

/// A small file system of its own for one test; needs root, or user namespaces through `unshare`.
#[test]
fn a_disk_that_fills_during_a_build_loses_counted_records_only() {
    let stress = Stress::build("address,undefined");
    let mount = tempfile::tempdir().unwrap();
    let keep = tempfile::tempdir().unwrap();
    let prepared = tempfile::tempdir().unwrap();
    drop(Control::create(prepared.path(), Anchor::now()).unwrap());
    // The control page and two segments fit, the third does not. What the wire held is copied out before it goes.
    let script = "mount -t tmpfs -o size=2500k none \"$1\" && cp \"$4/control\" \"$1/control\" && \
                  STUCKPROOF_WIRE=\"$1\" \"$2\" 2 100 100 own && cp \"$1\"/* \"$3\"";
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(mount.path())
        .arg(stress.folder.path().join("stress"))
        .args([keep.path(), prepared.path()])
        .output()
        .expect("unshare (util-linux) runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut records = Vec::new();
    Reader::new(keep.path()).finish(&mut records).unwrap();
    let steps = records.iter().filter(|r| matches!(r.body, Body::Step { .. })).count();
    let page = std::fs::read(keep.path().join("control")).unwrap();
    let lost = u64::from_le_bytes(page[72..80].try_into().unwrap());
    let made = 2 * 100 * 301;
    assert!(steps > 20_000 && steps < made, "{steps} of {made} steps were stored");
    assert!(lost >= (made - steps) as u64, "{lost} lost, {steps} of {made} stored");
}
