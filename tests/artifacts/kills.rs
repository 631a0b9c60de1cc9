//! SIGKILL of the runner, the keeper, the command, or several of them, at random moments of jobs that build an engine over
//! yesterday's. `STUCKPROOF_RUNS` says how often and `STUCKPROOF_SEED` from which seed.

use crate::common::bundle::Bundle;
use crate::common::chance::{Chance, setting};
use crate::common::job::{Place, start, stuckproof};
use crate::common::marked::{Handle, keeper_of};
use crate::common::{client, wait_for};
use crate::scene::{PREVIOUS, artifact, engine, names, place};
use rustix::process::Signal;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A real build that writes its engine in two halves, with a moment between them.
fn wrapped(place: &Place, staged: bool) -> Vec<String> {
    let words = ["4", "8", &place.file("whole"), &place.file("notes"), "1"].map(str::to_owned);
    let build = std::iter::once(client("counting")).chain(words).collect::<Vec<_>>().join(" ");
    let whole = place.file("whole");
    let line = format!(
        ": > \"$1\"; {build} && head -c 1000 {whole} > \"$1\" && sleep 0.1 && tail -c +1001 {whole} >> \"$1\""
    );
    let word = if staged { "{engine}".to_owned() } else { engine(place) };
    ["sh", "-c", &line, "sh", &word].map(str::to_owned).to_vec()
}

/// The names of those that can be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Runner,
    Keeper,
    Command,
}

const TARGETS: [&[Target]; 5] = [
    &[Target::Runner],
    &[Target::Runner],
    &[Target::Command],
    &[Target::Keeper],
    &[Target::Runner, Target::Keeper],
];

fn run(seed: u64) {
    let mut chance = Chance(seed);
    let targets = chance.one_of(&TARGETS);
    let staged = chance.one_of(&[true, false]);
    let moment = Duration::from_micros(chance.below(700_000));
    println!("seed {seed}: {targets:?}, staged: {staged}, after {moment:?}");
    let place = place();
    let wrapped = wrapped(&place, staged);
    let path = engine(&place);
    let job = start(place, &["--engine", &path], &wrapped);
    std::thread::sleep(moment);
    let runner = job.pid().as_raw_nonzero().get().unsigned_abs();
    let keeper = keeper_of(runner);
    let command = Bundle::lines_so_far(&job.place().bundle(), &["\"commandStarted\""]);
    let command = command.first().and_then(|line| Handle::of(u32::try_from(line["pid"].as_u64()?).ok()?));
    for target in targets {
        match target {
            Target::Runner if keeper.is_some() || command.is_none() => job.signal(Signal::KILL),
            Target::Runner => {}
            Target::Keeper => drop(keeper.as_ref().map(Handle::kill)),
            Target::Command => drop(command.as_ref().map(Handle::kill)),
        }
    }
    let place = job.end().place;
    if let Some(keeper) = &keeper {
        wait_for("the keeper's end", || keeper.has_ended().then_some(()));
    }
    if let Some(command) = &command {
        wait_for("the command's end", || command.has_ended().then_some(()));
    }
    assert_in_order(&place);
}

/// Whoever was killed: once the bundle is finished, or the next job has come, there is yesterday's engine or a whole new
/// one.
fn assert_in_order(place: &Place) {
    let bundle = place.bundle();
    let told = bundle.join("events.jsonl").exists() && !Bundle::lines_so_far(&bundle, &[]).is_empty();
    if told {
        // Without a runner and a keeper, what the command had started may live on, and finalize waits for nobody.
        wait_for("the bundle to be finished", || {
            let done = stuckproof().arg("finalize").arg(&bundle).output().expect("stuckproof starts");
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(done.status.success() || said.contains("still live"), "{done:?}");
            done.status.success().then_some(())
        });
        assert_evidence(place, &bundle);
    }
    let there = fs::read(engine(place)).expect("it is there");
    let whole = fs::read(place.file("whole")).unwrap_or_default();
    assert!(there == PREVIOUS || there == whole, "{} bytes of {}", there.len(), whole.len());
    let next = stuckproof()
        .args(["run", "--bundle", &place.file("next"), "--engine", &engine(place), "--", "true"])
        .output()
        .expect("stuckproof starts");
    assert_eq!(next.status.code(), Some(0), "{}", String::from_utf8_lossy(&next.stderr));
    assert_eq!(fs::read(engine(place)).expect("it is there"), there);
    let mut beside = names(place.file("models"));
    beside.retain(|name| name != "stuckproof-quarantine");
    assert_eq!(beside, ["a.engine"]);
}

/// The bundle says what lies there, and only a success has replaced it.
fn assert_evidence(place: &Place, path: &Path) {
    let bundle = Bundle::load_whoever_finished(path);
    if bundle.of_kind("artifactDeclared").next().is_none() {
        return;
    }
    let artifact = artifact(path);
    let there = fs::read(engine(place)).expect("it is there");
    let success = bundle.evidence["state"] == "succeeded";
    assert_eq!(artifact["after"]["sha256"], stuckproof::digest::sha256_hex(&there), "{artifact:#}");
    assert_eq!(artifact["outcome"] == "published", success, "{artifact:#}");
    assert_eq!(there != PREVIOUS, success);
    let rollback = bundle.summary["retryPolicy"] == "rollback";
    assert!(!rollback || there == PREVIOUS);
    for entry in fs::read_dir(place.file("models/stuckproof-quarantine")).into_iter().flatten().flatten() {
        let shown = stuckproof().args(["quarantine", "show"]).arg(entry.path()).output().expect("it starts");
        assert!(String::from_utf8_lossy(&shown.stdout).contains("It is what was set aside."), "{shown:?}");
    }
}

#[test]
fn whoever_is_killed_and_whenever_there_is_a_whole_engine() {
    let first = setting("STUCKPROOF_SEED", 1);
    let seeds = first..first + setting("STUCKPROOF_RUNS", 12);
    let failed: Vec<u64> = seeds.filter(|&seed| std::panic::catch_unwind(|| run(seed)).is_err()).collect();
    assert!(failed.is_empty(), "repeat with STUCKPROOF_RUNS=1 and STUCKPROOF_SEED one of {failed:?}");
}
