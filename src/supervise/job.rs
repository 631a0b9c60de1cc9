//! A job from its start to its end: the loop that acts on the news.

use super::Plan;
use super::bundle::Bundle;
use super::control::Registration;
use super::finished::Finished;
use super::group::Group;
use super::host::Host;
use super::ladder::{Climb, Ladder, Rung};
use super::oom::OomWatch;
use super::recorder::Recorder;
use super::sources;
use super::spawn::{self, Start};
use super::stage::{Backstage, Stage};
use super::status::Live;
use super::streams::write_all;
use super::voice::Voice;
use super::waiter::{self, Ended};
use crate::attach::Change;
use crate::cancel::{Answer, Cancellation, Request, Via};
use crate::clock::Mono;
use crate::event::{
    CancelRequested, CommandExited, CommandStarted, Event, EventKind, JobEnded, JobStarted, LadderRung, State,
};
use crate::exit::{self, End};
use crate::verdict::Verdict;
use crate::wire::Control;
use rustix::process::Pid;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::time::Duration;

/// How often the wire is looked at while the command lives.
const TICK: Duration = Duration::from_millis(20);

/// News for the main loop.
pub(super) enum Note {
    /// A request to stop was decided.
    Request(Request),
    /// A process ended.
    Ended(Ended),
    /// Somebody asks how the job is.
    Status(SyncSender<Live>),
    /// A pump has carried everything.
    Carried,
    /// Everything was said.
    Said,
}

/// A job that is ready to run.
pub struct Job {
    pub(super) core: Core,
    pub(super) header: JobStarted,
    pub(super) stage: Stage,
    pub(super) environment: Vec<Change>,
    pub(super) registration: Option<Registration>,
}

/// What a job has from its preparation to its end.
pub(super) struct Core {
    pub(super) plan: Plan,
    pub(super) host: Host,
    pub(super) bundle: Bundle,
    pub(super) control: Arc<Control>,
    pub(super) recorder: Recorder,
    pub(super) cancellation: Arc<Cancellation>,
    pub(super) ladder: Ladder,
    pub(super) oom: OomWatch,
    pub(super) voice: Voice,
    pub(super) tell: Sender<Note>,
    pub(super) notes: Receiver<Note>,
}

impl Job {
    /// The job's header, as its log begins.
    #[must_use]
    pub fn header(&self) -> &JobStarted {
        &self.header
    }

    /// The bundle's folder.
    #[must_use]
    pub fn bundle(&self) -> &Path {
        self.core.bundle.path()
    }

    /// Runs the command to its end and puts everything on record.
    #[must_use]
    pub fn run(self) -> Finished {
        let Self { core, stage, environment, registration, .. } = self;
        let mut running =
            Running { core, group: None, exit: None, accepted: None, kill_wanted: false, carried: 0 };
        running.hear_all();
        let backstage = match running.start(stage, environment) {
            Ok(backstage) => {
                running.watch();
                backstage
            }
            Err((backstage, code)) => {
                let code = Some(code.into());
                let exited = CommandExited { code, signal: None, core_dumped: false, oom_kills: None };
                running.command_ended(Mono::now(), exited);
                backstage
            }
        };
        running.finish(backstage, registration)
    }
}

/// A job between the start of its command and the end of its processes.
struct Running {
    core: Core,
    group: Option<Group>,
    exit: Option<CommandExited>,
    /// How the accepted request came.
    accepted: Option<Via>,
    /// Whether a person asked for more than a request, and has not got it yet.
    kill_wanted: bool,
    /// Pumps that have carried everything already.
    carried: usize,
}

impl Running {
    /// Starts the command. The error is the exit code of a command that cannot be started.
    fn start(&mut self, stage: Stage, environment: Vec<Change>) -> Result<Backstage, (Backstage, u8)> {
        let Stage { seat, stdin, stdout, stderr, terminal, backstage } = stage;
        let environment = environment.into_iter().map(|c| (c.name, c.value)).collect();
        let start = Start { argv: &self.core.plan.argv, environment, seat, stdin, stdout, stderr };
        match spawn::spawn(&start) {
            Ok(pid) => self.started(pid),
            Err(e) => {
                // Where the command's own words would have gone: into the bundle and from there to our stream.
                let _ = write_all(start.stderr.as_fd(), format!("stuckproof: {e}\n").as_bytes());
                return Err((backstage, e.exit_code()));
            }
        }
        if let Some(terminal) = terminal {
            terminal.carry_input();
        }
        Ok(backstage)
    }

