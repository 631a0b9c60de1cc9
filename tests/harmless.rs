//! Programs that have nothing to do with TensorRT run as they would alone.

mod common;

use common::job::{Job, Place};
use common::{command, program};
use std::io::Write;
use std::process::{Command, Output, Stdio};

const INPUT: &[u8] = b"some input\n";

fn with_input(mut command: Command) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the program starts");
    // A program that does not read its input may be gone already.
    let _ = child.stdin.take().expect("a pipe").write_all(INPUT);
    child.wait_with_output().expect("the program ends")
}

/// The same output on both streams, the same exit code, and an evidence that says that no builder was seen.
fn assert_unharmed(wrapped: &[String]) {
    let mut bare = command(&wrapped[0]);
    bare.args(&wrapped[1..]);
    let alone = with_input(bare);

    let place = Place::new();
    let mut run = place.run(&[], wrapped);
    let input = place.file("input");
    std::fs::write(&input, INPUT).expect("the input is written");
    run.stdin(std::fs::File::open(input).expect("the input is there"));
    let ended = Job::start(place, run).end();

    assert_eq!(ended.stdout, String::from_utf8_lossy(&alone.stdout));
    assert_eq!(ended.foreign_stderr(), String::from_utf8_lossy(&alone.stderr));
    assert_eq!(Some(ended.code()), alone.status.code());
    assert_eq!(ended.announced(), Some(&*ended.place.bundle()));
    let bundle = ended.bundle();
    assert_eq!(bundle.evidence["observed"], false);
    match ended.code() {
        0 => bundle.assert_state("succeeded", None),
        _ => bundle.assert_state("failed", Some("command")),
    }
}

fn assert_program_unharmed(name: &str, arguments: &[&str]) {
    let start = [program(name)];
    let wrapped: Vec<String> = start.into_iter().chain(arguments.iter().map(|&a| a.to_owned())).collect();
    assert_unharmed(&wrapped);
}

#[test]
fn a_glibc_program() {
    assert_program_unharmed("plain", &["one", "two words", "-- --deadline"]);
}

#[test]
fn a_static_program() {
    assert_program_unharmed("plain-static", &["one"]);
}

#[test]
fn a_musl_program() {
    assert_program_unharmed("plain-musl", &["one"]);
}

#[test]
fn programs_with_threads() {
    assert_program_unharmed("threads", &[]);
    assert_program_unharmed("threads-musl", &[]);
}

#[test]
fn a_program_under_address_sanitizer() {
    assert_program_unharmed("threads-asan", &[]);
}

#[test]
fn a_program_under_thread_sanitizer() {
    assert_program_unharmed("threads-tsan", &[]);
}

#[test]
fn a_program_that_looks_symbols_up_in_every_way() {
    assert_program_unharmed("lookups", &[]);
}

#[test]
fn a_musl_program_that_looks_symbols_up_in_every_way() {
    assert_program_unharmed("lookups-musl", &[]);
}

#[test]
fn programs_that_start_children_in_every_way() {
    assert_program_unharmed("children", &[]);
    assert_program_unharmed("children-musl", &[]);
}

#[test]
fn a_shell_pipeline() {
    let line = "seq 1 1000 | sort -rn | tail -n 3; cat; echo to stderr >&2; exit 3";
    assert_unharmed(&["sh".into(), "-c".into(), line.into()]);
}

#[test]
fn a_program_that_succeeds() {
    assert_program_unharmed("environment", &[]);
    assert_unharmed(&["true".into()]);
}

#[test]
fn another_preload_inside_the_job_keeps_its_place() {
    let line = format!("LD_PRELOAD={}:$LD_PRELOAD exec {}", program("counting.so"), program("environment"));
    assert_unharmed(&["sh".into(), "-c".into(), line]);
}

#[test]
fn another_preload_around_the_job_keeps_its_place() {
    let counted = |mut command: Command| {
        command.env("LD_PRELOAD", program("counting.so"));
        command
    };
    let alone = with_input(counted(command(&program("environment"))));
    assert_eq!(alone.stderr, b"setenv was called 3 times\n");

    let place = Place::new();
    let run = counted(place.run(&[], &[program("environment")]));
    let ended = Job::start(place, run).end();
    assert_eq!(ended.code(), 0, "{}", ended.stderr);
    let kept =
        |name: &str| std::fs::read(ended.place.bundle().join(name)).expect("the bundle keeps the streams");
    assert_eq!(kept("stdout.log"), alone.stdout);
    assert_eq!(kept("stderr.log"), alone.stderr);
}
