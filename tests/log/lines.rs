//! Lines: what is written is what is read, cut anywhere, and nothing can be changed unnoticed.

use crate::files::of_the_files;
use crate::job::{START, header};
use crate::names::{cases, text};
use crate::silences;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::Value;
use std::io::{BufReader, Cursor, Read, Write};
use std::sync::LazyLock;
use stuckproof::clock::{Anchor, Mono};
use stuckproof::event::{
    ApplicationDeclined, AttachRefused, BuildDescribed, BuildFacts, BuildReturned, BuildStarted,
    CancelAcknowledged, CancelRequested, CancelSource, CancelState, CommandExited, CommandStarted, Encoder,
    Ending, Event, EventKind, EvidenceLost, HostProfile, HostReported, InputChanged, InputDigested,
    InputIdentified, InputKind, JobEnded, JobPaused, JobResumed, JobStarted, LadderRung, LeftoverFound,
    LibraryAttached, Line, LogError, LogFault, LogReader, LogWriter, Message, NthAttempt, OpenPhase,
    OutputMasked, PhaseAborted, PhaseFinished, PhaseStarted, ProfileShape, RecordsUnfinished, State,
    StepCompleted, Tensor,
};

static SCHEMA: LazyLock<Value> = LazyLock::new(stuckproof::evidence::schema);

fn source() -> impl Strategy<Value = CancelSource> {
    proptest::sample::select(vec![
        CancelSource::CtrlC,
        CancelSource::Ci,
        CancelSource::Ide,
        CancelSource::Service,
        CancelSource::Api,
    ])
}

fn state() -> impl Strategy<Value = State> {
    proptest::sample::select(vec![State::Succeeded, State::Cancelled, State::Failed])
}

fn open_phase() -> impl Strategy<Value = OpenPhase> {
    (any::<u32>(), any::<u64>(), text(), any::<Option<i32>>(), any::<i32>(), any::<u64>()).prop_map(
        |(build, phase, name, last_step, steps, open_ns)| OpenPhase {
            build,
            phase,
            name,
            last_step,
            steps,
            open_ns,
        },
    )
}

/// Builds and phases have small numbers mostly, so that they meet.
fn build() -> impl Strategy<Value = u32> + Clone {
    prop_oneof![9 => 0..4_u32, 1 => any::<u32>()]
}

fn phase() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![9 => 0..8_u64, 1 => any::<u64>()]
}

/// The kinds that the writer puts together by hand.
fn frequent() -> impl Strategy<Value = EventKind> {
    let ids = (build(), phase(), option::of(phase()), any::<u32>(), any::<u32>());
    let started = (ids.clone(), option::of(text()), text(), any::<i32>()).prop_map(
        |((build, phase, parent, pid, tid), unknown_parent, name, steps)| {
            EventKind::PhaseStarted(PhaseStarted {
                build,
                phase,
                parent,
                unknown_parent,
                name,
                steps,
                pid,
                tid,
            })
        },
    );
    let step = (ids.clone(), text(), any::<i32>(), any::<Option<i32>>(), any::<Option<u32>>(), any::<bool>())
        .prop_map(|((build, phase, parent, pid, tid), name, step, steps, answered, known)| {
            let phase = known.then_some(phase);
            EventKind::StepCompleted(StepCompleted {
                build,
                phase,
                parent,
                name,
                step,
                steps,
                answered,
                pid,
                tid,
            })
        });
    let finished = (ids, text(), any::<u32>(), any::<Option<i32>>(), any::<bool>()).prop_map(
        |((build, phase, parent, pid, tid), name, reported, steps, known)| {
            let phase = known.then_some(phase);
            EventKind::PhaseFinished(PhaseFinished { build, phase, parent, name, reported, steps, pid, tid })
        },
    );
    let spoken =
        (any::<Option<u32>>(), any::<Option<u64>>(), text(), any::<Option<u32>>(), text(), any::<[u32; 2]>())
            .prop_map(|(build, phase, severity, code, text, [pid, tid])| {
                let truncated = pid % 2 == 0;
                EventKind::Message(Message { build, phase, severity, code, text, truncated, pid, tid })
            });
    prop_oneof![started, step, finished, spoken]
}

