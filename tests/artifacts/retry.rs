//! `stuckproof run --retry`: each attempt has a bundle of its own, and what the first one left is never what is published.

use crate::common::bundle::{Bundle, assert_fits_schema};
use crate::common::job::{Ended, Job, Place, start, stuckproof};
use crate::common::{model, script, wait_for};
use crate::scene::{assert_as_before, assert_nothing_beside, engine, is_whole, place, shell};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A command that is killed in its build, as if by the host, so many times; then it goes on with the line. `$1` is its place
/// for the engine.
fn killed(place: &Place, times: u32, then: &str) -> Vec<String> {
    let build = format!("{}/fixtures/simulate/hang.toml", env!("CARGO_MANIFEST_DIR"));
    let line = format!(
        "for n in $(seq {times}); do if mkdir '{folder}'/$n; then
           printf half > \"$1\"
           (until grep -q '\"event\":\"phaseStarted\"' '{bundle}'/attempt-$n/events.jsonl; do sleep 0.02; done; kill -9 $$) &
           exec '{stuckproof}' simulate '{build}'
         fi; done
         {then}",
        folder = place.file(""),
        bundle = place.bundle().display(),
        stuckproof = env!("CARGO_BIN_EXE_stuckproof"),
    );
    ["sh", "-c", &line, "sh", "{engine}"].map(str::to_owned).to_vec()
}

fn retried(place: Place, options: &[&str], wrapped: &[String]) -> Job {
    let path = engine(&place);
    start(place, &[&["--engine", &path], options].concat(), wrapped)
}

fn record(place: &Place) -> Value {
    let text = fs::read(place.bundle().join("attempts.json")).expect("a record");
    serde_json::from_slice(&text).expect("JSON")
}

fn attempt(place: &Place, number: u32) -> Bundle {
    Bundle::load(&place.bundle().join(format!("attempt-{number}")))
}

/// The attempts as the record has them, each as it stands in its own bundle, and the last one's report on top.
fn assert_told(ended: &Ended, states: &[(&str, Option<&str>)]) -> Value {
    let record = record(&ended.place);
    let attempts = record["attempts"].as_array().expect("a list");
    assert_eq!(attempts.len(), states.len(), "{record:#}");
    for ((number, told), (state, cause)) in (1..).zip(attempts).zip(states) {
        let bundle = attempt(&ended.place, number);
        bundle.assert_state(state, *cause);
        assert_eq!((told["state"].as_str(), told["cause"].as_str()), (Some(*state), *cause));
        for field in ["job", "exitCode"] {
            assert_eq!(told[field], bundle.evidence[field], "{field}");
        }
    }
    let top = ended.place.bundle();
    for name in ["junit.xml", "summary.json"] {
        let last = top.join(format!("attempt-{}", states.len())).join(name);
        assert_eq!(fs::read(top.join(name)).ok(), fs::read(last).ok(), "{name}");
    }
    record
}