    fn started(&mut self, pid: Pid) {
        let group = Group::led_by(pid);
        self.group = Some(group);
        self.record(Mono::now(), EventKind::CommandStarted(CommandStarted { pid: group.id() }));
        let tell = self.core.tell.clone();
        waiter::wait(pid, move |ended| drop(tell.send(Note::Ended(ended))));
        if let Some(span) = self.core.plan.deadline {
            sources::deadline(span, self.core.host, Arc::clone(&self.core.cancellation));
        }
    }

    /// Acts on the news until no process of the command's group is left.
    fn watch(&mut self) {
        while !self.is_over() {
            if let Ok(note) = self.core.notes.recv_timeout(self.patience()) {
                self.hear(note);
                self.hear_all();
            }
            self.core.recorder.poll();
            self.climb();
            if let Some(group) = self.group.filter(|_| self.core.ladder.is_exhausted(Mono::now())) {
                self.give_up(group);
            }
            self.core.recorder.settle();
        }
    }

    /// The command ended, and with it, or after it, all of its group.
    fn is_over(&self) -> bool {
        self.exit.is_some() && self.group.is_none_or(Group::is_empty)
    }

    /// How long to sleep when there is no news: until the next look at the wire, or the next rung.
    fn patience(&self) -> Duration {
        let next = self.core.ladder.next(self.core.recorder.builder_seen());
        next.map_or(TICK, |(at, _)| at.since(Mono::now()).min(TICK))
    }

    fn hear_all(&mut self) {
        while let Ok(note) = self.core.notes.try_recv() {
            self.hear(note);
        }
    }

    fn hear(&mut self, note: Note) {
        match note {
            Note::Request(request) => self.requested(request),
            Note::Ended(Ended::Command(at, exited)) => self.command_ended(at, exited),
            Note::Status(answer) => {
                self.core.recorder.poll();
                // A client that has gone in the meantime needs no answer.
                let _ = answer.try_send(self.core.recorder.live(self.core.bundle.path(), Mono::now()));
            }
            Note::Carried => self.carried += 1,
            Note::Ended(Ended::Orphan) | Note::Said => {}
        }
    }

    fn requested(&mut self, request: Request) {
        let Request { number, at, ask, answer, word_lost } = request;
        if answer == Answer::Over {
            return;
        }
        let accepted = answer == Answer::Accepted;
        let kill = answer == Answer::Kill;
        let record = CancelRequested {
            request: number,
            source: ask.source,
            via: ask.via.name().to_owned(),
            reason: ask.reason,
            accepted,
            kill,
            pid: ask.pid,
            uid: ask.uid,
            open_branch: Vec::new(),
        };
        self.core.recorder.request(at, record);
        if let Some(reason) = word_lost {
            self.core.recorder.lose(at, 0, &format!("builders could not be told to stop: {reason}"));
        }
        if accepted {
            self.accepted = Some(ask.via);
            self.say_accepted(ask.via);
            let climb = self.core.ladder.request(at);
            self.record_rung(at, climb.rung, climb.why.to_owned(), None);
        }
        self.kill_wanted |= kill;
    }

    fn say_accepted(&self, via: Via) {
        let what = if self.core.recorder.builder_seen() {
            "the builder is asked to stop at its next step"
        } else {
            "no builder was seen that could be asked"
        };
        let hint = if self.core.host == Host::Terminal { "; Ctrl-C once more kills the command" } else { "" };
        self.core.voice.say(&format!("stopping ({}): {what}{hint}", via.name()));
    }

    fn command_ended(&mut self, at: Mono, mut exited: CommandExited) {
        exited.oom_kills = self.core.oom.kills();
        self.core.recorder.poll();
        self.record(at, EventKind::CommandExited(exited.clone()));
        self.exit = Some(exited);
        if let Some(group) = &mut self.group {
            group.leader_reaped();
            self.core.ladder.leave_behind(at);
        }
    }

