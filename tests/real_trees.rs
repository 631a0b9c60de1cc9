//! Every kind of client, unchanged, on the real TensorRT-RTX: the tree in the log is the one that the builder told.

mod common;

use common::bundle::Bundle;
use common::job::{Ended, Place, alone, run, start};
use common::tree::Tree;
use common::witness::{callbacks_alone, notes};
use common::{client, environment, model, script};

/// Runs a client under stuckproof to a success, and gives the trees of its builds.
fn trees(wrapped: &[String], builds: usize) -> (Ended, Bundle, Vec<Tree>) {
    let ended = run(&[], wrapped);
    assert_eq!(ended.code(), 0, "{}\n{}", ended.stdout, ended.stderr);
    let bundle = ended.bundle();
    bundle.assert_state("succeeded", None);
    assert_eq!(bundle.evidence["observed"], true);
    assert_eq!(bundle.builds().len(), builds);
    let trees: Vec<Tree> = (1..=builds as u64).map(|build| Tree::of(&bundle, build)).collect();
    for (tree, build) in trees.iter().zip(bundle.builds()) {
        tree.assert_whole();
        assert_eq!(build["state"], "succeeded");
        assert_eq!(build["engine"], true);
    }
    (ended, bundle, trees)
}

/// The process of each build.
fn processes(bundle: &Bundle) -> Vec<u64> {
    bundle.of_kind("buildStarted").map(|e| e["pid"].as_u64().expect("a pid")).collect()
}

#[test]
fn a_python_script_yields_the_tree_that_the_builder_tells_a_monitor() {
    let place = Place::new();
    let (_, bundle, trees) = trees(&script("build_onnx.py", &[&model("small"), &place.file("engine")]), 1);
    assert_eq!(trees[0].calls, callbacks_alone("small"));
    let library = bundle.of_kind("libraryAttached").next().expect("the library is on record");
    assert_eq!(
        (library["flavour"].as_str(), library["proven"].as_str()),
        (Some("tensorrt-rtx"), Some("library"))
    );
    assert!(library["version"].as_str().is_some_and(|v| v.starts_with("1.7.1")), "{library}");
    assert_eq!(bundle.summary["language"], "python");
    let engine = std::fs::metadata(place.file("engine")).expect("the engine is written").len();
    assert_eq!(bundle.build()["bytes"], engine);
}

#[test]
fn what_was_built_is_told_by_the_builder_itself() {
    let place = Place::new();
    let (_, bundle, _) = trees(&script("build_onnx.py", &[&model("small"), &place.file("engine")]), 1);
    let facts = &bundle.build()["facts"];
    assert_eq!(facts["computeCapabilities"], serde_json::json!([89]));
    assert_eq!(facts["inputs"][0]["name"], "input");
    assert_eq!(facts["inputs"][0]["shape"], "1x64x32x32");
    let (_, same, _) = trees(&script("build_twice.py", &[&model("small")]), 2);
    let hashes: Vec<_> = same.builds().iter().map(|build| build["configHash"].clone()).collect();
    assert_eq!(hashes, vec![bundle.summary["buildConfigHash"].clone(); 2], "equal inputs give equal hashes");
    let (_, other, _) = trees(&script("build_onnx.py", &[&model("medium"), &place.file("engine")]), 1);
    assert_ne!(other.summary["buildConfigHash"], bundle.summary["buildConfigHash"]);
}

#[test]
fn a_wrapped_build_makes_the_same_engine() {
    let place = Place::new();
    let command = |engine: &str| script("build_onnx.py", &[&model("small"), &place.file(engine)]);
    assert!(alone(&command("alone")).status.success());
    trees(&command("wrapped"), 1);
    let engine = |name: &str| std::fs::read(place.file(name)).expect("the engine is written");
    assert!(engine("alone") == engine("wrapped"), "the two engines differ");
}

