//! From the log to the evidence, in one pass. Steps are counted and forgotten; what is kept grows with the phases,
//! errors and requests only. Nothing is looked for in a list that a log can make as long as it likes: what many ask for
//! has an index, or is found out once for all.

use super::libraries::{Libraries, Told};
use super::model::{
    Build, Command, Counts, ErrorLine, Evidence, Input, JobState, Loss, MessageCounts, Pause, Refusal,
    Request, Rung, SilenceFacts, Times, Validation,
};
use super::{
    Bundle, EvidenceError, Inventory, Phases, Retry, Summary, config, gpu, inventory, retry, silence, summary,
};
use crate::baseline::{self, Baseline};
use crate::cancel::Via;
use crate::clock::{Anchor, Mono, round_ms};
use crate::event::{
    BuildFacts, BuildTree, CancelAcknowledged, CancelRequested, CommandExited, Ending, EngineValidated,
    Event, EventKind, HostReported, InputDigested, InputIdentified, JobEnded, JobStarted, LadderRung,
    LeftoverFound, LibraryAttached, Line, LogFault, LogReader, Message, OutputMasked, Tree,
};
use crate::exit;
use crate::verdict::{BuildVerdict, Judge, Verdict};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::BufRead;
use std::path::Path;

/// The note on a state that the record does not bear out.
pub(super) const FOREIGN_STATE: &str =
    "The state on record does not follow from the events; do not rely on it.";

/// The note on output that somebody else than the job masked.
const MASKED_LATE: &str = "The secrets in the output were masked by whoever finished the bundle, who knows those of \
                           their own environment only; others of the job's may still stand in it.";

/// The longest name of a phase beside an error, characters. Any number of errors can name one phase.
const LONGEST_NAME: usize = 1_000;

/// What one pass over the log gathers.
struct Gathered {
    header: JobStarted,
    tree: Tree,
    judge: Judge,
    started: Option<(Mono, u32)>,
    exited: Option<(Mono, CommandExited)>,
    ended: Option<JobEnded>,
    libraries: Vec<LibraryAttached>,
    refusals: Vec<Refusal>,
    messages: Vec<(Mono, Message)>,
    requests: Vec<(Mono, CancelRequested)>,
    /// The place of the first request that was accepted.
    accepted: Option<usize>,
    acknowledged: BTreeMap<u32, (Mono, CancelAcknowledged)>,
    rungs: Vec<(Mono, LadderRung)>,
    pauses: Vec<Pause>,
    inputs: Vec<Input>,
    /// The place of each number's first input.
    places: HashMap<u32, usize>,
    output: Option<OutputMasked>,
    leftovers: Vec<LeftoverFound>,
    lost: Vec<Loss>,
    host_report: Option<HostReported>,
    counts: Counts,
    facts: BTreeMap<u32, BuildFacts>,
    artifacts: inventory::Gathered,
    validated: Option<(Mono, EngineValidated)>,
    silences: silence::Gathered,
    last: Mono,
}

/// What every build asks for, found out once.
struct Common<'a> {
    verdict: &'a Verdict,
    live: JobState,
    libraries: Libraries<'a>,
    /// What is told of each library, in their order.
    told: Vec<Told>,
    /// What stands for the contents of the inputs, where they are known.
    inputs: Option<String>,
    /// Whether there are none.
    no_inputs: bool,
    /// The errors of each build, and of none.
    errors: HashMap<Option<u32>, Vec<&'a (Mono, Message)>>,
}

/// What follows from it.
pub(super) struct Derived {
    pub(super) evidence: Evidence,
    pub(super) summary: Summary,
    pub(super) inventory: Inventory,
}

