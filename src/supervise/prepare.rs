//! Everything that must be in place before the command starts. What fails here fails before anything was run.

use super::Plan;
use super::bundle::{self, Bundle, BundleError, new_job};
use super::control::{self, Entry, Registration};
use super::header::{Ladders, header};
use super::heartbeat::Pulse;
use super::host::Host;
use super::job::{Core, Job, Note};
use super::keeper::Keeper;
use super::ladder::Ladder;
use super::late::Heard;
use super::limits::Limits;
use super::lookup::lookup;
use super::misuse;
use super::oom::OomWatch;
use super::pause::Pauses;
use super::phase_limit::PhaseLimit;
use super::recorder::Recorder;
use super::signals::Listener;
use super::silence::Silence;
use super::sources::{self, CancelFile, SourceError};
use super::stage::Stage;
use super::voice::Voice;
use super::waiter;
use crate::artifact::{self, ArtifactError, Claimed, Journal, Owner, Prepared};
use crate::attach::{self, Change};
use crate::cancel::{Cancellation, Request};
use crate::clock::{Anchor, Mono};
use crate::event::{Event, EventKind, JobStarted, LogError};
use crate::fsio::FsError;
use crate::input::{InputError, Inputs, Reading};
use crate::mask::{self, Secrets};
use crate::stall;
use crate::wire::{Control, Requested, WireError};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;
use thiserror::Error;

/// How long a client that asks for the status may wait for the main loop.
const STATUS_WAIT: Duration = Duration::from_millis(1500);

