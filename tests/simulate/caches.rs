//! Timing caches behave as TensorRT's do.

use crate::common::bundle::Bundle;
use crate::scene::{Scene, script};
use std::path::Path;

const TWO: &str =
    "{ phase = \"Timing\", do = [{ tactic = \"a\", each = \"60ms\" }, { tactic = \"b\", each = \"60ms\" }] }";

struct Build {
    ms: f64,
    said: Vec<String>,
    cache: String,
}

/// Builds with what the cache file holds, or with none, in a version.
fn build(before: Option<&str>, head: &str, uses: &str, acts: &str) -> Build {
    let scene = Scene::new();
    if let Some(before) = before {
        std::fs::write(scene.cache(), before).expect("a cache can be written");
    }
    let ended = scene.run(&[], &script(head, &format!("timing_cache = {{ {uses} }}"), acts));
    let bundle: Bundle = ended.bundle();
    bundle.assert_state("succeeded", None);
    let said = bundle.of_kind("message").filter_map(|m| m["text"].as_str().map(str::to_owned)).collect();
    let cache = std::fs::read_to_string(Path::new(&ended.place.file("cache"))).unwrap_or_default();
    Build { ms: bundle.build()["durationMs"].as_f64().expect("a duration"), said, cache }
}

fn entries(cache: &str) -> usize {
    cache.lines().filter(|line| line.contains('\t')).count()
}

#[test]
fn a_cold_cache_is_filled_and_a_warm_one_saves_its_time() {
    let cold = build(None, "", "", TWO);
    assert!(cold.ms >= 120.0 && entries(&cold.cache) == 2, "{}", cold.cache);
    let warm = build(Some(&cold.cache), "", "", TWO);
    assert!(warm.ms < cold.ms - 60.0, "{} ms, then {} ms", cold.ms, warm.ms);
    assert_eq!((warm.cache.as_str(), warm.said.as_slice()), (cold.cache.as_str(), &[][..]));
    let more = build(Some(&cold.cache), "", "", &format!("{TWO}, {{ tactic = \"c\", each = \"1ms\" }}"));
    assert_eq!(entries(&more.cache), 3);
    assert_eq!(build(Some(&cold.cache), "", "save = \"never\"", "{ tactic = \"d\" }").cache, cold.cache);
}

#[test]
fn a_cache_of_another_device_or_version_is_rejected() {
    let ours = build(None, "", "", TWO).cache;
    for head in ["device = \"GPU-2\"", "flavour = \"tensorrt\"\nversion = \"11.3\""] {
        let other = build(Some(&ours), head, "save = \"always\"", "{ tactic = \"c\", each = \"1ms\" }");
        // The messages of 11.3 are not observed: its logger's layout is not known.
        let told = other.said.iter().any(|text| text.contains("Timing cache header mismatch"));
        assert_eq!(told, head.contains("device"), "{:?}", other.said);
        assert_eq!(entries(&other.cache), 1, "it built with a cache of its own");
    }
    let forced = build(Some(&ours), "device = \"GPU-2\"", "ignore_mismatch = true", "{ tactic = \"c\" }");
    assert_eq!((entries(&forced.cache), forced.said.len()), (3, 0));
}

#[test]
fn what_is_no_cache_is_not_used() {
    let whole = build(None, "", "", TWO).cache;
    let cut = &whole[..whole.len() - 8];
    let changed = whole.replace("60000000", "10000000");
    for (bytes, message) in [
        ("not a cache at all", "Magic tag does not match"),
        (cut, "does not match archive size"),
        (&changed, "does not match archive size"),
    ] {
        let built = build(Some(bytes), "", "", TWO);
        assert!(built.said[0].contains(message), "{:?}", built.said);
        assert!(built.said[1].contains("The timing cache will not be used!"), "{:?}", built.said);
        assert_eq!(built.cache, whole, "a new one took its place");
    }
    let empty = build(Some(""), "", "", TWO);
    assert_eq!((empty.cache.as_str(), empty.said.len()), (whole.as_str(), 0), "an empty file is a new cache");
}

#[test]
fn tensorrt_rtx_measures_nothing() {
    let head = "flavour = \"tensorrt-rtx\"\nversion = \"1.7\"";
    assert_eq!(entries(&build(None, head, "", "{ tactic = \"a\", each = \"1ms\" }").cache), 0);
}
