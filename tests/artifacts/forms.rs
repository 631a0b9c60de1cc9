//! Commands that write in other ways than one would like.

use crate::common::job::{Place, start};
use crate::scene::{
    PREVIOUS, artifact, assert_as_before, assert_nothing_beside, assert_set_aside, engine, inventory, names,
    place, quarantined, ran, shell,
};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

#[test]
fn a_command_that_empties_the_path_first_and_writes_nothing() {
    let ended = ran(place(), &[], ": > \"$E\"; exit 1");
    assert_as_before(&ended.place);
    assert_eq!(artifact(&ended.place.bundle())["outcome"], "restored");
    assert_eq!(ended.bundle().summary["cleanupStatus"], "cleaned", "an empty file is nothing to keep");
}

#[test]
fn a_command_that_removes_it() {
    for end in ["exit 1", "exit 0"] {
        let ended = ran(place(), &[], &format!("rm \"$E\"; {end}"));
        assert_as_before(&ended.place);
        let artifact = artifact(&ended.place.bundle());
        assert_eq!(artifact["outcome"], "restored");
        // A success without its engine is none.
        assert_eq!(ended.code(), if end == "exit 0" { 123 } else { 1 });
        assert_eq!(artifact["fault"].is_string(), end == "exit 0");
    }
}

#[test]
fn a_success_that_wrote_nothing_is_none() {
    let place = place();
    let path = engine(&place);
    let wrapped = ["sh", "-c", "test -n \"$1\"", "sh", "{engine}"].map(str::to_owned);
    let ended = start(place, &["--engine", &path], &wrapped).end();
    assert_eq!(ended.code(), 123, "{}", ended.stderr);
    let bundle = ended.bundle();
    bundle.assert_state("failed", Some("artifact"));
    assert_as_before(&ended.place);
    assert_eq!(bundle.summary["retryPolicy"], "rollback");
}

#[test]
fn a_command_that_writes_past_the_place_that_it_was_given_is_told_on() {
    let place = place();
    let path = engine(&place);
    let wrapped = shell(&place, "printf past > \"$E\"; test {engine} = x");
    let ended = start(place, &["--engine", &path], &wrapped).end();
    assert_eq!(ended.code(), 1, "{}", ended.stderr);
    let bundle = ended.bundle();
    let artifact = artifact(&bundle.path);
    assert_eq!(artifact["outcome"], "failed");
    assert!(artifact["reason"].as_str().is_some_and(|why| why.contains("past this job's own place")));
    assert_eq!(bundle.summary["cleanupStatus"], "failed");
    assert_ne!(bundle.summary["retryPolicy"], "rollback");
}

#[test]
fn a_success_that_did_not_touch_it_leaves_the_very_file() {
    let place = place();
    let inode = |place: &Place| fs::metadata(engine(place)).expect("it is there").ino();
    let before = inode(&place);
    let ended = ran(place, &[], "exit 0");
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert_eq!(artifact(&ended.place.bundle())["outcome"], "kept");
    assert_eq!(inode(&ended.place), before);
    assert_as_before(&ended.place);
}

#[test]
fn several_files_are_replaced_at_once_or_not_at_all() {
    for (staged, code) in [(true, 0), (true, 3), (false, 0), (false, 3)] {
        let place = Place::new();
        let folder = place.file("models/set");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(format!("{folder}/old"), PREVIOUS).expect("it can be written");
        let line = format!("echo 1 > \"$1/one\"; mkdir -p \"$1/sub\"; echo 2 > \"$1/sub/two\"; exit {code}");
        let word = if staged { "{engine}" } else { &folder };
        let wrapped = ["sh", "-c", &line, "sh", word].map(str::to_owned);
        let ended = start(place, &["--engine", &folder], &wrapped).end();
        assert_eq!(ended.code(), code, "{}", ended.stderr);
        let expected: &[&str] = match (staged, code) {
            (true, 0) => &["one", "sub"],
            (false, 0) => &["old", "one", "sub"],
            _ => &["old"],
        };
        assert_eq!(names(&folder), expected, "staged: {staged}, code {code}");
        let artifact = artifact(&ended.place.bundle());
        assert_eq!(artifact["folder"], true);
        if code != 0 {
            assert_eq!(fs::read(format!("{folder}/old")).expect("it is there"), PREVIOUS);
            assert!(names(quarantined(&ended.place).join("set")).contains(&"sub".to_owned()));
        }
        let beside = names(ended.place.file("models"));
        assert!(!beside.iter().any(|name| name.ends_with(".stuckproof")), "{beside:?}");
    }
}

/// A place in which the declared path is a link to the engine.
fn linked() -> (Place, String) {
    let place = place();
    let link = place.file("current.engine");
    symlink("models/a.engine", &link).expect("a link");
    (place, link)
}