fn tensor() -> impl Strategy<Value = Tensor> {
    (text(), any::<i64>(), text()).prop_map(|(name, data_type, shape)| Tensor { name, data_type, shape })
}

fn profile_shape() -> impl Strategy<Value = ProfileShape> {
    (any::<u32>(), vec(text(), 4)).prop_map(|(profile, words)| {
        let [input, min, opt, max] = <[String; 4]>::try_from(words).expect("four words");
        ProfileShape { profile, input, min, opt, max }
    })
}

fn facts() -> impl Strategy<Value = BuildFacts> {
    let numbers = (vec(any::<i64>(), 0..3), any::<Option<bool>>(), any::<[i64; 2]>(), any::<bool>());
    let named = (btree_map(text(), any::<i64>(), 0..3), btree_map(text(), any::<u32>(), 0..3));
    let shapes = (vec(tensor(), 0..3), vec(tensor(), 0..3), vec(profile_shape(), 0..3));
    (numbers, named, shapes).prop_map(|(numbers, (config, layer_kinds), (inputs, outputs, profiles))| {
        let (compute_capabilities, timing_cache_attached, [network_flags, layers], incomplete) = numbers;
        BuildFacts {
            config,
            compute_capabilities,
            timing_cache_attached,
            network_flags,
            layers,
            layer_kinds,
            inputs,
            outputs,
            profiles,
            incomplete,
        }
    })
}

fn of_a_build() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        (build(), facts())
            .prop_map(|(build, facts)| EventKind::BuildDescribed(BuildDescribed { build, facts })),
        (build(), any::<[u32; 2]>(), text(), any::<bool>()).prop_map(
            |(build, [pid, tid], method, chained)| {
                EventKind::BuildStarted(BuildStarted { build, pid, tid, method, chained })
            }
        ),
        (build(), phase(), option::of(phase()), text(), any::<u32>(), any::<i32>(), text()).prop_map(
            |(build, phase, parent, name, reported, steps, reason)| {
                EventKind::PhaseAborted(PhaseAborted { build, phase, parent, name, reported, steps, reason })
            }
        ),
        (build(), option::of(phase()), text(), any::<i32>()).prop_map(|(build, phase, name, step)| {
            EventKind::ApplicationDeclined(ApplicationDeclined { build, phase, name, step })
        }),
        (build(), any::<bool>(), any::<Option<u64>>(), any::<[u32; 5]>()).prop_map(
            |(build, engine, bytes, messages)| {
                EventKind::BuildReturned(BuildReturned { build, engine, bytes, messages })
            }
        ),
        (any::<[u32; 2]>(), any::<Option<u64>>(), any::<u64>()).prop_map(
            |([request, build], phase, latency_ns)| {
                EventKind::CancelAcknowledged(CancelAcknowledged { request, build, phase, latency_ns })
            }
        ),
    ]
}

fn of_the_job() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        any::<u32>().prop_map(|pid| EventKind::CommandStarted(CommandStarted { pid })),
        (any::<u32>(), vec(text(), 4), any::<[bool; 2]>(), option::of(text())).prop_map(
            |(pid, words, [python, simulated], messages_unobserved)| {
                let [flavour, version, path, proven] = <[String; 4]>::try_from(words).expect("four words");
                EventKind::LibraryAttached(LibraryAttached {
                    pid,
                    flavour,
                    version,
                    path,
                    python,
                    proven,
                    messages_unobserved,
                    simulated,
                })
            }
        ),
        (any::<u32>(), text())
            .prop_map(|(pid, reason)| EventKind::AttachRefused(AttachRefused { pid, reason })),
        (
            any::<[bool; 2]>(),
            source(),
            text(),
            option::of(text()),
            any::<(u32, Option<u32>, Option<u32>)>(),
            vec(open_phase(), 0..4)
        )
            .prop_map(|([accepted, kill], source, via, reason, (request, pid, uid), open_branch)| {
                EventKind::CancelRequested(CancelRequested {
                    request,
                    source,
                    via,
                    reason,
                    accepted,
                    kill,
                    pid,
                    uid,
                    open_branch,
                })
            }),
        (text(), text(), any::<Option<u32>>())
            .prop_map(|(rung, why, group)| EventKind::LadderRung(LadderRung { rung, why, group })),
        (any::<(Option<i32>, Option<i32>, bool, Option<u64>)>(), proptest::option::of(text())).prop_map(
            |((code, signal, core_dumped, oom_kills), core_file)| {
                EventKind::CommandExited(CommandExited { code, signal, core_dumped, core_file, oom_kills })
            }
        ),
        any::<u64>().prop_map(|records| EventKind::RecordsUnfinished(RecordsUnfinished { records })),
        (any::<u64>(), text())
            .prop_map(|(records, reason)| EventKind::EvidenceLost(EvidenceLost { records, reason })),
        (text(), text())
            .prop_map(|(status, told_by)| EventKind::HostReported(HostReported { status, told_by })),
    ]
}

