//! `stuckproof pack`: the same bytes for the same bundle, what is refused, and the verbs that read an archive.

use crate::rig::{Place, names};
use serde_json::Value;
use std::fs;
use std::process::Command;

fn sh(place: &Place, script: &str) -> String {
    let done = Command::new("sh").args(["-euc", script]).current_dir(place.path("")).output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn job(place: &Place) -> String {
    place.json("evidence.json")["job"].as_str().expect("a name").to_owned()
}

const ADD: [&str; 6] = ["addendum", "bundle", "--kind", "validation", "--status", "pass"];

#[test]
fn the_same_bundle_gives_the_same_bytes() {
    let place = Place::new();
    place.ran(&[], "seq 100000; mkdir bundle/more; echo x > bundle/more/file").assert_code(0);
    place.verb(&ADD).assert_code(0);
    assert_eq!(place.verb(&["pack", "bundle"]).stdout(), "bundle.tar.zst\n");
    let packed = fs::read(place.path("bundle.tar.zst")).unwrap();
    sh(
        &place,
        "mkdir -m 700 elsewhere; cp -r bundle elsewhere/another; cp -r bundle.addenda elsewhere/another.addenda
         find elsewhere -exec touch -d 2001-02-03 {} +; chmod -R go-rwx,u+x elsewhere
         if [ $(id -u) = 0 ]; then chown -R 1234:1234 elsewhere; fi",
    );
    let mut run = Command::new("sh");
    place.furnish(&mut run);
    let script =
        format!("umask 077; cd elsewhere/another; LC_ALL=C TZ=Asia/Tokyo {} pack .", crate::rig::STUCKPROOF);
    let done = run.args(["-c", &script]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(fs::read(place.path("elsewhere/another.tar.zst")).unwrap(), packed);
    assert_eq!(names(&place.path("elsewhere")), ["another", "another.addenda", "another.tar.zst"]);

    // Stock tools take it apart again, byte for byte.
    let job = job(&place);
    sh(&place, "mkdir out; tar --zstd -xf bundle.tar.zst -C out");
    sh(&place, &format!("diff -r bundle out/{job}; diff -r bundle.addenda out/{job}.addenda"));
    place.verb(&["verify", &format!("out/{job}")]).assert_code(0);
    let listed = sh(&place, "tar --zstd -tvf bundle.tar.zst --numeric-owner --utc");
    for line in listed.lines() {
        assert!(line.starts_with("-rw-r--r-- 0/0 ") && line.contains(" 1970-01-01 00:00 "), "{line}");
    }
    let paths: Vec<_> = listed.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert!(paths.is_sorted() && paths.len() > 8, "{paths:?}");
}

#[test]
fn nothing_that_is_there_is_replaced() {
    let place = Place::new();
    place.ran(&[], "exit 0").assert_code(0);
    place.verb(&["pack", "bundle"]).assert_code(0);
    place.verb(&["pack", "bundle"]).assert_code(0);
    place.verb(&ADD).assert_code(0);
    let done = place.verb(&["pack", "bundle"]);
    done.assert_code(125);
    assert!(done.stderr.contains("holds something else"), "{}", done.stderr);
    fs::write(place.path("mine.tar.zst"), "mine").unwrap();
    place.verb(&["pack", "bundle", "-o", "mine.tar.zst"]).assert_code(125);
    assert_eq!(fs::read(place.path("mine.tar.zst")).unwrap(), b"mine");
    place.verb(&["pack", "bundle/", "-o", "new.tar.zst"]).assert_code(0);
    for (output, why) in [
        ("new.zip", "does not end in .tar.zst"),
        ("bundle/in.tar.zst", "lies in the bundle"),
        ("bundle.addenda/in.tar.zst", "lies in the bundle"),
        ("nowhere/in.tar.zst", "cannot find nowhere"),
    ] {
        let done = place.verb(&["pack", "bundle", "-o", output]);
        done.assert_code(125);
        assert!(done.stderr.contains(why), "{}", done.stderr);
    }
    let found = names(&place.path(""));
    assert_eq!(
        found,
        ["bundle", "bundle.addenda", "bundle.tar.zst", "mine.tar.zst", "new.tar.zst", "runtime"]
    );
    place.verb(&["verify", "bundle", "new.tar.zst"]).assert_code(0);
}

#[test]
fn only_what_verifies_is_packed() {
    let place = Place::new();
    let refused = |bundle: &str, why: &str| {
        let done = place.verb(&["pack", bundle, "-o", "out.tar.zst"]);
        done.assert_code(125);
        assert!(done.stderr.contains(why), "{}", done.stderr);
        assert!(!done.stderr.contains('\u{1b}'), "{}", done.stderr);
    };
    refused("nowhere", "cannot be opened");
    place.ran(&[], "exit 3").assert_code(3);
    place.verb(&["pack", "bundle"]).assert_code(0);
    place.verb(&["verify", "bundle.tar.zst"]).assert_code(1);
    refused("bundle.tar.zst", "packed already");
    fs::write(place.path("bundle/summary.json"), "{}").unwrap();
    refused("bundle", "digest: summary.json");
    fs::remove_file(place.path("bundle/manifest.json")).unwrap();
    refused("bundle", "is not sealed");
    fs::write(place.path("bundle/manifest.json"), "{\"\\u001b[2J\": 1}").unwrap();
    refused("bundle", "manifest: manifest.json");
    assert_eq!(names(&place.path("")), ["bundle", "bundle.tar.zst", "runtime"]);
}

#[test]
fn attempts_are_packed_by_themselves() {
    let place = Place::new();
    let script = "[ -e tried ] || { touch tried; kill -9 $$; }";
    place.ran(&["--retry", "1"], script);
    let done = place.verb(&["pack", "bundle"]);
    done.assert_code(125);
    assert!(done.stderr.contains("pack them by themselves: bundle/attempt-1"), "{}", done.stderr);
    place.verb(&["pack", "bundle/attempt-1", "-o", "one.tar.zst"]).assert_code(0);
    place.verb(&["verify", "one.tar.zst"]).assert_code(1);
}

#[test]
fn an_archive_is_reviewed_like_its_bundle_and_never_changed() {
    let place = Place::new();
    place.ran(&[], "exit 0").assert_code(0);
    place.verb(&ADD).assert_code(0);
    fs::create_dir(place.path("all")).unwrap();
    place.verb(&["pack", "bundle", "-o", "all/one.tar.zst"]).assert_code(0);
    let policy = "observed = false\ncriteria = [5]\nvalidated = true\ndrift = [\"/machine/kernel\"]\n";
    fs::write(place.path("plain.toml"), policy).unwrap();
    fs::write(place.path("list"), "all/one.tar.zst\n").unwrap();
    for path in ["all", "all/one.tar.zst", "@list"] {
        let done = place.verb(&[
            "review",
            path,
            "--policy",
            "plain.toml",
            "--reference",
            "all/one.tar.zst",
            "--format",
            "json",
        ]);
        done.assert_code(0);
        let review: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(review["bundles"].as_array().unwrap().len(), 1);
        assert_eq!(review["bundles"][0]["bundle"], "all/one.tar.zst");
        let rules: Vec<_> =
            review["bundles"][0]["decisions"].as_array().unwrap().iter().map(|d| &d["rule"]).collect();
        assert_eq!(rules, ["verify", "states", "simulated", "criteria", "validated", "drift"]);
    }
    let said = place.verb(&["verify", "all/one.tar.zst"]).stdout();
    assert!(said.contains("validation: pass"), "{said}");
    let before = fs::read(place.path("all/one.tar.zst")).unwrap();
    for verb in [
        &["finalize", "all/one.tar.zst"][..],
        &["addendum", "all/one.tar.zst", "--kind", "release", "--status", "pass"],
        &["show", "all/one.tar.zst"],
        &["explain", "all/one.tar.zst"],
        &["status", "all/one.tar.zst"],
    ] {
        let done = place.verb(verb);
        done.assert_code(125);
        assert!(done.stderr.contains("tar --zstd -xf"), "{verb:?}: {}", done.stderr);
    }
    assert_eq!(fs::read(place.path("all/one.tar.zst")).unwrap(), before);
    assert_eq!(names(&place.path("all")), ["one.tar.zst"]);
    fs::write(place.path("all/two.tar.zst"), &before[..before.len() - 1]).unwrap();
    place.verb(&["review", "all", "--policy", "plain.toml"]).assert_code(2);
}

#[test]
fn what_is_large_is_held_in_a_file_without_a_name() {
    let place = Place::new();
    place.ran(&[], "head -c 6000000 /dev/urandom | base64").assert_code(0);
    place.verb(&["pack", "bundle"]).assert_code(0);
    fs::create_dir(place.path("tmp")).unwrap();
    let verify = |folder: &str| {
        let mut command = place.stuckproof();
        command.args(["verify", "bundle.tar.zst"]).env("TMPDIR", place.path(folder));
        command.output().unwrap()
    };
    let done = verify("tmp");
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stdout));
    assert_eq!(names(&place.path("tmp")), Vec::<String>::new());
    let done = verify("nowhere");
    assert_eq!(done.status.code(), Some(3), "nobody can tell without room for it");
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.contains("readable: .: there is no room for what the archive holds"), "{said}");
}
