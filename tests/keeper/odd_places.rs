//! Odd file systems, containers, limits and users. What the machine does not allow fails, unless its user goes
//! without it by name.

use crate::rig::{Done, Place, STUCKPROOF, finish, names};
use crate::watch::{marked, pid_in};
use crate::without::goes_without;
use std::fs;
use std::process::Command;

/// Runs a script as root of namespaces of its own, in the place's folder, with the program as `$S`.
fn apart(place: &Place, namespaces: &[&str], script: &str) -> Done {
    let mut command = Command::new("unshare");
    place.furnish(&mut command);
    command.args(["--user", "--map-root-user"]).args(namespaces);
    finish(command.args(["sh", "-ec", script]).env("S", STUCKPROOF).spawn().unwrap())
}

/// Whether this machine lets its users make such namespaces.
fn can_be_apart(namespaces: &[&str]) -> bool {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user"]).args(namespaces).arg("true");
    let can = command.output().is_ok_and(|done| done.status.success());
    can || !goes_without("namespaces")
}

/// A job on the file system at `odd`, from its start to its evidence, copied back for a look.
const WHOLE_JOB: &str = "cd odd; $S run --bundle bundle -- sh -c 'echo out; echo err >&2; (sleep 0.05; :) & exit 0'; \
                         cp -r bundle ..";

fn assert_whole(place: &Place, done: &Done) {
    done.assert_code(0);
    assert_eq!(place.event("jobEnded")["state"], "succeeded");
    assert_eq!(fs::read_to_string(place.path("bundle/stdout.log")).unwrap(), "out\n");
    assert_eq!(place.json("evidence.json")["finished"], true);
    assert_eq!(place.json("evidence.json")["lost"].as_array().map(Vec::len), Some(0));
}

#[test]
fn on_tmpfs() {
    if can_be_apart(&["--mount"]) {
        let place = Place::new();
        let script = format!("mkdir odd; mount -t tmpfs odd odd; {WHOLE_JOB}");
        assert_whole(&place, &apart(&place, &["--mount"], &script));
        assert!(place.event("jobStarted")["wire"].as_str().unwrap().ends_with("in the bundle"));
    }
}

#[test]
fn on_an_overlay() {
    if can_be_apart(&["--mount"]) {
        let place = Place::new();
        // An overlay wants layers that are not on an overlay themselves, as they would be in many a container.
        let script = format!(
            "mkdir odd base; mount -t tmpfs base base; mkdir base/low base/up base/work; \
             mount -t overlay -o lowerdir=base/low,upperdir=base/up,workdir=base/work odd odd; {WHOLE_JOB}"
        );
        assert_whole(&place, &apart(&place, &["--mount"], &script));
    }
}

#[test]
fn on_fuse_the_wire_lies_elsewhere() {
    let place = Place::new();
    for folder in ["under", "odd"] {
        fs::create_dir(place.path(folder)).unwrap();
    }
    let mounted = Command::new("bindfs").arg(place.path("under")).arg(place.path("odd")).output();
    if !mounted.is_ok_and(|done| done.status.success()) && goes_without("bindfs") {
        return;
    }
    let mut command = Command::new("sh");
    place.furnish(&mut command);
    let done = finish(command.args(["-ec", WHOLE_JOB]).env("S", STUCKPROOF).spawn().unwrap());
    let unmounted = Command::new("umount").arg(place.path("odd")).status().unwrap();
    assert!(unmounted.success());
    assert_whole(&place, &done);
    let wire = place.event("jobStarted")["wire"].as_str().unwrap().to_owned();
    assert!(wire.contains("(FUSE) cannot be trusted with shared mappings"), "{wire}");
    let folder = wire.split_once(": ").unwrap().0;
    assert!(!fs::exists(folder).unwrap(), "{folder} is taken away in the end");
}