/// What job control and the end of the command's processes put on record.
fn of_the_processes() -> impl Strategy<Value = EventKind> {
    let paused = text().prop_map(|by| EventKind::JobPaused(JobPaused { by }));
    let resumed = any::<u64>().prop_map(|paused_ns| EventKind::JobResumed(JobResumed { paused_ns }));
    let leftover = (any::<[u32; 2]>(), text(), text()).prop_map(|([pid, session], name, action)| {
        EventKind::LeftoverFound(LeftoverFound { pid, name, session, action })
    });
    let masked =
        (text(), any::<u64>()).prop_map(|(by, values)| EventKind::OutputMasked(OutputMasked { by, values }));
    prop_oneof![paused, resumed, leftover, masked].boxed()
}

/// What is known of the files that builds are made from.
fn of_an_input() -> impl Strategy<Value = EventKind> {
    let kinds = vec![InputKind::Declared, InputKind::Argument, InputKind::External, InputKind::Library];
    let numbers = any::<(u32, Option<u32>, Option<u64>, Option<i64>, Option<u64>)>();
    let identified =
        (proptest::sample::select(kinds), text(), option::of(text()), option::of(text()), numbers);
    let identified =
        identified.prop_map(|(kind, path, build_id, reason, (input, of, bytes, modified_ns, inode))| {
            EventKind::InputIdentified(InputIdentified {
                input,
                kind,
                path,
                of,
                bytes,
                modified_ns,
                inode,
                build_id,
                reason,
            })
        });
    let digested =
        (any::<u32>(), option::of(text()), option::of(text())).prop_map(|(input, sha256, reason)| {
            EventKind::InputDigested(InputDigested { input, sha256, reason })
        });
    let changed = (any::<u32>(), text())
        .prop_map(|(input, what)| EventKind::InputChanged(InputChanged { input, what }));
    prop_oneof![identified.boxed(), digested.boxed(), changed.boxed()]
}

fn last() -> impl Strategy<Value = EventKind> {
    (state(), option::of(text()), any::<bool>(), any::<u8>()).prop_map(
        |(state, cause, observed, exit_code)| {
            EventKind::JobEnded(JobEnded { state, cause, observed, exit_code })
        },
    )
}

fn profile() -> impl Strategy<Value = HostProfile> {
    (text(), text(), text(), any::<(Option<u64>, u64, Option<u64>, u64, Option<u64>)>()).prop_map(
        |(name, chosen_by, ladder, (allows_ms, provisional_ms, grace_ms, kill_after_ms, complete_ms))| {
            HostProfile {
                name,
                chosen_by,
                ladder,
                allows_ms,
                provisional_ms,
                grace_ms,
                kill_after_ms,
                complete_ms,
            }
        },
    )
}

fn first() -> impl Strategy<Value = JobStarted> {
    (vec(text(), 0..5), text(), option::of(text()), any::<(Option<u64>, u64, Option<u64>)>(), profile())
        .prop_map(|(argv, host, ci_host, (grace_ms, kill_after_ms, deadline_ms), host_profile)| JobStarted {
            warnings: argv.clone(),
            deadline_from: ci_host.clone(),
            host_profile: Box::new(host_profile),
            phase_limit_ms: grace_ms,
            attempt: deadline_ms.map(|number| NthAttempt {
                number: number as u32,
                previous: (number % 2 == 0).then(|| "ab".repeat(32)),
            }),
            argv,
            host,
            ci_host,
            grace_ms,
            kill_after_ms,
            deadline_ms,
            ..header()
        })
}

