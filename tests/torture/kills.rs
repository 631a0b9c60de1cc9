//! SIGKILL of the runner, the keeper, the command, of two of them or of all, at random moments over real builds and
//! plain commands. `STUCKPROOF_RUNS` says how often and `STUCKPROOF_SEED` from which seed; a run that failed is repeated
//! with its own seed and one run.

use crate::common::bundle::Bundle;
use crate::common::chance::{Chance, setting};
use crate::common::job::Place;
use crate::common::tree::Tree;
use crate::common::witness::{Call, notes};
use crate::common::{client, model, script};
use crate::scene::Target::{self, Builder, Keeper, Runner};
use crate::scene::{Cast, Scene, finalize, finished};
use serde_json::Value;
use std::fs;
use std::time::Duration;

/// What an earlier build has left.
const PREVIOUS: &[u8] = b"yesterday's engine";

const TARGETS: [&[Target]; 7] = [
    &[Runner],
    &[Keeper],
    &[Builder],
    &[Runner, Keeper],
    &[Runner, Builder],
    &[Keeper, Builder],
    &[Runner, Keeper, Builder],
];

/// What is wrapped.
#[derive(Debug, Clone, Copy)]
enum Work {
    /// Two builds from Python.
    Python,
    /// Three builds of a linked program.
    Linked,
    /// A shell script without children that live long.
    Script,
    /// One with a child that would live long.
    Family,
}

impl Work {
    /// When both guards are killed at once, the kernel ends the command with them, and nothing else: what the command
    /// has started itself is then left to `finalize`, which names it.
    fn of(chance: &mut Chance, targets: &[Target]) -> Self {
        let both = targets.contains(&Runner) && targets.contains(&Keeper);
        chance.one_of(&[
            Self::Python,
            Self::Linked,
            Self::Linked,
            if both { Self::Script } else { Self::Family },
        ])
    }

    fn command(self, place: &Place) -> Vec<String> {
        let (engine, notes) = (place.file("engine"), place.file("notes"));
        match self {
            Self::Python => script("counting.py", &[&model("small"), &engine, &notes, "2"]),
            Self::Linked => {
                let words = ["4", "8", &engine, &notes, "3"].map(str::to_owned);
                std::iter::once(client("counting")).chain(words).collect()
            }
            Self::Script => shell("", &notes),
            Self::Family => shell("sleep 600 & ", &notes),
        }
    }
}

fn shell(first: &str, notes: &str) -> Vec<String> {
    let done = r#"{"ns": 0, "call": "done"}"#;
    let steps = "for n in 1 2 3 4 5 6 7 8 9 10; do echo $n; sleep 0.08; done";
    ["sh", "-c", &format!("{first}{steps}; echo '{done}' >> {notes}")].map(str::to_owned).to_vec()
}

/// Sometimes while it begins, mostly at any time of its life.
fn moment(chance: &mut Chance) -> Duration {
    let limit = chance.one_of(&[60_000, 1_400_000, 1_400_000, 1_400_000]);
    Duration::from_micros(chance.below(limit))
}

/// Kills them in a random order, at once or one a little after the other. Gives those that were alive.
fn kill(cast: &Cast, targets: &[Target], chance: &mut Chance) -> Vec<Target> {
    let mut targets = targets.to_vec();
    let mut killed = Vec::new();
    while !targets.is_empty() {
        let target = targets.swap_remove(chance.below(targets.len() as u64) as usize);
        if cast.kill(target) {
            killed.push(target);
        }
        let gap = chance.one_of(&[0, 0, 3_000, 30_000]);
        std::thread::sleep(Duration::from_micros(chance.below(gap + 1)));
    }
    killed
}

fn told(place: &Place) -> Vec<Call> {
    notes(place.file("notes")).into_iter().map(|note| note.call).collect()
}

/// One job and its violent end.
fn run(seed: u64) {
    let mut chance = Chance(seed);
    let targets = chance.one_of(&TARGETS);
    let work = Work::of(&mut chance, targets);
    let moment = moment(&mut chance);
    println!("seed {seed}: {targets:?} of {work:?} after {moment:?}");
    let place = Place::new();
    fs::write(place.file("previous"), PREVIOUS).expect("the file can be written");
    let wrapped = work.command(&place);
    let scene = Scene::start(place, &[], &wrapped);
    std::thread::sleep(moment);
    let cast = scene.cast();
    let killed = kill(&cast, targets, &mut chance);
    let place = scene.settle(&cast);
    assert_eq!(fs::read(place.file("previous")).expect("it is there"), PREVIOUS);
    match evidence(&place, &cast, &killed) {
        Some(bundle) => assert_true(&bundle, &told(&place), &killed),
        None => assert!(told(&place).is_empty(), "a command ran, and nothing tells of it"),
    }
}

/// The bundle, finished by whoever lived or else by hand. None when the job was ended before it had begun.
fn evidence(place: &Place, cast: &Cast, killed: &[Target]) -> Option<Bundle> {
    let path = place.bundle();
    if !Bundle::is_finished(&path) {
        assert!(killed.contains(&Runner), "a runner that lives finishes its bundle");
        assert!(killed.contains(&Keeper) || !cast.has_builder(), "a keeper that lives finishes the bundle");
        let done = finalize(&path);
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            let nothing = ["nothing in", "there is no bundle in"].iter().any(|words| said.contains(words));
            assert!(nothing && Bundle::lines_so_far(&path, &[]).is_empty(), "{said}");
            return None;
        }
    }
    Some(finished(&path))
}

