//! Timing caches are combined by the library that made them.

use crate::scene::{Scene, script};
use std::path::{Path, PathBuf};
use stuckproof::combine::combine;
use stuckproof::event::LibraryAttached;

/// The program, where the build has put it: nothing of this process is unpacked into the user's home.
fn program() -> &'static Path {
    Path::new(concat!(env!("OUT_DIR"), "/combine"))
}

/// A cache with these tactics, and the library that made it.
fn cache(head: &str, tactics: &[&str]) -> (Scene, LibraryAttached) {
    let acts: Vec<String> = tactics.iter().map(|name| format!("{{ tactic = \"{name}\" }}")).collect();
    let scene = Scene::new();
    let command = scene.command(&script(head, "timing_cache = {}", &acts.join(", ")));
    let mut run = scene.place.run(&[], &command);
    assert!(run.output().expect("stuckproof starts").status.success());
    let bundle = crate::common::bundle::Bundle::load(&scene.place.bundle());
    let library = bundle.evidence["libraries"][0].clone();
    (scene, serde_json::from_value(library).expect("a library"))
}

fn entries(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.split_once('\t')).map(|(tactic, _)| tactic.to_owned()).collect()
}

#[test]
fn every_family_combines_what_two_caches_know() {
    for (flavour, version) in
        [("tensorrt", "9.2.0"), ("tensorrt", "10.0.1"), ("tensorrt", "10.13.2"), ("tensorrt", "11.4")]
    {
        let head = format!("flavour = \"{flavour}\"\nversion = \"{version}\"");
        let (one, library) = cache(&head, &["a", "b"]);
        let (two, _) = cache(&head, &["b", "c"]);
        let out: PathBuf = one.place.file("out").into();
        combine(program(), &library, &one.cache(), &two.cache(), &out)
            .unwrap_or_else(|e| panic!("{version}: {e}"));
        assert_eq!(entries(&out), ["a", "b", "c"], "{version}");
    }
}

#[test]
fn what_cannot_be_combined_leaves_no_file_and_a_reason() {
    let (one, library) = cache("", &["a"]);
    let (other, _) = cache("device = \"GPU-2\"", &["b"]);
    let out: PathBuf = one.place.file("out").into();
    let refused = |library: &LibraryAttached, ours: &Path| {
        let why = combine(program(), library, &one.cache(), ours, &out).unwrap_err();
        assert!(!out.exists(), "{why}");
        why
    };
    assert!(refused(&library, &other.cache()).contains("does not combine"));
    let foreign = one.place.file("foreign");
    std::fs::write(&foreign, "foreign").unwrap();
    assert!(refused(&library, Path::new(&foreign)).contains("takes no timing cache from"));
    let unknown = LibraryAttached { version: "12.0".to_owned(), ..library.clone() };
    assert!(refused(&unknown, &one.cache()).contains("not known"));
    let rtx =
        LibraryAttached { flavour: "tensorrt-rtx".to_owned(), version: "1.7".to_owned(), ..library.clone() };
    assert!(refused(&rtx, &one.cache()).contains("not known"), "it has no timing cache");
    let gone = LibraryAttached { path: one.place.file("none.so"), ..library };
    assert!(refused(&gone, &one.cache()).contains("none.so"));
}