fn said(arguments: &[&str], place: &Place) -> String {
    let output = stuckproof().args(arguments).arg(place.bundle()).output().expect("stuckproof starts");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn a_build_that_the_host_killed_is_tried_again_and_its_engine_is_whole() {
    let place = place();
    let build = script("build_onnx.py", &[&model("small"), "\"$1\""]).join(" ");
    let wrapped = killed(&place, 1, &format!("exec {build}"));
    let ended = retried(place, &["--retry", "2"], &wrapped).end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let record = assert_told(&ended, &[("failed", Some("killed_by_host")), ("succeeded", None)]);
    assert_eq!(record["attempts"][1]["policy"], "retry_cold");
    assert_eq!(record["ended"], "the job succeeded");
    assert!(is_whole(&fs::read(engine(&ended.place)).expect("it is there")));
    assert_nothing_beside(&ended.place);
    assert_eq!(ended.announced(), Some(&*ended.place.bundle()));
    let shown = said(&["show"], &ended.place);
    assert!(shown.contains("tried 2 of at most 3 times") && shown.contains("== attempt-1 =="), "{shown}");
    let status = said(&["status"], &ended.place);
    assert!(status.contains("1. failed: killed_by_host, exit code 137"), "{status}");
    let verified = stuckproof().arg("verify").arg(ended.place.bundle()).output().expect("it starts");
    assert_eq!(verified.status.code(), Some(0), "the last attempt decides: {verified:?}");
}

#[test]
fn the_limit_ends_it_and_the_exit_code_is_that_of_the_last() {
    let place = place();
    let wrapped = killed(&place, 9, "");
    let ended = retried(place, &["--retry", "1"], &wrapped).end();
    assert_eq!(ended.code(), 137, "{}", ended.stderr);
    let record = assert_told(&ended, &[("failed", Some("killed_by_host")); 2]);
    assert_eq!(record["ended"], "the limit is reached: --retry 1");
    assert_as_before(&ended.place);
    let verified = stuckproof().arg("verify").arg(ended.place.bundle()).output().expect("it starts");
    assert_eq!(verified.status.code(), Some(1), "{verified:?}");
}

#[test]
fn what_would_end_the_same_way_is_not_tried_again() {
    let place = place();
    let wrapped = shell(&place, "test -n {engine}; exit 3");
    let ended = retried(place, &["--retry", "5"], &wrapped).end();
    assert_eq!(ended.code(), 3);
    let record = assert_told(&ended, &[("failed", Some("command"))]);
    assert_eq!(record["ended"], "the recommendation is investigate");
}

#[test]
fn a_stop_is_meant_for_all_attempts() {
    for by_signal in [true, false] {
        let place = place();
        let waiting = format!(": > '{}'; while :; do sleep 0.02; done", place.file("waiting"));
        let wrapped = killed(&place, 1, &waiting);
        let job = retried(place, &["--retry", "5"], &wrapped);
        wait_for("the second attempt", || fs::metadata(job.place().file("waiting")).ok());
        let report = fs::read_to_string(job.place().bundle().join("junit.xml")).expect("a report");
        assert!(report.contains("<failure") || report.contains("<error"), "it fails meanwhile");
        if by_signal {
            job.signal(Signal::TERM);
        } else {
            let said = said(&["cancel"], job.place());
            assert!(said.contains("is stopping (request 1)"), "{said}");
        }
        let ended = job.end();
        let last = attempt(&ended.place, 2);
        assert_eq!(last.evidence["requests"].as_array().map(Vec::len), Some(1), "heard once");
        assert!(
            record(&ended.place)["ended"].as_str().is_some_and(|why| why.contains("a stop was asked for"))
        );
        assert_eq!(record(&ended.place)["attempts"].as_array().map(Vec::len), Some(2));
        assert_as_before(&ended.place);
        assert_ne!(ended.code(), 0);
    }
}

#[test]
fn one_deadline_covers_all_attempts() {
    let place = place();
    let wrapped = killed(&place, 1, "while :; do sleep 0.02; done");
    let ended = retried(place, &["--retry", "5", "--deadline", "10s"], &wrapped).end();
    assert_eq!(ended.code(), 124, "{}", ended.stderr);
    let last = attempt(&ended.place, 2);
    let left = last.of_kind("jobStarted").next().expect("a first line")["deadlineMs"].as_u64();
    assert!(left.is_some_and(|left| (1..10_000).contains(&left)), "{left:?}");
    assert!(record(&ended.place)["ended"].as_str().is_some_and(|why| why.contains("deadline")));
}

#[test]
fn a_lost_runner_is_finished_with_all_of_its_attempts() {
    let place = place();
    let waiting = format!(": > '{}'; while :; do sleep 0.02; done", place.file("waiting"));
    let wrapped = killed(&place, 1, &waiting);
    let job = retried(place, &["--retry", "5"], &wrapped);
    wait_for("the second attempt", || fs::metadata(job.place().file("waiting")).ok());
    job.signal(Signal::KILL);
    let place = job.end_of_the_killed();
    let second = place.bundle().join("attempt-2");
    wait_for("the keeper to finish the bundle", || Bundle::is_finished(&second).then_some(()));
    wait_for("finalize to have nothing in its way", || {
        let done = stuckproof().arg("finalize").arg(place.bundle()).output().expect("it starts");
        done.status.success().then_some(())
    });
    let record = record(&place);
    assert_eq!(record["attempts"][1]["cause"], "runner_lost", "{record:#}");
    assert!(record["ended"].as_str().is_some_and(|why| why.contains("the runner was lost")));
    let top = fs::read(place.bundle().join("junit.xml")).expect("a report");
    assert_eq!(top, fs::read(second.join("junit.xml")).expect("a report"));
    assert_as_before(&place);
}

#[test]
fn attempts_cannot_be_concluded_while_they_are_made() {
    let place = place();
    let waiting = format!(": > '{}'; while :; do sleep 0.02; done", place.file("waiting"));
    let wrapped = killed(&place, 1, &waiting);
    let job = retried(place, &["--retry", "5"], &wrapped);
    wait_for("the second attempt", || fs::metadata(job.place().file("waiting")).ok());
    let done = stuckproof().arg("finalize").arg(job.place().bundle()).output().expect("it starts");
    assert_eq!(done.status.code(), Some(125), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stderr).contains("is still being tried"), "{done:?}");
    assert_eq!(record(job.place())["ended"], Value::Null, "nothing was changed");
    let explained = said(&["explain"], job.place());
    assert!(explained.contains("before it, attempt 1: failed (killed_by_host)"), "{explained}");
    job.signal(Signal::TERM);
    job.end();
}

