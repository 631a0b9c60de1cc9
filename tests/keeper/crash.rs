//! How a command's end is told when it was not its own doing.

use crate::rig::Place;
use std::fs;

#[test]
fn a_crash_is_told_with_its_signal_and_its_core() {
    let place = Place::new();
    let done = place.ran(&[], "ulimit -c unlimited; kill -s SEGV $$");
    done.assert_code(128 + 11);
    let exited = place.event("commandExited");
    assert_eq!((&exited["signal"], &exited["code"]), (&11.into(), &serde_json::Value::Null));
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    if exited["coreDumped"] == true && pattern.trim() == "core" {
        let file = exited["coreFile"].as_str().expect("a core that lies in the command's folder is found");
        assert!(fs::metadata(file).unwrap().len() > 0);
    } else {
        eprintln!("this machine collects cores elsewhere, or makes none: {pattern}");
        assert_eq!(exited["coreFile"], serde_json::Value::Null);
    }
    assert_eq!(place.json("evidence.json")["command"]["coreFile"], exited["coreFile"]);
}

#[test]
fn somebody_elses_signal_is_no_crash() {
    let place = Place::new();
    place.ran(&[], "kill -s KILL $$").assert_code(128 + 9);
    let exited = place.event("commandExited");
    assert_eq!((&exited["signal"], &exited["coreDumped"]), (&9.into(), &false.into()));
    assert_eq!(exited["coreFile"], serde_json::Value::Null);
}