/// Reads the bundle's log and derives everything from it.
pub(super) fn derive<R: BufRead>(
    path: &Path,
    mut reader: LogReader<R>,
    baseline: Result<Baseline, String>,
    mut see: impl FnMut(&Line, &[u8]),
) -> Result<Bundle, EvidenceError> {
    let mut faults = Vec::new();
    let mut gathered: Option<Gathered> = None;
    loop {
        match reader.read() {
            Ok(None) => break,
            Ok(Some(line)) => {
                see(&line, reader.text());
                match (&mut gathered, &line.event.kind) {
                    (Some(gathered), _) => gathered.see(&line.event),
                    (none, EventKind::JobStarted(header)) => *none = Some(Gathered::new(header.clone())),
                    _ => {}
                }
            }
            Err(fault) => faults.push(fault),
        }
    }
    let Some(mut gathered) = gathered else { return Err(without_header(path, faults)) };
    gathered.tree.finish();
    let ending = reader.ending();
    let Derived { evidence, summary, inventory } = gathered.derived(ending, &faults, baseline.as_ref());
    Ok(Bundle {
        path: path.to_owned(),
        phases: Phases::of(&gathered.tree, evidence.finished),
        summary,
        inventory,
        baseline,
        evidence,
        ending,
        lines: reader.lines(),
        head: reader.head(),
        follows: gathered.end_follows(),
        faults,
    })
}

/// The evidence of a job of which only the header is known.
pub(super) fn provisional(header: &JobStarted) -> Derived {
    let baseline = Err(baseline::missing());
    Gathered::new(header.clone()).derived(Ending::Open, &[], baseline.as_ref())
}

fn without_header(path: &Path, faults: Vec<LogFault>) -> EvidenceError {
    let path = path.to_owned();
    match faults.into_iter().next() {
        Some(fault) => EvidenceError::Log { path, fault },
        None => EvidenceError::NoHeader { path },
    }
}

impl Gathered {
    fn new(header: JobStarted) -> Self {
        Self {
            last: header.anchor().mono,
            header,
            tree: Tree::default(),
            judge: Judge::default(),
            started: None,
            exited: None,
            ended: None,
            libraries: Vec::new(),
            refusals: Vec::new(),
            messages: Vec::new(),
            requests: Vec::new(),
            accepted: None,
            acknowledged: BTreeMap::new(),
            rungs: Vec::new(),
            pauses: Vec::new(),
            inputs: Vec::new(),
            places: HashMap::new(),
            output: None,
            leftovers: Vec::new(),
            lost: Vec::new(),
            host_report: None,
            counts: Counts { events: 1, ..Counts::default() },
            facts: BTreeMap::new(),
            artifacts: inventory::Gathered::default(),
            validated: None,
            silences: silence::Gathered::default(),
        }
    }