/// What `verify` says of the folder, and its exit code.
fn verified(folder: &Path) -> (Option<i32>, String) {
    let output = stuckproof().arg("verify").arg(folder).output().expect("stuckproof starts");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn change(path: &Path, edit: impl FnOnce(&mut Value)) {
    let mut document = serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON");
    edit(&mut document);
    let mut text = serde_json::to_string_pretty(&document).expect("JSON");
    text.push('\n');
    fs::write(path, text).expect("it can be written");
}

fn copied(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp starts");
    assert!(done.success());
}

/// What somebody does to a folder of attempts.
type Edit = fn(&Path);

/// Two attempts, the first of which was killed.
fn twice() -> Ended {
    let place = place();
    let wrapped = killed(&place, 1, "printf new > \"$1\"");
    let ended = retried(place, &["--retry", "2"], &wrapped).end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    ended
}

#[test]
fn the_record_beside_the_attempts_must_follow_from_them() {
    let ended = twice();
    let whole = ended.place.bundle();
    let (code, said) = verified(&whole);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("valid, and the job succeeded (the last of 2 attempts)"), "{said}");
    assert_fits_schema(&whole);
    let hide_first: Edit = |folder| {
        fs::remove_dir_all(folder.join("attempt-1")).expect("it can be removed");
        fs::rename(folder.join("attempt-2"), folder.join("attempt-1")).expect("it can be renamed");
        change(&folder.join("attempts.json"), |record| {
            let attempts = record["attempts"].as_array_mut().expect("a list");
            attempts.remove(0);
            attempts[0]["attempt"] = 1.into();
            attempts[0]["bundle"] = "attempt-1".into();
            attempts[0]["policy"] = Value::Null;
        });
    };
    let exchange_first: Edit = |folder| {
        let other = twice();
        fs::remove_dir_all(folder.join("attempt-1")).expect("it can be removed");
        copied(&other.place.bundle().join("attempt-1"), &folder.join("attempt-1"));
        change(&folder.join("attempts.json"), |record| {
            record["attempts"][0]["job"] = self::record(&other.place)["attempts"][0]["job"].clone();
        });
    };
    let edits: [(&str, Edit, &str); 7] = [
        ("hidden", hide_first, "its log says that it is attempt 2"),
        ("exchanged", exchange_first, "it does not follow the attempt before it"),
        (
            "left out",
            |folder| {
                change(&folder.join("attempts.json"), |record| {
                    drop(record["attempts"].as_array_mut().map(|all| all.remove(0)));
                });
            },
            "it is not what follows from the attempts beside it",
        ),
        (
            "whitewashed",
            |folder| {
                change(&folder.join("attempts.json"), |record| {
                    record["attempts"][0]["state"] = "succeeded".into();
                });
            },
            "attempts.json attempts.0.state: it is not what follows",
        ),
        (
            "another summary",
            |folder| change(&folder.join("summary.json"), |summary| summary["gpuSku"] = "NVIDIA L4".into()),
            "summary.json gpuSku: it is not that of the last attempt",
        ),
        (
            "another report",
            |folder| fs::write(folder.join("junit.xml"), "<testsuites/>").expect("it can be written"),
            "junit.xml: it is not that of the last attempt",
        ),
        (
            "one beyond",
            |folder| copied(&folder.join("attempt-1"), &folder.join("attempt-4")),
            "attempts are missing between it and those before",
        ),
    ];
    for (name, edit, expected) in edits {
        let changed = PathBuf::from(ended.place.file(name));
        copied(&whole, &changed);
        edit(&changed);
        let (code, said) = verified(&changed);
        assert_eq!(code, Some(2), "{name}: {said}");
        assert!(said.contains("  attempts: ") && said.contains(expected), "{name}: {said}");
    }
    // What lies in the folder besides is no matter of the attempts.
    fs::write(whole.join("notes.txt"), "x").expect("it can be written");
    assert_eq!(verified(&whole).0, Some(0));
}

