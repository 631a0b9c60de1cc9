//! What fuzzing begins with: nothing of it is kept in the repository, all of it is made here.

use super::chance::Chance;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use stuckproof::clock::Mono;
use stuckproof::event::{CommandExited, CommandStarted, Encoder, Event, EventKind, JobEnded, JobStarted};
use stuckproof::evidence;
use stuckproof::observe::Tracker;
use stuckproof::verdict::judge;
use stuckproof::wire::{Body, LibraryFacts, Method, ProcessKey, Record, Severity};

/// When jobs begin here, nanoseconds.
pub const START: u64 = 5_000_000_000;
/// The name of every job here.
pub const JOB: &str = "bold-otter";
/// The command's process.
pub const COMMAND: u32 = 4001;

static SCHEMA: LazyLock<Value> = LazyLock::new(evidence::schema);

/// The seeds of a target.
pub fn of(target: &str) -> Vec<Vec<u8>> {
    let mut chance = Chance(1);
    match target {
        "log" => logs(&mut chance),
        "archive" => (0..60).map(|_| super::archive::seed(&mut chance)).collect(),
        "bundle" => (0..60).map(|_| super::bundle::seed(&mut chance)).collect(),
        "wire" => (0..40).map(|_| super::wire::seed(&mut chance)).collect(),
        "control" => [
            json!({ "verb": "status" }),
            json!({ "verb": "cancel", "source": "ide", "reason": "enough" }),
            json!({ "answer": "error", "message": "the job is ending" }),
            json!({ "answer": "cancel", "job": "j", "request": 1, "accepted": true, "late": false }),
        ]
        .iter()
        .map(|value| value.to_string().into_bytes())
        .collect(),
        other => unreachable!("{other} is no target"),
    }
}

/// The words that the files of a bundle are made of, for a fuzzer's dictionary.
pub fn words() -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut rest = vec![&*SCHEMA];
    while let Some(value) = rest.pop() {
        match value {
            Value::Object(map) => {
                if let Some(Value::Object(properties)) = map.get("properties") {
                    words.extend(properties.keys().map(|name| format!("\"{name}\":")));
                }
                words.extend(map.get("const").and_then(Value::as_str).map(|word| format!("\"{word}\"")));
                let listed = map.get("enum").and_then(Value::as_array).into_iter().flatten();
                words.extend(listed.filter_map(Value::as_str).map(|word| format!("\"{word}\"")));
                rest.extend(map.values());
            }
            Value::Array(list) => rest.extend(list),
            _ => {}
        }
    }
    words.extend(["null", "true", "false", "18446744073709551615", "-1", "{}", "[]"].map(str::to_owned));
    words
}

/// The header of every job here.
pub fn begin() -> Event {
    let header: JobStarted = serde_json::from_value(json!({
        "format": 1, "job": JOB, "stuckproof": env!("CARGO_PKG_VERSION"), "argv": ["trtexec", "--onnx=m.onnx"],
        "cwd": "/home/ci", "host": "runner-7", "runnerPid": 77, "ciHost": "gitlab",
        "hostProfile": { "name": "none", "chosenBy": "nothing else fitted", "ladder": "", "allowsMs": null,
            "provisionalMs": 5000, "graceMs": null, "killAfterMs": 1, "completeMs": null },
        "anchorMonoNs": START, "anchorWallNs": 1_800_000_000_000_000_000_u64, "graceMs": 60_000,
        "killAfterMs": 10_000, "deadlineMs": null, "deadlineFrom": null, "phaseLimitMs": null, "warnings": [],
        "environmentChanges": [], "bundle": "/home/ci/bundle", "wire": "wire", "streams": "separate"
    }))
    .expect("every field is there");
    Event { at: Mono(START), kind: EventKind::JobStarted(header) }
}

/// What a builder may tell.
pub fn body(what: u8, which: u8) -> Body {
    let name: Arc<str> =
        ["Building engine", "Timing tactics", "", "\u{1b}[31m \u{202e}x"][usize::from(which % 4)].into();
    match what % 10 {
        0 => Body::Library(LibraryFacts {
            flavour: ["tensorrt", "tensorrt-rtx"][usize::from(which % 2)].to_owned(),
            version: "10.13.2.6".to_owned(),
            path: "/opt/libnvinfer.so.10".to_owned(),
            python: which.is_multiple_of(3),
            messages_unobserved: String::new(),
            proven: "headers".to_owned(),
            simulated: which.is_multiple_of(5),
        }),
        1 => Body::Refused { reason: "no progress monitor".to_owned() },
        2 => Body::BuildStart { method: Method::SerializedNetwork, chained: which.is_multiple_of(2) },
        3 | 4 => {
            let parent = (!which.is_multiple_of(3)).then(|| Arc::clone(&name));
            Body::PhaseStart { name, parent, steps: i32::from(which) - 3 }
        }
        5 => Body::Step { name, step: which.into(), answered: u32::from(which / 100) },
        6 => Body::PhaseFinish { name },
        7 => Body::ApplicationFalse { name, step: which.into() },
        8 => Body::BuildReturn {
            engine: which.is_multiple_of(2),
            bytes: Some(which.into()),
            messages: [0, 1, 2, 3, 4],
        },
        _ => Body::Message {
            severity: [Severity::Error, Severity::Info, Severity::InternalError][usize::from(which % 3)],
            text: format!("Error Code {which}: {name}"),
            truncated: which.is_multiple_of(7),
        },
    }
}

