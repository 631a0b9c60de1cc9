//! The bundle's disk fills up at a random moment: the build does not notice, the job fails for it, and once there is room
//! again the bundle can be finished and says what happened.

use crate::common::bundle::Bundle;
use crate::common::chance::{Chance, setting};
use crate::common::job::Place;
use crate::common::witness::{Call, notes};
use crate::common::{client, command};
use crate::scene::finished;
use serde_json::Value;
use std::fs;
use std::process::Output;

/// A file system of a few megabytes for the bundle, as root of a user namespace. Somebody else fills it after a while, and
/// makes room again when the job has ended. What was in the bundle before and after is copied out.
const SCRIPT: &str = r#"
mount -t tmpfs -o size=4m none "$PLACE/small" || exit 99
(sleep "$AFTER"; exec dd if=/dev/zero of="$PLACE/small/other" bs=4k status=none 2>/dev/null) &
timeout -k 5 60 "$STUCKPROOF" run --bundle "$PLACE/small/bundle" -- "$@"
code=$?
wait
cp -r "$PLACE/small/bundle" "$PLACE/full"
rm "$PLACE/small/other"
cp -r "$PLACE/small/bundle" "$PLACE/bundle"
exit $code
"#;

fn run(place: &Place, after: f64, wrapped: &[String]) -> Output {
    fs::create_dir(place.file("small")).expect("a folder");
    let mut unshare = command("unshare");
    unshare.args(["--map-root-user", "--mount", "sh", "-c", SCRIPT, "sh"]).args(wrapped);
    unshare.env("PLACE", place.file("")).env("AFTER", format!("{after:.3}"));
    unshare.env("STUCKPROOF", env!("CARGO_BIN_EXE_stuckproof"));
    unshare.output().expect("unshare (util-linux) runs")
}

/// What the client makes of it where nothing is short.
fn engine_alone(wrapped: &[String], engine: &str) -> Vec<u8> {
    let output = crate::common::job::alone(wrapped);
    assert!(output.status.success(), "{output:?}");
    let bytes = fs::read(engine).expect("an engine");
    fs::remove_file(engine).expect("it can be removed");
    bytes
}

fn fill(seed: u64) {
    let after = Chance(seed).below(1_000) as f64 / 1_000.0;
    println!("seed {seed}: full after {after} s");
    let place = Place::new();
    let engine = place.file("engine");
    let build = |notes: &str| -> Vec<String> {
        let words = ["4", "8", &engine, &place.file(notes), "3"].map(str::to_owned);
        std::iter::once(client("counting")).chain(words).collect()
    };
    let alone = engine_alone(&build("alone"), &engine);
    let output = run(&place, after, &build("notes"));
    let said = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    assert!(code == Some(0) || code == Some(125), "{output:?}");
    if fs::metadata(place.file("notes")).is_err() {
        assert_eq!(code, Some(125), "without room for a record nothing is run: {said}");
        assert!(said.contains("run the job again") || said.contains("No space left"), "{said}");
        return;
    }
    let told: Vec<Call> = notes(place.file("notes")).into_iter().map(|note| note.call).collect();
    assert_eq!(told.last(), Some(&Call::Other("done".to_owned())), "the build went its way: {said}");
    assert!(fs::read(&engine).is_ok_and(|bytes| bytes == alone), "the engine is what it is on any disk");
    assert_evidence(&place, code == Some(0), &said);
}

/// A job that succeeded has all of its evidence; one that failed says what is missing, on the full disk already.
fn assert_evidence(place: &Place, succeeded: bool, said: &str) {
    let full = place.file("full");
    assert!(Bundle::is_finished(full.as_ref()), "{said}");
    let bundle = finished(&place.bundle());
    if succeeded {
        return bundle.assert_state("succeeded", None);
    }
    assert!(said.contains("the evidence is not complete"), "{said}");
    assert!(said.contains("stuckproof: failed (evidence_lost)"), "{said}");
    bundle.assert_state("failed", Some("evidence_lost"));
    assert_eq!(bundle.evidence["command"]["code"], 0, "the command's own end is on record");
    let lost = bundle.evidence["lost"].as_array().expect("a list");
    let full = |loss: &Value| loss["reason"].as_str().is_some_and(|reason| reason.contains("No space left"));
    assert!(lost.iter().any(full), "{lost:?}");
}

#[test]
fn a_full_disk_fails_the_job_and_not_the_build() {
    let first = setting("STUCKPROOF_SEED", 1);
    (first..first + setting("STUCKPROOF_RUNS", 30).div_ceil(5)).for_each(fill);
}