fn finalized(folder: &Path) -> (Option<i32>, String) {
    let output = stuckproof().arg("finalize").arg(folder).output().expect("stuckproof starts");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// A folder as a runner leaves it that is killed before it has said why no attempt follows.
fn without_end(of: &Path, name: &str, retries: u32) -> PathBuf {
    let folder = of.with_file_name(name);
    copied(of, &folder);
    let path = folder.join("attempts.json");
    let text = fs::read_to_string(&path).expect("a record");
    let was: Value = serde_json::from_str(&text).expect("JSON");
    let text = text.replace(&format!("\"ended\": {}", was["ended"]), "\"ended\": null");
    let text = text.replace(&format!("\"retries\": {}", was["retries"]), &format!("\"retries\": {retries}"));
    fs::write(&path, text).expect("it can be written");
    folder
}

#[test]
fn an_attempt_that_had_not_begun_is_none() {
    let place = place();
    let wrapped = killed(&place, 2, "");
    let ended = retried(place, &["--retry", "1"], &wrapped).end();
    assert_eq!(ended.code(), 137, "{}", ended.stderr);
    let once = without_end(&ended.place.bundle(), "once", 5);
    let empty: Edit = |attempt| fs::create_dir(attempt).expect("a folder");
    let half: Edit = |attempt| {
        fs::create_dir_all(attempt.join("wire")).expect("a folder");
        fs::write(attempt.join("events.jsonl"), "{\"seq\":1,\"ev").expect("a file");
    };
    for (name, edit) in [("empty", empty), ("half", half)] {
        let folder = without_end(&once, name, 5);
        edit(&folder.join("attempt-3"));
        assert_eq!(verified(&folder).0, Some(3), "{name}: it has no end");
        for _ in 0..2 {
            let (code, said) = finalized(&folder);
            assert_eq!(code, Some(0), "{name}: {said}");
        }
        let (code, said) = verified(&folder);
        assert!(code == Some(1) && said.contains("the last of 2 attempts"), "{name}: {said}");
        let text = fs::read_to_string(folder.join("attempts.json")).expect("a record");
        assert!(text.contains("the runner was lost before the next attempt began"), "{text}");
        // One that has begun is none that may be passed over, whatever became of it.
        fs::write(folder.join("attempt-3/evidence.json"), "{}").expect("a file");
        assert_ne!(verified(&folder).0, Some(1), "{name}");
    }
}

#[test]
fn a_folder_without_any_attempt_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = "{\n  \"format\": 1,\n  \"retries\": 2,\n  \"attempts\": [],\n  \"ended\": null\n}\n";
    fs::write(folder.path().join("attempts.json"), record).expect("a record");
    assert_eq!(finalized(folder.path()).0, Some(125));
    let (code, said) = verified(folder.path());
    assert!(code == Some(3) && said.contains("no attempt has begun, so nothing was built"), "{said}");
    let add = ["addendum", "--kind", "release", "--status", "pass"];
    let markdown = ["show", "--format", "markdown"];
    for verb in [&["explain"][..], &["pack"], &add, &markdown] {
        let output = stuckproof().args(verb).arg(folder.path()).output().expect("stuckproof starts");
        assert_eq!(output.status.code(), Some(125), "{verb:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("has begun, so there is no bundle in it"), "{verb:?}: {said}");
    }
    let text = fs::read_to_string(folder.path().join("attempts.json")).expect("a record");
    assert!(text.contains("the runner was lost before the first attempt began"), "{text}");
}

#[test]
fn a_lost_runner_is_not_blamed_for_an_end_that_was_due() {
    let ended = twice();
    let whole = ended.place.bundle();
    let folder = without_end(&whole, "succeeded", 2);
    assert_eq!(finalized(&folder).0, Some(0));
    assert_eq!(fs::read(folder.join("attempts.json")).ok(), fs::read(whole.join("attempts.json")).ok());
    assert_eq!(verified(&folder).0, Some(0));
    let place = place();
    let wrapped = killed(&place, 2, "");
    let ended = retried(place, &["--retry", "1"], &wrapped).end();
    let whole = ended.place.bundle();
    let folder = without_end(&whole, "limited", 1);
    assert_eq!(finalized(&folder).0, Some(0));
    assert_eq!(fs::read(folder.join("attempts.json")).ok(), fs::read(whole.join("attempts.json")).ok());
}

#[test]
fn the_record_forgets_no_attempt() {
    let ended = twice();
    let whole = ended.place.bundle();
    for gone in ["attempt-1", "attempt-2"] {
        let folder = without_end(&whole, gone, 2);
        fs::remove_dir_all(folder.join(gone)).expect("it can be removed");
        let before = fs::read(folder.join("attempts.json")).expect("a record");
        let (code, said) = finalized(&folder);
        assert_eq!(code, Some(125), "{gone}: {said}");
        assert!(said.contains(&format!("{gone} is missing")), "{gone}: {said}");
        assert_eq!(fs::read(folder.join("attempts.json")).ok(), Some(before), "{gone}");
        let (code, said) = verified(&folder);
        assert_eq!(code, Some(2), "{gone}: {said}");
        copied(&whole.join(gone), &folder.join(gone));
        assert_eq!(finalized(&folder).0, Some(0), "{gone}");
        assert_eq!(verified(&folder).0, Some(0), "{gone}");
    }
}

#[test]
fn of_two_jobs_that_are_given_one_folder_one_has_it() {
    let place = place();
    let job = |name: &str| {
        let mut run = stuckproof();
        run.args(["run", "--retry", "1", "--bundle"]).arg(place.bundle());
        run.args(["--", "touch", &place.file(name)]).stderr(std::process::Stdio::piped());
        run.spawn().expect("stuckproof starts")
    };
    let both = [job("one"), job("two")].map(|job| job.wait_with_output().expect("it ends"));
    let mut codes = both.each_ref().map(|output| output.status.code());
    codes.sort_unstable();
    assert_eq!(codes, [Some(0), Some(125)], "{both:?}");
    let refused = both.iter().find(|output| output.status.code() == Some(125)).expect("one");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("is still being tried") || said.contains("nothing was changed"), "{said}");
    assert_eq!(record(&place)["ended"], "the job succeeded");
    assert_eq!(verified(&place.bundle()).0, Some(0));
}

