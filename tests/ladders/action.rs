//! The GitHub action and the GitLab template, run as the hosts would: each step's script in a file of its own, by the shell
//! that the host would use, with the variables that it would set.

use crate::common::{command, text, wait_for};
use crate::emulator::{Ended, Step};
use crate::hosts;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A file of YAML as JSON, read by the parser that the linters use.
fn yaml(path: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join(".rig/lint/bin/python");
    assert!(python.exists(), "{} is missing: run scripts/rig", python.display());
    let read = "import json, sys; from ruamel.yaml import YAML; print(json.dumps(YAML(typ='safe').load(open(sys.argv[1]))))";
    let output =
        Command::new(python).args(["-c", read]).arg(root.join(path)).output().expect("python starts");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

/// A job that uses the action.
struct Workflow {
    folder: TempDir,
    action: Value,
    /// What stands between `${{` and `}}`, and what it is.
    context: BTreeMap<String, String>,
}

impl Workflow {
    fn new(inputs: &[(&str, &str)]) -> Self {
        let action = yaml("action.yml");
        let folder = tempfile::tempdir().expect("a folder");
        let mut context = BTreeMap::new();
        for (name, input) in action["inputs"].as_object().expect("inputs") {
            let given = inputs.iter().find(|(given, _)| given == name).map(|(_, value)| (*value).to_owned());
            let default = || input["default"].as_str().expect("given, or with a default").to_owned();
            context.insert(format!("inputs.{name}"), given.unwrap_or_else(default));
        }
        // As if it were installed.
        let program = Path::new(env!("CARGO_BIN_EXE_stuckproof"));
        std::os::unix::fs::symlink(program, folder.path().join("stuckproof")).expect("a link");
        Self { folder, action, context }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn step(&self, name: &str) -> &Value {
        let steps = self.action["runs"]["steps"].as_array().expect("steps");
        steps.iter().find(|step| step["name"] == name).expect("the action has this step")
    }

    /// The shell of a step with everything that the runner gives it.
    fn shell(&self, name: &str) -> Command {
        let step = self.step(name);
        assert_eq!(step["shell"], "bash");
        let run = step["run"].as_str().expect("a script");
        assert!(!run.contains("${{"), "what a user gives must not become a part of the script");
        let file = self.path(&format!("{name}.sh"));
        fs::write(&file, run).expect("a file");
        let mut shell = command("bash");
        shell
            .args(["--noprofile", "--norc", "-e", "-o", "pipefail"])
            .arg(file)
            .current_dir(self.folder.path());
        for (variable, value) in step["env"].as_object().into_iter().flatten() {
            shell.env(variable, self.filled(value.as_str().expect("a text")));
        }
        let path = std::env::var("PATH").expect("a path");
        shell.env("PATH", format!("{}:{path}", self.folder.path().display()));
        shell.envs([("CI", "true"), ("GITHUB_ACTIONS", "true")]);
        for (variable, file) in [("GITHUB_OUTPUT", "output"), ("GITHUB_STEP_SUMMARY", "summary.md")] {
            shell.env(variable, self.path(file));
        }
        shell
    }

    /// A value with its one expression filled in.
    fn filled(&self, value: &str) -> String {
        let Some(name) = value.strip_prefix("${{ ").and_then(|rest| rest.strip_suffix(" }}")) else {
            return value.to_owned();
        };
        self.context.get(name).unwrap_or_else(|| panic!("nothing is known of {name}")).clone()
    }

    fn prepare(&mut self) {
        let done = self.shell("Provide stuckproof").output().expect("bash starts");
        assert!(done.status.success(), "{done:?}");
        for line in self.read("output").lines() {
            let (name, value) = line.split_once('=').expect("a pair");
            self.context.insert(format!("steps.prepare.outputs.{name}"), value.to_owned());
        }
    }

    /// The steps that come whatever happened.
    fn report(&mut self, status: &str) -> Output {
        self.context.insert("job.status".to_owned(), status.to_owned());
        for name in ["Report", "Keep the evidence"] {
            assert_eq!(self.step(name)["if"], "always()");
        }
        let kept = self.filled(self.step("Keep the evidence")["with"]["path"].as_str().expect("a path"));
        let done = self.shell("Report").output().expect("bash starts");
        for file in ["summary.json", "evidence.json", "events.jsonl", "junit.xml"] {
            assert!(self.path(&kept).join(file).exists(), "{file} is missing: {done:?}");
        }
        done
    }

    fn evidence(&self) -> Value {
        let text = self.read("stuckproof-evidence/job/evidence.json");
        serde_json::from_str(&text).expect("evidence is JSON")
    }

    fn token(&self) -> &str {
        &self.context["steps.prepare.outputs.token"]
    }
}

#[test]
fn the_action_reports_a_success() {
    let mut workflow = Workflow::new(&[("command", "echo '::error::forged'; echo \"$TOKEN$COMMAND\"")]);
    workflow.prepare();
    let built = workflow.shell("Build").output().expect("bash starts");
    assert!(built.status.success(), "{built:?}");
    let out = String::from_utf8(built.stdout).expect("text");
    let stop = format!("::stop-commands::{}\n", workflow.token());
    assert_eq!(out, format!("{stop}::error::forged\n\n"), "the command knows neither token nor itself");
    let done = workflow.report("success");
    assert!(done.status.success(), "{done:?}");
    let said = String::from_utf8(done.stdout).expect("text");
    assert!(said.starts_with(&format!("::{}::\n", workflow.token())), "{said}");
    assert!(said.contains("::notice title=TensorRT build succeeded::"), "{said}");
    assert!(workflow.read("summary.md").starts_with("### TensorRT build: succeeded"));
    assert_eq!(workflow.evidence()["header"]["warnings"], serde_json::json!([]));
}

#[test]
fn the_action_passes_a_failure_on() {
    let mut workflow = Workflow::new(&[
        ("command", "false\necho never"),
        ("max-phase", "1h"),
        ("deadline", "2h"),
        ("engine", "a.engine\n\nb c.engine\n"),
    ]);
    workflow.prepare();
    let built = workflow.shell("Build").output().expect("bash starts");
    assert_eq!(built.status.code(), Some(1), "{built:?}");
    assert!(workflow.report("failure").status.success());
    let evidence = workflow.evidence();
    assert_eq!(evidence["header"]["deadlineMs"], 7_200_000);
    assert_eq!(evidence["header"]["phaseLimitMs"], 3_600_000);
    let recorded = workflow.read("stuckproof-evidence/job/events.jsonl");
    for engine in ["a.engine", "b c.engine"] {
        assert!(recorded.contains(&format!("/{engine}\"")), "{engine} was not declared");
    }
}

/// The host's ladder reaches the build through the action's own script, and the report comes after it.
#[test]
fn the_action_is_reached_by_the_ladder() {
    let stubborn = "trap '' TERM INT; echo ready; while :; do sleep 0.05; done";
    let mut workflow = Workflow::new(&[("command", stubborn)]);
    workflow.prepare();
    let bundle = workflow.path("stuckproof-evidence/job");
    let step = Step::of(&hosts::GITHUB, bundle.clone(), workflow.shell("Build"));
    wait_for("the command", || {
        fs::read_to_string(bundle.join("stdout.log")).ok()?.contains("ready").then_some(())
    });
    let Ended { runner_ms, .. } = step.suffer(1);
    assert!(runner_ms < 9_000.0, "complete only after {runner_ms} ms");
    let done = workflow.report("cancelled");
    assert!(done.status.success(), "{done:?}");
    let evidence = workflow.evidence();
    assert_eq!((&evidence["state"], &evidence["requests"][0]["source"]), (&"failed".into(), &"ci".into()));
    assert_eq!(evidence["header"]["warnings"], serde_json::json!([]));
    let said = String::from_utf8(done.stdout).expect("text");
    assert!(said.contains("::error title=TensorRT build failed (command)::"), "{said}");
    let page = workflow.read("summary.md");
    assert!(page.contains("**Stop** asked for by <code>SIGINT</code> (ci)"), "{page}");
}

/// Where even the runner is killed, the report finishes what it left and keeps the host's word.
#[test]
fn the_action_reports_a_lost_runner() {
    let mut workflow = Workflow::new(&[("command", "echo ready; exec sleep 1000")]);
    workflow.prepare();
    let bundle = workflow.path("stuckproof-evidence/job");
    let step = Step::of(&hosts::GITHUB, bundle.clone(), workflow.shell("Build"));
    wait_for("the command", || {
        fs::read_to_string(bundle.join("stdout.log")).ok()?.contains("ready").then_some(())
    });
    step.lose_everything();
    let done = workflow.report("cancelled");
    assert!(done.status.success(), "{done:?}");
    let evidence = workflow.evidence();
    assert_eq!((&evidence["state"], &evidence["cause"]), (&"failed".into(), &"runner_lost".into()));
    assert_eq!(evidence["hostReport"], serde_json::json!({"status": "cancelled", "toldBy": "--host-status"}));
    assert!(workflow.read("summary.md").contains("| The host says | <code>cancelled</code> |"));
}

#[test]
fn the_gitlab_template_keeps_the_evidence() {
    let job = yaml("templates/gitlab.yml")[".stuckproof"].clone();
    let folder = tempfile::tempdir().expect("a folder");
    let lines = |section: &str| -> Vec<String> {
        let lines = job[section].as_array().expect("a list").iter();
        lines.map(|line| line.as_str().expect("a line").to_owned()).collect()
    };
    let variable = |name: &str| job["variables"][name].as_str().expect("a variable").to_owned();
    let shell = |section: &str, command_line: &str, status: &str| {
        let program = Path::new(env!("CARGO_BIN_EXE_stuckproof")).parent().expect("a folder");
        let mut shell = command("sh");
        shell.args(["-e", "-c", &lines(section).join("\n")]).current_dir(folder.path());
        shell.envs([("CI", "true"), ("GITLAB_CI", "true"), ("CI_JOB_ID", "4711"), ("CI_JOB_STATUS", status)]);
        shell.env("STUCKPROOF_BUNDLE", variable("STUCKPROOF_BUNDLE").replace("$CI_JOB_ID", "4711"));
        shell.env("STUCKPROOF_DEADLINE", "1h").env("STUCKPROOF_COMMAND", command_line);
        shell.env("PATH", format!("{}:{}", text(program), std::env::var("PATH").expect("a path")));
        shell.output().expect("sh starts")
    };
    let built = shell("script", "echo one; exit 7", "running");
    assert_eq!(built.status.code(), Some(7), "{built:?}");
    let after = shell("after_script", "", "failed");
    assert!(after.status.success(), "{after:?}");
    assert!(String::from_utf8(after.stderr).expect("text").contains("the host says failed (CI_JOB_STATUS)"));
    assert_eq!(job["artifacts"]["when"], "always");
    let kept = folder.path().join(job["artifacts"]["paths"][0].as_str().expect("a path"));
    let evidence = fs::read_to_string(kept.join("4711/evidence.json")).expect("evidence");
    let evidence: Value = serde_json::from_str(&evidence).expect("evidence is JSON");
    assert_eq!(evidence["header"]["deadlineMs"], 3_600_000);
    assert_eq!(job["artifacts"]["reports"]["junit"], "stuckproof-evidence/*/junit.xml");
    assert!(variable("STUCKPROOF_COMMAND").contains("exit 1"), "a forgotten command fails");
}
