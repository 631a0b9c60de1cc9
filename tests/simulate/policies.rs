//! The timing cache of a job: what each policy does with it, what the evidence says of it, and many jobs on one.

use crate::common::bundle::Bundle;
use crate::common::job::{Ended, Place, stuckproof};
use crate::common::{text, wait_for};
use crate::scene::{Scene, script};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

const NEW: &str = "{ tactic = \"new\", each = \"1ms\" }";

/// A folder with a cache that several jobs use.
struct Shared {
    place: Place,
}

/// A job on it that has ended.
struct Job {
    output: Output,
    bundle: PathBuf,
}

impl Shared {
    fn new() -> Self {
        let shared = Self { place: Place::new() };
        std::fs::create_dir(shared.place.file("caches")).expect("a folder");
        shared
    }

    fn cache(&self) -> String {
        self.place.file("caches/timing.cache")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.cache()).unwrap_or_default()
    }

    fn tactics(&self) -> Vec<String> {
        let text = self.text();
        text.lines().filter_map(|line| line.split_once('\t')).map(|(tactic, _)| tactic.to_owned()).collect()
    }

    /// Starts `stuckproof run` on a script that uses the cache by the placeholder.
    fn start(&self, name: &str, options: &[&str], script: &str) -> std::process::Child {
        let path = self.place.file(&format!("{name}.toml"));
        std::fs::write(&path, script).expect("the script can be written");
        stuckproof()
            .arg("run")
            .args(["--bundle", &self.place.file(name), "--timing-cache", &self.cache()])
            .args(options)
            .args([
                "--",
                env!("CARGO_BIN_EXE_stuckproof"),
                "simulate",
                &path,
                "--timing-cache",
                "{timing_cache}",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("stuckproof starts")
    }

    fn ended(&self, name: &str, child: std::process::Child) -> Job {
        let output = child.wait_with_output().expect("it ends");
        let bundle = Path::new(&self.place.file(name)).to_owned();
        assert!(Bundle::is_finished(&bundle), "{output:?}");
        Job { output, bundle }
    }

    fn run(&self, name: &str, options: &[&str], script: &str) -> Job {
        self.ended(name, self.start(name, options, script))
    }

    /// What lies beside the cache.
    fn neighbours(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.place.file("caches")).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned());
        names.filter(|name| name != "timing.cache").collect()
    }
}

impl Job {
    fn assert_mode(&self, mode: &str) {
        let said = String::from_utf8_lossy(&self.output.stderr);
        assert_eq!(self.json("summary")["timingCacheMode"], mode, "{said}\n{:#}", self.artifact());
    }

    fn artifact(&self) -> Value {
        self.json("inventory")["artifacts"][0].clone()
    }

    fn json(&self, name: &str) -> Value {
        let text = std::fs::read(self.bundle.join(format!("{name}.json"))).expect("the file is there");
        serde_json::from_slice(&text).expect("JSON")
    }
}

fn uses(acts: &str) -> String {
    script("", "timing_cache = {}", acts)
}

#[test]
fn a_cache_is_cold_then_reused_then_updated() {
    let shared = Shared::new();
    let first = shared.run("first", &[], &uses(NEW));
    first.assert_mode("cold");
    assert_eq!(first.artifact()["outcome"], "published");
    let before = shared.text();
    let again = shared.run("again", &[], &uses(NEW));
    again.assert_mode("reused");
    assert_eq!(shared.text(), before);
    let more = shared.run("more", &[], &uses("{ tactic = \"more\" }"));
    more.assert_mode("updated");
    let artifact = more.artifact();
    assert_eq!(
        artifact["before"]["sha256"],
        again.artifact()["after"]["sha256"],
        "both digests are on record"
    );
    assert_ne!(artifact["before"]["sha256"], artifact["after"]["sha256"]);
    assert_eq!(shared.tactics(), ["more", "new"]);
    Bundle::load(&more.bundle).assert_state("succeeded", None);
    assert_eq!(shared.neighbours(), [""; 0]);
}