    fn see(&mut self, event: &Event) {
        let at = event.at;
        self.last = self.last.max(at);
        self.counts.events += 1;
        self.tree.see(event);
        self.judge.see(event);
        self.silences.see(at, &event.kind, self.header.anchor());
        match &event.kind {
            EventKind::CommandStarted(command) => self.started = Some((at, command.pid)),
            EventKind::CommandExited(exit) => self.exited = Some((at, exit.clone())),
            EventKind::LibraryAttached(library) => self.libraries.push(library.clone()),
            EventKind::AttachRefused(refused) => self.refusals.push(Refusal {
                pid: refused.pid,
                reason: refused.reason.clone(),
                at: self.wall(at),
            }),
            EventKind::Message(message) => {
                self.counts.messages += 1;
                if matches!(message.severity.as_str(), "error" | "internal_error") {
                    self.messages.push((at, message.clone()));
                }
            }
            EventKind::BuildStarted(_) => self.counts.builds += 1,
            EventKind::BuildDescribed(described) => {
                self.facts.insert(described.build, described.facts.clone());
            }
            EventKind::PhaseStarted(_) => self.counts.phases += 1,
            EventKind::StepCompleted(_) => self.counts.steps += 1,
            EventKind::CancelRequested(request) => {
                if request.accepted {
                    self.accepted.get_or_insert(self.requests.len());
                }
                self.requests.push((at, request.clone()));
            }
            EventKind::CancelAcknowledged(ack) => {
                self.acknowledged.entry(ack.build).or_insert((at, ack.clone()));
            }
            EventKind::LadderRung(rung) => self.rungs.push((at, rung.clone())),
            EventKind::JobPaused(paused) => self.pauses.push(Pause {
                by: paused.by.clone(),
                at: self.wall(at),
                t_ns: at.0,
                paused_ms: None,
            }),
            EventKind::JobResumed(resumed) => {
                if let Some(pause) = self.pauses.last_mut() {
                    pause.paused_ms.get_or_insert(round_ms(resumed.paused_ns));
                }
            }
            EventKind::InputIdentified(input) => {
                self.places.entry(input.input).or_insert(self.inputs.len());
                self.inputs.push(self.input(at, input));
            }
            EventKind::InputDigested(digested) => self.digested(digested),
            EventKind::InputChanged(changed) => {
                if let Some(input) = self.input_of(changed.input) {
                    input.changed.get_or_insert_with(|| changed.what.clone());
                }
            }
            EventKind::OutputMasked(masked) => self.output = Some(masked.clone()),
            EventKind::LeftoverFound(leftover) => self.leftovers.push(leftover.clone()),
            EventKind::RecordsUnfinished(unfinished) => {
                self.counts.unfinished_records =
                    self.counts.unfinished_records.saturating_add(unfinished.records);
            }
            EventKind::EvidenceLost(lost) => {
                self.lost.push(Loss {
                    records: lost.records,
                    reason: lost.reason.clone(),
                    at: self.wall(at),
                });
            }
            EventKind::ArtifactDeclared(declared) => self.artifacts.declared.push(declared.clone()),
            EventKind::ArtifactSettled(settled) => self.artifacts.settled.push((at, settled.clone())),
            EventKind::EngineValidated(validated) => self.validated = Some((at, validated.clone())),
            EventKind::HostReported(host) => self.host_report = Some(host.clone()),
            EventKind::JobEnded(ended) => self.ended = Some(ended.clone()),
            _ => {}
        }
    }

    fn derived(&self, ending: Ending, faults: &[LogFault], baseline: Result<&Baseline, &String>) -> Derived {
        let verdict = self.judge.verdict();
        let common = self.common(&verdict);
        let end = self.ended.as_ref();
        let mut evidence = Evidence {
            format: 1,
            finished: end.is_some(),
            job: self.header.job.clone(),
            state: end.map_or(common.live, |end| end.state.into()),
            cause: end.and_then(|end| end.cause.clone()),
            observed: verdict.observed,
            decisive_build: verdict.decisive,
            exit_code: end.map(|end| end.exit_code),
            notes: Vec::new(),
            started_at: self.wall(self.header.anchor().mono),
            duration_ms: self.last.ms_since(self.header.anchor().mono),
            header: self.header.clone(),
            command: self.command(),
            libraries: self.libraries.clone(),
            refusals: self.refusals.clone(),
            inputs: self.inputs(),
            builds: self.tree.builds().map(|build| self.build(build, &common)).collect(),
            errors: self.errors(None, &common),
            requests: self.requests(&verdict),
            ladder: self.ladder(),
            pauses: self.pauses.clone(),
            output: self.output.clone(),
            leftovers: self.leftovers.clone(),
            silences: self.silences.silences(),
            host_report: self.host_report.clone(),
            times: self.times(),
            validation: self.validated.as_ref().map(|(at, validated)| self.validation(*at, validated)),
            retry: Retry::default(),
            lost: self.lost.clone(),
            counts: self.counts,
            nulls: BTreeMap::new(),
        };
        let inventory = self.artifacts.inventory(&evidence.job, evidence.finished, self.header.anchor());
        evidence.retry = retry::of(&evidence, &inventory);
        let sku = gpu::sku(&evidence, baseline);
        let summary = summary::of(&evidence, &inventory, verdict.validation, sku.as_ref().ok());
        evidence.nulls = summary::nulls(&evidence, &inventory, &summary, sku.as_ref().err());
        evidence.notes = self.notes(&evidence, &verdict, ending, faults);
        Derived { evidence, summary, inventory }
    }

