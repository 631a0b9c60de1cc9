//! One line of the log as serde sees it. The writer has its own, faster way to the same bytes.

use super::kinds::{
    ApplicationDeclined, ArtifactDeclared, ArtifactSettled, ArtifactsAccepted, AttachRefused, BuildDescribed,
    BuildReturned, BuildStarted, CancelAcknowledged, CancelRequested, CancelState, CommandExited,
    CommandStarted, EngineValidated, Event, EventKind, EvidenceLost, HostReported, InputChanged,
    InputDigested, InputIdentified, JobEnded, JobPaused, JobResumed, JobStarted, LadderRung, LeftoverFound,
    LibraryAttached, Message, OutputMasked, PhaseAborted, PhaseFinished, PhaseStarted, RecordsUnfinished,
    StepCompleted,
};
use super::silence::{BuildExpected, SilenceJudged};
use super::text::plain;
use crate::clock::Mono;
use crate::digest::Hex;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// One line, read back.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its place in the log, from 1.
    pub seq: u64,
    /// SHA-256 of the line before, without its newline; 64 zeros in the first line.
    pub prev: String,
    /// The event's wall time: RFC 3339, UTC, microseconds.
    pub wall: String,
    /// The job's cancellation state at the event's own time.
    pub cancel: CancelState,
    /// The event.
    pub event: Event,
}

/// What every line starts with.
#[derive(Serialize, Deserialize)]
pub(super) struct Head<'a> {
    pub seq: u64,
    #[serde(borrow)]
    pub prev: Cow<'a, str>,
    pub t: u64,
    #[serde(borrow)]
    pub wall: Cow<'a, str>,
    #[serde(borrow)]
    pub event: Cow<'a, str>,
    pub cancel: CancelState,
}

/// Why a whole line is not one of ours.
pub(super) enum BadLine {
    Json(serde_json::Error),
    UnknownEvent(String),
}

/// The one list of the kinds: name in the log, variant, and where its build number is.
macro_rules! kinds {
    ($($kind:ident = $name:literal $build:ident,)*) => {
        impl EventKind {
            /// The name that stands as `event` in the log.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $(Self::$kind(_) => $name,)* }
            }

            /// Whether the fields hold a build number of their own; the writer adds `"build": null` where not.
            #[must_use]
            pub(super) fn has_build(&self) -> bool {
                match self { $(Self::$kind(_) => kinds!(@has $build),)* }
            }

            pub(super) fn fields(&self) -> serde_json::Result<Vec<u8>> {
                match self { $(Self::$kind(fields) => serde_json::to_vec(fields).map(plain),)* }
            }
        }

        pub(super) fn decode(name: &str, line: &[u8]) -> Result<EventKind, BadLine> {
            match name {
                $($name => serde_json::from_slice(line).map(EventKind::$kind).map_err(BadLine::Json),)*
                other => Err(BadLine::UnknownEvent(other.chars().take(80).collect())),
            }
        }

        /// The JSON Schema of any line: exactly one kind, no field missing, none added.
        pub fn event_schema(generator: &mut SchemaGenerator) -> Schema {
            json_schema!({
                "description": "One line of events.jsonl.",
                "oneOf": [$(kind_schema::<$kind>(generator, $name, kinds!(@has $build))),*]
            })
        }
    };
    (@has job) => { false };
    (@has build) => { true };
}