#[test]
fn a_job_that_does_not_succeed_changes_nothing() {
    let shared = Shared::new();
    shared.run("first", &[], &uses("{ tactic = \"old\" }"));
    let before = shared.text();
    let failing = script("", "timing_cache = { save = \"always\" }\nreturns = \"nothing\"", NEW);
    let failed = shared.run("failed", &[], &failing);
    failed.assert_mode("discarded");
    assert_eq!(failed.artifact()["outcome"], "kept");
    let crashed = shared.run("crashed", &[], &uses(&format!("{NEW}, {{ fault = \"crash\" }}")));
    crashed.assert_mode("reused");
    assert_eq!(shared.text(), before);
}

#[test]
fn each_policy_does_what_it_says() {
    let shared = Shared::new();
    let with = |name: &str, policy: &str, acts: &str| {
        shared.run(name, &["--timing-cache-policy", policy], &uses(acts))
    };
    with("first", "reuse", "{ tactic = \"old\" }").assert_mode("cold");
    let before = shared.text();
    with("readonly-same", "readonly", "{ tactic = \"old\" }").assert_mode("reused");
    with("readonly-new", "readonly", NEW).assert_mode("discarded");
    let off = with("off", "off", NEW);
    off.assert_mode("cold");
    assert_eq!(shared.text(), before);
    let build = off.json("evidence")["builds"][0].clone();
    assert_eq!(build["facts"]["timingCacheAttached"], true, "it had one of its own");
    with("refresh", "refresh", NEW).assert_mode("cold");
    assert_eq!(shared.tactics(), ["new"], "what was there before is gone");
    assert_eq!(shared.neighbours(), [""; 0], "nothing of it was worth keeping");
}

#[test]
fn a_cache_that_the_builder_refuses_is_set_aside_and_the_build_goes_on() {
    let bad: [(&str, String, &str); 5] = [
        ("foreign", "no cache".to_owned(), "refused"),
        ("empty", String::new(), "empty"),
        ("truncated", "CUT".to_owned(), "refused"),
        ("changed", "CHANGED".to_owned(), "refused"),
        ("device", "DEVICE".to_owned(), "refused"),
    ];
    for (name, content, reason) in bad {
        let shared = Shared::new();
        shared.run("first", &[], &uses("{ tactic = \"old\" }"));
        let good = shared.text();
        let content = match content.as_str() {
            "CUT" => good[..good.len() / 2].to_owned(),
            "CHANGED" => good.replace("old", "odd"),
            "DEVICE" => good,
            _ => content,
        };
        std::fs::write(shared.cache(), &content).expect("a cache can be written");
        let head = if name == "device" { "device = \"GPU-2\"" } else { "" };
        let job = shared.run(name, &[], &script(head, "timing_cache = {}", NEW));
        assert_eq!(job.json("evidence")["state"], "succeeded");
        job.assert_mode("quarantined");
        let artifact = job.artifact();
        assert!(artifact["reason"].as_str().is_some_and(|why| why.contains(reason)), "{artifact:#}");
        let folder = Path::new(artifact["quarantine"].as_str().expect("a quarantine"));
        assert_eq!(std::fs::read_to_string(folder.join("timing.cache")).unwrap(), content, "{name}");
        assert_eq!(shared.tactics(), ["new"], "{name}: a new cache took its place");
    }
}

#[test]
fn a_refused_cache_is_set_aside_also_when_the_build_fails() {
    let shared = Shared::new();
    std::fs::write(shared.cache(), "no cache").expect("a cache can be written");
    let failing = script("", "timing_cache = {}\nreturns = \"nothing\"", NEW);
    let job = shared.run("failed", &[], &failing);
    job.assert_mode("quarantined");
    Bundle::load(&job.bundle).assert_state("failed", Some("builder"));
    assert!(!Path::new(&shared.cache()).exists(), "the next build is cold");
    assert_eq!(job.json("summary")["retryPolicy"], "investigate");
}

#[test]
fn eight_jobs_on_one_cache_lose_nothing() {
    let shared = Shared::new();
    shared.run("first", &[], &uses("{ tactic = \"old\" }"));
    let jobs: Vec<_> = (0..8)
        .map(|n| {
            let acts = format!(
                "{{ tactic = \"own {n}\", each = \"20ms\" }}, {{ tactic = \"common\", each = \"20ms\" }}"
            );
            let name = format!("job-{n}");
            let child = shared.start(&name, &[], &uses(&acts));
            (name, child)
        })
        .collect();
    for (name, child) in jobs {
        let job = shared.ended(&name, child);
        assert_eq!(job.json("evidence")["state"], "succeeded");
        job.assert_mode("updated");
    }
    let mut expected: Vec<String> = (0..8).map(|n| format!("own {n}")).collect();
    expected.extend(["common", "old"].map(str::to_owned));
    expected.sort();
    assert_eq!(shared.tactics(), expected);
    assert_eq!(shared.neighbours(), [""; 0]);
}

