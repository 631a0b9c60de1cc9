//! A job without a process: records go through the tracker into a real log, as the runner does it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use stuckproof::baseline::{
    BASELINE, Baseline, Ci, Container, Device, Gpu, GpuProcess, InUse, LibraryFile, Limits, Machine,
};
use stuckproof::clock::Mono;
use stuckproof::event::{
    BuildFacts, CancelRequested, CancelSource, CommandExited, CommandStarted, Event, EventKind, EvidenceLost,
    InputDigested, InputIdentified, InputKind, JobEnded, JobStarted, LadderRung, LogWriter, ProfileShape,
    Tensor,
};
use stuckproof::evidence::{self, Bundle};
use stuckproof::observe::Tracker;
use stuckproof::verdict::{Verdict, judge};
use stuckproof::wire::{Body, LibraryFacts, Method, ProcessKey, Record, Severity};
use tempfile::TempDir;

/// The monotonic time at which jobs begin here, nanoseconds.
pub const START: u64 = 5_000_000_000;
/// The command's process.
pub const COMMAND: u32 = 4001;

pub fn header() -> JobStarted {
    JobStarted {
        format: 1,
        job: "bold-otter".to_owned(),
        stuckproof: "0.1.0".to_owned(),
        argv: ["trtexec", "--onnx=model one.onnx", "--saveEngine=model.engine"].map(str::to_owned).to_vec(),
        cwd: "/home/ci/project".to_owned(),
        host: "runner-7".to_owned(),
        runner_pid: 4000,
        ci_host: None,
        host_profile: Box::default(),
        anchor_mono_ns: START,
        anchor_wall_ns: 1_800_000_000_000_000_000,
        grace_ms: Some(60_000),
        kill_after_ms: 10_000,
        deadline_ms: None,
        deadline_from: None,
        phase_limit_ms: None,
        attempt: None,
        environment_changes: vec!["LD_PRELOAD: the attach library was added".to_owned()],
        bundle: "/home/ci/project/evidence/one".to_owned(),
        wire: "wire, in the bundle".to_owned(),
        streams: "separate".to_owned(),
        warnings: Vec::new(),
    }
}

/// A machine without a GPU in which one library lies twice; every text on it is `text`, or what one would expect.
pub fn host(text: Option<&str>) -> Baseline {
    let word = |usual: &str| text.unwrap_or(usual).to_owned();
    let some = |usual: &str| Some(word(usual));
    let file = |path: &str| LibraryFile {
        name: word("libnvinfer"),
        path: word(path),
        bytes: 7,
        found_by: word("system"),
    };
    Baseline {
        format: 1,
        job: "bold-otter".to_owned(),
        at: "2027-01-15T08:00:00.010000Z".to_owned(),
        t_ns: START + 10_000_000,
        machine: Machine {
            os: some("Linux (Debian 12)"),
            kernel: some("6.1.0"),
            architecture: word("x86_64"),
            cpu_model: some("EPYC 9654"),
            cpus: Some(192),
            usable_cpus: Some(4),
            memory_bytes: Some(16 << 30),
            available_bytes: Some(8 << 30),
            swap_bytes: Some(0),
        },
        container: Container { kind: some("docker"), hints: vec![word("/.dockerenv exists")] },
        limits: Limits {
            cgroup: some("/"),
            memory_bytes: Some(8 << 30),
            cpus: Some(3.5),
            processes: Some(512),
        },
        gpu: Gpu { usable: Some(false), ..Gpu::default() },
        ci: Some(Ci {
            host: word("github"),
            repository: some("group/engine"),
            commit: some("c0ffee"),
            reference: some("main"),
            run: some("17"),
            attempt: some("1"),
            job: some("build"),
        }),
        environment: [("OMP_NUM_THREADS".to_owned(), word("4"))].into(),
        tensorrt_files: vec![file("/usr/lib/libnvinfer.so.10"), file("/opt/venv/libnvinfer.so.10")],
        nulls: [("gpu".to_owned(), word("NVML cannot be loaded"))].into(),
    }
}

