//! Starts a step as a host would, and ends it as the host would.

use crate::common::bundle::Bundle;
use crate::common::job::Place;
use crate::common::{PATIENCE, command, now_ns, text, wait_for};
use crate::hosts::{Emulated, Entry, Target};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How often the emulator looks.
const TICK: Duration = Duration::from_millis(5);

/// A process, by its number and its start, which together name it for good.
type Known = (u32, u64);

/// A step that runs.
pub struct Step {
    pub host: &'static Emulated,
    /// Where the bundle is.
    pub bundle: PathBuf,
    place: Place,
    child: Child,
    known: BTreeSet<Known>,
}

/// A step that was ended.
pub struct Ended {
    pub bundle: PathBuf,
    _place: Place,
    /// When the first signal was sent, nanoseconds.
    pub first_ns: u64,
    /// From the first signal to the end of the runner, milliseconds.
    pub runner_ms: f64,
    /// Whether the files of the bundle named the request before the end.
    pub interim: bool,
    /// What stuckproof said.
    pub said: String,
}

impl Step {
    /// Starts `stuckproof run` in a step of the host.
    pub fn start(host: &'static Emulated, entry: Entry, options: &[&str], wrapped: &[String]) -> Self {
        let place = Place::new();
        let mut words: Vec<String> =
            [env!("CARGO_BIN_EXE_stuckproof"), "run", "--bundle", &text(place.bundle())]
                .map(str::to_owned)
                .to_vec();
        words.extend(options.iter().map(|&option| option.to_owned()));
        words.push("--".to_owned());
        words.extend(wrapped.iter().cloned());
        let step = match entry {
            Entry::Direct => {
                let mut direct = command(&words[0]);
                direct.args(&words[1..]).envs(host.variables.iter().copied());
                direct
            }
            Entry::Exec | Entry::Shell | Entry::Trapping => {
                let path = place.file("script.sh");
                fs::write(&path, script(host, entry, &words)).expect("a file");
                let mut shell = command("bash");
                shell.args(["--noprofile", "--norc", "-e", "-o", "pipefail", &path]);
                shell
            }
        };
        let bundle = place.bundle();
        Self::with(host, place, bundle, step)
    }

    /// Starts a step whose command somebody else has made.
    pub fn of(host: &'static Emulated, bundle: PathBuf, step: Command) -> Self {
        Self::with(host, Place::new(), bundle, step)
    }

    fn with(host: &'static Emulated, place: Place, bundle: PathBuf, mut step: Command) -> Self {
        let said = fs::File::create(place.file("said")).expect("a file");
        let child = step
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .expect("the step starts");
        Self { host, bundle, place, child, known: BTreeSet::new() }
    }

    /// The runner's process.
    pub fn runner(&self) -> u32 {
        let header = self.wait_for_event("jobStarted");
        u32::try_from(header["runnerPid"].as_u64().expect("a number")).expect("a process")
    }

    /// Waits for the first event of a kind in the log.
    pub fn wait_for_event(&self, kind: &str) -> Value {
        let bundle = &self.bundle;
        wait_for(&format!("an event {kind}"), || {
            Bundle::lines_so_far(bundle, &[&format!("\"event\":\"{kind}\"")]).into_iter().next()
        })
    }

    /// Waits for the end of a runner that the host has lost.
    pub fn suffer_alone(mut self) -> Ended {
        self.look();
        let runner = self.runner();
        let first_ns = now_ns();
        wait_for("the runner's end", || start_of(runner).is_none().then_some(()));
        self.ended(first_ns, false)
    }

    /// Does to the step what the host does, the first signal as often as this, until the runner has ended.
    pub fn suffer(mut self, times: u32) -> Ended {
        let runner = self.runner();
        let born = start_of(runner).expect("the runner lives");
        self.look();
        let first_ns = now_ns();
        for _ in 1..times {
            self.strike(0);
            std::thread::sleep(Duration::from_millis(20));
        }
        let (mut next, mut interim) = (0, false);
        let since = || (now_ns() - first_ns) as f64 / 1e6;
        while start_of(runner) == Some(born) {
            while self.host.blows.get(next).is_some_and(|blow| since() >= blow.after_ms as f64) {
                self.strike(next);
                next += 1;
            }
            interim |= self.is_interim();
            assert!(since() < PATIENCE.as_millis() as f64, "the runner of {} never ends", self.host.name);
            // Shells that wait are reaped here.
            let _ = self.child.try_wait();
            std::thread::sleep(TICK);
        }
        self.ended(first_ns, interim)
    }