#[test]
fn a_killed_runner_leaves_the_cache_as_it_was_and_nothing_beside_it() {
    let shared = Shared::new();
    shared.run("first", &[], &uses("{ tactic = \"old\" }"));
    let before = shared.text();
    let mut child = shared.start("killed", &[], &uses("{ phase = \"P\", do = [{ fault = \"hang\" }] }"));
    let bundle = PathBuf::from(shared.place.file("killed"));
    wait_for("the build", || Bundle::lines_so_far(&bundle, &["\"phaseStarted\""]).pop());
    child.kill().expect("the runner can be killed");
    child.wait().expect("it ends");
    wait_for("the keeper", || (Bundle::is_finished(&bundle) && shared.neighbours().is_empty()).then_some(()));
    assert_eq!(shared.text(), before);
}

#[test]
fn a_command_that_writes_to_the_cache_itself_has_it_alone() {
    let scene = Scene::new();
    let cache = text(scene.cache());
    let run = |scene: &Scene, name: &str, acts: &str| {
        let command = scene.command(&uses(acts));
        let bundle = PathBuf::from(scene.place.file(name));
        let mut run = stuckproof();
        run.arg("run").arg("--bundle").arg(&bundle).args(["--timing-cache", &cache, "--"]).args(&command);
        Job { output: run.output().expect("stuckproof starts"), bundle }
    };
    run(&scene, "first", NEW).assert_mode("cold");
    run(&scene, "again", NEW).assert_mode("reused");
    run(&scene, "more", "{ tactic = \"more\" }").assert_mode("updated");
    let good = std::fs::read(&cache).expect("a cache");
    std::fs::write(&cache, "no cache").expect("a cache can be written");
    let refused = run(&scene, "refused", NEW);
    refused.assert_mode("quarantined");
    let folder = PathBuf::from(refused.artifact()["quarantine"].as_str().expect("a quarantine"));
    assert_eq!(std::fs::read_to_string(folder.join("cache")).expect("it is kept"), "no cache");
    assert_ne!(std::fs::read(&cache).expect("a new cache"), good);
}

#[test]
fn tensorrt_rtx_has_no_timing_cache() {
    let ended: Ended =
        Scene::new().run(&[], &script("flavour = \"tensorrt-rtx\"\nversion = \"1.7\"", "", NEW));
    assert_eq!(ended.bundle().summary["timingCacheMode"], "cold");
    let none = Scene::new().run(&[], &script("", "", NEW)).bundle();
    assert_eq!(none.summary["timingCacheMode"], "cold", "no builder had one attached");
    let unknown = Scene::new().run(&[], &uses(NEW)).bundle();
    assert_eq!(unknown.summary["timingCacheMode"], Value::Null, "one was attached, and nobody declared it");
    let why = unknown.evidence["nulls"]["timingCacheMode"].as_str().expect("a reason");
    assert!(why.contains("--timing-cache"), "{why}");
}

#[test]
fn a_policy_needs_a_place_of_the_jobs_own() {
    let shared = Shared::new();
    let output = stuckproof()
        .args(["run", "--bundle", &shared.place.file("b"), "--timing-cache", &shared.cache()])
        .args(["--timing-cache-policy", "readonly", "--", "true"])
        .output()
        .expect("stuckproof starts");
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("{timing_cache}"), "{output:?}");
}

/// A command whose first attempt writes half a cache and is killed in its build, as if by the host. The next says what it
/// finds, plays the script, and ends with this code. `$1` is its place for the cache.
fn killed_once(shared: &Shared, place: &str, code: i32) -> Vec<String> {
    let path = shared.place.file("build.toml");
    std::fs::write(&path, uses(NEW)).expect("the script can be written");
    let line = format!(
        "if mkdir '{first}'; then
           printf half > \"$1\"
           (until grep -q '\"event\":\"phaseStarted\"' '{log}'; do sleep 0.02; done; kill -9 $$) &
           exec '{program}' simulate '{hang}'
         fi
         ls \"$1\" > '{found}'; '{program}' simulate '{path}' --timing-cache \"$1\" && exit {code}",
        program = env!("CARGO_BIN_EXE_stuckproof"),
        hang = crate::scene::fixture("hang"),
        first = shared.place.file("first"),
        log = shared.place.file("tried/attempt-1/events.jsonl"),
        found = shared.place.file("found"),
    );
    ["sh", "-c", &line, "sh", place].map(str::to_owned).to_vec()
}

