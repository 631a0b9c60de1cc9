//! A job as its runner would have put it on record, up to any moment: a real log, real records on a wire, a real control
//! page.

use crate::common::chance::Chance;
use crate::segments::Chain;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stuckproof::clock::Mono;
use stuckproof::event::{
    BuildFacts, CancelRequested, CancelSource, CommandExited, CommandStarted, Event, EventKind, JobEnded,
    JobStarted, LogReader, LogWriter,
};
use stuckproof::evidence::{self, Evidence};
use stuckproof::mask::Secrets;
use stuckproof::observe::Tracker;
use stuckproof::resume::{Known, ResumeError, finish};
use stuckproof::verdict::judge;
use stuckproof::wire::{Body, Control, LibraryFacts, Method, ProcessKey, Record, Requested, Severity};
use tempfile::TempDir;

/// When jobs begin here, nanoseconds.
pub const START: u64 = 5_000_000_000;
/// The command's process.
pub const COMMAND: u32 = 4001;
/// Why the bundles here were not finished by their runner.
pub const LOST: &str = "the runner was lost";

pub fn header() -> JobStarted {
    let header = serde_json::json!({
        "format": 1, "job": "20270115t080000z-77-abcd", "stuckproof": "0.1.0", "argv": ["trtexec", "--onnx=m.onnx"],
        "cwd": "/home/ci", "host": "runner-7", "runnerPid": 77, "ciHost": "gitlab", "hostProfile": {"name": "none", "chosenBy": "nothing else fitted", "ladder": "", "allowsMs": null, "provisionalMs": 5000,
                "graceMs": null, "killAfterMs": 1, "completeMs": null},
        "anchorMonoNs": START,
        "anchorWallNs": 1_800_000_000_000_000_000_u64, "graceMs": 60_000, "killAfterMs": 10_000,
        "deadlineMs": null, "deadlineFrom": null, "phaseLimitMs": null, "attempt": null, "warnings": [], "environmentChanges": [], "bundle": "/home/ci/bundle", "wire": "wire: in the bundle", "streams": "separate"
    });
    serde_json::from_value(header).expect("every field is there")
}

pub fn process(pid: u32, registered: u64) -> ProcessKey {
    ProcessKey { pid, registered: Mono(START + registered) }
}

/// What happens in a job.
#[derive(Debug, Clone)]
pub enum Happening {
    Told(Record),
    Own(Box<Event>),
}

/// The story of a job, in the order of time.
#[derive(Debug, Clone, Default)]
pub struct Story {
    pub happenings: Vec<Happening>,
    pub now: u64,
}

impl Story {
    /// A story whose command runs.
    pub fn begin() -> Self {
        let mut story = Self { happenings: Vec::new(), now: START };
        story.own(EventKind::CommandStarted(CommandStarted { pid: COMMAND }));
        story
    }

    /// A millisecond later.
    pub fn own(&mut self, kind: EventKind) -> &mut Self {
        self.now += 1_000_000;
        self.happenings.push(Happening::Own(Box::new(Event { at: Mono(self.now), kind })));
        self
    }

    /// A millisecond later.
    pub fn tell(&mut self, process: ProcessKey, build: u32, body: Body) -> &mut Self {
        self.now += 1_000_000;
        let record = Record { process, at: Mono(self.now), build, tid: process.pid, body };
        self.happenings.push(Happening::Told(record));
        self
    }

    pub fn request(&mut self) -> &mut Self {
        self.own(EventKind::CancelRequested(CancelRequested {
            request: 1,
            source: CancelSource::Ci,
            via: "SIGTERM".to_owned(),
            reason: None,
            accepted: true,
            kill: false,
            pid: Some(1),
            uid: None,
            open_branch: Vec::new(),
        }))
    }

    pub fn exit(&mut self, code: i32) -> &mut Self {
        self.own(EventKind::CommandExited(CommandExited {
            code: Some(code),
            signal: None,
            core_dumped: false,
            core_file: None,
            oom_kills: Some(0),
        }))
    }

    /// The usual process: its library, then builds.
    pub fn library(&mut self, process: ProcessKey) -> &mut Self {
        self.tell(process, 0, Body::Library(rtx()))
    }

    /// A whole build with one step.
    pub fn build(&mut self, process: ProcessKey, build: u32, answered: u32, engine: bool) -> &mut Self {
        self.tell(process, build, build_start())
            .tell(process, build, facts())
            .tell(process, build, start("Building engine", None))
            .tell(process, build, start("Timing tactics", Some("Building engine")))
            .tell(process, build, step("Timing tactics", answered))
            .tell(process, build, Body::PhaseFinish { name: "Timing tactics".into() })
            .tell(process, build, returned(engine))
    }