#[test]
fn a_users_monitor_and_the_log_agree_on_every_callback_and_its_time() {
    let place = Place::new();
    let stamps = place.file("stamps");
    let (ended, bundle, trees) =
        trees(&script("user_monitor.py", &[&model("small"), &place.file("engine"), &stamps]), 1);
    assert!(ended.stdout.contains("monitor kept"), "{}", ended.stdout);
    assert_eq!(bundle.build()["chained"], true);
    let told: Vec<_> = notes(&stamps).into_iter().filter(|note| note.call.is_callback()).collect();
    let calls: Vec<_> = told.iter().map(|note| note.call.clone()).collect();
    assert_eq!(trees[0].calls, calls);
    let recorded = ["phaseStarted", "stepCompleted", "phaseFinished"];
    let callbacks = bundle.events.iter().filter(|e| recorded.contains(&e["event"].as_str().unwrap_or("")));
    let times: Vec<u64> = callbacks.map(|e| e["t"].as_u64().expect("a time")).collect();
    for (index, note) in told.iter().enumerate() {
        let next = times.get(index + 1).copied().unwrap_or(u64::MAX);
        assert!(
            (times[index]..next).contains(&note.ns),
            "the user's stamp of {note:?} is not within its callback"
        );
    }
}

#[test]
fn polygraphy_is_observed() {
    let place = Place::new();
    let arguments = ["convert", &model("small"), "--convert-to", "trt", "-o", &place.file("engine")];
    let wrapped: Vec<String> = ["env", "POLYGRAPHY_USE_TENSORRT_RTX=1", &environment("polygraphy")]
        .into_iter()
        .chain(arguments)
        .map(str::to_owned)
        .collect();
    trees(&wrapped, 1);
    assert!(std::fs::metadata(place.file("engine")).is_ok_and(|m| m.len() > 0), "the engine is written");
}

#[test]
fn a_program_that_links_the_library_is_observed() {
    let place = Place::new();
    let engine = place.file("engine");
    let wrapped = [client("linked"), "20".into(), "64".into(), engine];
    let (ended, bundle, trees) = trees(&wrapped, 1);
    assert_eq!(bundle.summary["language"], "cpp");
    assert_eq!(trees[0].instances.len(), 12);
    assert!(ended.stdout.starts_with("engine of "), "{}", ended.stdout);
}

#[test]
fn a_program_that_finds_the_library_with_dlsym_and_builds_to_a_stream_is_observed() {
    let place = Place::new();
    let engine = place.file("engine");
    let wrapped = [client("streamed"), client("libtensorrt_rtx.so.1"), "20".into(), "64".into(), engine];
    let (_, bundle, trees) = trees(&wrapped, 1);
    assert_eq!(bundle.build()["method"], "buildSerializedNetworkToStream");
    assert_eq!(trees[0].instances.len(), 12);
}

#[test]
fn cpp_threads_with_monitors_of_their_own_yield_a_tree_each() {
    let wrapped = [client("threads"), "3".into(), "20".into(), "64".into()];
    let (ended, bundle, trees) = trees(&wrapped, 3);
    assert_eq!(ended.stdout.matches("starts=12 steps=98 finishes=12").count(), 3, "{}", ended.stdout);
    assert_eq!(ended.stdout.matches("monitor kept").count(), 3, "{}", ended.stdout);
    assert!(trees.iter().all(|tree| tree.calls == trees[0].calls), "the three builds are the same build");
    let mut threads: Vec<_> = bundle.of_kind("buildStarted").map(|e| e["tid"].as_u64()).collect();
    threads.sort_unstable();
    threads.dedup();
    assert_eq!(threads.len(), 3);
}

#[test]
fn two_builders_in_two_threads_yield_a_tree_each() {
    let (ended, bundle, trees) = trees(&script("two_builders.py", &[&model("small"), &model("medium")]), 2);
    assert_eq!(processes(&bundle).first(), processes(&bundle).last());
    let mut steps: Vec<usize> = trees.iter().map(|tree| tree.calls.len()).collect();
    steps.sort_unstable();
    let expected = ["small", "medium"].map(|name| callbacks_alone(name).len());
    assert_eq!(steps, expected, "{}", ended.stdout);
}