fn tried(shared: &Shared, options: &[&str], wrapped: &[String]) -> Output {
    stuckproof()
        .args([
            "run",
            "--bundle",
            &shared.place.file("tried"),
            "--retry",
            "1",
            "--timing-cache",
            &shared.cache(),
        ])
        .args(options)
        .arg("--")
        .args(wrapped)
        .stdin(Stdio::null())
        .output()
        .expect("stuckproof starts")
}

#[test]
fn a_cold_attempt_finds_no_cache_and_the_policy_says_what_becomes_of_its_own() {
    let cases = [
        ("reuse", "refresh", false, "new"),
        ("refresh", "refresh", false, "new"),
        ("readonly", "off", false, "old"),
        ("off", "off", false, "old"),
        ("reuse", "refresh", true, "new"),
    ];
    for (policy, cold, in_place, expected) in cases {
        let shared = Shared::new();
        shared.run("before", &[], &uses("{ tactic = \"old\" }"));
        let place = if in_place { shared.cache() } else { "{timing_cache}".to_owned() };
        let wrapped = killed_once(&shared, &place, 0);
        let output = tried(&shared, &["--timing-cache-policy", policy], &wrapped);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{policy}: {said}");
        assert_eq!(std::fs::read_to_string(shared.place.file("found")).unwrap(), "", "{policy}: it was cold");
        let text = std::fs::read(shared.place.file("tried/attempts.json")).expect("a record");
        let record: Value = serde_json::from_slice(&text).expect("JSON");
        let told: Vec<_> = record["attempts"].as_array().expect("a list").iter().collect();
        assert_eq!(
            (&told[0]["cause"], &told[0]["timingCachePolicy"]),
            (&"killed_by_host".into(), &policy.into())
        );
        assert_eq!((&told[1]["policy"], &told[1]["timingCachePolicy"]), (&"retry_cold".into(), &cold.into()));
        let second = Job { output, bundle: shared.place.file("tried/attempt-2").into() };
        second.assert_mode("cold");
        assert_eq!(second.artifact()["policy"], cold);
        assert_eq!(shared.tactics(), [expected], "{policy}");
        let mut beside = shared.neighbours();
        beside.retain(|name| name != "stuckproof-quarantine");
        assert_eq!(beside, [""; 0], "{policy}");
    }
}

#[test]
fn a_cold_attempt_that_fails_leaves_the_cache_as_it_was() {
    for in_place in [false, true] {
        let shared = Shared::new();
        shared.run("before", &[], &uses("{ tactic = \"old\" }"));
        let before = shared.text();
        let place = if in_place { shared.cache() } else { "{timing_cache}".to_owned() };
        let wrapped = killed_once(&shared, &place, 7);
        let output = tried(&shared, &[], &wrapped);
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        assert_eq!(shared.text(), before, "in place: {in_place}");
    }
}