#[test]
fn a_link_is_written_through_and_stays() {
    for (script, code) in [("printf new > \"$L\"", 0), ("printf half > \"$L\"; exit 1", 1)] {
        let (place, link) = linked();
        let wrapped = shell(&place, &format!("L='{link}'\n{script}"));
        let ended = start(place, &["--engine", &link], &wrapped).end();
        assert_eq!(ended.code(), code, "{}", ended.stderr);
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        if code == 0 {
            assert_eq!(fs::read(engine(&ended.place)).expect("it is there"), b"new");
        } else {
            assert_as_before(&ended.place);
            assert_set_aside(&ended.place, &artifact(&ended.place.bundle()), b"half");
        }
    }
}

#[test]
fn a_link_that_is_replaced_by_a_file_comes_back_unless_the_job_succeeds() {
    let replace = "printf half > \"$L.new\"; mv \"$L.new\" \"$L\"";
    for (end, code) in [("exit 0", 0), ("exit 1", 1)] {
        let (place, link) = linked();
        let wrapped = shell(&place, &format!("L='{link}'\n{replace}; {end}"));
        let ended = start(place, &["--engine", &link], &wrapped).end();
        assert_eq!(ended.code(), code, "{}", ended.stderr);
        assert_as_before(&ended.place);
        let is_link = fs::symlink_metadata(&link).expect("it is there").is_symlink();
        assert_eq!(is_link, code == 1);
        let through = fs::read(&link).expect("it is there");
        assert_eq!(through, if code == 0 { b"half" } else { PREVIOUS });
        let artifact = artifact(&ended.place.bundle());
        assert_eq!(artifact["outcome"], if code == 0 { "published" } else { "restored" });
        assert_eq!(artifact["after"]["bytes"], through.len());
    }
}

#[test]
fn an_engine_beside_the_declared_path_is_reported() {
    let ended =
        ran(place(), &[], "printf 'vtrt other' > \"${E%/*}/stray.engine\"; printf new > \"$E\"; exit 1");
    let artifact = artifact(&ended.place.bundle());
    let stray = ended.place.file("models/stray.engine");
    let stray = fs::canonicalize(stray).expect("it is there");
    assert_eq!(artifact["undeclared"], serde_json::json!([stray.to_str()]));
    assert_eq!(fs::read(engine(&ended.place)).expect("it is there"), PREVIOUS);
    let report = fs::read_to_string(ended.place.bundle().join("junit.xml")).expect("a report");
    assert!(report.contains("was not declared"), "{report}");
}

#[test]
fn what_the_command_writes_beside_its_place_is_kept_and_not_published() {
    let place = place();
    let path = engine(&place);
    let wrapped = ["sh", "-c", "printf new > \"$1\"; printf timings > \"$1.profile\"", "sh", "{engine}"]
        .map(str::to_owned);
    let ended = start(place, &["--engine", &path], &wrapped).end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    assert_eq!(fs::read(&path).expect("it is there"), b"new");
    assert_nothing_beside(&ended.place);
    assert_eq!(names(quarantined(&ended.place)), ["README.md", "a.engine.profile", "record.json"]);
}

#[test]
fn a_timing_cache_is_read_and_only_a_success_changes_it() {
    for (script, code, expected) in [
        ("grep -q old \"$C\" && printf +new >> \"$C\"", 0, "old+new"),
        ("printf +half >> \"$C\"; exit 1", 1, "old"),
        ("true", 0, "old"),
        ("exit 2", 2, "old"),
    ] {
        let place = Place::new();
        let cache = place.file("cache");
        fs::write(&cache, "old").expect("it can be written");
        let line = format!("C=\"$1\"; {script}");
        let wrapped = ["sh", "-c", &line, "sh", "{timing_cache}"].map(str::to_owned);
        let ended = start(place, &["--timing-cache", &cache], &wrapped).end();
        assert_eq!(ended.code(), code, "{}", ended.stderr);
        assert_eq!(fs::read_to_string(&cache).expect("it is there"), expected, "{script}");
        assert_eq!(inventory(&ended.place.bundle())[0]["kind"], "timing_cache");
    }
}

#[test]
fn the_second_engine_has_a_placeholder_of_its_own_and_all_are_published_or_none() {
    for (second, code) in [("printf two > \"$2\"", 0), ("true", 123)] {
        let place = Place::new();
        let (a, b) = (place.file("a.engine"), place.file("b.engine"));
        let line = format!("printf one > \"$1\"; {second}");
        let wrapped = ["sh", "-c", &line, "sh", "{engine}", "{engine:2}"].map(str::to_owned);
        let ended = start(place, &["--engine", &a, "--engine", &b], &wrapped).end();
        assert_eq!(ended.code(), code, "{}", ended.stderr);
        let there = [&a, &b].map(|path| fs::read_to_string(path).ok());
        let both = [Some("one".to_owned()), Some("two".to_owned())];
        assert_eq!(there, if code == 0 { both } else { [None, None] });
    }
}
