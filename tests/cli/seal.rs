//! The seal as the command line makes, signs, checks and adds to it.

use crate::rig::{Place, names, wait_until};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// A key in the place, and its public half.
fn key(place: &Place) {
    let commands = ["genpkey -algorithm ed25519 -out key.pem", "pkey -in key.pem -pubout -out key.pub.pem"];
    for command in commands {
        let mut openssl = Command::new("openssl");
        let done = openssl.args(command.split(' ')).current_dir(place.path("")).output().expect("openssl");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn a_key_that_cannot_be_used_is_found_before_anything_is_started() {
    let place = Place::new();
    fs::write(place.path("bad.pem"), "-----BEGIN PRIVATE KEY-----\nMC4\n-----END PRIVATE KEY-----\n")
        .unwrap();
    for (name, why) in [("bad.pem", "openssl genpkey"), ("none.pem", "cannot be read")] {
        let done = place.ran(&["--sign", name], "touch started");
        done.assert_code(125);
        assert!(done.stderr.contains(why), "{}", done.stderr);
        let mut run = place.run(&[], "touch started");
        assert_eq!(run.env("STUCKPROOF_SIGN_KEY", name).status().unwrap().code(), Some(125));
    }
    assert_eq!(names(&place.path("")), ["bad.pem", "runtime"], "no bundle, no command");
}

#[test]
fn the_key_is_found_by_its_variable_which_the_command_does_not_get() {
    let place = Place::new();
    key(&place);
    let mut run = place.run(&[], "env");
    assert!(run.env("STUCKPROOF_SIGN_KEY", "key.pem").status().unwrap().success());
    let environment = fs::read_to_string(place.path("bundle/stdout.log")).unwrap();
    assert!(environment.contains("STUCKPROOF_JOB="));
    for name in names(&place.path("bundle")) {
        let bytes = fs::read(place.path("bundle").join(&name)).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("key.pem"), "{name} names the key");
    }
    assert!(!environment.contains("SIGN_KEY"), "{environment}");
    place.verb(&["verify", "--signer", "key.pub.pem", "bundle"]).assert_code(0);
}

#[test]
fn each_answer_has_its_code_and_the_worst_counts() {
    let place = Place::new();
    place.ran(&[], "exit 0").assert_code(0);
    place.verb(&["run", "--bundle", "bad", "--", "false"]).assert_code(1);
    place.verb(&["verify", "bundle"]).assert_code(0);
    place.verb(&["verify", "bundle", "bad"]).assert_code(1);
    place.verb(&["verify", "bundle", "bad", "runtime"]).assert_code(3);
    fs::write(place.path("bad/stdout.log"), "\u{1b}[2Jvalid").unwrap();
    let done = place.verb(&["verify", "bundle", "bad", "runtime", "--format", "json"]);
    done.assert_code(2);
    let reports: Value = serde_json::from_slice(&done.stdout).unwrap();
    let answers: Vec<_> = reports.as_array().unwrap().iter().map(|report| &report["answer"]).collect();
    assert_eq!(answers, ["valid", "invalid", "cannot_tell"]);
    assert_eq!(reports[1]["faults"][0]["rule"], "digest");
    assert_eq!(reports[1]["faults"][0]["file"], "stdout.log");
    let said = place.verb(&["verify", "bad"]).stdout();
    assert!(said.contains("\n  digest: stdout.log size: "), "{said}");
    place.verb(&["verify"]).assert_code(125);
    place.verb(&["verify", "--signer", "none.pem", "bundle"]).assert_code(125);
    place.verb(&["verify", "--allow-unsigned", "bundle"]).assert_code(125);
}

#[test]
fn finalize_changes_nothing_in_a_sealed_bundle_and_says_where_it_does_not_hold() {
    let place = Place::new();
    key(&place);
    place.ran(&[], "exit 0").assert_code(0);
    place.verb(&["finalize", "bundle"]).assert_code(0);
    place.verb(&["verify", "--signer", "key.pub.pem", "bundle"]).assert_code(3);
    place.verb(&["verify", "--signer", "key.pub.pem", "--allow-unsigned", "bundle"]).assert_code(0);
    place.verb(&["finalize", "--sign", "key.pem", "bundle"]).assert_code(0);
    place.verb(&["verify", "--signer", "key.pub.pem", "bundle"]).assert_code(0);
    fs::write(place.path("bundle/summary.json"), "{}\n").unwrap();
    let done = place.verb(&["finalize", "bundle"]);
    done.assert_code(125);
    assert!(done.stderr.contains("does not verify: summary.json"), "{}", done.stderr);
    assert_eq!(fs::read(place.path("bundle/summary.json")).unwrap(), b"{}\n");
    fs::remove_file(place.path("bundle/manifest.sig.json")).unwrap();
    let done = place.verb(&["finalize", "--sign", "key.pem", "bundle"]);
    done.assert_code(125);
    assert!(done.stderr.contains("summary.json is not what was sealed"), "{}", done.stderr);
    assert!(!place.path("bundle/manifest.sig.json").exists(), "nobody signs what is wrong");
}

#[test]
fn what_has_no_place_in_a_bundle_keeps_it_from_being_sealed() {
    let place = Place::new();
    let done = place.ran(&[], "ln -s /etc/hostname bundle/host; echo mine > bundle/notes.txt");
    done.assert_code(125);
    assert!(done.stderr.contains("host, which is a symbolic link; move it out"), "{}", done.stderr);
    assert!(!place.path("bundle/manifest.json").exists());
    place.verb(&["verify", "bundle"]).assert_code(2);
    fs::remove_file(place.path("bundle/host")).unwrap();
    place.verb(&["verify", "bundle"]).assert_code(3);
    place.verb(&["finalize", "bundle"]).assert_code(0);
    place.verb(&["verify", "bundle"]).assert_code(0);
}

#[test]
fn a_daemon_that_stays_and_goes_on_talking_does_not_break_the_seal() {
    let place = Place::new();
    let script =
        "(setsid sh -c 'while [ ! -e go ]; do sleep 0.01; done; echo late; touch talked' &); echo early";
    place.ran(&[], script).assert_code(0);
    fs::write(place.path("go"), "").unwrap();
    wait_until("the daemon has talked", || place.path("talked").exists());
    assert_eq!(fs::read_to_string(place.path("bundle/stdout.log")).unwrap(), "early\n");
    place.verb(&["verify", "bundle"]).assert_code(0);
}

#[test]
fn addenda_lie_beside_the_bundle_and_are_listed() {
    let place = Place::new();
    let add = ["addendum", "bundle", "--kind", "validation", "--status", "pass", "--note", "0.76\u{1b}[2J"];
    let done = place.verb(&add);
    done.assert_code(125);
    assert!(done.stderr.contains("cannot read the seal of bundle"), "{}", done.stderr);
    fs::create_dir(place.path("bundle")).unwrap();
    assert!(place.verb(&add).stderr.contains("bundle is not sealed"));
    place.ran(&[], "exit 0").assert_code(0);
    let before = fs::read(place.path("bundle/manifest.json")).unwrap();
    assert_eq!(place.verb(&add).stdout(), "bundle.addenda/0001.json\n");
    place.verb(&["addendum", "bundle/", "--kind", "release", "--status", "fail"]).assert_code(0);
    assert_eq!(names(&place.path("bundle.addenda")), ["0001.json", "0002.json"]);
    assert_eq!(fs::read(place.path("bundle/manifest.json")).unwrap(), before);
    let done = place.verb(&["verify", "bundle"]);
    done.assert_code(0);
    let said = done.stdout();
    assert!(said.contains("validation: pass: 0.76\\u{1b}[2J\n"), "{said}");
    assert!(said.contains("release from quarantine: fail"), "{said}");
    // What is being written, or was when its writer was killed, says nothing yet, and the next writer takes it away.
    for left in ["0003.json.part-77", "0003.sig.json.part-77", "0003.sig.json"] {
        fs::write(place.path("bundle.addenda").join(left), "{").unwrap();
    }
    place.verb(&["verify", "bundle"]).assert_code(0);
    place.verb(&["pack", "bundle"]).assert_code(0);
    place.verb(&["verify", "bundle.tar.zst"]).assert_code(0);
    place.verb(&add).assert_code(0);
    assert_eq!(names(&place.path("bundle.addenda")), ["0001.json", "0002.json", "0003.json"]);
    for odd in ["0004.json.part-", "0004.json.part-7x", "notes.json.part-7", "0004.json", "0005.sig.json"] {
        let odd = place.path("bundle.addenda").join(odd);
        fs::write(&odd, "{").unwrap();
        place.verb(&["verify", "bundle"]).assert_code(2);
        fs::remove_file(odd).unwrap();
    }
    // One in a gap would break the chain of those behind it.
    fs::rename(place.path("bundle.addenda/0001.json"), place.path("0001.json")).unwrap();
    let done = place.verb(&add);
    done.assert_code(125);
    assert!(done.stderr.contains("0001.json is missing"), "{}", done.stderr);
    fs::rename(place.path("0001.json"), place.path("bundle.addenda/0001.json")).unwrap();
    place.verb(&add).assert_code(0);
    place.verb(&["verify", "bundle"]).assert_code(0);
}
