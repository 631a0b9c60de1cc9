//! The loop that acts on the news, from the command's start to the end of the job's record.

use super::core_dump;
use super::family::{Family, Members};
use super::finished::{Finished, in_words};
use super::group::Group;
use super::interim::Interim;
use super::job::{Core, Note};
use super::keeper::{Keeper, Orders, Report, Told};
use super::kin::Process;
use super::ladder::{Climb, Rung, UNKILLABLE};
use super::prepare::told;
use super::signals::JobControl;
use super::sources;
use super::stage::{Backstage, Stage};
use super::streams::{Carried, write_all};
use crate::attach::Change;
use crate::cancel::{Answer, Request, Via};
use crate::clock::Mono;
use crate::event::{
    CancelRequested, CommandExited, CommandStarted, Event, EventKind, JobEnded, JobPaused, JobResumed,
    LadderRung, OutputMasked, State,
};
use crate::exit;
use crate::resources::Sampler;
use crate::verdict::Verdict;
use rustix::process::{Pid, Signal};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

mod stuck;

/// How often the wire is looked at while the command lives.
const TICK: Duration = Duration::from_millis(20);
/// How long a job that has ended waits for its inputs to be read.
const READING: Duration = Duration::from_mins(2);
/// The same where somebody has asked it to stop: a host may end everything soon.
const READING_HURRIED: Duration = Duration::from_millis(300);
/// How long the reading may take to notice that it is to stop; a file system that hangs never lets it.
const READING_STOPS: Duration = Duration::from_millis(200);
/// How long the keeper has to tell that nothing is left before all processes are looked at for it.
const TELLING: Duration = Duration::from_millis(10);

/// A job from the start of its command on.
pub(super) struct Running {
    pub(super) core: Core,
    /// The command and its descendants; none where it was never started, or where it was given up.
    family: Option<Family>,
    /// When and how the command ended.
    exit: Option<(Mono, CommandExited)>,
    /// The evidence so far, for the time of a stop.
    interim: Interim,
    /// How the accepted request came.
    pub(super) accepted: Option<Via>,
    /// Whether a person asked for more than a request, and has not got it yet.
    pub(super) kill_wanted: bool,
    /// Leftovers that are on record.
    named: BTreeSet<u32>,
    /// Pumps that have carried everything already.
    carried: usize,
    sampler: Option<Sampler>,
    /// The command's output, as far as it has been carried.
    output: Vec<Carried>,
    /// Whether everything is known of the inputs.
    inputs_known: bool,
}

impl Running {
    /// Starts the command. One that cannot be started has ended already.
    pub(super) fn start(
        core: Core,
        stage: Stage,
        environment: Vec<Change>,
        keeper: Keeper,
        interim: Interim,
    ) -> (Self, Backstage) {
        let mut running = Self {
            core,
            family: None,
            exit: None,
            interim,
            accepted: None,
            kill_wanted: false,
            named: BTreeSet::new(),
            carried: 0,
            sampler: None,
            output: Vec::new(),
            inputs_known: false,
        };
        running.hear_all();
        let Stage { seat, stdin, stdout, stderr, terminal, backstage } = stage;
        running.output = backstage.carried();
        let said = stderr.try_clone();
        let orders = running.orders(seat, environment);
        match running.set_to_work(keeper, &orders, &[stdin, stdout, stderr]) {
            Ok(()) => {
                if let Some(terminal) = terminal {
                    terminal.carry_input();
                }
            }
            Err(e) => running.not_started(&e, said.ok().as_ref()),
        }
        (running, backstage)
    }

    fn orders(&self, seat: super::Seat, environment: Vec<Change>) -> Orders {
        let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let patience = self.core.ladder.patience();
        Orders {
            argv: self.core.plan.argv.clone(),
            environment: environment.into_iter().map(|c| (c.name, c.value)).collect(),
            seat,
            bundle: self.core.bundle.path().into(),
            wire: self.core.bundle.wire().into(),
            grace_ms: patience.grace.map(ms),
            kill_after_ms: ms(patience.kill_after),
            output_cap: self.core.plan.output_cap,
            secrets: self.core.secrets.values(),
            history: self
                .core
                .plan
                .history
                .as_ref()
                .and_then(|h| Some(std::path::absolute(h.folder()).ok()?.into())),
        }
    }