    fn ended(mut self, first_ns: u64, interim: bool) -> Ended {
        let runner_ms = (now_ns() - first_ns) as f64 / 1e6;
        self.child.wait().expect("the entry is our child");
        wait_for("the end of every process", || self.known.iter().all(|known| !lives(*known)).then_some(()));
        let said = fs::read_to_string(self.place.file("said")).expect("a file");
        Ended { bundle: self.bundle, _place: self.place, first_ns, runner_ms, interim, said }
    }

    /// Whether the files in the bundle tell of a request and of no end.
    fn is_interim(&self) -> bool {
        let evidence = fs::read_to_string(self.bundle.join("evidence.json")).unwrap_or_default();
        evidence.contains("\"state\": \"cancelling\"") && evidence.contains("\"finished\": false")
    }

    fn strike(&mut self, number: usize) {
        let blow = self.host.blows[number];
        self.look();
        let entry = self.child.id();
        // One that has ended meanwhile needs no signal.
        let send = |pid: u32| {
            let _ = kill_process(number_of(pid), blow.signal);
        };
        match blow.target {
            Target::Entry => send(entry),
            Target::Group => {
                let _ = kill_process_group(number_of(entry), blow.signal);
            }
            Target::Children => children(entry).into_iter().for_each(send),
            Target::Everybody | Target::AllButEntry => {
                let all = self.known.iter().rev().filter(|known| lives(**known)).map(|(pid, _)| *pid);
                all.filter(|pid| blow.target == Target::Everybody || *pid != entry).for_each(send);
            }
        }
    }

    /// Adds whatever has come from the step by now to what is known.
    fn look(&mut self) {
        let mut waiting = vec![self.child.id()];
        waiting.extend(self.known.iter().map(|(pid, _)| *pid));
        while let Some(pid) = waiting.pop() {
            if let Some(start) = start_of(pid) {
                self.known.insert((pid, start));
                waiting.extend(children(pid));
            }
        }
    }

    /// Kills everything of the step at once, as the end of a container does.
    pub fn lose_everything(mut self) {
        self.runner();
        self.look();
        for known in self.known.iter().filter(|known| lives(**known)) {
            // One that has ended meanwhile needs no signal.
            let _ = kill_process(number_of(known.0), Signal::KILL);
        }
        self.child.wait().expect("the entry is our child");
        wait_for("the end of every process", || self.known.iter().all(|known| !lives(*known)).then_some(()));
    }

    /// Signals the entry alone, and tells whether stuckproof had heard of it by the time that the entry has ended.
    pub fn is_reached_by(&mut self, signal: Signal) -> bool {
        kill_process(number_of(self.child.id()), signal).expect("the entry lives");
        wait_for("the end of the entry", || self.child.try_wait().expect("it is our child"));
        !Bundle::lines_so_far(&self.bundle, &["\"event\":\"cancelRequested\""]).is_empty()
    }
}

/// The script of a step, as the host writes it into a file.
fn script(host: &Emulated, entry: Entry, words: &[String]) -> String {
    let exported = host.variables.iter().map(|(name, value)| format!("export {name}={value}\n"));
    let command: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let command = command.join(" ");
    let last = match entry {
        Entry::Exec | Entry::Direct => format!("exec {command}\n"),
        // Some shells become their last command.
        Entry::Shell => format!("{command}\necho done\n"),
        Entry::Trapping => format!("trap 'exit 1' TERM\n{command}\necho done\n"),
    };
    exported.chain([last]).collect()
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn number_of(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).expect("a process")).expect("a process")
}

fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// When a process that lives was started, in ticks.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    (!matches!(fields[0], "Z" | "X")).then(|| fields[19].parse().expect("a number"))
}

fn lives((pid, start): Known) -> bool {
    start_of(pid) == Some(start)
}
