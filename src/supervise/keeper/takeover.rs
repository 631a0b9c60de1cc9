//! What the keeper does when the runner dies before its job is finished: it stops the build, ends what is left, and
//! tells what it saw.

use super::guard::Guard;
use crate::cancel::Via;
use crate::clock::Mono;
use crate::event::{
    CancelRequested, CancelSource, CommandExited, CommandStarted, Event, EventKind, LadderRung, LogReader,
};
use crate::history::History;
use crate::mask::Secrets;
use crate::supervise::family::Members;
use crate::supervise::host::Patience;
use crate::supervise::kin::Process;
use crate::supervise::ladder::{LEFTOVER_GRACE, Ladder, Rung, UNKILLABLE};
use crate::verdict::RUNNER_LOST;
use crate::wire::{Body, Control, Reader, Requested};
use rustix::process::Signal;
use rustix::time::Timespec;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The longest that a builder may take to answer. Whoever killed the runner may not give the keeper long either.
const GRACE: Duration = Duration::from_secs(5);
/// The longest from SIGTERM to SIGKILL.
const KILL_AFTER: Duration = Duration::from_secs(2);
/// How long what the command leaves behind may take to leave by itself: some have a signal under way already.
const SETTLE: Duration = Duration::from_millis(200);
/// How often the job's processes are looked at.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// A job that its runner left, none of whose processes lives any more.
#[derive(Debug)]
pub struct Orphaned {
    /// The bundle's folder.
    pub bundle: PathBuf,
    /// How the command ended, and when.
    pub exited: Option<(Mono, CommandExited)>,
    /// What the keeper did, and what it saw that the log does not tell.
    pub events: Vec<Event>,
    /// The log, whose lock it shares: as long as this is held, nobody else finishes the bundle.
    pub log: Option<OwnedFd>,
    /// Bytes of each output stream that the bundle is to keep.
    pub output_cap: u64,
    /// What no file of the bundle may hold.
    pub secrets: Arc<Secrets>,
    /// What remembers the job's builds.
    pub history: Option<History>,
}

/// Stops the build, ends what is left, and tells what was seen.
pub(super) fn take_over(guard: Guard) -> Orphaned {
    let bundle = PathBuf::from(&guard.orders.bundle);
    let mut takeover = Takeover { guard, events: Vec::new(), named: BTreeSet::new() };
    // First of all: the log may be long.
    takeover.stop();
    let logged = Logged::read(&bundle);
    if !logged.started {
        let pid = takeover.guard.family.group().id();
        let kind = EventKind::CommandStarted(CommandStarted { pid });
        takeover.events.push(Event { at: takeover.guard.started, kind });
    }
    // After the end is on record, all that is left are daemons that may stay.
    if !logged.ended {
        takeover.end_rest();
    }
    let Takeover { guard, events, .. } = takeover;
    // Where the end is on record already, this vouches for it.
    let output_cap = guard.orders.output_cap.unwrap_or_default();
    let secrets = Arc::new(Secrets::new(guard.orders.secrets));
    let history = guard.orders.history.map(|folder| History::at(Path::new(&folder)));
    Orphaned { bundle, exited: guard.exit, events, log: guard.log, output_cap, secrets, history }
}

/// What of the command's life the log tells.
#[derive(Debug, Default)]
struct Logged {
    started: bool,
    ended: bool,
}

impl Logged {
    fn read(bundle: &Path) -> Self {
        let mut logged = Self::default();
        let Ok(mut log) = LogReader::open(&bundle.join("events.jsonl")) else { return logged };
        while let Ok(Some(line)) = log.read() {
            match line.event.kind {
                EventKind::CommandStarted(_) => logged.started = true,
                EventKind::JobEnded(_) => logged.ended = true,
                _ => {}
            }
        }
        logged
    }
}

struct Takeover {
    guard: Guard,
    events: Vec<Event>,
    /// Leftovers that are on record.
    named: BTreeSet<u32>,
}

impl Takeover {
    /// Asks the builder, then climbs the ladder, until the command has ended.
    fn stop(&mut self) {
        if self.guard.exit.is_some() {
            return;
        }
        let wire = PathBuf::from(&self.guard.orders.wire);
        let now = Mono::now();
        let cooperative = self.ask(&wire, now) && build_runs(&wire);
        // Where the job was paused, nobody could answer.
        let _ = self.guard.family.send(Signal::CONT, Members::Bound);
        let mut ladder = Ladder::new(self.patience());
        ladder.request(now);
        self.put_rung(Rung::Cooperative, RUNNER_LOST.to_owned());
        loop {
            self.guard.wait(&TICK);
            if self.guard.exit.is_some() {
                return;
            }
            if let Some(climb) = ladder.due(Mono::now(), cooperative) {
                let sent = self.guard.family.strike(climb.rung, Members::Bound);
                self.put_sent(climb.rung, format!("{RUNNER_LOST}; {}", climb.why), sent);
            }
        }
    }