#[test]
fn a_read_only_folder_is_refused_before_anything_runs() {
    if can_be_apart(&["--mount"]) {
        let place = Place::new();
        let script = "mkdir odd; mount -t tmpfs -o ro odd odd; \
                      $S run --bundle odd/bundle -- touch ran || echo code $?";
        let done = apart(&place, &["--mount"], script);
        assert_eq!(done.stdout(), "code 125\n");
        assert!(done.stderr.contains("not mounted read-only"), "{}", done.stderr);
        assert!(!place.path("ran").exists());
    }
}

#[test]
fn a_full_disk_never_harms_the_command_and_loses_nothing_that_fits_into_the_reserve() {
    if can_be_apart(&["--mount"]) {
        let place = Place::new();
        // The first is full before the job begins, the second while it runs.
        let script = "mkdir odd; mount -t tmpfs -o size=1m odd odd; cd odd; \
                      head -c 2m /dev/zero > fill 2>/dev/null || true; \
                      $S run --bundle full -- touch ../ran || echo code $?; \
                      rm -r fill full; \
                      $S run --bundle bundle -- sh -c \
                         'head -c 2m /dev/zero > fill 2>/dev/null; echo unharmed > ../told; exit 0' && \
                      grep finished\\\" bundle/evidence.json";
        let done = apart(&place, &["--mount"], script);
        assert_eq!(done.stdout(), "code 125\n  \"finished\": true,\n", "{}", done.stderr);
        assert!(!place.path("ran").exists(), "nothing is run without a place for its evidence");
        assert_eq!(fs::read_to_string(place.path("told")).unwrap(), "unharmed\n");
        assert!(done.stderr.contains("free some space"), "{}", done.stderr);
    }
}

#[test]
fn a_job_that_a_full_disk_keeps_from_beginning_is_finished_and_blames_nobody() {
    if can_be_apart(&["--mount"]) {
        let place = Place::new();
        // Somewhere in here there is room for the log's beginning, and none for the evidence beside it.
        let script = "mkdir odd seen; mount -t tmpfs -o size=2m odd odd; \
                      for free in $(seq 256 4 340); do \
                        rm -rf odd/* ran; head -c $((2048 - free))k /dev/zero > odd/fill; \
                        $S run --bundle odd/bundle -- touch ran || true; \
                        if [ ! -e ran ] && [ -s odd/bundle/events.jsonl ]; then \
                          rm odd/fill; $S finalize odd/bundle > said; \
                          $S verify odd/bundle > said || echo verified $?; \
                          cp odd/bundle/evidence.json seen/$free.json; \
                        fi; \
                      done";
        let done = apart(&place, &["--mount"], script);
        let seen = names(&place.path("seen"));
        assert!(!seen.is_empty(), "no size met that moment: {}", done.stderr);
        assert_eq!(done.stdout(), "verified 1\n".repeat(seen.len()), "{}", done.stderr);
        for name in seen {
            let text = fs::read(place.path("seen").join(name)).unwrap();
            let evidence: serde_json::Value = serde_json::from_slice(&text).unwrap();
            assert_eq!(evidence["cause"], "evidence_lost", "{evidence:#}");
            let why = evidence["lost"][0]["reason"].as_str().unwrap();
            assert!(why.starts_with("the command was not started: cannot write"), "{why}");
            assert!(why.contains("No space left"), "{why}");
        }
    }
}

#[test]
fn a_bundle_that_is_moved_or_removed_is_said_and_can_be_finished_where_it_is() {
    for (script, left) in
        [("mv bundle elsewhere; echo told", true), ("until rm -rf bundle; do :; done; echo told", false)]
    {
        let place = Place::new();
        let done = place.ran(&[], script);
        done.assert_code(125);
        assert_eq!(done.stdout(), "told\n", "the command is none the worse for it");
        assert!(done.stderr.contains("bundle was moved or removed while the job ran"), "{}", done.stderr);
        assert!(!fs::exists(place.path("bundle")).unwrap(), "nothing of it is made anew");
        assert_eq!(fs::exists(place.path("elsewhere")).unwrap(), left);
        if left {
            place.verb(&["finalize", "elsewhere"]).assert_code(0);
            let verified = place.verb(&["verify", "elsewhere"]);
            verified.assert_code(1);
            let output = fs::read_to_string(place.path("elsewhere/stdout.log")).unwrap();
            assert_eq!(output, "told\n");
        }
    }
}

