//! The command's output reaches ours byte for byte, in order, whatever becomes of its reader.

use crate::rig::{Place, end_of, finish, signal, wait_until};
use std::fs;
use std::io::Read;
use std::process::Stdio;

/// 100 MB in which every line is different.
const HUNDRED_MB: &str = "awk 'BEGIN { for (i = 0; i < 1562500; i++) printf \"%063d\\n\", i }'";

fn hundred_mb() -> impl Iterator<Item = u8> {
    (0..1_562_500).flat_map(|i| format!("{i:063}\n").into_bytes())
}

#[test]
fn each_stream_arrives_as_it_was_written() {
    let place = Place::new();
    let done = place.ran(&[], "printf 'out\\000\\377\\n'; printf 'err\\001no newline' >&2");
    done.assert_code(0);
    assert_eq!(done.stdout, b"out\x00\xff\n");
    assert!(done.stderr.contains("err\u{1}no newline"));
    assert_eq!(fs::read(place.path("bundle/stdout.log")).unwrap(), b"out\x00\xff\n");
    assert_eq!(fs::read(place.path("bundle/stderr.log")).unwrap(), b"err\x01no newline");
    assert_eq!(place.event("jobStarted")["streams"], "separate");
    assert!(done.stderr.ends_with("stuckproof: evidence: bundle\n"), "{}", done.stderr);
}

#[test]
fn a_common_stream_keeps_the_order() {
    let place = Place::new();
    let out = fs::File::create(place.path("both")).unwrap();
    let script = "for i in $(seq 200); do echo out $i; echo err $i >&2; done";
    let mut command = place.run(&[], script);
    command.stdout(out.try_clone().unwrap()).stderr(out);
    finish(command.spawn().unwrap()).assert_code(0);
    let expected: String = (1..=200).flat_map(|i| [format!("out {i}\n"), format!("err {i}\n")]).collect();
    let both = fs::read_to_string(place.path("both")).unwrap();
    assert!(both.starts_with(&expected));
    assert!(both[expected.len()..].lines().all(|l| l.starts_with("stuckproof: ")), "ours comes last");
    assert_eq!(fs::read_to_string(place.path("bundle/stdout.log")).unwrap(), expected);
    assert!(!place.path("bundle/stderr.log").exists());
    assert_eq!(place.event("jobStarted")["streams"], "merged");
}

#[test]
fn a_hundred_megabytes_pass_whole_and_the_bundle_keeps_what_it_may() {
    let place = Place::new();
    let done = place.ran(&["--output-cap", "1MiB"], HUNDRED_MB);
    done.assert_code(0);
    assert_eq!(done.stdout.len(), 100_000_000);
    assert!(done.stdout.iter().copied().eq(hundred_mb()));
    let kept = fs::read(place.path("bundle/stdout.log")).unwrap();
    let half = 512 * 1024;
    assert_eq!(kept[..half], done.stdout[..half]);
    assert_eq!(kept[kept.len() - half..], done.stdout[done.stdout.len() - half..]);
    let between = String::from_utf8(kept[half..kept.len() - half].to_vec()).unwrap();
    let missing = 100_000_000 - 2 * half;
    assert_eq!(between.trim(), format!("[stuckproof: {missing} bytes were left out here]"));
}

#[test]
fn a_reader_that_stalls_does_not_stall_the_command() {
    let place = Place::new();
    let script = "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; touch written";
    let mut child = place.run(&[], script).spawn().unwrap();
    // Nobody reads, and a pipe holds far less than this.
    wait_until("the command has written everything", || place.path("written").exists());
    wait_until("the evidence is complete", || {
        fs::read_to_string(place.path("bundle/evidence.json")).is_ok_and(|t| t.contains("\"finished\": true"))
    });
    assert_eq!(place.event("jobEnded")["state"], "succeeded");
    assert!(child.try_wait().unwrap().is_none(), "the output still waits for its reader");
    let done = finish(child);
    done.assert_code(0);
    assert_eq!(done.stdout.len(), 3_000_000);
}

#[test]
fn a_signal_gives_up_on_a_reader_that_stalls() {
    let place = Place::new();
    let mut child = place.run(&[], "head -c 3000000 /dev/zero; touch written").spawn().unwrap();
    wait_until("the evidence is complete", || {
        fs::read_to_string(place.path("bundle/evidence.json")).is_ok_and(|t| t.contains("\"finished\": true"))
    });
    // One that came before the runner began to wait would be the job's, not the output's.
    wait_until("the runner gives up", || {
        signal(&child, "TERM");
        std::thread::sleep(std::time::Duration::from_millis(20));
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(end_of(&mut child).code(), Some(0));
    assert!(place.events_of("cancelRequested").is_empty(), "the job was over: nothing of it may change");
}

#[test]
fn a_reader_that_dies_does_not_kill_the_command() {
    let place = Place::new();
    let script = "i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); done; touch half; \
                  while [ ! -e go ]; do sleep 0.01; done; head -c 3000000 /dev/zero; exit 7";
    let mut child = place.run(&[], script).spawn().unwrap();
    let mut first = [0; 4];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"line");
    drop(child.stdout.take());
    drop(child.stderr.take());
    wait_until("the command is half way", || place.path("half").exists());
    fs::write(place.path("go"), "").unwrap();
    assert_eq!(end_of(&mut child).code(), Some(7));
    assert_eq!(place.event("commandExited")["code"], 7);
    assert!(fs::metadata(place.path("bundle/stdout.log")).unwrap().len() > 3_000_000);
}

#[test]
fn output_comes_while_the_command_runs() {
    // The second line comes when the files are watched, which they are not from the beginning.
    let script = "echo first; sleep 1; echo second; while [ ! -e go ]; do sleep 0.01; done; echo third";
    for options in [&[][..], &["--no-output-copy"]] {
        let place = Place::new();
        let mut runner = place.run(options, script).spawn().unwrap();
        let mut out = runner.stdout.take().unwrap();
        let mut early = [0; 13];
        out.read_exact(&mut early).unwrap();
        assert_eq!(&early, b"first\nsecond\n");
        fs::write(place.path("go"), "").unwrap();
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "third\n");
        assert!(end_of(&mut runner).success());
    }
}

#[test]
fn standard_input_is_the_commands() {
    let place = Place::new();
    fs::write(place.path("input"), "from outside\n").unwrap();
    let mut command = place.run(&[], "cat");
    command.stdin(Stdio::from(fs::File::open(place.path("input")).unwrap()));
    assert_eq!(finish(command.spawn().unwrap()).stdout(), "from outside\n");
}
