//! The keys of a script that no fixture has, and what is said of those that make no sense.

use crate::common::job::alone;
use crate::scene::{Scene, script};

/// What `stuckproof simulate` says of a script that it does not play.
fn refused(script: &str) -> String {
    let scene = Scene::new();
    let output = alone(&scene.command(script)[..3]);
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

#[test]
fn what_makes_no_sense_is_refused_with_a_way_out() {
    let act = |act: &str| script("", "", act);
    let head = |head: &str| script(head, "", "");
    for (script, answer) in [
        ("flavour = \n".to_owned(), "docs/simulate.md"),
        (head("colour = 1"), "unknown field `colour`"),
        (head("flavour = \"tensorrt\"\nversion = \"8.6.1\""), "9.1 to 9.3"),
        (head("flavour = \"tensorrt-rtx\"\nversion = \"1.8\""), "1.3 to 1.7"),
        (head("config = { level = 3 }"), "optimizationLevel"),
        (head("network = { layers = { conv = 1 } }"), "\"0\" for a convolution"),
        (head("network = { inputs = [{ name = \"x\", shape = [1,1,1,1,1,1,1,1,1] }] }"), "eight"),
        (head("network = { inputs = [{ name = \"\", shape = [] }] }"), "empty"),
        (act("{ steps = 3 }"), "exactly one of phase, step"),
        (act("{ silence = \"1s\", fault = \"hang\" }"), "exactly one of phase, step"),
        (act("{ silence = \"1s\", steps = 3 }"), "`steps` does not belong to `silence`"),
        (act("{ silence = \"soon\" }"), "1h30m"),
        (act("{ grow = \"much\" }"), "64MiB"),
        (act("{ fault = \"explode\" }"), "unknown variant `explode`"),
        (script("", "write = [{}]", ""), "--engine"),
        (script("", "timing_cache = {}", ""), "--timing-cache"),
        (script("", "method = \"engine\"\nwrite = [{ path = \"e\" }]", ""), "`bytes`"),
        (script("flavour = \"tensorrt\"\nversion = \"9.3\"", "method = \"stream\"", ""), "no method"),
        (script("flavour = \"tensorrt-rtx\"\nversion = \"1.7\"", "method = \"engine\"", ""), "no method"),
    ] {
        let said = refused(&script);
        assert!(said.contains(answer), "{script}: {said}");
    }
    let missing =
        alone(&[env!("CARGO_BIN_EXE_stuckproof").to_owned(), "simulate".to_owned(), "none.toml".to_owned()]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot read the script none.toml"));
}

/// The command's end for each way out of a build that needs no signal of ours.
#[test]
fn faults_end_the_command_as_they_say() {
    let phase = |act: &str| format!("{{ phase = \"P\", steps = 9, do = [{{ step = 0 }}, {act}] }}");
    let between = "{ phase = \"P\", each = \"0\" }, { fault = \"crash\" }";
    for (script, code, state) in [
        (script("", "", &phase("{ fault = \"abort\" }")), 134, "crash"),
        (script("", "", &phase("{ fault = \"exit\", code = 7 }")), 7, "command"),
        (script("", "", between), 139, "crash"),
        (
            script("", "monitor = { crash_at = 1 }", "{ phase = \"P\", steps = 3, each = \"0\" }"),
            139,
            "crash",
        ),
        (script("crash_at_exit = true", "", "{ phase = \"P\", each = \"0\" }"), 139, "crash"),
        (
            script("", "monitor = { false_at = 1 }", "{ phase = \"P\", steps = 3, each = \"0\" }"),
            1,
            "application_cancel",
        ),
        (script("exit_code = 9", "returns = \"nothing\"", ""), 9, "builder"),
    ] {
        let ended = Scene::new().run(&[], &script);
        assert_eq!(ended.code(), code, "{script}");
        ended.bundle().assert_state("failed", Some(state));
    }
}

#[test]
fn a_stopped_builder_and_a_busy_one_are_ended_by_the_ladder() {
    for fault in ["stop", "spin", "hang"] {
        let script = script("", "", &format!("{{ phase = \"P\", do = [{{ fault = \"{fault}\" }}] }}"));
        let options = ["--grace", "0", "--kill-after", "100ms"];
        let bundle = Scene::new().cancel(&options, &script).bundle();
        bundle.assert_state("failed", Some("killed_by_runner"));
    }
}

#[test]
fn time_and_memory_are_what_the_script_says() {
    let acts = "{ silence = \"30ms\" }, { fault = \"spin\", over = \"20ms\" }, { grow = \"64MiB\", over = \"64ms\" },\n\
                { phase = \"Open\", steps = 2, open = true }, { phase = \"Child\", parent = \"Open\", each = \"10ms\" },\n\
                { step = 1, of = \"Open\" }, { finish = \"Open\" }, { message = \"done\" }";
    let bundle = Scene::new().run(&[], &script("", "", acts)).bundle();
    bundle.assert_state("succeeded", None);
    assert!(bundle.build()["durationMs"].as_f64().is_some_and(|ms| ms >= 124.0), "{:#}", bundle.build());
    let peak = bundle.evidence["resources"]["maxRssBytes"].as_u64();
    assert!(peak.is_none_or(|peak| peak >= 64 << 20), "{peak:?}");
    let tree = crate::common::tree::Tree::of(&bundle, 1);
    let child = tree.named("Child").next().expect("the child");
    assert_eq!(tree.parent_name(child), Some("Open"));
}

#[test]
fn files_are_written_when_and_how_the_script_says() {
    let scene = Scene::new();
    let [before, always, outside] = ["before", "always", "outside"].map(|name| scene.place.file(name));
    let build = format!(
        "returns = \"nothing\"\nwrite = [\n{{ path = {before:?}, when = \"before\", bytes = \"1KiB\", over = \"64ms\" }},\n\
         {{ path = {always:?}, when = \"always\", bytes = \"3\" }},\n{{ path = {outside:?} }},\n]"
    );
    let ended = scene.run(&[], &script("", &build, "{ message = \"no\", severity = \"error\" }"));
    assert_eq!(ended.code(), 1);
    let size = |path: &str| std::fs::metadata(path).map(|facts| facts.len()).ok();
    assert_eq!([&before, &always, &outside].map(|path| size(path)), [Some(1024), Some(3), None]);
    let nowhere = script("", "write = [{ path = \"/proc/none\" }]", "");
    let ended = Scene::new().run(&[], &nowhere);
    assert_eq!(ended.code(), 1, "an engine that cannot be written fails the command");
    assert!(ended.stderr.contains("cannot open /proc/none"), "{}", ended.stderr);
}

#[test]
fn the_engine_is_as_large_as_the_script_says_and_the_same_each_time() {
    let engines = [0, 1].map(|_| {
        let ended = Scene::new().run(&[], &script("", "engine_bytes = \"1MiB\"\nwrite = [{}]", ""));
        std::fs::read(ended.place.file("engine")).expect("an engine")
    });
    assert_eq!(engines[0].len(), 1 << 20);
    assert_eq!(engines[0], engines[1]);
}

#[test]
fn targets_and_the_device_reach_the_builder() {
    let head = "flavour = \"tensorrt-rtx\"\nversion = \"1.7.1\"\ncompute_capabilities = [86, 89]\n";
    let bundle = Scene::new().run(&[], &script(head, "", "")).bundle();
    let described = bundle.of_kind("buildDescribed").next().expect("the builder was asked");
    assert_eq!(described["facts"]["computeCapabilities"], serde_json::json!([86, 89]));
}
