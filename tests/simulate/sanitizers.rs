//! The library and the player, built with the sanitizers and with the attach library beside them.

use crate::common::job;
use crate::common::text;
use crate::scene::{Scene, fixture};
use std::path::Path;
use std::process::Command;
use stuckproof::simulate;

const SHARED: [&str; 4] = ["plan", "cache", "stage", "faults"];

fn compile(arguments: &[String]) {
    let common = ["-std=c++17", "-fPIC", "-pthread", "-fno-sanitize-recover=all", "-fvisibility=hidden"];
    let output = Command::new("g++").args(common).args(arguments).output().expect("g++ runs");
    assert!(output.status.success(), "{arguments:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

fn plays_cleanly(sanitizer: &str) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| text(folder.path().join(name));
    let sources = |own: &[&str]| -> Vec<String> {
        SHARED.iter().chain(own).map(|name| format!("cpp/simulate/{name}.cpp")).collect()
    };
    let sanitize = format!("-fsanitize={sanitizer}");
    // Our monitors carry a type that is borrowed from the library, so a check of types would be misled; the other two
    // cost more than they find.
    let but = "-fno-sanitize=vptr,null,alignment".to_owned();
    let library: Vec<String> =
        [sanitize.clone(), but.clone(), "-shared".into(), "-o".into(), at("libnvinfer.so.11")].into();
    let player: Vec<String> = [sanitize, but, "-o".into(), at("player")].into();
    let late = ["-Wl,-z,lazy", "-Wl,-z,dynamic-undefined-weak"].map(str::to_owned);
    std::thread::scope(|scope| {
        scope.spawn(|| compile(&[library, sources(&["library"])].concat()));
        scope.spawn(|| compile(&[player, sources(&["files", "player"]), late.into()].concat()));
    });
    for (name, call) in [("threads", "dlopen"), ("cached", "linked")] {
        let scene = Scene::new();
        let script = match name {
            "threads" => std::fs::read_to_string(fixture("threads")).unwrap(),
            _ => "flavour = \"tensorrt\"\nversion = \"11.4\"\n[[build]]\ntiming_cache = {}\nwrite = [{}]\ndo = [\n\
                  { threads = 8, do = [{ tactic = \"a\" }, { tactic = \"b\" }] },\n]\n"
                .to_owned(),
        };
        let path = scene.place.file("script.toml");
        std::fs::write(&path, format!("call = \"{call}\"\n{script}")).unwrap();
        let options = simulate::Options { engine: Some(scene.engine()), timing_cache: Some(scene.cache()) };
        let plan = simulate::plan(Path::new(&path), &options).unwrap();
        std::fs::write(scene.place.file("plan"), &plan.text).unwrap();
        let command = [at("player"), scene.place.file("plan"), at("libnvinfer.so.11")];
        let mut run = scene.place.run(&[], &command);
        // What the process holds at its end, it holds by design.
        run.env("ASAN_OPTIONS", "detect_leaks=0");
        let ended = job::Job::start(scene.place, run).end();
        assert_eq!(ended.code(), 0, "{sanitizer}, {name}: {}", ended.stderr);
        ended.bundle().assert_state("succeeded", None);
    }
}

#[test]
fn address_and_undefined_behaviour_sanitizers_are_content() {
    plays_cleanly("address,undefined");
}

#[test]
fn thread_sanitizer_is_content() {
    plays_cleanly("thread");
}