    /// Some story: up to three processes, some with one number, their builds woven into each other.
    pub fn of_chance(chance: &mut Chance) -> Self {
        let mut story = Self::begin();
        let mut actors: Vec<Actor> = (0..=chance.place(3))
            .map(|i| Actor::new(process(COMMAND + chance.place(2) as u32, i as u64)))
            .collect();
        let mut asked = false;
        for _ in 0..chance.place(120) {
            if !asked && chance.one_in(40) {
                story.request();
                asked = true;
            }
            let actor = chance.place(actors.len());
            actors[actor].act(&mut story, chance, asked);
        }
        match chance.place(4) {
            0 => story.exit(0),
            1 => story.exit(1),
            _ => &mut story,
        };
        story
    }

    /// The events of the whole story, as a runner that lives puts them on record, up to its end.
    pub fn events(&self) -> Vec<Event> {
        let mut tracker = Tracker::new();
        let mut events = vec![Event { at: Mono(START), kind: EventKind::JobStarted(header()) }];
        for happening in &self.happenings {
            match happening {
                Happening::Told(record) => tracker.ingest(record, &mut events),
                Happening::Own(event) => {
                    events.push((**event).clone());
                    if let EventKind::CancelRequested(request) = &event.kind {
                        tracker.request_accepted(request.request, event.at, &mut events);
                    }
                }
            }
        }
        events
    }

    /// The events with an end.
    pub fn ended(&self) -> Vec<Event> {
        let mut events = self.events();
        let mut tracker = Tracker::new();
        let mut made = Vec::new();
        for happening in &self.happenings {
            if let Happening::Told(record) = happening {
                tracker.ingest(record, &mut made);
            }
        }
        tracker.close(Mono(self.now), "the command's processes ended", &mut events);
        let verdict = judge(&events);
        events.push(Event {
            at: Mono(self.now),
            kind: EventKind::JobEnded(JobEnded {
                state: verdict.state,
                cause: verdict.cause,
                observed: verdict.observed,
                exit_code: 1,
            }),
        });
        events
    }

    fn records(&self) -> BTreeMap<ProcessKey, Vec<&Record>> {
        let mut records: BTreeMap<ProcessKey, Vec<&Record>> = BTreeMap::new();
        for happening in &self.happenings {
            if let Happening::Told(record) = happening {
                records.entry(record.process).or_default().push(record);
            }
        }
        records
    }

    fn requested(&self) -> Option<Requested> {
        self.happenings.iter().find_map(|happening| {
            let Happening::Own(event) = happening else { return None };
            let EventKind::CancelRequested(request) = &event.kind else { return None };
            Some(Requested {
                request: request.request,
                at: event.at,
                source: request.source,
                via: request.via.clone(),
                pid: request.pid,
                uid: request.uid,
            })
        })
    }
}

/// A process that does what processes do.
struct Actor {
    process: ProcessKey,
    met: bool,
    build: u32,
    running: bool,
    open: Vec<&'static str>,
}

impl Actor {
    fn new(process: ProcessKey) -> Self {
        Self { process, met: false, build: 0, running: false, open: Vec::new() }
    }

    fn act(&mut self, story: &mut Story, chance: &mut Chance, asked: bool) {
        const NAMES: [&str; 3] = ["Building engine", "Timing tactics", "阶段 \u{2028} \"x\""];
        let process = self.process;
        if !self.met {
            self.met = true;
            story.library(process);
        } else if !self.running {
            self.build += 1;
            self.running = true;
            self.open.clear();
            story.tell(process, self.build, build_start());
            if chance.one_in(2) {
                story.tell(process, self.build, facts());
            }
        } else {
            let (build, open) = (self.build, self.open.last().copied());
            match (chance.place(12), open) {
                (0..3, _) | (3..8, None) => {
                    let name = NAMES[chance.place(NAMES.len())];
                    self.open.push(name);
                    story.tell(process, build, start(name, open));
                }
                (3..6, Some(name)) => {
                    let answered = u32::from(asked && chance.one_in(2));
                    story.tell(process, build, step(name, answered));
                }
                (6..8, Some(name)) => {
                    self.open.pop();
                    story.tell(process, build, Body::PhaseFinish { name: name.into() });
                }
                (8, _) => {
                    let text = "Error Code 4: ".to_owned() + &"x".repeat(chance.place(300));
                    let message = Body::Message { severity: Severity::Error, text, truncated: false };
                    story.tell(process, build, message);
                }
                (9, Some(name)) if chance.one_in(4) => {
                    story.tell(process, build, Body::ApplicationFalse { name: name.into(), step: 1 });
                }
                (10, _) => {
                    self.running = false;
                    story.tell(process, build, returned(chance.one_in(2)));
                }
                _ => {}
            }
        }
    }
}