/// The same machine with GPUs of these names that the command can use.
pub fn gpu_host(names: &[&str]) -> Baseline {
    let device = |(index, name): (usize, &&str)| Device {
        index: index as u32,
        name: Some((*name).to_owned()),
        uuid: Some(format!("GPU-{index}")),
        processes: vec![GpuProcess { pid: 1, name: Some((*name).to_owned()), memory_bytes: Some(1) }],
        ..Device::default()
    };
    let devices: Vec<Device> = names.iter().enumerate().map(device).collect();
    let in_use = |device: &Device| Some(InUse { uuid: device.uuid.clone()?, name: device.name.clone()? });
    let gpu = Gpu {
        usable: Some(true),
        driver_version: Some("575.57".to_owned()),
        cuda_driver_version: Some("12.9".to_owned()),
        in_use: devices.iter().filter_map(in_use).collect(),
        devices,
        ..Gpu::default()
    };
    Baseline { gpu, ..host(None) }
}

pub fn process(pid: u32) -> ProcessKey {
    ProcessKey { pid, registered: Mono(START) }
}

pub fn record(pid: u32, build: u32, at: u64, body: Body) -> Record {
    Record { process: process(pid), at: Mono(at), build, tid: pid, body }
}

pub fn build_start() -> Body {
    Body::BuildStart { method: Method::SerializedNetwork, chained: false }
}

/// What a builder says of a small network for one target.
pub fn described() -> Body {
    let tensor =
        |name: &str, shape: &str| Tensor { name: name.to_owned(), data_type: 0, shape: shape.to_owned() };
    let [min, opt, max] = ["1x3x8", "4x3x8", "8x3x8"].map(str::to_owned);
    Body::BuildFacts(Box::new(BuildFacts {
        config: [("flags", 64), ("optimizationLevel", 3)].map(|(k, v)| (k.to_owned(), v)).into(),
        compute_capabilities: vec![89],
        network_flags: 1,
        layers: 2,
        layer_kinds: [("0".to_owned(), 1), ("1".to_owned(), 1)].into(),
        inputs: vec![tensor("x", "-1x3x8")],
        outputs: vec![tensor("y", "-1x8")],
        profiles: vec![ProfileShape { profile: 0, input: "x".to_owned(), min, opt, max }],
        ..BuildFacts::default()
    }))
}

pub fn start(name: &str, parent: Option<&str>, steps: i32) -> Body {
    Body::PhaseStart { name: Arc::from(name), parent: parent.map(Arc::from), steps }
}

pub fn step(name: &str, step: i32, answered: u32) -> Body {
    Body::Step { name: Arc::from(name), step, answered }
}

pub fn finish(name: &str) -> Body {
    Body::PhaseFinish { name: Arc::from(name) }
}

pub fn returned(engine: bool) -> Body {
    Body::BuildReturn {
        engine,
        bytes: engine.then_some(1_234_567),
        messages: [0, u32::from(!engine), 2, 30, 400],
    }
}

pub fn message(severity: Severity, text: &str) -> Body {
    Body::Message { severity, text: text.to_owned(), truncated: false }
}

pub fn rtx(python: bool) -> Body {
    Body::Library(LibraryFacts {
        flavour: "tensorrt-rtx".to_owned(),
        version: "1.7.1.116".to_owned(),
        path: "/opt/rtx/libtensorrt_rtx.so.1".to_owned(),
        python,
        messages_unobserved: String::new(),
        proven: "library".to_owned(),
        simulated: false,
    })
}

/// A job in a folder that goes with it. Times are milliseconds after its start.
pub struct Job {
    pub folder: TempDir,
    pub events: Vec<Event>,
    pub tracker: Tracker,
    pub now: u64,
    writer: LogWriter,
}

impl Job {
    /// A job whose command runs.
    pub fn new() -> Self {
        Self::with(&header())
    }