    fn set_to_work(&mut self, mut keeper: Keeper, orders: &Orders, streams: &[OwnedFd; 3]) -> io::Result<()> {
        let started = keeper.order(orders, streams, self.core.recorder.log_file().as_fd())?;
        let missing = || io::Error::other("it has no process number");
        let pid = i32::try_from(started).ok().and_then(Pid::from_raw).ok_or_else(missing)?;
        let at = Mono::now();
        let keeper = keeper.listen(pid, told(&self.core.tell, Note::Keeper))?;
        self.family = Some(Family::new(keeper.kin(), Group::led_by(pid), orders.seat.session_of(started)));
        let root = keeper.kin().root();
        self.core.keeper = Some(keeper);
        self.record(at, EventKind::CommandStarted(CommandStarted { pid: started }));
        self.start_sampling(root);
        if let Some(span) = self.core.deadline {
            let (pauses, cancellation) = (&self.core.pauses, &self.core.cancellation);
            sources::deadline(span, self.core.host, Arc::clone(pauses), Arc::clone(cancellation));
        }
        Ok(())
    }

    /// The command could not be started. That is said where its own words would have gone: into the bundle, and from
    /// there to our stream.
    fn not_started(&mut self, why: &io::Error, stderr: Option<&OwnedFd>) {
        let line = format!("stuckproof: the command cannot be started: {why}\n");
        match stderr {
            Some(stderr) => drop(write_all(stderr.as_fd(), line.as_bytes())),
            None => self.core.voice.say(line.trim_end()),
        }
        let code = Some(exit::OWN_FAULT.into());
        let exited =
            CommandExited { code, signal: None, core_dumped: false, core_file: None, oom_kills: None };
        self.command_ended(Mono::now(), exited);
    }

    /// Acts on the news until nothing is left of the command that must end.
    pub(super) fn watch(&mut self, backstage: &Backstage) {
        while !self.is_over() {
            if let Ok(note) = self.core.notes.recv_timeout(self.patience()) {
                self.hear(note);
                self.hear_all();
            }
            if self.core.pauses.take() {
                self.pause(backstage);
            }
            self.core.recorder.poll();
            self.read_libraries();
            self.mind_phases();
            self.climb();
            if self.exit.is_none() {
                self.interim.write_if_due(Mono::now(), self.core.bundle.path());
            }
            if self.core.ladder.is_exhausted(Mono::now()) {
                self.give_up();
            }
            self.core.recorder.settle();
        }
    }

    /// The command ended, and with it, or after it, everything that must end.
    fn is_over(&self) -> bool {
        let Some((at, _)) = self.exit else { return false };
        let told = Mono::now().since(at) < TELLING;
        self.family
            .as_ref()
            .is_none_or(|family| family.is_gone() || (!told && family.has_none(self.doomed())))
    }

    /// Who must end. After a success, daemons may stay.
    fn doomed(&self) -> Members {
        let spared = self.exit.is_none() || (!self.core.plan.kill_daemons && self.succeeds());
        if spared { Members::Bound } else { Members::All }
    }

    fn succeeds(&self) -> bool {
        self.core.recorder.lost().is_none() && self.core.recorder.verdict().state == State::Succeeded
    }

    /// How long to sleep when there is no news: until the next look at the wire, or the next rung.
    fn patience(&self) -> Duration {
        let next = self.core.ladder.next(self.core.recorder.builder_seen());
        next.map_or(TICK, |(at, _)| at.since(Mono::now()).min(TICK))
    }

    pub(super) fn hear_all(&mut self) {
        while let Ok(note) = self.core.notes.try_recv() {
            self.hear(note);
        }
    }