/// The events of a log: a header, at most so many of anything, and an end or not.
pub fn events(most: usize) -> impl Strategy<Value = Vec<Event>> {
    let at = prop_oneof![START..START + 10_000_000_000, any::<u64>()].prop_map(Mono);
    let rare = prop_oneof![
        of_the_processes().boxed(),
        silences::kinds().boxed(),
        of_an_input().boxed(),
        of_the_files()
    ];
    let kind =
        prop_oneof![4 => frequent().boxed(), 2 => of_a_build().boxed(), 2 => of_the_job().boxed(), 4 => rare];
    (first(), vec((at, kind), 0..most), option::of(last())).prop_map(|(first, middle, last)| {
        let head = Event { at: first.anchor().mono, kind: EventKind::JobStarted(first) };
        let middle = middle.into_iter().map(|(at, kind)| Event { at, kind });
        let last = last.map(|kind| Event { at: Mono(START + 11_000_000_000), kind });
        std::iter::once(head).chain(middle).chain(last).collect()
    })
}

pub fn encoded(events: &[Event]) -> Vec<u8> {
    let mut encoder = Encoder::new(header().anchor());
    let mut bytes = Vec::new();
    for event in events {
        encoder.encode(event, &mut bytes);
    }
    bytes
}

/// Everything that can be read, the faults on the way, and how the bytes end.
fn read_all(bytes: &[u8]) -> (Vec<Line>, Vec<LogFault>, Ending) {
    let mut reader = LogReader::new(Cursor::new(bytes));
    let (mut lines, mut faults) = (Vec::new(), Vec::new());
    loop {
        match reader.read() {
            Ok(Some(line)) => lines.push(line),
            Ok(None) => return (lines, faults, reader.ending()),
            Err(fault) => faults.push(fault),
        }
    }
}

fn only_events(lines: &[Line]) -> Vec<Event> {
    lines.iter().map(|line| line.event.clone()).collect()
}

fn small() -> Vec<Event> {
    let event = |ms: u64, kind| Event { at: Mono(START + ms * 1_000_000), kind };
    let lost = |records| EventKind::EvidenceLost(EvidenceLost { records, reason: String::new() });
    vec![
        event(0, EventKind::JobStarted(header())),
        event(1, EventKind::CommandStarted(CommandStarted { pid: 7 })),
        event(2, lost(1)),
        event(3, lost(2)),
        event(
            4,
            EventKind::JobEnded(JobEnded {
                state: State::Failed,
                cause: None,
                observed: false,
                exit_code: 1,
            }),
        ),
    ]
}