/// What must hold whoever was killed.
fn assert_true(bundle: &Bundle, told: &[Call], killed: &[Target]) {
    assert!(killed.contains(&Runner) || bundle.path.join("baseline.json").exists());
    assert_eq!(
        bundle.evidence["lost"].as_array().map(Vec::len),
        Some(usize::from(is_unvouched(bundle, killed)))
    );
    let callbacks: Vec<&Call> = told.iter().filter(|call| call.is_callback()).collect();
    let trees: Vec<Tree> = (1..=bundle.builds().len()).map(|build| Tree::of(bundle, build as u64)).collect();
    let recorded: Vec<&Call> = trees.iter().flat_map(|tree| &tree.calls).collect();
    // The record of a callback is written before the application's monitor hears of it.
    assert!(recorded.starts_with(&callbacks), "{:?}", recorded.iter().zip(&callbacks).find(|(a, b)| a != b));
    assert!(recorded.len() <= callbacks.len() + 1, "{:?}", &recorded[callbacks.len()..]);
    assert_state(bundle, told.contains(&Call::Other("done".to_owned())), killed);
}

fn assert_state(bundle: &Bundle, done: bool, killed: &[Target]) {
    let evidence = &bundle.evidence;
    let exit = bundle.of_kind("commandExited").next();
    let code = exit.and_then(|exit| exit["code"].as_i64());
    let success = code == Some(0) && !is_unvouched(bundle, killed);
    assert_eq!(evidence["state"] == "succeeded", success, "{killed:?}: {evidence:#}");
    assert_eq!(evidence["state"] == "cancelled", is_cancelled(bundle), "{killed:?}: {evidence:#}");
    assert_eq!(evidence["state"] == "succeeded", evidence["exitCode"] == 0);
    let causes: &[Option<&str>] = match evidence["state"].as_str() {
        Some("succeeded") if done => &[None],
        Some("cancelled") if killed.contains(&Runner) && !done => &[Some("service")],
        Some("failed") if code == Some(0) => &[Some("evidence_lost")],
        Some("failed") => &causes(bundle, exit, killed),
        _ => &[],
    };
    assert!(causes.contains(&evidence["cause"].as_str()), "{killed:?}, not {causes:?}: {evidence:#}");
}

/// Whether both guards were killed right after the command's success came on record: it is the last line of the log, which
/// no later one vouches for, so that nobody may rely on it.
fn is_unvouched(bundle: &Bundle, killed: &[Target]) -> bool {
    let lost = bundle.of_kind("evidenceLost").filter_map(|event| event["reason"].as_str());
    let vouching = lost.filter(|reason| reason.contains("no later line vouches for that one"));
    killed.contains(&Runner) && killed.contains(&Keeper) && vouching.count() == 1
}

/// Whether a builder answered a request and gave nothing, or its process then ended by itself.
fn is_cancelled(bundle: &Bundle) -> bool {
    let by_itself = bundle.of_kind("commandExited").any(|exit| exit["code"].is_i64());
    bundle.of_kind("cancelAcknowledged").any(|acknowledged| {
        let mut returns = bundle.of_kind("buildReturned").filter(|e| e["build"] == acknowledged["build"]);
        returns.next().map_or(by_itself, |returned| returned["engine"] == false)
    })
}

/// The causes of a failure that fit.
fn causes(bundle: &Bundle, exit: Option<&Value>, killed: &[Target]) -> Vec<Option<&'static str>> {
    let has = |target| killed.contains(&target);
    let by_others = if bundle.builds().is_empty() { "command" } else { "killed_by_host" };
    let Some(exit) = exit else {
        // Nobody was left who saw it, or there was nothing to see.
        let unseen = has(Keeper) || bundle.of_kind("commandStarted").next().is_none();
        return if has(Runner) && unseen { vec![Some("runner_lost")] } else { Vec::new() };
    };
    let mut causes = Vec::new();
    if has(Runner) {
        causes.push(Some("runner_lost"));
    }
    if has(Keeper) {
        // The kernel ends the command with it, and the runner whatever is left.
        causes.push(Some(if bundle.builds().is_empty() { "command" } else { "killed_by_runner" }));
    }
    if has(Keeper) || has(Builder) {
        causes.push(Some(by_others));
    }
    // Without a keeper nobody starts a command, and one that finds its keeper gone refuses to begin.
    let refused = has(Keeper) && (exit["code"] == 125 || exit["code"] == 126);
    if exit["signal"].is_i64() || refused { causes } else { Vec::new() }
}

#[test]
fn whoever_is_killed_and_whenever_the_bundle_is_true() {
    let first = setting("STUCKPROOF_SEED", 1);
    let seeds = first..first + setting("STUCKPROOF_RUNS", 30);
    // All of them: one that fails must not hide the others.
    let failed: Vec<u64> = seeds.filter(|&seed| std::panic::catch_unwind(|| run(seed)).is_err()).collect();
    assert!(failed.is_empty(), "repeat with STUCKPROOF_RUNS=1 and STUCKPROOF_SEED one of {failed:?}");
}