    pub(super) fn hear(&mut self, note: Note) {
        match note {
            Note::Request(request) => self.requested(request),
            Note::Keeper(Told::Report(report)) => self.reported(report),
            Note::Keeper(Told::Lost(at)) => self.keeper_lost(at),
            Note::JobControl(JobControl::GoOn) => self.go_on(),
            Note::Status(answer) => {
                self.core.recorder.poll();
                // A client that has gone in the meantime needs no answer.
                let _ = answer.try_send(self.core.recorder.live(self.core.bundle.path(), Mono::now()));
            }
            Note::Sample(sample) => self.sampled(&sample),
            Note::Expected(build, expectation) => self.expected(build, *expectation),
            Note::Input(Some(event)) => self.core.recorder.append(&event),
            Note::Input(None) => self.inputs_known = true,
            Note::Carried => self.carried += 1,
            // The loop looks itself whether the pause is still wanted; this has only woken it.
            Note::JobControl(JobControl::Pause) | Note::Said => {}
        }
    }

    fn reported(&mut self, report: Report) {
        match report {
            Report::Exited(at, exited) if self.exit.is_none() => self.command_ended(Mono(at), exited),
            Report::Alone => {
                if let Some(family) = &mut self.family {
                    family.leave();
                }
            }
            // The keeper may have told of the end and died before it could reap.
            Report::Exited(..) | Report::Started(_) | Report::NotStarted(_) => self.reap(),
        }
    }

    /// Asks for a stop when a phase is open for too long.
    fn mind_phases(&mut self) {
        if !self.core.phase_limit.is_set() || self.exit.is_some() {
            return;
        }
        let now = Mono::now();
        let open = self.core.recorder.open_branch(now);
        if let Some(why) = self.core.phase_limit.broken_by(&open, now, &self.core.pauses) {
            sources::phase_limit(why, self.core.host, &self.core.cancellation);
        }
    }

    fn requested(&mut self, request: Request) {
        if request.answer == Answer::Over {
            self.core.heard.hear(Note::Request(request));
            return;
        }
        let Request { number, at, mut ask, answer, late, word_lost } = request;
        if ask.via.is_signal() {
            ask.reason = ask.reason.or_else(|| self.core.host.reason());
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
            if ask.via == Via::Stall {
                self.core.ladder.limit_grace(stuck::STALL_GRACE);
            }
            self.accepted = Some(ask.via);
            self.say_accepted(ask.via, late);
            let climb = self.core.ladder.request(at);
            self.record_rung(at, climb.rung, climb.why.to_owned());
            self.interim.request(at, self.core.host.provisional());
        }
        if let Some(patience) = self.core.hurried.filter(|_| ask.via.is_signal()) {
            self.core.ladder.hurry(at, patience);
        }
        self.kill_wanted |= kill;
    }

    fn say_accepted(&self, via: Via, late: bool) {
        if late {
            let rest = "the command has ended; its files are put in order";
            return self.core.voice.say(&format!("the stop ({}) comes too late: {rest}", via.name()));
        }
        let what = if self.core.recorder.builder_seen() {
            "the builder is asked to stop at its next step"
        } else {
            "no builder was seen that could be asked"
        };
        let hint = if self.core.host.is_terminal() { "; Ctrl-C once more kills the command" } else { "" };
        self.core.voice.say(&format!("stopping ({}): {what}{hint}", via.name()));
    }

    fn command_ended(&mut self, at: Mono, mut exited: CommandExited) {
        exited.oom_kills = self.core.oom.kills();
        if let Some(family) = &self.family {
            exited.core_file = core_dump::of(family.group().id(), &self.core.plan.argv[0], &exited);
        }
        self.core.recorder.poll();
        self.record(at, EventKind::CommandExited(exited.clone()));
        self.exit = Some((at, exited));
        if let Some(family) = &mut self.family {
            family.leader_reaped();
            self.core.ladder.leave_behind(at);
        }
        self.reap();
    }

    fn reap(&mut self) {
        if let Some(keeper) = &mut self.core.keeper {
            keeper.reap();
        }
    }

    /// The keeper died. The kernel has killed the command with it, and the rest of the family is ours now: without a
    /// keeper nothing would end it if we died too, so it ends here.
    fn keeper_lost(&mut self, at: Mono) {
        let (Some(keeper), Some(family)) = (&self.core.keeper, &mut self.family) else { return };
        family.lose_keeper(keeper.kin_without(), keeper.is_only_child());
        if self.exit.is_none() {
            self.core.ladder.kill(at);
            self.signal(at, Climb { rung: Rung::Kill, why: "the keeper was lost" });
        }
    }