#[test]
fn an_attempt_that_is_taken_away_meanwhile_ends_them() {
    let place = place();
    let moved = format!("mv '{0}/attempt-1' '{0}.first'; kill -9 $$", place.bundle().display());
    let wrapped = killed(&place, 1, &moved);
    let ended = retried(place, &["--retry", "5"], &wrapped).end();
    assert_eq!(ended.code(), 125, "{}", ended.stderr);
    assert!(ended.stderr.contains("attempt-1 is missing"), "{}", ended.stderr);
    let record = record(&ended.place);
    assert_eq!(record["attempts"].as_array().map(Vec::len), Some(2), "{record:#}");
    assert!(!ended.place.bundle().join("attempt-3").exists());
}

#[test]
fn attempts_that_are_moved_meanwhile_can_be_finished_where_they_are() {
    let place = place();
    let moved = format!("mv '{0}' '{0}.moved'; kill -9 $$", place.bundle().display());
    let wrapped = killed(&place, 1, &moved);
    let ended = retried(place, &["--retry", "5"], &wrapped).end();
    assert_eq!(ended.code(), 125, "{}", ended.stderr);
    assert!(ended.stderr.contains("was moved or removed while the job was tried"), "{}", ended.stderr);
    assert!(!ended.place.bundle().exists());
    let folder = PathBuf::from(format!("{}.moved", ended.place.bundle().display()));
    let (code, said) = finalized(&folder);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = verified(&folder);
    assert!(code == Some(1) && said.contains("the last of 2 attempts"), "{said}");
}