    fn validation(&self, at: Mono, validated: &EngineValidated) -> Validation {
        Validation {
            command: validated.command.clone(),
            status: validated.status,
            code: validated.code,
            signal: validated.signal,
            reason: validated.reason.clone(),
            at: self.wall(at),
            duration_ns: validated.duration_ns,
        }
    }

    fn common<'a>(&'a self, verdict: &'a Verdict) -> Common<'a> {
        let contents = config::contents(&self.inputs).ok();
        let mut errors: HashMap<Option<u32>, Vec<&(Mono, Message)>> = HashMap::new();
        for message in &self.messages {
            errors.entry(message.1.build).or_default().push(message);
        }
        Common {
            verdict,
            live: if self.accepted.is_some() { JobState::Cancelling } else { JobState::Running },
            libraries: Libraries::of(&self.libraries),
            told: self.libraries.iter().map(Told::of).collect(),
            no_inputs: contents.as_ref().is_some_and(BTreeSet::is_empty),
            inputs: contents.as_ref().map(config::inputs),
            errors,
        }
    }

    fn build(&self, tree: &BuildTree, common: &Common) -> Build {
        let verdict = common.verdict.build(tree.build);
        let settled = verdict.filter(|_| self.ended.is_some() || tree.returned.is_some());
        let returned = tree.returned.as_ref();
        let acknowledged = self.acknowledged.get(&tree.build);
        let library = common.libraries.place(tree.pid).map(|place| &common.told[place]);
        let facts = self.facts.get(&tree.build);
        let took = returned.filter(|(_, r)| r.engine).map(|_| tree.ended.ms_since(tree.started));
        Build {
            build: tree.build,
            pid: tree.pid,
            tid: tree.tid,
            method: tree.method.clone(),
            chained: tree.chained,
            library: library.map(|library| library.name.clone()),
            config_hash: library
                .zip(facts)
                .zip(common.inputs.as_ref())
                .map(|((library, facts), inputs)| config::hash(&library.digest, facts, inputs)),
            config_hash_partial: common.no_inputs,
            facts: facts.cloned(),
            state: settled.map_or(common.live, |build| build.state.into()),
            cause: settled.and_then(|build| build.cause.clone()),
            notes: settled.map(build_notes).unwrap_or_default(),
            started_at: self.wall(tree.started),
            duration_ms: tree.ended.ms_since(tree.started),
            engine: returned.map(|(_, returned)| returned.engine),
            bytes: returned.and_then(|(_, returned)| returned.bytes),
            phases: tree.phases.len() as u64,
            steps: tree.steps,
            messages: returned.map(|(_, returned)| counts(returned.messages)),
            errors: self.errors(Some(tree), common),
            request_to_ack_ms: acknowledged.map(|(_, ack)| round_ms(ack.latency_ns)),
            ack_to_return_ms: acknowledged.and_then(|(ack, _)| Some(returned?.0.ms_since(*ack))),
            cancellability: tree.cancellability(),
            longest_silences: silences(tree),
            longest_idle_ms: self.silences.longest_idle_ms(tree.build),
            expected: self.silences.expected(tree.build, took),
        }
    }

    fn input(&self, at: Mono, input: &InputIdentified) -> Input {
        Input {
            input: input.input,
            kind: input.kind,
            path: input.path.clone(),
            of: input.of,
            bytes: input.bytes,
            modified_ns: input.modified_ns,
            inode: input.inode,
            build_id: input.build_id.clone(),
            at: self.wall(at),
            t_ns: at.0,
            sha256: None,
            changed: None,
            reason: input.reason.clone(),
        }
    }

    fn input_of(&mut self, number: u32) -> Option<&mut Input> {
        self.places.get(&number).map(|place| &mut self.inputs[*place])
    }