/// A whole job of one build.
pub fn story(engine: bool) -> Vec<Event> {
    let mut events = vec![begin()];
    let mut tracker = Tracker::new();
    let process = ProcessKey { pid: COMMAND, registered: Mono(START) };
    let at = |ms: u64| Mono(START + ms * 1_000_000);
    events.push(Event { at: at(1), kind: EventKind::CommandStarted(CommandStarted { pid: COMMAND }) });
    let told =
        [(0, 0, 1), (10, 1, 2), (20, 1, 3), (30, 1, 5), (32, 1, 4), (40, 1, 9), (50, 1, 6), (60, 1, 6)];
    for (ms, build, what) in told {
        let record = Record { process, at: at(ms + 2), build, tid: COMMAND, body: body(what, 0) };
        tracker.ingest(&record, &mut events);
    }
    let returned = body(8, u8::from(!engine));
    tracker.ingest(&Record { process, at: at(80), build: 1, tid: COMMAND, body: returned }, &mut events);
    let exited = CommandExited {
        code: Some(i32::from(!engine)),
        signal: None,
        core_dumped: false,
        core_file: None,
        oom_kills: Some(0),
    };
    events.push(Event { at: at(90), kind: EventKind::CommandExited(exited.clone()) });
    let verdict = judge(&events);
    let exit_code = verdict.exit_code(Some(&exited), 1, false, false);
    let ended =
        JobEnded { state: verdict.state, cause: verdict.cause, observed: verdict.observed, exit_code };
    events.push(Event { at: at(91), kind: EventKind::JobEnded(ended) });
    events
}

/// Events as a log.
pub fn lines(events: &[Event]) -> Vec<u8> {
    let EventKind::JobStarted(header) = &events[0].kind else { unreachable!("a job begins with its header") };
    let mut encoder = Encoder::new(header.anchor());
    let mut log = Vec::new();
    for event in events {
        encoder.encode(event, &mut log);
    }
    log
}

/// Whole jobs, and one line of every kind with every field, some of them several times.
fn logs(chance: &mut Chance) -> Vec<Vec<u8>> {
    let mut logs = vec![lines(&story(true)), lines(&story(false))];
    let kinds = SCHEMA["$defs"]["event"]["oneOf"].as_array().expect("a kind each");
    let begin = lines(&[begin()]);
    for kind in kinds {
        for _ in 0..3 {
            let mut log = begin.clone();
            log.extend_from_slice(example(kind, chance).to_string().as_bytes());
            log.push(b'\n');
            logs.push(log);
        }
    }
    for _ in 0..20 {
        let mut log = begin.clone();
        for _ in 0..20 {
            log.extend_from_slice(example(&kinds[chance.place(kinds.len())], chance).to_string().as_bytes());
            log.push(b'\n');
        }
        logs.push(log);
    }
    logs
}

/// A value that a schema allows, as far as its keywords are used here.
fn example(schema: &Value, chance: &mut Chance) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        return example(SCHEMA.pointer(&name[1..]).expect("it leads into the schema"), chance);
    }
    if let Some(word) = schema.get("const") {
        return word.clone();
    }
    for list in ["enum", "oneOf", "anyOf"] {
        if let Some(choices) = schema[list].as_array() {
            let choice = &choices[chance.place(choices.len())];
            return if list == "enum" { choice.clone() } else { example(choice, chance) };
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[chance.place(kinds.len())].as_str(),
        kind => kind.as_str(),
    };
    match kind {
        Some("object") => object(schema, chance),
        Some("array") => (0..chance.place(3)).map(|_| example(&schema["items"], chance)).collect(),
        Some("string") => json!(["", "x", "/a/b", "SIGTERM", "error", "\u{1b}[31m"][chance.place(6)]),
        Some("integer") => json!([0, 1, 2, 3, 200][chance.place(5)]),
        Some("number") => json!(0.5),
        Some("boolean") => json!(chance.place(2) == 0),
        _ => Value::Null,
    }
}

fn object(schema: &Value, chance: &mut Chance) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let named = properties.map(|(name, schema)| (name.clone(), example(schema, chance)));
    let mut object: Map<String, Value> = named.collect();
    if let Some(other) = schema.get("additionalProperties").filter(|other| other.is_object()) {
        object.insert("x".to_owned(), example(other, chance));
    }
    Value::Object(object)
}
