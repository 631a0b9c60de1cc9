//! `stuckproof quarantine`, on what real jobs have set aside.

use crate::common::job::{Place, stuckproof};
use crate::scene::{engine, place, quarantined, ran};
use std::fs;
use std::process::Output;

fn quarantine(arguments: &[&str]) -> Output {
    stuckproof().arg("quarantine").args(arguments).output().expect("stuckproof starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn with_half_an_engine() -> Place {
    ran(place(), &[], "printf half > \"$E\"; exit 1").place
}

#[test]
fn it_is_listed_shown_and_released() {
    let place = with_half_an_engine();
    let (models, entry) = (place.file("models"), quarantined(&place));
    let listed = text(&quarantine(&["list", &models]).stdout);
    assert!(listed.contains(entry.to_str().expect("UTF-8")), "{listed}");
    let readme = fs::read_to_string(entry.join("README.md")).expect("a README");
    assert!(readme.contains("Do not deploy it") && readme.contains("the job failed (command)"), "{readme}");
    let entry = entry.to_str().expect("UTF-8");
    let refused = quarantine(&["release", entry, "--to", &engine(&place)]);
    assert_eq!(refused.status.code(), Some(125));
    assert!(text(&refused.stderr).contains("--force"));
    let released = quarantine(&["release", entry, "--to", &place.file("models/looked-at")]);
    assert!(released.status.success(), "{released:?}");
    assert_eq!(fs::read(place.file("models/looked-at")).expect("it is there"), b"half");
    assert_eq!(text(&quarantine(&["list", &models]).stdout), "");
}

#[test]
fn a_purge_says_what_it_removes_and_needs_a_limit() {
    let place = with_half_an_engine();
    let models = place.file("models");
    assert_eq!(quarantine(&["purge", &models]).status.code(), Some(125), "it does not guess");
    let young = quarantine(&["purge", &models, "--older-than", "1h"]);
    assert_eq!((young.status.code(), text(&young.stdout).as_str()), (Some(0), ""));
    let all = quarantine(&["purge", &models, "--keep-bytes", "0"]);
    assert!(text(&all.stdout).contains("a.engine"), "{all:?}");
    assert!(fs::metadata(place.file("models/stuckproof-quarantine")).is_err());
}

#[test]
fn what_cannot_be_trusted_is_named_and_the_rest_is_listed() {
    let place = with_half_an_engine();
    let bad = place.file("models/stuckproof-quarantine/bad-1");
    fs::create_dir(&bad).expect("a folder");
    fs::write(format!("{bad}/record.json"), "{\"name\": \"../../a.engine\"}").expect("it can be written");
    let listed = quarantine(&["list", &place.file("models")]);
    assert_eq!(listed.status.code(), Some(125));
    assert!(
        text(&listed.stdout).contains("a.engine") && text(&listed.stderr).contains("bad-1"),
        "{listed:?}"
    );
}