#[test]
fn two_threads_that_share_one_config_yield_a_tree_for_each_build() {
    let (_, _, trees) = trees(&script("shared_config.py", &[&model("small"), "3"]), 6);
    let expected = callbacks_alone("small");
    assert!(trees.iter().all(|tree| tree.calls == expected));
}

#[test]
fn a_pair_of_forked_processes_yields_a_tree_each() {
    let (_, bundle, _) = trees(&script("processes.py", &["fork", &model("small"), &model("medium")]), 2);
    assert_ne!(processes(&bundle)[0], processes(&bundle)[1]);
}

#[test]
fn a_pair_of_spawned_processes_yields_a_tree_each() {
    let (_, bundle, _) = trees(&script("processes.py", &["spawn", &model("small"), &model("small")]), 2);
    assert_ne!(processes(&bundle)[0], processes(&bundle)[1]);
}

#[test]
fn a_fork_after_a_build_yields_a_tree_for_the_child_too() {
    let (_, bundle, _) = trees(&script("fork_child.py", &[&model("small")]), 3);
    let mut pids = processes(&bundle);
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 2);
}

#[test]
fn a_config_used_twice_yields_two_trees() {
    let (ended, _, trees) = trees(&script("build_twice.py", &[&model("small")]), 2);
    assert_eq!(trees[0].calls, trees[1].calls);
    assert!(ended.stdout.contains("the same engine twice"), "{}", ended.stdout);
}

#[test]
fn configs_that_are_destroyed_after_each_build_do_no_harm() {
    trees(&script("config_gone.py", &[&model("small"), "6"]), 6);
}

#[test]
fn a_monitor_that_is_replaced_during_a_build_stays_replaced() {
    let wrapped = script("monitor_replaced.py", &[&model("small")]);
    let (ended, _, trees) = trees(&wrapped, 2);
    assert_eq!(trees[0].calls, trees[1].calls);
    assert_eq!(ended.stdout, String::from_utf8_lossy(&alone(&wrapped).stdout));
}

#[test]
fn profiles_repeat_their_phases_as_instances_of_their_own() {
    let place = Place::new();
    let wrapped = script("build_onnx.py", &[&model("silero_vad_16k_sequence"), &place.file("engine")]);
    let (_, _, trees) = trees(&wrapped, 1);
    let mut names: Vec<&str> = trees[0].instances.values().map(|i| i.name.as_str()).collect();
    assert_eq!(names.len(), 18);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 11);
}

#[test]
fn a_job_inside_a_job_joins_it() {
    let place = Place::new();
    let inner = script("build_onnx.py", &[&model("small"), &place.file("engine")]);
    let mut wrapped = vec![env!("CARGO_BIN_EXE_stuckproof").to_owned(), "run".to_owned(), "--".to_owned()];
    wrapped.extend(inner);
    let (_, bundle, _) = trees(&wrapped, 1);
    assert_eq!(bundle.of_kind("jobStarted").count(), 1);
}

#[test]
fn status_and_show_tell_of_a_job_while_it_runs_and_after() {
    let place = Place::new();
    let stamps = place.file("stamps");
    let wrapped = script("user_monitor.py", &[&model("slow"), &place.file("engine"), &stamps]);
    let job = start(Place::new(), &[], &wrapped);
    common::witness::wait_for_long_step(&stamps);
    let bundle = common::text(job.place().bundle());
    let said = |verb: &str| {
        let output = common::job::stuckproof().args([verb, &bundle]).output().expect("stuckproof starts");
        assert!(output.status.success(), "{verb}: {output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let live = said("status");
    assert!(live.contains("running"), "{live}");
    let ended = job.end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let shown = said("show");
    for part in ["succeeded", "Building engine", "Determining refit engines"] {
        assert!(shown.contains(part), "{part} is not in:\n{shown}");
    }
}
