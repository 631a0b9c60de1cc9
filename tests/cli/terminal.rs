//! A person at a real terminal.

use crate::rig::{Place, STUCKPROOF, end_of, wait_until};
use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A terminal with somebody in front of it.
struct Screen {
    keyboard: File,
    /// Kept open, so that the terminal outlives the program on it.
    side: OwnedFd,
    shown: Arc<Mutex<Vec<u8>>>,
}

impl Screen {
    fn new() -> Self {
        let master =
            rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let side = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
        let keyboard = File::from(master);
        let screen = Self { keyboard, side, shown: Arc::default() };
        screen.resize(31, 97);
        let (mut from, to) = (screen.keyboard.try_clone().unwrap(), Arc::clone(&screen.shown));
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(n) = from.read(&mut chunk) {
                to.lock().unwrap().extend_from_slice(&chunk[..n]);
            }
        });
        screen
    }

    fn resize(&self, rows: u16, columns: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keyboard, size).unwrap();
    }

    /// Runs `stuckproof run OPTIONS -- sh -c SCRIPT` as the foreground program of this terminal.
    fn run(&self, place: &Place, options: &[&str], script: &str) -> Child {
        self.start(place, &[options, &["--", "sh", "-c", script]].concat())
    }

    fn start(&self, place: &Place, arguments: &[&str]) -> Child {
        let mut command = Command::new(STUCKPROOF);
        place.furnish(&mut command);
        let side = || Stdio::from(self.side.try_clone().unwrap());
        // The hidden verb makes a session with this terminal, as a login would.
        command.args(["__exec", "--terminal", "--", STUCKPROOF, "run", "--bundle", "bundle"]);
        command.args(arguments).stdin(side()).stdout(side()).stderr(side()).spawn().unwrap()
    }

    fn press(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).unwrap();
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.shown.lock().unwrap()).into_owned()
    }

    fn wait_for(&self, text: &str) {
        wait_until(&format!("the screen shows {text:?}"), || self.text().contains(text));
    }

    fn echoes(&self) -> bool {
        tcgetattr(&self.side).unwrap().local_modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }
}

const CTRL_C: &[u8] = b"\x03";

#[test]
fn the_first_ctrl_c_asks_and_the_second_kills() {
    let (place, mut screen) = (Place::new(), Screen::new());
    let stubborn =
        "trap 'touch asked' TERM; trap 'touch interrupted' INT; echo ready; while :; do sleep 0.02; done";
    let mut child = screen.run(&place, &["--kill-after", "1h"], stubborn);
    screen.wait_for("ready");
    screen.press(CTRL_C);
    wait_until("the command was asked", || place.path("asked").exists());
    screen.wait_for("Ctrl-C once more kills the command");
    std::thread::sleep(stuckproof::cancel::SAME_INTERRUPT + Duration::from_millis(50));
    screen.press(CTRL_C);
    assert_eq!(end_of(&mut child).code(), Some(128 + 9));
    assert!(!place.path("interrupted").exists(), "the terminal's own signal must not reach the command");
    let requests = place.events_of("cancelRequested");
    assert_eq!(requests.len(), 2);
    assert_eq!((&requests[0]["source"], &requests[0]["kill"]), (&"ctrl_c".into(), &false.into()));
    assert_eq!((&requests[1]["accepted"], &requests[1]["kill"]), (&false.into(), &true.into()));
    assert_eq!(place.rungs(), ["cooperative", "SIGTERM", "SIGKILL"]);
    assert_eq!(place.events_of("ladderRung")[2]["why"], "kill requested");
    assert_eq!(place.event("jobStarted")["graceMs"], serde_json::Value::Null);
}

#[test]
fn a_command_that_reads_the_terminal_does_not_stop() {
    let (place, screen) = (Place::new(), Screen::new());
    // Reading from a background group would stop it for ever.
    let script = "cat; echo read $?; (read x < /dev/tty) 2>/dev/null; echo opened $?; exit 6";
    let mut child = screen.run(&place, &[], script);
    assert_eq!(end_of(&mut child).code(), Some(6));
    let said = fs::read_to_string(place.path("bundle/stdout.log")).unwrap();
    assert!(said.starts_with("read 0\nopened "), "{said}");
    assert!(!said.contains("opened 0"), "there is no terminal for it: {said}");
    screen.wait_for("evidence: bundle");
}

#[test]
fn a_command_with_a_terminal_has_its_size_and_its_keys() {
    let (place, mut screen) = (Place::new(), Screen::new());
    let script = "test -t 0 && test -t 1 && test -t 2 && echo all three; stty size < /dev/tty; \
                  read line; echo \"got $line\"; trap 'stty size; exit 6' WINCH; echo ready; \
                  while :; do sleep 0.02; done";
    let mut child = screen.run(&place, &["--tty"], script);
    screen.wait_for("31 97");
    assert!(!screen.echoes(), "the command's terminal echoes, not ours");
    screen.press(b"typed\r");
    screen.wait_for("got typed");
    screen.wait_for("ready");
    screen.resize(40, 120);
    assert_eq!(end_of(&mut child).code(), Some(6));
    let said = fs::read_to_string(place.path("bundle/stdout.log")).unwrap();
    assert!(said.starts_with("all three\r\n31 97\r\n"), "{said}");
    assert!(said.contains("40 120"), "{said}");
    assert!(screen.echoes(), "the terminal is as it was");
    assert_eq!(place.event("jobStarted")["streams"], "terminal");
}

#[test]
fn ctrl_c_is_ours_with_a_terminal_for_the_command_as_well() {
    let (place, mut screen) = (Place::new(), Screen::new());
    let script = "trap 'touch interrupted' INT; trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    let mut child = screen.run(&place, &["--tty"], script);
    screen.wait_for("ready");
    screen.press(CTRL_C);
    assert_eq!(end_of(&mut child).code(), Some(9));
    assert!(!place.path("interrupted").exists());
    assert_eq!(place.event("cancelRequested")["source"], "ctrl_c");
    assert!(screen.echoes(), "the terminal is as it was");
}

#[test]
fn a_terminal_can_be_given_where_there_is_none() {
    let place = Place::new();
    let done = place.ran(&["--tty"], "test -t 1 && stty size; cat; echo end");
    done.assert_code(0);
    let said = done.stdout();
    assert!(said.starts_with("24 80\r\n"), "{said}");
    assert!(said.ends_with("end\r\n"), "the end of our input is the end of its: {said}");
}

#[test]
fn a_command_that_is_not_there_is_said_so_at_a_terminal_as_well() {
    let (place, screen) = (Place::new(), Screen::new());
    let mut child = screen.run(&place, &[], "exec no-such-command-anywhere");
    assert_eq!(end_of(&mut child).code(), Some(127));

    let (place, screen) = (Place::new(), Screen::new());
    let mut child = screen.start(&place, &["--", "no-such-command-anywhere"]);
    assert_eq!(end_of(&mut child).code(), Some(127));
    screen.wait_for("stuckproof: cannot run no-such-command-anywhere: not found");
    assert_eq!(place.event("jobEnded")["exitCode"], 127);
}
