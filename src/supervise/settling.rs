//! After the command's end: the user's own check of the engine, and the artifacts. Requests to stop that come meanwhile are
//! put on record and answered; the check is the one thing that they still stop.

use super::check::Check;
use super::keep::{VALIDATION, settle_validation};
use super::running::Running;
use crate::artifact::{self, Terms};
use crate::clock::Mono;
use crate::event::{CommandExited, EngineValidated, EventKind, SettledBy, ValidationStatus};
use rustix::process::Signal;
use std::time::Duration;

/// How often the check is looked at.
const TICK: Duration = Duration::from_millis(20);

impl Running {
    /// Publishes the artifacts of a success, and puts everything else back or aside.
    pub(super) fn settle_artifacts(&mut self) {
        self.core.cancellation.command_ended();
        if self.core.journal.is_empty() {
            return;
        }
        self.hear_all();
        if self.outcome().is_ok() {
            self.validate();
        }
        let wish = self.outcome().and_then(|()| self.core.journal.may_publish());
        let hurry = self.accepted.is_some() || self.core.ladder.is_killed();
        let journal = self.core.journal.clone().hearing(self.core.recorder.said());
        artifact::settle(&journal, &Terms { wish, hurry, by: SettledBy::Runner }, &mut |kind| {
            let decides = matches!(kind, EventKind::ArtifactsAccepted(_));
            self.record(Mono::now(), kind);
            if decides {
                self.core.recorder.settle();
            }
            self.core.recorder.lost().is_none()
        });
        self.core.recorder.settle();
    }

    /// The end is on record: what settling needed goes. What cannot be removed is cleared by the next job.
    pub(super) fn clear_artifacts(&mut self) {
        if self.core.recorder.is_given_up() {
            return;
        }
        if let Err(e) = artifact::clear(&self.core.journal) {
            self.core.voice.say(&format!("a folder beside an artifact could not be removed: {e}"));
        }
    }

    fn outcome(&self) -> Result<(), String> {
        match self.core.recorder.lost() {
            Some(lost) => Err(format!("the evidence is not complete: {lost}")),
            None => self.core.recorder.verdict().as_success(),
        }
    }

    /// Runs the user's own check, if one was asked for, and puts on record what it says.
    fn validate(&mut self) {
        let Some(command) = self.core.plan.artifacts.validate.clone() else { return };
        let began = Mono::now();
        let mut validated = EngineValidated {
            command,
            status: ValidationStatus::Pending,
            code: None,
            signal: None,
            reason: None,
            duration_ns: 0,
        };
        match self.check(&validated.command) {
            Ok(exited) => {
                let passed = exited.code == Some(0);
                validated.status = if passed { ValidationStatus::Pass } else { ValidationStatus::Fail };
                (validated.code, validated.signal) = (exited.code, exited.signal);
            }
            Err(why) => validated.reason = Some(why),
        }
        let ended = Mono::now();
        validated.duration_ns = ended.0.saturating_sub(began.0);
        self.record(ended, EventKind::EngineValidated(validated));
    }

    /// How the check ended, or why it did not come to its end.
    fn check(&mut self, command: &str) -> Result<CommandExited, String> {
        const STOPPED: &str = "a stop was requested before its end";
        if self.accepted.is_some() {
            return Err(STOPPED.to_owned());
        }
        let engine = self.core.journal.engine().ok_or("no engine was declared")?;
        self.core.voice.say("the build has ended; the engine is checked");
        let log = self.core.plan.output_cap.map(|_| self.core.bundle.file(VALIDATION));
        let check = Check::start(command, engine, log.as_deref()).map_err(|e| e.to_string())?;
        let end = self.wait_for(&check);
        check.leave();
        if let Some(cap) = self.core.plan.output_cap
            && let Err(e) = settle_validation(self.core.bundle.path(), cap, &self.core.secrets)
        {
            self.core.recorder.lose(Mono::now(), 0, &e.to_string());
        }
        match end {
            Ok(_) if self.accepted.is_some() => Err(STOPPED.to_owned()),
            other => other.map_err(|e| e.to_string()),
        }
    }

    fn wait_for(&mut self, check: &Check) -> std::io::Result<CommandExited> {
        let mut asked: Option<Mono> = None;
        loop {
            if let Some(exited) = check.end()? {
                return Ok(exited);
            }
            if let Ok(note) = self.core.notes.recv_timeout(TICK) {
                self.hear(note);
                self.hear_all();
                self.core.recorder.settle();
            }
            if self.accepted.is_none() {
                continue;
            }
            let patience = self.core.ladder.patience().kill_after;
            match asked {
                None => {
                    check.send(Signal::TERM);
                    asked = Some(Mono::now());
                }
                Some(at) if self.kill_wanted || Mono::now().since(at) >= patience => check.send(Signal::KILL),
                Some(_) => {}
            }
        }
    }
}