fn lines_of(events: &[Event]) -> Vec<Vec<u8>> {
    encoded(events).split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn a_log_reads_to_its_events(events in events(12)) {
        let bytes = encoded(&events);
        let (lines, faults, ending) = read_all(&bytes);
        prop_assert!(faults.is_empty(), "{faults:?}");
        prop_assert_eq!(only_events(&lines), events.clone());
        let ended = matches!(events.last().map(|event| &event.kind), Some(EventKind::JobEnded(_)));
        prop_assert_eq!(ending, if ended { Ending::Ended } else { Ending::Open });
        for (place, line) in lines.iter().enumerate() {
            prop_assert_eq!(line.seq, place as u64 + 1);
            prop_assert_eq!(&line.wall, &header().anchor().rfc3339(line.event.at));
        }
    }

    #[test]
    fn the_writer_and_serde_agree_byte_for_byte(events in events(12)) {
        let bytes = encoded(&events);
        let (lines, _, _) = read_all(&bytes);
        let mut slow = Vec::new();
        for line in lines {
            slow.extend(line.to_json().expect("a line is JSON"));
            slow.push(b'\n');
        }
        prop_assert_eq!(String::from_utf8(slow), String::from_utf8(bytes));
    }

    #[test]
    fn every_line_has_the_fields_of_its_schema(events in events(12)) {
        let (lines, _, _) = read_all(&encoded(&events));
        let kinds = SCHEMA["$defs"]["event"]["oneOf"].as_array().expect("a list of kinds");
        for line in lines {
            let json = line.to_json().expect("a line is JSON");
            let json: serde_json::Map<String, Value> = serde_json::from_slice(&json).expect("an object");
            let kind = kinds.iter().find(|kind| kind["properties"]["event"]["const"] == json["event"]);
            let kind = kind.expect("every kind is in the schema");
            prop_assert_eq!(&kind["additionalProperties"], &Value::Bool(false));
            for key in json.keys() {
                prop_assert!(kind["properties"].get(key).is_some(), "{key} of {}", json["event"]);
            }
            for key in kind["required"].as_array().expect("a list").iter().filter_map(Value::as_str) {
                prop_assert!(json.contains_key(key), "{key} of {}", json["event"]);
            }
            let optional = |key: &&String| key.as_str() == "unknownParent";
            let properties = kind["properties"].as_object().expect("an object").keys();
            let required = kind["required"].as_array().map_or(0, Vec::len);
            prop_assert_eq!(properties.filter(|key| !optional(key)).count(), required, "all others are required");
        }
    }

    #[test]
    fn any_prefix_of_the_bytes_reads_to_a_prefix_of_the_events(events in events(12), cuts in vec(any::<prop::sample::Index>(), 20)) {
        let bytes = encoded(&events);
        for cut in cuts.iter().map(|cut| cut.index(bytes.len() + 1)) {
            let (lines, faults, ending) = read_all(&bytes[..cut]);
            prop_assert!(faults.is_empty(), "{faults:?}");
            prop_assert_eq!(&only_events(&lines)[..], &events[..lines.len()]);
            let whole = bytes[..cut].split(|&byte| byte == b'\n').count() - 1;
            prop_assert_eq!(lines.len(), whole);
            let torn = cut - bytes[..cut].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            prop_assert_eq!(matches!(ending, Ending::Torn { bytes } if bytes == torn), torn > 0);
        }
    }

    #[test]
    fn a_growing_log_is_followed(events in events(12), cuts in vec(any::<prop::sample::Index>(), 0..6)) {
        let bytes = encoded(&events);
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).chain([bytes.len()]).collect();
        ends.sort_unstable();
        let grown = Grown::default();
        let mut reader = LogReader::new(BufReader::new(grown.clone()));
        let mut seen = Vec::new();
        let mut from = 0;
        for end in ends {
            grown.clone().write_all(&bytes[from..end]).expect("memory grows");
            from = end;
            while let Some(line) = reader.read().expect("no fault") {
                seen.push(line.event);
            }
        }
        prop_assert_eq!(seen, events);
    }

    #[test]
    fn a_changed_byte_is_noticed(events in events(12), at in any::<prop::sample::Index>(), xor in 1_u8..=255) {
        let bytes = encoded(&events);
        let last = bytes[..bytes.len() - 1].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        prop_assume!(last > 0);
        let mut changed = bytes.clone();
        changed[at.index(last)] ^= xor;
        let (_, faults, _) = read_all(&changed);
        prop_assert!(!faults.is_empty());
    }
}

/// A source that grows while it is read.
#[derive(Clone, Default)]
struct Grown(std::rc::Rc<std::cell::RefCell<(Vec<u8>, usize)>>);

impl Read for Grown {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let (bytes, from) = &mut *self.0.borrow_mut();
        let read = (&bytes[*from..]).read(buffer)?;
        *from += read;
        Ok(read)
    }
}