    /// Climbs the rung that is due, if one is.
    fn climb(&mut self) {
        let Some(group) = self.group.filter(|_| !self.is_over()) else { return };
        let now = Mono::now();
        let killing = if std::mem::take(&mut self.kill_wanted) { self.core.ladder.kill(now) } else { None };
        let due = killing.or_else(|| self.core.ladder.due(now, self.core.recorder.builder_seen()));
        if let Some(climb) = due {
            self.signal(group, climb);
        }
    }

    fn signal(&mut self, group: Group, climb: Climb) {
        let members = if self.exit.is_some() { group.members() } else { Vec::new() };
        let at = Mono::now();
        let sent = match climb.rung {
            Rung::Cooperative => Ok(()),
            Rung::Terminate => group.terminate(),
            Rung::Kill => group.kill(),
        };
        let mut why = climb.why.to_owned();
        if !members.is_empty() {
            why = format!("{why}: {}", members.join(", "));
        }
        if let Err(e) = sent {
            why = format!("{why}; it could not be sent: {e}");
        }
        self.core.voice.say(&format!("{} to the command's processes: {why}", climb.rung.name()));
        self.record_rung(at, climb.rung, why, Some(group.id()));
    }

    fn record_rung(&mut self, at: Mono, rung: Rung, why: String, group: Option<u32>) {
        let rung = LadderRung { rung: rung.name().to_owned(), why, group };
        self.record(at, EventKind::LadderRung(rung));
    }

    /// Gives up on processes that nothing ends, and says so: this is the one way in which a job leaves some behind.
    fn give_up(&mut self, group: Group) {
        let why = format!("processes remain that SIGKILL does not end: {}", group.members().join(", "));
        self.core.voice.say(&why);
        self.record_rung(Mono::now(), Rung::Kill, why, None);
        self.group = None;
    }

    fn record(&mut self, at: Mono, kind: EventKind) {
        self.core.recorder.append(&Event { at, kind });
    }

    /// Puts the end on record. From here on nothing more is accepted.
    fn finish(mut self, backstage: Backstage, registration: Option<Registration>) -> Finished {
        let at = Mono::now();
        let (pumps, faults) = backstage.finish();
        for fault in &faults {
            self.core.recorder.lose(at, 0, fault);
        }
        self.core.recorder.close(at, "the command's processes ended");
        self.count_losses(at);
        self.core.cancellation.seal();
        drop(registration);
        self.hear_all();
        let verdict = self.core.recorder.verdict();
        let code = self.exit_code(&verdict);
        let ended = JobEnded {
            state: verdict.state,
            cause: verdict.cause.clone(),
            observed: verdict.observed,
            exit_code: code,
        };
        self.record(Mono::now(), EventKind::JobEnded(ended));
        self.core.recorder.settle();
        let lost = self.core.recorder.lost().map(str::to_owned);
        Finished::new(self.core, verdict, code, lost, pumps.saturating_sub(self.carried))
    }

    fn count_losses(&mut self, at: Mono) {
        match self.core.control.losses() {
            Ok(losses) if losses.records == 0 && losses.errno == 0 => {}
            Ok(losses) => {
                let error = std::io::Error::from_raw_os_error(losses.errno);
                self.core.recorder.lose(at, losses.records, &format!("{}: {error}", losses.what));
            }
            Err(e) => self.core.recorder.lose(at, 0, &e.to_string()),
        }
    }

    fn exit_code(&self, verdict: &Verdict) -> u8 {
        let code = |exited: &CommandExited| exited.code.and_then(|c| u8::try_from(c).ok());
        let end = match &self.exit {
            Some(CommandExited { signal: Some(signal), .. }) => End::Signal(*signal),
            exited => End::Code(exited.as_ref().and_then(code).unwrap_or(exit::OWN_FAULT)),
        };
        exit::of_job(exit::Outcome {
            end,
            succeeded: verdict.state == State::Succeeded,
            deadline: self.accepted == Some(Via::Deadline),
            own_fault: self.core.recorder.lost().is_some(),
        })
    }
}