#[test]
fn the_last_attempt_speaks_for_the_job_and_the_earlier_ones_are_told() {
    let ended = twice();
    let policy = ended.place.file("policy.toml");
    fs::write(&policy, "observed = false\ncriteria = [5]\n").expect("it can be written");
    let review = |path: &Path, policy: &str| {
        let output =
            stuckproof().arg("review").arg(path).args(["--policy", policy]).output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let all = fs::canonicalize(ended.place.bundle()).expect("a folder");
    // Also as one of several folders in a folder.
    let around = PathBuf::from(ended.place.file("all"));
    fs::create_dir(&around).expect("a folder");
    copied(&all, &around.join("job"));
    for folder in [&all, &around] {
        let (code, said) = review(folder, &policy);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("attempt 1: failed (killed_by_host); attempt 2: succeeded"), "{said}");
    }
    let (code, alone) = review(&all.join("attempt-2"), &policy);
    assert!(code == Some(0) && alone.contains("it is attempt 2, judged alone"), "{alone}");
    fs::write(around.join("job/junit.xml"), "").expect("it can be written");
    assert_eq!(review(&around, &policy).0, Some(2));

    let explained = said(&["explain"], &ended.place);
    assert!(
        explained.contains(": succeeded\n  before it, attempt 1: failed (killed_by_host)\n"),
        "{explained}"
    );
    let diff = stuckproof().arg("diff").args([&all, &all.join("attempt-2")]).output().expect("it starts");
    let told = String::from_utf8_lossy(&diff.stderr).into_owned();
    assert_eq!(diff.status.code(), Some(0), "{diff:?}");
    assert!(told.contains("holds several attempts; the last, ") && told.contains("attempt-2"), "{told}");
    let done = stuckproof().arg("finalize").arg(&all).output().expect("it starts");
    assert!(done.status.success(), "{done:?}");
    assert_eq!(verified(&all).0, Some(0), "finalize changes nothing");
}