    /// Pauses the job: first the command, then ourselves, unless the job was let go on meanwhile.
    fn pause(&mut self, backstage: &Backstage) {
        let at = Mono::now();
        self.record(at, EventKind::JobPaused(JobPaused { by: "SIGTSTP".to_owned() }));
        self.core.recorder.settle();
        self.core.pauses.begin(at);
        self.send(Signal::STOP);
        backstage.let_go();
        if !self.core.pauses.is_over() {
            // Nothing is left to do when even this is refused; the job then goes on.
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
            // The other threads may be stopped a moment before this one.
            while let Ok(note) = self.core.notes.recv() {
                let over = matches!(note, Note::JobControl(JobControl::GoOn));
                self.hear(note);
                if over {
                    return;
                }
            }
        }
        self.go_on();
    }

    fn go_on(&mut self) {
        let at = Mono::now();
        self.core.pauses.go_on(at);
        if let Some(paused) = self.core.pauses.end(at) {
            self.core.ladder.shift(paused);
            self.core.recorder.shift(paused);
            let paused_ns = u64::try_from(paused.as_nanos()).unwrap_or(u64::MAX);
            self.record(at, EventKind::JobResumed(JobResumed { paused_ns }));
        }
        self.send(Signal::CONT);
    }

    /// Sends a signal of job control. One that cannot be sent changes nothing for the record.
    fn send(&self, signal: Signal) {
        if let Some(family) = &self.family {
            let _ = family.send(signal, Members::Bound);
        }
    }

    /// Climbs the rung that is due, if one is.
    fn climb(&mut self) {
        if self.is_over() {
            return;
        }
        let now = Mono::now();
        let killing = if std::mem::take(&mut self.kill_wanted) { self.core.ladder.kill(now) } else { None };
        let due = killing.or_else(|| self.core.ladder.due(now, self.core.recorder.builder_seen()));
        match due {
            Some(climb) => self.signal(Mono::now(), climb),
            None => self.kill_the_new(),
        }
    }

    /// After SIGKILL: those that were forked at that very moment, and those that only the command's end has doomed.
    fn kill_the_new(&mut self) {
        let Some(family) = self.family.clone().filter(|_| self.core.ladder.is_killed()) else { return };
        if self.exit.is_some() {
            let left = family.living(self.doomed());
            self.record_leftovers(&left, "killed");
        }
        family.strike_again(self.doomed());
    }

    fn signal(&mut self, at: Mono, climb: Climb) {
        let Some(family) = self.family.clone() else { return };
        let doomed = self.doomed();
        let left = if self.exit.is_some() { family.living(doomed) } else { Vec::new() };
        let sent = family.strike(climb.rung, doomed);
        let mut why = climb.why.to_owned();
        if !left.is_empty() {
            let names: Vec<String> = left.iter().map(Process::in_words).collect();
            why = format!("{why}: {}", names.join(", "));
        }
        if let Err(e) = sent {
            why = format!("{why}; it could not be sent: {e}");
        }
        self.core.voice.say(&format!("{} to the command's processes: {why}", climb.rung.name()));
        self.record_rung(at, climb.rung, why);
        self.record_leftovers(&left, "killed");
    }

    fn record_rung(&mut self, at: Mono, rung: Rung, why: String) {
        let group = self.family.as_ref().filter(|_| rung != Rung::Cooperative).map(|f| f.group().id());
        self.record(at, EventKind::LadderRung(LadderRung { rung: rung.name().to_owned(), why, group }));
    }

    fn record_leftovers(&mut self, processes: &[Process], action: &str) {
        for process in processes {
            if self.named.insert(process.pid) {
                self.record(Mono::now(), EventKind::LeftoverFound(process.as_leftover(action)));
            }
        }
    }