#[test]
fn a_job_that_writes_to_the_cache_itself_and_others_keep_out_of_each_others_way() {
    let hang = uses("{ phase = \"P\", do = [{ fault = \"hang\" }] }");
    for in_place_first in [false, true] {
        let shared = Shared::new();
        shared.run("before", &[], &uses("{ tactic = \"old\" }"));
        let before = shared.text();
        let start = |name: &str, in_place: bool, script: &str| {
            let path = shared.place.file(&format!("{name}.toml"));
            std::fs::write(&path, script).expect("the script can be written");
            let own = if in_place { shared.cache() } else { "{timing_cache}".to_owned() };
            let mut run = stuckproof();
            run.args(["run", "--bundle", &shared.place.file(name), "--timing-cache", &shared.cache()]);
            run.args(["--grace", "1s", "--"]);
            run.args([env!("CARGO_BIN_EXE_stuckproof"), "simulate", &path, "--timing-cache", &own]);
            run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
        };
        let mut first = start("first", in_place_first, &hang);
        let bundle = PathBuf::from(shared.place.file("first"));
        wait_for("the build", || Bundle::lines_so_far(&bundle, &["\"phaseStarted\""]).pop());
        let second = start("second", !in_place_first, &uses(NEW)).wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&second.stderr).into_owned();
        assert_eq!(second.status.code(), Some(125), "{said}");
        assert!(said.contains("is building") && said.contains("wait for its end"), "{said}");
        assert!(!Path::new(&shared.place.file("second")).exists(), "nothing was run");
        assert_eq!(shared.text(), before);
        let asked = stuckproof().arg("cancel").arg(&bundle).status().expect("it starts");
        assert!(asked.success());
        first.wait().expect("it ends");
        assert_eq!(shared.text(), before);
        let after = start("after", !in_place_first, &uses(NEW)).wait_with_output().expect("it ends");
        assert_eq!(after.status.code(), Some(0), "{after:?}");
        assert_eq!(shared.tactics(), ["new", "old"]);
    }
}

#[test]
fn what_a_lost_job_left_beside_a_cache_is_set_aside_by_the_next_once_its_bundle_is_gone() {
    for in_place in [false, true] {
        let shared = Shared::new();
        shared.run("before", &[], &uses("{ tactic = \"old\" }"));
        let before = shared.text();
        let mut child = shared.start("lost", &[], &uses("{ phase = \"P\", do = [{ fault = \"hang\" }] }"));
        let bundle = PathBuf::from(shared.place.file("lost"));
        wait_for("the build", || Bundle::lines_so_far(&bundle, &["\"phaseStarted\""]).pop());
        let keeper = crate::common::marked::keeper_of(child.id()).expect("a keeper");
        assert!(keeper.kill());
        child.kill().expect("the runner can be killed");
        child.wait().expect("it ends");
        let orphan = shared.neighbours();
        assert_eq!(orphan.len(), 1, "{orphan:?}");
        // As long as the bundle is there, it is for `finalize` to settle it, and it is in no sharer's way.
        shared.run("beside", &[], &uses("{ tactic = \"old\" }")).assert_mode("reused");
        assert_eq!(shared.neighbours(), orphan);
        std::fs::remove_dir_all(&bundle).expect("it can be removed");
        let next = if in_place {
            let mut run = stuckproof();
            run.args(["run", "--bundle", &shared.place.file("next"), "--timing-cache", &shared.cache()]);
            run.args(["--", "true"]).output().expect("stuckproof starts")
        } else {
            shared.run("next", &[], &uses("{ tactic = \"old\" }")).output
        };
        let said = String::from_utf8_lossy(&next.stderr).into_owned();
        assert_eq!(next.status.code(), Some(0), "{said}");
        assert!(said.contains("its bundle is gone; what it wrote is set aside"), "{said}");
        let mut beside = shared.neighbours();
        beside.retain(|name| name != "stuckproof-quarantine");
        assert_eq!(beside, [""; 0]);
        assert_eq!(shared.text(), before);
    }
}

#[test]
fn two_equal_jobs_have_the_same_command() {
    let shared = Shared::new();
    let path = shared.place.file("same.toml");
    std::fs::write(&path, uses("{ tactic = \"old\" }")).expect("the script can be written");
    let program = env!("CARGO_BIN_EXE_stuckproof");
    let engine = shared.place.file("caches/a.engine");
    for name in ["first", "one", "two"] {
        let done = stuckproof()
            .args(["run", "--bundle", &shared.place.file(name), "--timing-cache", &shared.cache()])
            .args(["--engine", &engine, "--", "sh", "-c"])
            .arg(format!(
                "printf engine > {{engine}}; {program} simulate {path} --timing-cache={{timing_cache}}"
            ))
            .output()
            .expect("stuckproof starts");
        assert_eq!(done.status.code(), Some(0), "{done:?}");
    }
    let [one, two] = ["one", "two"].map(|name| shared.place.file(name));
    let diff = stuckproof().args(["diff", &one, &two, "--threshold", "100"]).output().expect("it starts");
    assert_eq!(diff.status.code(), Some(0), "{}", String::from_utf8_lossy(&diff.stdout));
}
