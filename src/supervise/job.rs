//! A job that is ready to run, and what all of its parts share.

use super::Plan;
use super::bundle::Bundle;
use super::control::Registration;
use super::finished::Finished;
use super::heartbeat::Pulse;
use super::host::{Host, Patience};
use super::interim::{Interim, WriteInterim};
use super::keeper::{Keeper, OnDuty, Told};
use super::ladder::Ladder;
use super::late::Heard;
use super::oom::OomWatch;
use super::pause::Pauses;
use super::phase_limit::PhaseLimit;
use super::recorder::Recorder;
use super::running::Running;
use super::signals::JobControl;
use super::stage::Stage;
use super::status::Live;
use super::voice::Voice;
use crate::artifact::{Claimed, Journal};
use crate::attach::Change;
use crate::cancel::{Cancellation, Request};
use crate::clock::Mono;
use crate::event::{Event, JobStarted};
use crate::history::Expectation;
use crate::input::Reading;
use crate::mask::Secrets;
use crate::resources::Sample;
use crate::wire::Control;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::time::Duration;

/// News for the main loop.
pub(super) enum Note {
    /// A request to stop was decided.
    Request(Request),
    /// What the keeper told, or that it is lost.
    Keeper(Told),
    /// What job control wants.
    JobControl(JobControl),
    /// Somebody asks how the job is.
    Status(SyncSender<Live>),
    /// The job's processes were looked at.
    Sample(Sample),
    /// What the history says of a build.
    Expected(u32, Box<Expectation>),
    /// What was found out about an input; nothing when there is no more to tell.
    Input(Option<Box<Event>>),
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
    pub(super) keeper: Keeper,
}

/// What a job has from its preparation to its end.
pub(super) struct Core {
    pub(super) plan: Plan,
    pub(super) host: Host,
    /// The ladder from the host's first signal on, where the host does not wait for ever.
    pub(super) hurried: Option<Patience>,
    pub(super) deadline: Option<Duration>,
    pub(super) phase_limit: PhaseLimit,
    pub(super) bundle: Bundle,
    pub(super) control: Arc<Control>,
    pub(super) recorder: Recorder,
    pub(super) cancellation: Arc<Cancellation>,
    pub(super) pauses: Arc<Pauses>,
    pub(super) ladder: Ladder,
    pub(super) oom: OomWatch,
    pub(super) secrets: Arc<Secrets>,
    pub(super) voice: Voice,
    /// What is on record of the artifacts.
    pub(super) journal: Journal,
    /// What keeps other jobs away from them.
    pub(super) _claims: Vec<Claimed>,
    pub(super) pulse: Pulse,
    /// The keeper, once it watches over the command.
    pub(super) keeper: Option<OnDuty>,
    pub(super) inputs: Reading,
    /// The way in through the control socket, where there is one.
    pub(super) registration: Option<Registration>,
    /// Requests to stop that came after the end.
    pub(super) heard: Heard,
    /// When the end was on record.
    pub(super) ended_at: Option<Mono>,
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

    /// What no file of the bundle may hold.
    #[must_use]
    pub fn secrets(&self) -> &Arc<Secrets> {
        &self.core.secrets
    }

    /// Whether somebody has asked it to stop already.
    #[must_use]
    pub fn is_asked_to_stop(&self) -> bool {
        self.core.cancellation.is_asked()
    }

    /// Runs the command to its end and puts everything on record. `write_interim` is called once if a stop takes its time.
    #[must_use]
    pub fn run(self, write_interim: WriteInterim) -> Finished {
        let Self { core, stage, environment, keeper, .. } = self;
        let interim = Interim::new(write_interim);
        let (mut running, backstage) = Running::start(core, stage, environment, keeper, interim);
        running.watch(&backstage);
        running.finish(backstage)
    }
}