    /// Gives up on processes that nothing ends, and says so: this is the one way in which a job leaves some behind.
    fn give_up(&mut self) {
        let Some(family) = self.family.take() else { return };
        let left: Vec<String> = family.living(Members::All).iter().map(Process::in_words).collect();
        let why = format!("processes remain that SIGKILL does not end: {}", left.join(", "));
        self.core.voice.say(&why);
        self.record_rung(Mono::now(), Rung::Kill, why);
    }

    pub(super) fn record(&mut self, at: Mono, kind: EventKind) {
        self.core.journal.see(&kind);
        self.core.recorder.append(&Event { at, kind });
    }

    /// Puts the end on record. From here on nothing more is accepted.
    pub(super) fn finish(mut self, backstage: Backstage) -> Finished {
        let at = Mono::now();
        self.stop_sampling();
        self.interim.finish();
        let (pumps, faults) = backstage.finish();
        if self.core.plan.output_cap.is_some() {
            let values = self.core.secrets.count();
            self.record(at, EventKind::OutputMasked(OutputMasked { by: "runner".to_owned(), values }));
        }
        for fault in &faults {
            self.core.recorder.lose(at, 0, fault);
        }
        self.core.recorder.close(at, "the command's processes ended");
        self.count_losses(at);
        self.settle_daemons();
        // Renames first: whoever stops the job may not wait for digests.
        self.settle_artifacts();
        self.know_inputs();
        self.core.cancellation.seal();
        self.hear_all();
        let verdict = self.core.recorder.verdict();
        let code = self.exit_code(&verdict);
        let ended = JobEnded {
            state: verdict.state,
            cause: verdict.cause.clone(),
            observed: verdict.observed,
            exit_code: code,
        };
        let ended_at = Mono::now();
        self.record(ended_at, EventKind::JobEnded(ended));
        self.core.recorder.settle();
        self.core.ended_at = Some(ended_at);
        self.core.cancellation.ended(in_words(&verdict));
        self.clear_artifacts();
        let lost = self.core.recorder.lost().map(str::to_owned);
        Finished::new(self.core, verdict, code, lost, pumps.saturating_sub(self.carried))
    }

    /// Names the daemons that stay after a success. Where the last look at the record has made it a failure after all,
    /// they end as well.
    fn settle_daemons(&mut self) {
        let Some(family) = self.family.clone() else { return };
        let daemons = family.living(Members::All);
        if self.succeeds() || daemons.is_empty() {
            return self.record_leftovers(&daemons, "left");
        }
        self.signal(Mono::now(), Climb { rung: Rung::Kill, why: "leftover processes" });
        let start = Mono::now();
        while !family.has_none(Members::All) && Mono::now().since(start) < UNKILLABLE {
            std::thread::sleep(TICK);
            self.kill_the_new();
        }
    }

    fn read_libraries(&mut self) {
        for library in self.core.recorder.take_libraries() {
            self.core.inputs.library(&library);
        }
    }

    /// Waits until the inputs are read: as long as it takes while nobody wants the job to stop, else for a moment.
    fn know_inputs(&mut self) {
        self.read_libraries();
        self.core.inputs.close();
        let start = Mono::now();
        let mut stopped_at = None;
        while !self.inputs_known && stopped_at.is_none_or(|at| Mono::now().since(at) < READING_STOPS) {
            let patience = if self.accepted.is_some() { READING_HURRIED } else { READING };
            if stopped_at.is_none() && Mono::now().since(start) >= patience {
                self.core.inputs.stop();
                stopped_at = Some(Mono::now());
            }
            if let Ok(note) = self.core.notes.recv_timeout(TICK) {
                self.hear(note);
            }
        }
    }

    fn count_losses(&mut self, at: Mono) {
        match self.core.control.losses() {
            Ok(losses) => {
                if let Some(what) = losses.in_words() {
                    self.core.recorder.lose(at, losses.records, &what);
                }
            }
            Err(e) => self.core.recorder.lose(at, 0, &e.to_string()),
        }
    }

    fn exit_code(&self, verdict: &Verdict) -> u8 {
        let exited = self.exit.as_ref().map(|(_, exited)| exited);
        let limit = self.accepted.is_some_and(Via::is_limit);
        verdict.exit_code(exited, exit::OWN_FAULT, limit, self.core.recorder.lost().is_some())
    }
}
