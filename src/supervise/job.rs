//! A job from its start to its end: the loop that acts on the news.

use super::Plan;
use super::bundle::Bundle;
use super::control::Registration;
use super::group::Group;
use super::host::Host;
use super::keep::Keep;
use super::ladder::{Climb, Ladder, Rung};
use super::oom::OomWatch;
use super::prepare::{Stage, note};
use super::recorder::Recorder;
use super::sources;
use super::spawn::{self, Input, SpawnError, Start};
use super::status::Live;
use super::streams::{Pump, write_all};
use super::terminal::{Carrying, HandedThrough};
use super::voice::Voice;
use super::waiter::{self, Ended};
use crate::attach::Change;
use crate::cancel::{Answer, Cancellation, Request, Via};
use crate::clock::Mono;
use crate::event::{
    CancelRequested, CommandExited, CommandStarted, Event, EventKind, JobEnded, JobStarted, LadderRung, State,
};
use crate::exit::{self, End};
use crate::fsio::FsError;
use crate::wire::Control;
use rustix::process::Pid;
use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender};
use std::time::Duration;

/// How often the wire is looked at while the command lives.
const TICK: Duration = Duration::from_millis(20);
/// How long the last line may take to be said after somebody gave up on the output.
const LAST_WORD: Duration = Duration::from_millis(100);

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
    pub(super) plan: Plan,
    pub(super) host: Host,
    pub(super) header: JobStarted,
    pub(super) bundle: Bundle,
    pub(super) control: Arc<Control>,
    pub(super) stage: Stage,
    pub(super) environment: Vec<Change>,
    pub(super) recorder: Recorder,
    pub(super) registration: Option<Registration>,
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
        self.bundle.path()
    }

    /// Runs the command to its end and puts everything on record.
    pub fn run(self) -> Result<Finished, FsError> {
        let Self { stage, .. } = self;
        let run = Run {
            plan: self.plan,
            host: self.host,
            bundle: self.bundle,
            control: self.control,
            recorder: self.recorder,
            cancellation: self.cancellation,
            ladder: self.ladder,
            oom: self.oom,
            voice: self.voice,
            tell: self.tell,
            notes: self.notes,
            environment: self.environment,
            group: None,
            exit: None,
            deadline_accepted: false,
            words_lost: None,
        };
        run.story(stage, self.registration)
    }
}
