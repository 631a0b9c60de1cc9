//! The disk of the engine fills up while it is written.

use crate::common::bundle::Bundle;
use crate::common::job::Place;
use crate::common::{command, model, script};
use crate::scene::{PREVIOUS, artifact};
use std::fs;

/// A file system of a few megabytes for the engine, as root of a user namespace. What lies there afterwards is copied out.
const SCRIPT: &str = r#"
mount -t tmpfs -o size=2500k none "$PLACE/models" || exit 99
cp "$PLACE/previous" "$PLACE/models/a.engine"
"$STUCKPROOF" run --bundle "$PLACE/bundle" --engine "$PLACE/models/a.engine" -- "$@"
code=$?
cp -r "$PLACE/models" "$PLACE/after"
exit $code
"#;

fn run(place: &Place, wrapped: &[String]) -> Option<i32> {
    fs::create_dir(place.file("models")).expect("a folder");
    fs::write(place.file("previous"), PREVIOUS).expect("it can be written");
    let mut unshare = command("unshare");
    unshare.args(["--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh"]).args(wrapped);
    unshare.env("PLACE", place.file("")).env("STUCKPROOF", env!("CARGO_BIN_EXE_stuckproof"));
    let output = unshare.output().expect("unshare (util-linux) runs");
    assert_ne!(output.status.code(), Some(99), "no mount: {output:?}");
    output.status.code()
}

#[test]
fn half_an_engine_on_a_full_disk_is_set_aside_and_described() {
    // The engine of this model has more than three megabytes.
    for staged in [true, false] {
        let place = Place::new();
        let word = if staged { "{engine}".to_owned() } else { place.file("models/a.engine") };
        let code = run(&place, &script("build_onnx.py", &[&model("small"), &word]));
        assert!(!matches!(code, Some(0 | 125)), "{code:?}");
        assert_eq!(fs::read(place.file("after/a.engine")).expect("it is there"), PREVIOUS);
        let bundle = Bundle::load(&place.bundle());
        assert_eq!(bundle.evidence["state"], "failed");
        let artifact = artifact(&bundle.path);
        assert_eq!(artifact["outcome"], if staged { "kept" } else { "restored" }, "{artifact:#}");
        let entry = artifact["quarantine"].as_str().expect("a quarantine").replace("/models/", "/after/");
        assert!(fs::metadata(format!("{entry}/record.json")).is_ok_and(|facts| facts.len() > 100));
        assert!(fs::metadata(format!("{entry}/a.engine")).is_ok_and(|facts| facts.len() > 1_000_000));
    }
}