    fn digested(&mut self, digested: &InputDigested) {
        if let Some(input) = self.input_of(digested.input) {
            input.sha256.clone_from(&digested.sha256);
            input.reason.clone_from(&digested.reason);
        }
    }

    /// The inputs; after the end nobody reads the rest.
    fn inputs(&self) -> Vec<Input> {
        let mut inputs = self.inputs.clone();
        let unread = |input: &&mut Input| input.sha256.is_none() && input.reason.is_none();
        for input in inputs.iter_mut().filter(unread).filter(|_| self.ended.is_some()) {
            input.reason = Some("the record ends before it was read".to_owned());
        }
        inputs
    }

    /// Whether the end on record, with its exit code, is the one that the runner gives to such a job.
    fn end_follows(&self) -> bool {
        let Some(end) = &self.ended else { return true };
        let verdict = self.judge.verdict();
        let accepted = self.accepted.map(|place| &self.requests[place]);
        let via = accepted.and_then(|(_, request)| Via::beginning_with(&request.via));
        let limit = via.is_some_and(Via::is_limit);
        let exited = self.exited.as_ref().map(|(_, exited)| exited);
        let code = verdict.exit_code(exited, exit::OWN_FAULT, limit, !self.lost.is_empty());
        let Verdict { state, cause, observed, .. } = verdict;
        *end == JobEnded { state, cause, observed, exit_code: code }
    }

    fn accepted(&self) -> Option<Mono> {
        self.accepted.map(|place| self.requests[place].0)
    }

    fn command(&self) -> Command {
        let exit = self.exited.as_ref();
        Command {
            pid: self.started.map(|(_, pid)| pid),
            started_at: self.started.map(|(at, _)| self.wall(at)),
            duration_ms: self.started.and_then(|(at, _)| Some(exit?.0.ms_since(at))),
            code: exit.and_then(|(_, exit)| exit.code),
            signal: exit.and_then(|(_, exit)| exit.signal),
            core_dumped: exit.is_some_and(|(_, exit)| exit.core_dumped),
            core_file: exit.and_then(|(_, exit)| exit.core_file.clone()),
            oom_kills: exit.and_then(|(_, exit)| exit.oom_kills),
        }
    }

    /// The error lines of a build, or those outside of any.
    fn errors(&self, build: Option<&BuildTree>, common: &Common) -> Vec<ErrorLine> {
        let phase_name = |phase| Some(summary::cut(&build?.phase(phase?)?.name, LONGEST_NAME));
        let said = common.errors.get(&build.map(|build| build.build));
        said.into_iter()
            .flatten()
            .map(|(at, message)| ErrorLine {
                severity: message.severity.clone(),
                code: message.code,
                text: message.text.clone(),
                truncated: message.truncated,
                phase: message.phase,
                phase_name: phase_name(message.phase),
                at: self.wall(*at),
                t_ns: at.0,
            })
            .collect()
    }

    fn requests(&self, verdict: &Verdict) -> Vec<Request> {
        // The judge has seen the same requests in the same order.
        self.requests
            .iter()
            .zip(&verdict.requests)
            .map(|((at, request), outcome)| Request {
                request: request.request,
                source: request.source,
                via: request.via.clone(),
                reason: request.reason.clone(),
                accepted: request.accepted,
                kill: request.kill,
                pid: request.pid,
                uid: request.uid,
                at: self.wall(*at),
                t_ns: at.0,
                outcome: self.ended.is_some().then(|| outcome.outcome.name().to_owned()),
                open_branch: request.open_branch.clone(),
            })
            .collect()
    }

    fn ladder(&self) -> Vec<Rung> {
        let accepted = self.accepted();
        self.rungs
            .iter()
            .map(|(at, rung)| Rung {
                rung: rung.rung.clone(),
                why: rung.why.clone(),
                at: self.wall(*at),
                t_ns: at.0,
                since_request_ms: accepted.map(|request| at.ms_since(request)),
            })
            .collect()
    }

