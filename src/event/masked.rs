//! Events without the secrets in their texts.

use super::kinds::EventKind;
use crate::mask::{self, Secrets};
use serde_json::Value;
use std::borrow::Cow;

impl EventKind {
    /// The same with the secrets masked.
    #[must_use]
    pub fn masked(&self, secrets: &Secrets) -> Cow<'_, Self> {
        if secrets.is_empty() || !self.may_hold(secrets) {
            return Cow::Borrowed(self);
        }
        let mut masked = self.clone();
        masked.hide(secrets);
        if masked == *self { Cow::Borrowed(self) } else { Cow::Owned(masked) }
    }

    /// Whether this can be what masking made of another.
    #[must_use]
    pub fn covers(&self, raw: &Self) -> bool {
        let fields = |kind: &Self| kind.fields().ok().and_then(|json| serde_json::from_slice(&json).ok());
        self == raw
            || (self.name() == raw.name()
                && fields(self).zip(fields(raw)).is_some_and(|(masked, raw)| covers(&masked, &raw)))
    }

    /// Whether it is worth a closer look; the frequent kinds are not copied for nothing.
    fn may_hold(&self, secrets: &Secrets) -> bool {
        match self {
            Self::StepCompleted(step) => secrets.is_in(&step.name),
            Self::PhaseFinished(phase) => secrets.is_in(&phase.name),
            Self::PhaseStarted(phase) => {
                secrets.is_in(&phase.name)
                    || phase.unknown_parent.as_ref().is_some_and(|name| secrets.is_in(name))
            }
            _ => true,
        }
    }

    /// Masks every text that is not one of our own words.
    fn hide(&mut self, secrets: &Secrets) {
        let hide = |text: &mut String| secrets.hide(text);
        match self {
            Self::JobStarted(job) => {
                job.argv.iter_mut().for_each(hide);
                job.environment_changes.iter_mut().chain(&mut job.warnings).for_each(hide);
                [&mut job.cwd, &mut job.host, &mut job.bundle, &mut job.wire].into_iter().for_each(hide);
            }
            Self::LibraryAttached(library) => hide(&mut library.path),
            Self::AttachRefused(refused) => hide(&mut refused.reason),
            Self::BuildDescribed(described) => {
                let facts = &mut described.facts;
                facts.inputs.iter_mut().chain(&mut facts.outputs).for_each(|tensor| hide(&mut tensor.name));
                facts.profiles.iter_mut().for_each(|profile| hide(&mut profile.input));
            }
            Self::PhaseStarted(phase) => {
                hide(&mut phase.name);
                phase.unknown_parent.iter_mut().for_each(hide);
            }
            Self::StepCompleted(step) => hide(&mut step.name),
            Self::PhaseFinished(phase) => hide(&mut phase.name),
            Self::PhaseAborted(phase) => hide(&mut phase.name),
            Self::ApplicationDeclined(declined) => hide(&mut declined.name),
            Self::Message(message) if message.truncated => secrets.hide_cut(&mut message.text),
            Self::Message(message) => hide(&mut message.text),
            Self::BuildExpected(expected) => expected.notes.iter_mut().for_each(hide),
            Self::SilenceJudged(judged) => judged.phase_name.iter_mut().for_each(hide),
            Self::CancelRequested(request) => {
                request.reason.iter_mut().for_each(hide);
                request.open_branch.iter_mut().for_each(|open| hide(&mut open.name));
            }
            Self::LadderRung(rung) => hide(&mut rung.why),
            Self::CommandExited(exited) => exited.core_file.iter_mut().for_each(hide),
            Self::LeftoverFound(leftover) => hide(&mut leftover.name),
            Self::EvidenceLost(lost) => hide(&mut lost.reason),
            Self::InputIdentified(input) => hide(&mut input.path),
            Self::ArtifactDeclared(artifact) => {
                let paths =
                    [&mut artifact.path, &mut artifact.target, &mut artifact.written, &mut artifact.work];
                paths.into_iter().for_each(hide);
            }
            Self::EngineValidated(validated) => {
                hide(&mut validated.command);
                validated.reason.iter_mut().for_each(hide);
            }
            Self::ArtifactSettled(settled) => {
                hide(&mut settled.reason);
                settled.fault.iter_mut().chain(&mut settled.quarantine).for_each(hide);
                settled.undeclared.iter_mut().for_each(hide);
            }
            Self::HostReported(host) => hide(&mut host.status),
            Self::CommandStarted(_)
            | Self::ArtifactsAccepted(_)
            | Self::InputDigested(_)
            | Self::InputChanged(_)
            | Self::BuildStarted(_)
            | Self::BuildReturned(_)
            | Self::CancelAcknowledged(_)
            | Self::JobPaused(_)
            | Self::JobResumed(_)
            | Self::RecordsUnfinished(_)
            | Self::OutputMasked(_)
            | Self::JobEnded(_) => {}
        }
    }
}

fn covers(masked: &Value, raw: &Value) -> bool {
    match (masked, raw) {
        (Value::String(masked), Value::String(raw)) => mask::covers(masked, raw),
        (Value::Array(masked), Value::Array(raw)) => {
            masked.len() == raw.len() && masked.iter().zip(raw).all(|(masked, raw)| covers(masked, raw))
        }
        (Value::Object(masked), Value::Object(raw)) => {
            masked.len() == raw.len()
                && masked.iter().all(|(name, masked)| raw.get(name).is_some_and(|raw| covers(masked, raw)))
        }
        (masked, raw) => masked == raw,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Message, PhaseStarted};
    use std::ffi::OsString;

    #[test]
    fn a_masked_event_covers_the_raw_one_and_no_other() {
        let secrets = Secrets::new([OsString::from("planted-secret")]);
        let phase = |name: &str| {
            EventKind::PhaseStarted(PhaseStarted {
                build: 1,
                phase: 1,
                parent: None,
                unknown_parent: None,
                name: name.to_owned(),
                steps: 3,
                pid: 4,
                tid: 4,
            })
        };
        let raw = phase("layer planted-secret");
        let masked = raw.masked(&secrets).into_owned();
        assert_eq!(masked, phase("layer (masked)"));
        assert!(masked.covers(&raw) && raw.covers(&raw));
        assert!(!masked.covers(&phase("another")) && !raw.covers(&masked));
        assert!(matches!(phase("layer").masked(&secrets), Cow::Borrowed(_)));
    }

    #[test]
    fn a_message_that_was_cut_keeps_no_beginning_of_a_secret() {
        let secrets = Secrets::new([OsString::from("planted-secret")]);
        let message = |truncated| {
            let text = "layer planted-sec".to_owned();
            let severity = "error".to_owned();
            let (build, phase, code) = (None, None, None);
            EventKind::Message(Message { build, phase, severity, code, text, truncated, pid: 1, tid: 1 })
        };
        let text = |kind: &EventKind| match kind.masked(&secrets).as_ref() {
            EventKind::Message(message) => message.text.clone(),
            _ => unreachable!("masking makes no other kind of it"),
        };
        assert_eq!(text(&message(true)), "layer (masked)");
        assert_eq!(text(&message(false)), "layer planted-sec");
    }
}