/// Why no job was started.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The bundle cannot be made.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// A source of a stop cannot be watched.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// An input cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The log cannot be started.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The wire cannot be made.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The path of an artifact holds a secret.
    #[error(
        "the path of an engine or timing cache holds the value of a variable or option that looks secret; choose another \
         path, or name the variable with --no-mask-env"
    )]
    SecretPlace,
    /// An artifact cannot be taken into our care.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// A file cannot be made.
    #[error(transparent)]
    File(#[from] FsError),
    /// The system refused something that every job needs.
    #[error("cannot {action}: {source}; the machine is short of processes, descriptors or terminals")]
    System {
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl Job {
    /// Makes the bundle, starts its log and opens every way to stop the job.
    pub fn prepare(mut plan: Plan) -> Result<Self, PrepareError> {
        let host = Host::find(plan.host.as_deref(), plan.host_allows);
        if plan.cancel_on_stdin_close {
            sources::check_stdin()?;
        }
        let (inputs, identified) = Inputs::find(&plan.inputs, &plan.argv)?;
        let cancel_file = plan.cancel_file.as_deref().map(CancelFile::watch).transpose()?;
        let anchor = Anchor::now();
        let limits = Limits::of(plan.deadline, host, anchor);
        let ladders = Ladders::of(&plan, host);
        // Before the signals are taken: what was ignored until then tells how we were started.
        let warnings = misuse::warnings(&plan.argv, host, ladders.hurried, &limits);
        let job = new_job(chrono::DateTime::from_timestamp_nanos(anchor.wall_ns.cast_signed()));
        let secrets = Arc::new(Secrets::collect(&plan.masking, std::env::vars_os(), &plan.argv));
        check_places(&plan, &secrets)?;
        let artifacts = take_artifacts(&mut plan, &job)?;
        let bundle = Bundle::create(plan.bundle.as_deref(), &job)?;
        let control = Arc::new(Control::create(bundle.wire(), anchor)?);
        let (tell, notes) = mpsc::channel();
        waiter::adopt_orphans().map_err(system("become the parent of the command's orphans"))?;
        // Early, so that it is there by the time that the log's beginning is on disk.
        let keeper = Keeper::start(&job).map_err(system("start the keeper of the command"))?;
        let (stage, streams) = Stage::set(&plan, &bundle, &secrets, &tell)?;
        let cancellation = Arc::new(cancellation(host, Arc::clone(&control), tell.clone()));
        let pauses = Arc::new(Pauses::default());
        let listener = Listener {
            host,
            cancellation: Arc::clone(&cancellation),
            pauses: Arc::clone(&pauses),
            control: Box::new(told(&tell, Note::JobControl)),
            terminal: stage.terminal_changed(),
        };
        listener.listen().map_err(system("take signals"))?;

        let voice = Voice::new(note(&tell, Note::Said));
        let announced = host.announcement(ladders.hurried).into_iter().chain(limits.announcement());
        let warned = warnings.iter().map(|warning| format!("warning: {warning}"));
        announced.chain(warned).for_each(|line| voice.say(&line));
        let (environment, changes) = environment(&bundle, &job, &voice);
        let header = JobStarted {
            environment_changes: changes,
            bundle: bundle.path().to_string_lossy().into_owned(),
            wire: bundle.wire_place(),
            streams: streams.to_owned(),
            warnings,
            ..header(job, &plan, host, ladders, &limits, anchor)
        };
        let header = without_secrets(header, &secrets);
        let log = bundle.file("events.jsonl");
        let ask = plan.history.clone().map(|h| lookup(h, bundle.path().to_owned(), tell.clone()));
        let silence = Silence::new(stall::Limits { stall_after: plan.stall_after }, ask);
        let wire = bundle.wire();
        let mut recorder = Recorder::create(&log, &header, wire, Arc::clone(&control), silence, &secrets)?;
        let (journal, claims) = put_on_record(artifacts, &header, &mut recorder);
        for event in &identified {
            recorder.append(event);
        }
        let inputs = Reading::begin(inputs, Box::new(told(&tell, Note::Input)))
            .map_err(system("start a thread that reads the inputs"))?;
        let registration = register(&bundle, &header, &cancellation, &tell, &voice);
        if let Some(file) = cancel_file {
            file.listen(host, Arc::clone(&cancellation));
        }
        if plan.cancel_on_stdin_close {
            sources::stdin_close(host, Arc::clone(&cancellation));
        }
        let ladder = Ladder::new(ladders.own);
        let phase_limit = PhaseLimit::new(plan.max_phase);
        let oom = OomWatch::new();
        let pulse = Pulse::new(plan.heartbeat, host.ci().is_some(), anchor.mono);
        let core = Core {
            plan,
            host,
            hurried: ladders.hurried,
            deadline: limits.deadline,
            phase_limit,
            bundle,
            control,
            recorder,
            cancellation,
            pauses,
            ladder,
            oom,
            secrets,
            voice,
            journal,
            _claims: claims,
            pulse,
            keeper: None,
            inputs,
            registration,
            heard: Heard::default(),
            ended_at: None,
            tell,
            notes,
        };
        Ok(Self { core, header, stage, environment, keeper })
    }
}

/// Refuses an artifact whose path the log could only hold masked: whoever settles it later finds it by the log.
fn check_places(plan: &Plan, secrets: &Secrets) -> Result<(), PrepareError> {
    let places = plan.artifacts.engines.iter().chain(&plan.artifacts.timing_cache);
    for path in places.filter_map(|path| std::path::absolute(path).ok()) {
        if secrets.is_in(path.as_os_str().as_encoded_bytes()) {
            return Err(PrepareError::SecretPlace);
        }
    }
    Ok(())
}

/// Takes the artifacts into our care, before there is anything else that would have to be taken back.
fn take_artifacts(plan: &mut Plan, job: &str) -> Result<Prepared, PrepareError> {
    let bundle = std::path::absolute(bundle::place(plan.bundle.as_deref(), job));
    let bundle = bundle.map_err(system("find the bundle's folder"))?;
    let owner = Owner { job: job.to_owned(), pid: std::process::id(), bundle };
    Ok(artifact::prepare(&plan.artifacts, &mut plan.argv, &owner)?)
}

/// Puts the artifacts on record, on disk when this returns: from here on they are settled, whoever does it.
fn put_on_record(
    artifacts: Prepared,
    header: &JobStarted,
    recorder: &mut Recorder,
) -> (Journal, Vec<Claimed>) {
    let mut journal = Journal::new(header);
    for declared in artifacts.declared {
        let kind = EventKind::ArtifactDeclared(declared);
        journal.see(&kind);
        recorder.append(&Event { at: Mono::now(), kind });
    }
    recorder.settle();
    let mut claims = artifacts.claims;
    claims.iter_mut().for_each(Claimed::begin);
    (journal, claims)
}

pub(super) fn system(action: &'static str) -> impl Fn(io::Error) -> PrepareError {
    move |source| PrepareError::System { action, source }
}

/// A call that sends one note, for a thread that ends.
pub(super) fn note(tell: &Sender<Note>, note: Note) -> impl FnOnce() + Send + 'static {
    let tell = tell.clone();
    // A main loop that is gone needs no news.
    move || drop(tell.send(note))
}

/// A call that sends what it is given.
pub(super) fn told<T: 'static>(tell: &Sender<Note>, note: fn(T) -> Note) -> impl Fn(T) + Send + 'static {
    let tell = tell.clone();
    // A main loop that is gone needs no news.
    move |what| drop(tell.send(note(what)))
}

fn cancellation(host: Host, control: Arc<Control>, tell: Sender<Note>) -> Cancellation {
    let write_word = move |request: &Request| {
        let ask = &request.ask;
        let requested = Requested {
            request: request.number,
            at: request.at,
            source: ask.source,
            via: ask.via.name().to_owned(),
            pid: ask.pid,
            uid: ask.uid,
        };
        control.request(&requested).map_err(|e| e.to_string())
    };
    let tell = move |request| drop(tell.send(Note::Request(request)));
    Cancellation::new(host.insists(), Box::new(write_word), Box::new(tell))
}

/// The variables that bring the attach library into the command, and the same in words. Without a place for the
/// library the command runs unobserved, and that is said.
fn environment(bundle: &Bundle, job: &str, voice: &Voice) -> (Vec<Change>, Vec<String>) {
    match attach::unpack() {
        Ok(library) => {
            let changes = attach::environment(&library, bundle.wire(), job);
            let words = changes.iter().map(in_words).collect();
            (changes, words)
        }
        Err(e) => {
            let why = format!("none, so that builders are not observed: {e}");
            voice.say(&format!("changes of the environment: {why}"));
            (Vec::new(), vec![why])
        }
    }
}

fn in_words(change: &Change) -> String {
    format!("{}={}: {}", change.name.to_string_lossy(), change.value.to_string_lossy(), change.why)
}

/// The header without the values that stand after secret-looking options, and without secrets anywhere.
fn without_secrets(mut header: JobStarted, secrets: &Secrets) -> JobStarted {
    header.argv = mask::words(&header.argv);
    match EventKind::JobStarted(header).masked(secrets).into_owned() {
        EventKind::JobStarted(header) => header,
        _ => unreachable!("masking makes no other kind of an event"),
    }
}

/// Opens the control socket. A job that cannot have one can still be stopped in every other way.
fn register(
    bundle: &Bundle,
    header: &JobStarted,
    cancellation: &Arc<Cancellation>,
    tell: &Sender<Note>,
    voice: &Voice,
) -> Option<Registration> {
    let entry = Entry {
        job: header.job.clone(),
        pid: header.runner_pid,
        bundle: bundle.path().to_path_buf(),
        started: header.anchor().rfc3339(header.anchor().mono),
    };
    match Registration::new(&entry) {
        Ok((registration, listener)) => {
            let tell = tell.clone();
            let status = move || {
                let (answer, answered) = mpsc::sync_channel(1);
                tell.send(Note::Status(answer)).ok()?;
                answered.recv_timeout(STATUS_WAIT).ok()
            };
            control::serve(listener, entry.job, Arc::clone(cancellation), Box::new(status));
            Some(registration)
        }
        Err(e) => {
            voice.say(&format!("`stuckproof cancel` and `status` cannot reach this job: {e}"));
            None
        }
    }
}