#[test]
fn as_the_first_process_of_a_container() {
    let namespaces = ["--pid", "--fork", "--mount-proc"];
    if can_be_apart(&namespaces) {
        let place = Place::new();
        let script = "exec $S run --bundle bundle -- sh -c 'echo $$ > command; (setsid sleep 100 &); exit 3'";
        apart(&place, &namespaces, script).assert_code(3);
        assert_eq!(place.event("jobStarted")["runnerPid"], 1);
        assert_eq!(place.event("commandStarted")["pid"], pid_in(&place, "command"));
        assert_eq!(place.event("leftoverFound")["name"], "sleep");
        assert_eq!(marked(&place.job()), []);
    }
}

#[test]
fn without_proc() {
    if can_be_apart(&["--mount"]) {
        let place = Place::new();
        let script = "mount -t tmpfs none /proc; \
                      $S run --bundle bundle --kill-after 200ms -- \
                         sh -c 'sleep 100 & echo $! > helper; echo ready; exit 0'";
        let done = apart(&place, &["--mount"], script);
        done.assert_code(0);
        assert_eq!(place.event("jobEnded")["state"], "succeeded");
        assert_eq!(place.rungs(), ["SIGTERM"], "the group can still be ended");
        assert_eq!(crate::watch::look(pid_in(&place, "helper")), None);
    }
}

#[test]
fn with_few_descriptors() {
    let limited = |limit: u32, place: &Place| {
        let mut command = Command::new("sh");
        place.furnish(&mut command);
        let script =
            format!("ulimit -n {limit}; exec {STUCKPROOF} run --bundle bundle -- sh -c 'echo ran; exit 4'");
        finish(command.args(["-c", &script]).spawn().unwrap())
    };
    let place = Place::new();
    limited(40, &place).assert_code(4);
    // Too few for anything are a refusal in words, whichever step meets the limit.
    for limit in 4..40 {
        let place = Place::new();
        let done = limited(limit, &place);
        assert!(
            matches!(done.code(), Some(4 | 125 | 126 | 127)),
            "{limit}: {:?} {}",
            done.status,
            done.stderr
        );
        assert!(!done.stderr.contains("panicked"), "{limit}: {}", done.stderr);
        assert!(done.code() == Some(4) || !done.stderr.is_empty(), "{limit}: nothing is said");
    }
}

#[test]
fn as_another_user() {
    if !rustix::process::geteuid().is_root() && goes_without("root") {
        return;
    }
    let place = Place::new();
    let folder = place.path("theirs");
    fs::create_dir(&folder).unwrap();
    std::os::unix::fs::chown(&folder, Some(65534), Some(65534)).unwrap();
    let mut command = Command::new("setpriv");
    place.furnish(&mut command);
    open_to_all(&place);
    let program = place.path("stuckproof");
    fs::copy(STUCKPROOF, &program).unwrap();
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&program);
    command
        .current_dir(&folder)
        .env_remove("XDG_RUNTIME_DIR")
        .env("TMPDIR", &folder)
        .env("XDG_CACHE_HOME", &folder);
    command.args(["run", "--bundle", "bundle", "--", "sh", "-c", "id -u; exit 0"]);
    let done = finish(command.spawn().unwrap());
    done.assert_code(0);
    assert_eq!(done.stdout(), "65534\n");
    assert!(folder.join("bundle/evidence.json").exists());
}

/// Lets everybody into the place's folder.
fn open_to_all(place: &Place) {
    use std::os::unix::fs::PermissionsExt;
    let folder = place.path(".");
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
}