    /// Ends what the command left behind. Nobody waits for its work any more, so that it gets less time than usual.
    fn end_rest(&mut self) {
        self.guard.release();
        self.wait_for_none(Rung::Cooperative, SETTLE);
        let patience = self.patience().kill_after.min(LEFTOVER_GRACE);
        for (rung, limit) in [(Rung::Terminate, patience), (Rung::Kill, UNKILLABLE)] {
            let left = self.guard.family.living(Members::All);
            if self.guard.family.has_none(Members::All) {
                return;
            }
            let sent = self.guard.family.strike(rung, Members::All);
            let words: Vec<String> = left.iter().map(Process::in_words).collect();
            self.put_sent(rung, format!("{RUNNER_LOST}; leftover processes: {}", words.join(", ")), sent);
            for process in &left {
                self.put_leftover(process);
            }
            self.wait_for_none(rung, limit);
        }
    }

    /// Writes the cancel word, if nobody has. False when no builder can be told.
    fn ask(&mut self, wire: &Path, at: Mono) -> bool {
        let Ok(control) = Control::open(wire) else { return false };
        match control.requested() {
            Ok(Some(_)) => true,
            // Where no word was written, no request was accepted, and so this is the first.
            Ok(None) => {
                let request = first_request();
                let asked = Requested {
                    request: request.request,
                    at,
                    source: request.source,
                    via: request.via.clone(),
                    pid: None,
                    uid: None,
                };
                let written = control.request(&asked).is_ok();
                if written {
                    self.events.push(Event { at, kind: EventKind::CancelRequested(request) });
                }
                written
            }
            Err(_) => false,
        }
    }

    fn wait_for_none(&mut self, rung: Rung, limit: Duration) {
        let start = Mono::now();
        while !self.guard.family.has_none(Members::All) && Mono::now().since(start) < limit {
            self.guard.wait(&TICK);
            if rung == Rung::Kill {
                self.guard.family.strike_again(Members::All);
            }
        }
    }

    fn patience(&self) -> Patience {
        let orders = &self.guard.orders;
        Patience {
            grace: Some(orders.grace_ms.map_or(GRACE, Duration::from_millis).min(GRACE)),
            kill_after: Duration::from_millis(orders.kill_after_ms).min(KILL_AFTER),
        }
    }

    fn put_sent(&mut self, rung: Rung, mut why: String, sent: io::Result<()>) {
        if let Err(e) = sent {
            why = format!("{why}; it could not be sent to all: {e}");
        }
        self.put_rung(rung, why);
    }

    fn put_rung(&mut self, rung: Rung, why: String) {
        let group = (rung != Rung::Cooperative).then(|| self.guard.family.group().id());
        self.record(EventKind::LadderRung(LadderRung { rung: rung.name().to_owned(), why, group }));
    }

    fn put_leftover(&mut self, process: &Process) {
        if self.named.insert(process.pid) {
            self.record(EventKind::LeftoverFound(process.as_leftover("killed")));
        }
    }

    fn record(&mut self, kind: EventKind) {
        self.events.push(Event { at: Mono::now(), kind });
    }
}

/// The keeper's own request to stop, as the only one of its job.
fn first_request() -> CancelRequested {
    CancelRequested {
        request: 1,
        source: CancelSource::Service,
        via: Via::RunnerLost.name().to_owned(),
        reason: None,
        accepted: true,
        kill: false,
        pid: None,
        uid: None,
        open_branch: Vec::new(),
    }
}

/// Whether a build was entered and has not returned.
fn build_runs(wire: &Path) -> bool {
    let mut records = Vec::new();
    let mut running = BTreeSet::new();
    // What cannot be read cannot be waited for.
    let _ = Reader::new(wire).poll(&mut records);
    for record in records {
        match record.body {
            Body::BuildStart { .. } => {
                running.insert((record.process, record.build));
            }
            Body::BuildReturn { .. } => {
                running.remove(&(record.process, record.build));
            }
            _ => {}
        }
    }
    !running.is_empty()
}