kinds! {
    JobStarted = "jobStarted" job,
    ArtifactDeclared = "artifactDeclared" job,
    CommandStarted = "commandStarted" job,
    LibraryAttached = "libraryAttached" job,
    AttachRefused = "attachRefused" job,
    BuildStarted = "buildStarted" build,
    BuildDescribed = "buildDescribed" build,
    PhaseStarted = "phaseStarted" build,
    StepCompleted = "stepCompleted" build,
    PhaseFinished = "phaseFinished" build,
    PhaseAborted = "phaseAborted" build,
    ApplicationDeclined = "applicationDeclined" build,
    Message = "message" build,
    BuildReturned = "buildReturned" build,
    BuildExpected = "buildExpected" build,
    SilenceJudged = "silenceJudged" build,
    CancelRequested = "cancelRequested" job,
    CancelAcknowledged = "cancelAcknowledged" build,
    LadderRung = "ladderRung" job,
    InputIdentified = "inputIdentified" job,
    InputDigested = "inputDigested" job,
    InputChanged = "inputChanged" job,
    JobPaused = "jobPaused" job,
    JobResumed = "jobResumed" job,
    CommandExited = "commandExited" job,
    LeftoverFound = "leftoverFound" job,
    EngineValidated = "engineValidated" job,
    ArtifactsAccepted = "artifactsAccepted" job,
    ArtifactSettled = "artifactSettled" job,
    OutputMasked = "outputMasked" job,
    RecordsUnfinished = "recordsUnfinished" job,
    EvidenceLost = "evidenceLost" job,
    HostReported = "hostReported" job,
    JobEnded = "jobEnded" job,
}

impl Line {
    /// Reads a whole line, given without its newline.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, BadLine> {
        let head: Head = serde_json::from_slice(bytes).map_err(BadLine::Json)?;
        let kind = decode(&head.event, bytes)?;
        Ok(Self {
            seq: head.seq,
            prev: head.prev.into_owned(),
            wall: head.wall.into_owned(),
            cancel: head.cancel,
            event: Event { at: Mono(head.t), kind },
        })
    }

    /// The line as serde writes it: the slow and obvious way, which the writer's must equal byte for byte.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let head = Head {
            seq: self.seq,
            prev: Cow::Borrowed(&self.prev),
            t: self.event.at.0,
            wall: Cow::Borrowed(&self.wall),
            event: Cow::Borrowed(self.event.kind.name()),
            cancel: self.cancel,
        };
        let mut line = serde_json::to_vec(&head)?;
        line.pop();
        if !self.event.kind.has_build() {
            line.extend_from_slice(b",\"build\":null");
        }
        line.push(b',');
        line.extend_from_slice(&self.event.kind.fields()?[1..]);
        Ok(line)
    }
}

/// The schema of one kind: the head's fields and its own in one closed object.
fn kind_schema<T: JsonSchema>(generator: &mut SchemaGenerator, name: &str, has_build: bool) -> Value {
    let own = T::json_schema(generator).to_value();
    let take = |key: &str| own.get(key).cloned();
    let mut properties = head_properties(generator, name);
    let mut required: Vec<Value> = properties.keys().map(|key| json!(key)).collect();
    if !has_build {
        properties.insert("build".into(), json!({ "type": "null" }));
        required.push(json!("build"));
    }
    properties.extend(take("properties").and_then(|p| p.as_object().cloned()).unwrap_or_default());
    required.extend(take("required").and_then(|r| r.as_array().cloned()).unwrap_or_default());
    json!({
        "title": name,
        "description": take("description"),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    })
}

fn head_properties(generator: &mut SchemaGenerator, name: &str) -> Map<String, Value> {
    let cancel = generator.subschema_for::<CancelState>();
    let digits = format!("^[0-9a-f]{{{}}}$", Hex::ZERO.as_bytes().len());
    let Value::Object(head) = json!({
        "seq": { "type": "integer", "minimum": 1, "description": "The line's place in the log, from 1." },
        "prev": { "type": "string", "pattern": digits, "description": "SHA-256 of the line before, without its newline; 64 zeros in the first line." },
        "t": { "type": "integer", "minimum": 0, "description": "CLOCK_MONOTONIC in nanoseconds when it happened." },
        "wall": { "type": "string", "pattern": "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{6}Z$", "description": "The wall time that follows from the header's anchor." },
        "event": { "const": name },
        "cancel": cancel
    }) else {
        unreachable!("an object literal is an object")
    };
    head
}