    /// The same with a header of one's own.
    pub fn with(header: &JobStarted) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let writer = LogWriter::create(&folder.path().join(evidence::EVENTS), header).expect("a new log");
        let started = Event { at: Mono(START), kind: EventKind::JobStarted(header.clone()) };
        let mut job = Self { folder, events: vec![started], tracker: Tracker::new(), now: START, writer };
        job.event(EventKind::CommandStarted(CommandStarted { pid: COMMAND }));
        job
    }

    /// Sets the clock.
    pub fn at(&mut self, ms: u64) -> &mut Self {
        self.now = START + ms * 1_000_000;
        self
    }

    pub fn event(&mut self, kind: EventKind) -> &mut Self {
        self.push(Event { at: Mono(self.now), kind });
        self
    }

    /// An input that was looked at.
    pub fn input(&mut self, input: u32, kind: InputKind, path: &str) -> &mut Self {
        self.event(EventKind::InputIdentified(InputIdentified {
            input,
            kind,
            path: path.to_owned(),
            of: None,
            bytes: Some(5),
            modified_ns: Some(1_800_000_000_000_000_000),
            inode: Some(12),
            build_id: None,
            reason: None,
        }))
    }

    /// An input that was read, or could not be.
    pub fn digested(&mut self, input: u32, sha256: Option<&str>) -> &mut Self {
        let reason = sha256.is_none().then(|| "it cannot be read: Input/output error".to_owned());
        let sha256 = sha256.map(str::to_owned);
        self.event(EventKind::InputDigested(InputDigested { input, sha256, reason }))
    }

    /// A record of build 1 of the command's process.
    pub fn tell(&mut self, body: Body) -> &mut Self {
        self.tell_of(COMMAND, 1, body)
    }

    pub fn tell_of(&mut self, pid: u32, build: u32, body: Body) -> &mut Self {
        let mut events = Vec::new();
        self.tracker.ingest(&record(pid, build, self.now, body), &mut events);
        self.push_all(events);
        self
    }

    /// A request; the first is accepted.
    pub fn request(&mut self, source: CancelSource, via: &str) -> &mut Self {
        let number = 1 + self.requests();
        let accepted = number == 1;
        let at = Mono(self.now);
        self.event(EventKind::CancelRequested(CancelRequested {
            request: number,
            source,
            via: via.to_owned(),
            reason: None,
            accepted,
            kill: false,
            pid: None,
            uid: None,
            open_branch: self.tracker.open_branch(at),
        }));
        if accepted {
            let mut events = Vec::new();
            self.tracker.request_accepted(number, at, &mut events);
            self.push_all(events);
        }
        self
    }

    pub fn rung(&mut self, rung: &str, why: &str) -> &mut Self {
        let group = (rung != "cooperative").then_some(COMMAND);
        self.event(EventKind::LadderRung(LadderRung { rung: rung.to_owned(), why: why.to_owned(), group }))
    }

    pub fn lose(&mut self, records: u64) -> &mut Self {
        self.event(EventKind::EvidenceLost(EvidenceLost { records, reason: "the disk was full".to_owned() }))
    }

    pub fn exit(&mut self, code: Option<i32>, signal: Option<i32>) -> &mut Self {
        let mut events = Vec::new();
        self.tracker.close(Mono(self.now), "the process ended", &mut events);
        self.push_all(events);
        self.event(EventKind::CommandExited(CommandExited {
            code,
            signal,
            core_dumped: false,
            core_file: None,
            oom_kills: Some(0),
        }))
    }

    /// Puts a baseline beside the log.
    pub fn baseline(&self, baseline: &Baseline) {
        let json = serde_json::to_vec(baseline).expect("JSON");
        fs::write(self.folder.path().join(BASELINE), json).expect("the folder can be written");
    }

    /// Ends the log with what the state table says of it.
    pub fn end(&mut self, exit_code: u8) -> Verdict {
        let verdict = self.judge();
        self.event(EventKind::JobEnded(JobEnded {
            state: verdict.state,
            cause: verdict.cause.clone(),
            observed: verdict.observed,
            exit_code,
        }));
        self.sync();
        verdict
    }

    pub fn judge(&self) -> Verdict {
        judge(&self.events)
    }

    pub fn sync(&mut self) {
        self.writer.sync().expect("the log can be written");
    }

    pub fn log(&self) -> PathBuf {
        self.folder.path().join(evidence::EVENTS)
    }

    /// The bundle, read back from its log.
    pub fn bundle(&mut self) -> Bundle {
        self.sync();
        evidence::load(self.folder.path()).expect("a bundle that can be read")
    }

    fn requests(&self) -> u32 {
        self.events.iter().filter(|event| matches!(event.kind, EventKind::CancelRequested(_))).count() as u32
    }

    fn push_all(&mut self, events: Vec<Event>) {
        for event in events {
            self.push(event);
        }
    }

    fn push(&mut self, event: Event) {
        self.writer.append(&event).expect("the log can be written");
        self.events.push(event);
    }
}