fn facts() -> Body {
    let config = BTreeMap::from([("flags".to_owned(), 7), ("optimizationLevel".to_owned(), 3)]);
    Body::BuildFacts(Box::new(BuildFacts { config, layers: 12, ..BuildFacts::default() }))
}

pub fn build_start() -> Body {
    Body::BuildStart { method: Method::SerializedNetwork, chained: false }
}

pub fn start(name: &str, parent: Option<&str>) -> Body {
    Body::PhaseStart { name: Arc::from(name), parent: parent.map(Arc::from), steps: 6 }
}

pub fn step(name: &str, answered: u32) -> Body {
    Body::Step { name: Arc::from(name), step: 0, answered }
}

pub fn returned(engine: bool) -> Body {
    Body::BuildReturn { engine, bytes: engine.then_some(77), messages: [0, 1, 2, 3, 4] }
}

fn rtx() -> LibraryFacts {
    LibraryFacts {
        flavour: "tensorrt-rtx".to_owned(),
        version: "1.7.1.116".to_owned(),
        path: "/opt/rtx/libtensorrt_rtx.so.1".to_owned(),
        python: false,
        messages_unobserved: String::new(),
        proven: "library".to_owned(),
        simulated: false,
    }
}

/// A bundle on disk.
pub struct Remains {
    pub folder: TempDir,
}

impl Remains {
    /// What a SIGKILL leaves at the end of a story: a log with these events, and everything on the wire.
    pub fn of(story: &Story, events: &[Event]) -> Self {
        let remains = Self { folder: tempfile::tempdir().expect("a temporary folder") };
        fs::create_dir(remains.wire()).expect("a folder");
        evidence::provisional(remains.path(), &header()).expect("a provisional bundle");
        remains.write_log(events);
        let control = Control::create(&remains.wire(), header().anchor()).expect("a control page");
        if let Some(requested) = story.requested() {
            control.request(&requested).expect("the page can be written");
        }
        let records = story.records();
        for (key, records) in &records {
            Chain::of(records.iter().copied()).write(&remains.wire(), *key);
        }
        remains.tell_processes(records.len());
        remains
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn wire(&self) -> PathBuf {
        self.file("wire")
    }

    pub fn log(&self) -> PathBuf {
        self.file(evidence::EVENTS)
    }

    pub fn tell_processes(&self, count: usize) {
        let page = fs::File::options().write(true).open(self.wire().join("control")).expect("the page");
        page.write_all_at(&(count as u64).to_le_bytes(), 64).expect("the page can be written");
    }

    pub fn write_log(&self, events: &[Event]) {
        let _ = fs::remove_file(self.log());
        let mut writer = LogWriter::create(&self.log(), &header()).expect("a new log");
        for event in &events[1..] {
            writer.append(event).expect("the log can be written");
        }
        writer.flush().expect("the log can be written");
    }

    pub fn finish(&self) -> Result<Evidence, ResumeError> {
        self.finish_with(None, Vec::new())
    }

    pub fn finish_with(
        &self,
        exited: Option<(Mono, CommandExited)>,
        events: Vec<Event>,
    ) -> Result<Evidence, ResumeError> {
        finish(self.path(), &Known { exited, events, ..known(&[]) }, None)
    }

    /// Every event of the log, which must have no fault.
    pub fn events(&self) -> Vec<Event> {
        let mut reader = LogReader::open(&self.log()).expect("the log");
        let mut events = Vec::new();
        while let Some(line) = reader.read().expect("a log without faults") {
            events.push(line.event);
        }
        events
    }

    /// Every file with its bytes.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut folders = vec![self.path().to_owned()];
        let mut files = BTreeMap::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = fs::read(&path).expect("a file");
                    files.insert(path, bytes);
                }
            }
        }
        files
    }
}

/// What whoever finishes a bundle by hand knows: nothing but these secrets.
pub fn known(secrets: &[&str]) -> Known<'static> {
    Known {
        exited: None,
        events: Vec::new(),
        host: None,
        reason: LOST,
        exit_code: 125,
        by: "finalize",
        output_cap: u64::MAX,
        secrets: Arc::new(Secrets::new(secrets.iter().map(Into::into))),
    }
}

/// Keeps this many bytes of a file.
pub fn cut(path: &Path, bytes: u64) {
    let file = fs::File::options().write(true).open(path).expect("the file");
    file.set_len(bytes).expect("the file can be cut");
}

/// The events that builders caused.
pub fn told(events: &[Event]) -> Vec<Event> {
    let own =
        ["jobStarted", "commandStarted", "cancelRequested", "commandExited", "evidenceLost", "jobEnded"];
    let by_us = |event: &&Event| match &event.kind {
        EventKind::PhaseAborted(abort) => abort.reason != LOST && !abort.reason.contains("processes ended"),
        kind => !own.contains(&kind.name()),
    };
    events.iter().filter(by_us).cloned().collect()
}