impl Write for Grown {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().0.write(more)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_removed_line_is_a_fault_with_its_line_number() {
    let mut lines = lines_of(&small());
    lines.remove(2);
    let (read, faults, ending) = read_all(&lines.concat());
    assert!(matches!(faults[..], [LogFault::Sequence { line: 3, expected: 3, found: 4 }]), "{faults:?}");
    assert_eq!((read.len(), ending), (4, Ending::Ended));
}

#[test]
fn a_line_of_another_log_breaks_the_chain() {
    let mut other = small();
    other[1].at = Mono(START + 1);
    let mut lines = lines_of(&small());
    lines[1] = lines_of(&other).swap_remove(1);
    let (read, faults, _) = read_all(&lines.concat());
    assert!(matches!(faults[..], [LogFault::Chain { line: 3 }]), "{faults:?}");
    assert_eq!(read.len(), 5, "a tolerant reader still sees every event");
}

#[test]
fn nothing_may_stand_after_the_end_or_before_the_header() {
    let mut lines = lines_of(&small());
    lines.push(lines[2].clone());
    let (read, faults, _) = read_all(&lines.concat());
    assert!(matches!(faults[..], [LogFault::AfterEnd { line: 6 }]), "{faults:?}");
    assert_eq!(read.len(), 5);
    let (_, faults, _) = read_all(&lines_of(&small())[1..].concat());
    assert!(matches!(faults[0], LogFault::Header { line: 1 }), "{faults:?}");
}

#[test]
fn lines_that_are_no_events_are_told() {
    let mut lines = lines_of(&small());
    lines[1] = b"garbage \xff\n".to_vec();
    lines[2] =
        String::from_utf8(lines[2].clone()).expect("text").replace("evidenceLost", "sunRose").into_bytes();
    let (read, faults, _) = read_all(&lines.concat());
    assert!(matches!(faults[0], LogFault::Unreadable { line: 2, .. }), "{faults:?}");
    assert!(
        matches!(&faults[1], LogFault::UnknownEvent { line: 3, name } if name == "sunRose"),
        "{faults:?}"
    );
    assert_eq!(read.len(), 3);
    for fault in faults {
        assert!(fault.to_string().starts_with("line "), "{fault}");
    }
}

#[test]
fn a_line_without_end_is_refused_with_bounded_memory() {
    let endless = std::io::repeat(b'x').take(64 << 20);
    let mut reader = LogReader::new(BufReader::new(endless));
    assert!(matches!(reader.read(), Err(LogFault::TooLong { line: 1 })));
    assert!(matches!(reader.read(), Ok(None)));
}

#[test]
fn the_cancellation_state_is_the_one_of_the_events_own_time() {
    let at = |ms: u64| Mono(START + ms * 1_000_000);
    let lost = || EventKind::EvidenceLost(EvidenceLost { records: 0, reason: String::new() });
    let request = |request, accepted| {
        EventKind::CancelRequested(CancelRequested {
            request,
            source: CancelSource::Api,
            via: "cancel file".to_owned(),
            reason: None,
            accepted,
            kill: false,
            pid: None,
            uid: None,
            open_branch: Vec::new(),
        })
    };
    let acknowledged = EventKind::CancelAcknowledged(CancelAcknowledged {
        request: 2,
        build: 1,
        phase: None,
        latency_ns: 0,
    });
    let written = [
        (at(1), request(1, false), CancelState::Running),
        (at(5), request(2, true), CancelState::Cancelling),
        (at(4), lost(), CancelState::Running),
        (at(6), lost(), CancelState::Cancelling),
        (at(9), acknowledged, CancelState::Acknowledged),
        (at(8), lost(), CancelState::Cancelling),
        (at(9), lost(), CancelState::Acknowledged),
        (at(10), request(3, true), CancelState::Acknowledged),
    ];
    let mut encoder = Encoder::new(Anchor { mono: Mono(START), wall_ns: 0 });
    let mut bytes = Vec::new();
    encoder.encode(&Event { at: at(0), kind: EventKind::JobStarted(header()) }, &mut bytes);
    for (at, kind, _) in &written {
        encoder.encode(&Event { at: *at, kind: kind.clone() }, &mut bytes);
    }
    let (lines, faults, _) = read_all(&bytes);
    assert!(faults.is_empty(), "{faults:?}");
    for (line, (_, kind, expected)) in lines[1..].iter().zip(&written) {
        assert_eq!(line.cancel, *expected, "{kind:?}");
    }
}

#[test]
fn a_writer_never_writes_over_a_log_or_after_its_end() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("events.jsonl");
    let mut writer = LogWriter::create(&path, &header()).expect("a new log");
    assert!(matches!(LogWriter::create(&path, &header()), Err(LogError::Create { .. })));
    for event in &small()[1..] {
        writer.append(event).expect("it is open");
    }
    assert!(matches!(writer.append(&small()[1]), Err(LogError::Ended { .. })));
    drop(writer);
    assert_eq!(std::fs::read(&path).expect("the log"), encoded(&small()));
}