    /// The intervals, along the build that acknowledged first.
    fn times(&self) -> Times {
        let first = self.acknowledged.values().min_by_key(|(at, _)| *at);
        let Some((at, ack)) = first else { return Times::default() };
        let returned =
            self.tree.build(ack.build).and_then(|build| build.returned.as_ref()).map(|(at, _)| *at);
        let exited = self.exited.as_ref().map(|(at, _)| *at);
        Times {
            request_to_ack_ms: Some(round_ms(ack.latency_ns)),
            ack_to_return_ms: returned.map(|returned| returned.ms_since(*at)),
            return_to_exit_ms: returned.and_then(|returned| Some(exited?.ms_since(returned))),
            ack_to_cleaned_ms: self.artifacts.cleaned().map(|cleaned| cleaned.ms_since(*at)),
        }
    }

    fn notes(
        &self,
        evidence: &Evidence,
        verdict: &Verdict,
        ending: Ending,
        faults: &[LogFault],
    ) -> Vec<String> {
        let mut notes = Vec::new();
        if !evidence.finished {
            notes.push(unfinished(self.header.runner_pid, ending));
        }
        if let Some(end) = &self.ended
            && (end.state, &end.cause) != (verdict.state, &verdict.cause)
        {
            notes.push(FOREIGN_STATE.to_owned());
        }
        if evidence.finished {
            notes.extend(self.unobserved(evidence));
        }
        notes.extend(self.header.warnings.iter().map(|warning| format!("At the start: {warning}.")));
        notes.extend(self.refusals.iter().map(|refused| {
            format!(
                "A builder in process {} was left alone and ran unobserved: {}",
                refused.pid, refused.reason
            )
        }));
        notes.extend(self.libraries.iter().filter_map(|library| {
            let why = library.messages_unobserved.as_ref()?;
            Some(format!("The messages of {} are not recorded: {why}", summary::library_name(library)))
        }));
        notes.extend(self.libraries.iter().filter_map(summary::provenance));
        if self.output.as_ref().is_some_and(|output| output.by == "finalize") {
            notes.push(MASKED_LATE.to_owned());
        }
        notes.extend(faults.iter().map(|fault| format!("Log: {fault}.")));
        notes
    }

    /// Why there is nothing to see, where there is nothing.
    fn unobserved(&self, evidence: &Evidence) -> Option<String> {
        if !evidence.builds.is_empty() {
            return None;
        }
        let seen = match (evidence.observed, self.refusals.is_empty()) {
            (true, _) => return Some("A builder was created, but no build was started.".to_owned()),
            (false, true) => "No TensorRT builder was seen",
            (false, false) => "No build was observed",
        };
        let rest =
            "the state is the command's exit code and nothing more, and its language is taken from its name";
        Some(format!("{seen}: {rest}."))
    }

    fn wall(&self, at: Mono) -> String {
        let anchor: Anchor = self.header.anchor();
        anchor.rfc3339(at)
    }
}

fn unfinished(runner: u32, ending: Ending) -> String {
    let torn = match ending {
        Ending::Torn { bytes } => format!(" Its last line is incomplete ({bytes} bytes)."),
        Ending::Open | Ending::Ended => String::new(),
    };
    format!("The log has no end: the runner (process {runner}) is still at work, or was lost.{torn}")
}

fn build_notes(verdict: &BuildVerdict) -> Vec<String> {
    verdict.notes.iter().map(|&note| note.to_owned()).collect()
}

fn counts([internal_error, error, warning, info, verbose]: [u32; 5]) -> MessageCounts {
    MessageCounts { internal_error, error, warning, info, verbose }
}

fn silences(build: &BuildTree) -> Vec<SilenceFacts> {
    let facts = build.silences.iter().map(|silence| SilenceFacts {
        ms: round_ms(silence.ns),
        from_ms: silence.from.ms_since(build.started),
        phase: silence.phase,
        phase_name: silence.phase.and_then(|phase| build.phase(phase)).map(|phase| phase.name.clone()),
    });
    facts.collect()
}
