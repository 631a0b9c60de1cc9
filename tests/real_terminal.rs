//! A real build at a real pseudo-terminal.

mod common;

use common::bundle::Bundle;
use common::job::{Place, stuckproof};
use common::witness::wait_for_long_step;
use common::{PATIENCE, command, model, script, wait_for};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const CTRL_C: &[u8] = b"\x03";

/// A person's terminal with a job in its foreground.
struct Terminal {
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    runner: Child,
}

impl Terminal {
    /// Starts a job whose three streams are the terminal. The screen is read all the time, as terminals do.
    fn start(place: &Place, options: &[&str], wrapped: &[String]) -> Self {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("a pseudo-terminal");
        let name = ptsname(&keyboard, Vec::new()).expect("a name").into_string().expect("UTF-8");
        let side = || OpenOptions::new().read(true).write(true).open(&name).expect("the terminal opens");
        let run = place.run(options, wrapped);
        let mut session = command("setsid");
        session.arg("--ctty").arg(run.get_program()).args(run.get_args());
        let runner = session.stdin(side()).stdout(side()).stderr(side()).spawn().expect("setsid starts");
        let keyboard = File::from(keyboard);
        let screen = follow(keyboard.try_clone().expect("a second handle"));
        Self { keyboard, screen, runner }
    }

    fn press(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).expect("the terminal takes keys");
    }

    /// The runner's exit code, and everything that was on the screen.
    fn end(mut self) -> (Option<i32>, String) {
        let status = wait_for("the runner's end", || self.runner.try_wait().expect("our child"));
        let mut shown = Vec::new();
        while let Ok(more) = self.screen.recv_timeout(PATIENCE) {
            shown.extend(more);
        }
        (status.code(), String::from_utf8_lossy(&shown).into_owned())
    }
}

/// Reads until the last process has closed the terminal.
fn follow(mut screen: File) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 65536];
        while let Ok(count @ 1..) = screen.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

/// A shell that first reads the terminal, then builds.
fn reading_build(place: &Place) -> Vec<String> {
    let build = script("user_monitor.py", &[&model("slow"), &place.file("engine"), &place.file("stamps")]);
    let line = format!("cat; echo the terminal was read; exec {}", build.join(" "));
    vec!["sh".into(), "-c".into(), line]
}

fn wait_for_request(place: &Place, number: usize) {
    wait_for("the request", || {
        let requests = Bundle::lines_so_far(&place.bundle(), &["\"cancelRequested\""]);
        (requests.len() == number).then_some(())
    });
}

#[test]
fn the_first_ctrl_c_cancels() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, &[], &reading_build(&place));
    wait_for_long_step(&place.file("stamps"));
    terminal.press(CTRL_C);
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(1), "{shown}");
    assert!(shown.contains("the terminal was read"), "{shown}");
    let bundle = Bundle::load(&place.bundle());
    bundle.assert_state("cancelled", Some("ctrl_c"));
    assert_eq!(bundle.evidence["requests"][0]["outcome"], "delivered");
    assert_eq!(bundle.summary["cancelSource"], "ctrl_c");
}

#[test]
fn the_second_ctrl_c_kills() {
    let place = Place::new();
    let mut terminal = Terminal::start(&place, &[], &reading_build(&place));
    wait_for_long_step(&place.file("stamps"));
    terminal.press(CTRL_C);
    wait_for_request(&place, 1);
    std::thread::sleep(Duration::from_millis(300));
    terminal.press(CTRL_C);
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(128 + 9), "{shown}");
    let bundle = Bundle::load(&place.bundle());
    bundle.assert_state("failed", Some("killed_by_runner"));
    let requests = bundle.evidence["requests"].as_array().expect("a list");
    let facts: Vec<_> = requests.iter().map(|r| (r["accepted"].as_bool(), r["kill"].as_bool())).collect();
    assert_eq!(facts, [(Some(true), Some(false)), (Some(false), Some(true))]);
    let rungs: Vec<_> = bundle.of_kind("ladderRung").filter_map(|e| e["rung"].as_str()).collect();
    assert_eq!(rungs, ["cooperative", "SIGKILL"]);
}

#[test]
fn a_child_of_a_terminal_of_its_own_reads_what_is_typed() {
    let place = Place::new();
    let wrapped = ["sh".to_owned(), "-c".to_owned(), "read line; echo \"[$line]\"; test -t 1".to_owned()];
    let mut terminal = Terminal::start(&place, &["--tty"], &wrapped);
    terminal.press(b"typed\r");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("[typed]"), "{shown}");
    let shown_by_us = stuckproof().arg("show").arg(place.bundle()).output().expect("it starts");
    assert!(shown_by_us.status.success());
    assert!(!shown_by_us.stdout.contains(&0x1b), "no escape sequence reaches what is no terminal");
}
