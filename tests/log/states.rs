//! The state table. The rows below are the table of the design, written down once more and independently: any
//! interleaving of requests, deliveries, returns and deaths must come out as they say.

use crate::job::{COMMAND, Job, START, build_start, header, message, record, returned, start, step};
use crate::names::cases;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use stuckproof::clock::Mono;
use stuckproof::event::{
    CancelRequested, CancelSource, CommandExited, CommandStarted, Event, EventKind, EvidenceLost, JobEnded,
    LadderRung, State,
};
use stuckproof::observe::Tracker;
use stuckproof::verdict::{Judge, Outcome, Verdict, judge};
use stuckproof::wire::{Body, Record, Severity};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Returned {
    Engine,
    Nothing,
    NotSeen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndedBy {
    Itself,
    OurSignal,
    AnothersSignal,
    Oom,
    Crash,
    RunnerLost,
}

/// One row: what must hold, where it says something, and what follows.
struct Row {
    returned: Returned,
    request: Option<bool>,
    ours: Option<bool>,
    applications: Option<bool>,
    ended: Option<EndedBy>,
    state: State,
    cause: Cause,
}

#[derive(Debug, Clone, Copy)]
enum Cause {
    None,
    Source,
    Word(&'static str),
}

const fn row(
    returned: Returned,
    request: Option<bool>,
    ours: Option<bool>,
    applications: Option<bool>,
) -> Row {
    Row { returned, request, ours, applications, ended: None, state: State::Failed, cause: Cause::None }
}

impl Row {
    const fn ended(self, by: EndedBy) -> Self {
        Self { ended: Some(by), ..self }
    }

    const fn is(self, state: State, cause: Cause) -> Self {
        Self { state, cause, ..self }
    }
}

/// First match counts. An application's false that came first goes before ours.
const TABLE: [Row; 13] = {
    use EndedBy::{AnothersSignal, Crash, Itself, Oom, OurSignal, RunnerLost};
    use Returned::{Engine, NotSeen, Nothing};
    use State::{Cancelled, Failed, Succeeded};
    [
        row(Engine, None, None, None).is(Succeeded, Cause::None),
        row(Nothing, None, None, Some(true)).is(Failed, Cause::Word("application_cancel")),
        row(Nothing, Some(true), Some(true), None).is(Cancelled, Cause::Source),
        row(Nothing, Some(true), Some(false), None).is(Failed, Cause::Word("builder")),
        row(Nothing, Some(false), None, None).is(Failed, Cause::Word("builder")),
        row(NotSeen, None, None, None).ended(OurSignal).is(Failed, Cause::Word("killed_by_runner")),
        row(NotSeen, None, None, None).ended(AnothersSignal).is(Failed, Cause::Word("killed_by_host")),
        row(NotSeen, None, None, None).ended(Oom).is(Failed, Cause::Word("oom")),
        row(NotSeen, None, None, None).ended(Crash).is(Failed, Cause::Word("crash")),
        row(NotSeen, None, None, None).ended(RunnerLost).is(Failed, Cause::Word("runner_lost")),
        row(NotSeen, None, None, Some(true)).ended(Itself).is(Failed, Cause::Word("application_cancel")),
        row(NotSeen, Some(true), Some(true), None).ended(Itself).is(Cancelled, Cause::Source),
        row(NotSeen, None, None, None).ended(Itself).is(Failed, Cause::Word("command")),
    ]
};

/// One build: times are microseconds after the job's start.
#[derive(Debug, Clone)]
struct Build {
    own_process: bool,
    begins: u64,
    length: u64,
    /// Whether our monitor answers the request, should it come in time.
    obeys: bool,
    /// How far into the build the application's own monitor says false.
    declines: Option<u64>,
    returned: Returned,
}

#[derive(Debug, Clone)]
struct Scenario {
    builds: Vec<Build>,
    request: Option<(u64, CancelSource)>,
    later_request: Option<u64>,
    /// When the first of our signals goes out.
    signalled: Option<u64>,
    exit: Option<(u64, Result<i32, i32>)>,
    oom: bool,
    lost: bool,
}

fn returned_kind() -> impl Strategy<Value = Returned> {
    select(vec![Returned::Engine, Returned::Nothing, Returned::NotSeen])
}

fn build() -> impl Strategy<Value = Build> {
    (any::<bool>(), 0..100_u64, 2..100_u64, any::<bool>(), option::weighted(0.2, 1..100_u64), returned_kind())
        .prop_map(|(own_process, begins, length, obeys, declines, returned)| Build {
            own_process,
            begins,
            length,
            obeys,
            declines: declines.filter(|at| *at < length),
            returned,
        })
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let source = select(vec![
        CancelSource::CtrlC,
        CancelSource::Ci,
        CancelSource::Ide,
        CancelSource::Service,
        CancelSource::Api,
    ]);
    let exit = prop_oneof![
        3 => Just(Ok(0)),
        3 => select(vec![Ok(1), Ok(2), Ok(127), Ok(128), Ok(137), Ok(139), Ok(143), Ok(255)]),
        2 => select(vec![Err(9), Err(15), Err(11), Err(6), Err(1)]),
    ];
    (
        vec(build(), 0..4),
        option::weighted(0.7, (0..200_u64, source)),
        option::weighted(0.3, 200..210_u64),
        option::weighted(0.3, 50..400_u64),
        option::weighted(0.9, exit),
        (any::<bool>(), prop::bool::weighted(0.1)),
    )
        .prop_map(|(builds, request, later_request, signalled, exit, (oom, lost))| Scenario {
            builds,
            later_request: later_request.filter(|_| request.is_some()),
            request,
            signalled,
            exit: exit.map(|exit| (250, exit)),
            oom,
            lost,
        })
}

impl Build {
    fn pid(&self, place: usize) -> u32 {
        if self.own_process { COMMAND } else { COMMAND + 1 + place as u32 }
    }

    fn end(&self) -> u64 {
        self.begins + self.length
    }

    /// When our monitor says false, if it does: at the first step after the request.
    fn answers(&self, request: Option<u64>) -> Option<u64> {
        let at = self.begins.max(request?) + 1;
        (self.obeys && at < self.end()).then_some(at)
    }

    fn records(&self, place: usize, request: Option<u64>) -> Vec<Record> {
        let mut told = vec![(self.begins, build_start()), (self.begins, start("Building engine", None, 6))];
        if let Some(after) = self.declines {
            let name = "Building engine".into();
            told.push((self.begins + after, Body::ApplicationFalse { name, step: 1 }));
        }
        if let Some(at) = self.answers(request) {
            told.push((at, step("Building engine", 2, 1)));
            told.push((at, step("Building engine", 3, 1)));
        }
        let end = message(Severity::Error, "Error Code 7: Internal Error (BuildCanceled: by nobody we know)");
        told.push((self.end(), end));
        match self.returned {
            Returned::NotSeen => {}
            kind => told.push((self.end(), returned(kind == Returned::Engine))),
        }
        told.sort_by_key(|(at, _)| *at);
        let number = place as u32 + 1;
        let at = |us: u64| START + us * 1_000;
        told.into_iter().map(|(us, body)| record(self.pid(place), number, at(us), body)).collect()
    }
}

impl Scenario {
    /// What the table says of one build.
    fn expected(&self, place: usize) -> (State, Option<String>) {
        let build = &self.builds[place];
        let requested = self.request.map(|(at, _)| at);
        let seen = build.returned != Returned::NotSeen;
        let request = requested.is_some_and(|at| !seen || at <= build.end());
        let ours = build.answers(requested);
        let applications = build.declines.map(|after| build.begins + after);
        let first = applications.is_some_and(|at| ours.is_none_or(|ours| at <= ours));
        let ended = if seen { EndedBy::Itself } else { self.ended_by(build) };
        let says = |wanted: Option<bool>, is: bool| wanted.is_none_or(|wanted| wanted == is);
        let row = TABLE
            .iter()
            .find(|row| {
                row.returned == build.returned
                    && says(row.request, request)
                    && says(row.ours, ours.is_some())
                    && says(row.applications, first)
                    && row.ended.is_none_or(|wanted| wanted == ended)
            })
            .expect("the table has a row for everything");
        (row.state, self.cause(row.cause))
    }

    fn cause(&self, cause: Cause) -> Option<String> {
        let source = self.request.map(|(_, source)| serde_json::to_value(source).expect("a name"));
        match cause {
            Cause::None => None,
            Cause::Source => source.and_then(|name| name.as_str().map(str::to_owned)),
            Cause::Word(word) => Some(word.to_owned()),
        }
    }

    /// What ended the process of a build that did not return.
    fn ended_by(&self, build: &Build) -> EndedBy {
        let Some((exited, how)) = self.exit else { return EndedBy::RunnerLost };
        match (self.signalled, how) {
            (Some(at), _) if at <= exited || !build.own_process => EndedBy::OurSignal,
            (_, Err(signal)) => self.by_signal(signal),
            (_, Ok(code)) if !build.own_process && code > 128 && code <= 192 => self.by_signal(code - 128),
            (_, Ok(_)) if !build.own_process && self.oom => EndedBy::Oom,
            (_, Ok(_)) => EndedBy::Itself,
        }
    }

    fn by_signal(&self, signal: i32) -> EndedBy {
        match signal {
            9 if self.oom => EndedBy::Oom,
            6 | 11 => EndedBy::Crash,
            _ => EndedBy::AnothersSignal,
        }
    }

    /// What the design says of the job, given what its builds have come to in the order of their numbers.
    fn expected_of_job(&self, builds: &[(State, Option<String>)]) -> (State, Option<String>) {
        let word = |word: &str| Some(word.to_owned());
        if self.lost {
            return (State::Failed, word("evidence_lost"));
        }
        for worst in [State::Failed, State::Cancelled] {
            if let Some(build) = builds.iter().rev().find(|(state, _)| *state == worst) {
                return build.clone();
            }
        }
        let killed = match self.exit {
            None => return (State::Failed, word("runner_lost")),
            Some((_, Ok(0))) => return (State::Succeeded, None),
            _ if builds.is_empty() => return (State::Failed, word("command")),
            Some((exited, _)) if self.signalled.is_some_and(|at| at <= exited) => EndedBy::OurSignal,
            Some((_, Err(signal))) => self.by_signal(signal),
            Some((_, Ok(_))) => EndedBy::Itself,
        };
        let cause = match killed {
            EndedBy::OurSignal => "killed_by_runner",
            EndedBy::AnothersSignal => "killed_by_host",
            EndedBy::Oom => "oom",
            EndedBy::Crash => "crash",
            EndedBy::Itself | EndedBy::RunnerLost => "command",
        };
        (State::Failed, word(cause))
    }

    /// The events of the job: those of one build stay in order, apart from that `order` mixes what comes when.
    fn events(&self, order: &[prop::sample::Index]) -> Vec<Event> {
        let mut queues: Vec<Vec<Record>> = self
            .builds
            .iter()
            .enumerate()
            .map(|(n, build)| build.records(n, self.request.map(|(at, _)| at)))
            .collect();
        let mut facts = self.facts();
        let mut order = order.iter().cycle();
        let mut tracker = Tracker::new();
        let mut events = vec![
            Event { at: Mono(START), kind: EventKind::JobStarted(header()) },
            Event { at: Mono(START), kind: EventKind::CommandStarted(CommandStarted { pid: COMMAND }) },
        ];
        loop {
            queues.retain(|queue| !queue.is_empty());
            let sources = queues.len() + usize::from(!facts.is_empty());
            if sources == 0 {
                break;
            }
            match order.next().expect("it cycles").index(sources) {
                place if place < queues.len() => tracker.ingest(&queues[place].remove(0), &mut events),
                _ => {
                    let fact = facts.remove(0);
                    events.push(fact.clone());
                    if let EventKind::CancelRequested(CancelRequested { accepted: true, request, .. }) =
                        fact.kind
                    {
                        tracker.request_accepted(request, fact.at, &mut events);
                    }
                }
            }
        }
        self.finish(&mut tracker, &mut events);
        events
    }

    /// What the runner itself puts on record while the command runs.
    fn facts(&self) -> Vec<Event> {
        let at = |us: u64| Mono(START + us * 1_000);
        let mut facts = Vec::new();
        if let Some((us, source)) = self.request {
            facts.push(Event { at: at(us), kind: request(1, source, true) });
        }
        if let Some(us) = self.later_request {
            facts.push(Event { at: at(us), kind: request(2, CancelSource::Service, false) });
        }
        let exited = self.exit.map_or(u64::MAX, |(at, _)| at);
        if let Some(us) = self.signalled.filter(|us| *us <= exited) {
            facts.push(Event { at: at(us), kind: rung() });
        }
        facts.sort_by_key(|fact| fact.at);
        facts
    }

    fn finish(&self, tracker: &mut Tracker, events: &mut Vec<Event>) {
        let at = |us: u64| Mono(START + us * 1_000);
        let Some((exited, how)) = self.exit else { return };
        tracker.close(at(exited), "the process ended", events);
        let exit = CommandExited {
            code: how.ok(),
            signal: how.err(),
            core_dumped: false,
            core_file: None,
            oom_kills: Some(u64::from(self.oom)),
        };
        events.push(Event { at: at(exited), kind: EventKind::CommandExited(exit) });
        if let Some(us) = self.signalled.filter(|us| *us > exited) {
            events.push(Event { at: at(us), kind: rung() });
        }
        if self.lost {
            let lost = EvidenceLost { records: 3, reason: "the disk was full".to_owned() };
            events.push(Event { at: at(500), kind: EventKind::EvidenceLost(lost) });
        }
    }
}

fn request(request: u32, source: CancelSource, accepted: bool) -> EventKind {
    EventKind::CancelRequested(CancelRequested {
        request,
        source,
        via: "SIGINT".to_owned(),
        reason: None,
        accepted,
        kill: false,
        pid: None,
        uid: None,
        open_branch: Vec::new(),
    })
}

fn rung() -> EventKind {
    EventKind::LadderRung(LadderRung {
        rung: "SIGTERM".to_owned(),
        why: "grace over".to_owned(),
        group: Some(COMMAND),
    })
}

fn ended(verdict: &Verdict) -> Event {
    let end = JobEnded {
        state: verdict.state,
        cause: verdict.cause.clone(),
        observed: verdict.observed,
        exit_code: u8::from(verdict.state != State::Succeeded),
    };
    Event { at: Mono(START + 1_000_000_000), kind: EventKind::JobEnded(end) }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn any_interleaving_maps_to_the_table(scenario in scenario(), order in vec(any::<prop::sample::Index>(), 1..40)) {
        prop_assume!(!scenario.lost || scenario.exit.is_some());
        let mut events = scenario.events(&order);
        let verdict = judge(&events);
        prop_assert_eq!(verdict.observed, !scenario.builds.is_empty());
        prop_assert_eq!(verdict.builds.len(), scenario.builds.len());
        let mut got: Vec<_> = verdict.builds.iter().map(|build| (build.state, build.cause.clone())).collect();
        prop_assert_eq!((verdict.state, verdict.cause.clone()), scenario.expected_of_job(&got));
        let mut expected: Vec<_> = (0..scenario.builds.len()).map(|place| scenario.expected(place)).collect();
        let word = |(state, cause): &(State, Option<String>)| format!("{state:?} {cause:?}");
        got.sort_by_key(word);
        expected.sort_by_key(word);
        prop_assert_eq!(got, expected, "builds are numbered as they are met, so that their order is free");
        if verdict.state == State::Cancelled {
            let acknowledged = events.iter().any(|event| matches!(event.kind, EventKind::CancelAcknowledged(_)));
            prop_assert!(acknowledged, "no state but cancelled says cancelled, and it needs an acknowledgement");
        }
        events.push(ended(&verdict));
        prop_assert_eq!(judge(&events), verdict, "the finished log says the same");
    }

    #[test]
    fn a_request_has_one_outcome(scenario in scenario(), order in vec(any::<prop::sample::Index>(), 1..40)) {
        let verdict = judge(&scenario.events(&order));
        let outcomes: Vec<Outcome> = verdict.requests.iter().map(|request| request.outcome).collect();
        let Some((asked, _)) = scenario.request else {
            prop_assert!(outcomes.is_empty());
            return Ok(());
        };
        let any = |wanted: &dyn Fn(&Build) -> bool| scenario.builds.iter().any(wanted);
        let engine = |build: &Build| build.returned == Returned::Engine;
        let answered = |build: &Build| build.answers(Some(asked)).is_some();
        let missed = |build: &Build| !engine(build) && (build.returned == Returned::NotSeen || asked <= build.end());
        let expected = if any(&|build| answered(build) && !engine(build)) {
            Outcome::Delivered
        } else if any(&engine) && !any(&missed) {
            Outcome::TooLate
        } else {
            Outcome::Undelivered
        };
        prop_assert_eq!(outcomes[0], expected);
        let later = scenario.later_request.map(|_| Outcome::RecordedOnly);
        prop_assert_eq!(outcomes.get(1).copied(), later);
    }

    #[test]
    fn acknowledgements_are_measured_from_the_request(scenario in scenario(), order in vec(any::<prop::sample::Index>(), 1..40)) {
        let events = scenario.events(&order);
        let asked = scenario.request.map(|(at, _)| at);
        let mut expected: Vec<u64> =
            scenario.builds.iter().filter_map(|build| Some((build.answers(asked)? - asked?) * 1_000)).collect();
        let mut got: Vec<u64> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::CancelAcknowledged(acknowledged) => Some(acknowledged.latency_ns),
                _ => None,
            })
            .collect();
        expected.sort_unstable();
        got.sort_unstable();
        prop_assert_eq!(got, expected, "each build answers once, however late its request is told");
    }
}

#[test]
fn an_engine_after_a_late_cancel_is_a_success() {
    let mut job = Job::new();
    job.at(1).tell(build_start()).at(2).request(CancelSource::Ci, "SIGTERM");
    job.at(3).tell(returned(true)).at(4).exit(Some(0), None);
    let verdict = job.end(0);
    assert_eq!((verdict.state, verdict.cause), (State::Succeeded, None));
    assert_eq!(verdict.builds[0].notes, ["too_late"]);
    assert_eq!(verdict.requests[0].outcome, Outcome::TooLate);
}

#[test]
fn a_cancel_that_was_not_delivered_leaves_the_failure_to_the_builder() {
    let mut job = Job::new();
    job.at(1).tell(build_start()).at(2).request(CancelSource::Ci, "SIGTERM");
    job.at(3).tell(returned(false)).at(4).exit(Some(1), None);
    let verdict = job.end(1);
    assert_eq!((verdict.state, verdict.cause.as_deref()), (State::Failed, Some("builder")));
    assert_eq!(verdict.builds[0].notes, ["undelivered"]);
    assert_eq!(verdict.requests[0].outcome, Outcome::Undelivered);
}

#[test]
fn an_exit_after_the_acknowledgement_is_a_cancel_without_a_return() {
    let mut job = Job::new();
    job.at(1).tell(build_start()).tell(start("A", None, 2)).at(2).request(CancelSource::CtrlC, "SIGINT");
    job.at(3).tell(step("A", 0, 1)).at(4).exit(Some(0), None);
    let verdict = job.end(123);
    assert_eq!((verdict.state, verdict.cause.as_deref()), (State::Cancelled, Some("ctrl_c")));
    assert_eq!(verdict.builds[0].notes, ["builder_return_unobserved"]);
}

#[test]
fn an_answer_without_a_request_on_record_cancels_nothing() {
    let mut job = Job::new();
    job.at(1).tell(build_start()).tell(start("A", None, 2)).at(3).tell(step("A", 0, 1)).tell(returned(false));
    job.at(4).exit(Some(1), None);
    let verdict = job.end(1);
    assert_eq!((verdict.state, verdict.cause.as_deref()), (State::Failed, Some("builder")));
}

#[test]
fn lost_records_fail_a_job_whose_builds_keep_their_states() {
    let mut job = Job::new();
    job.at(1).tell(build_start()).at(3).tell(returned(true)).at(4).exit(Some(0), None).lose(2);
    let verdict = job.end(125);
    assert_eq!((verdict.state, verdict.cause.as_deref()), (State::Failed, Some("evidence_lost")));
    assert_eq!(verdict.builds[0].state, State::Succeeded);
}

#[test]
fn the_decisive_build_is_the_worst_and_among_equals_the_last() {
    let mut job = Job::new();
    for (build, engine) in [(1, false), (2, true), (3, false), (4, true)] {
        job.at(u64::from(build) * 10).tell_of(COMMAND, build, build_start());
        job.at(u64::from(build) * 10 + 5).tell_of(COMMAND, build, returned(engine));
    }
    job.at(100).exit(Some(0), None);
    assert_eq!(job.end(123).decisive, Some(3));
}

#[test]
fn a_judge_can_be_asked_at_any_moment() {
    let mut job = Job::new();
    job.at(1).tell(build_start()).at(3).tell(returned(true)).at(4).exit(Some(0), None);
    job.end(0);
    let mut judge_of_all = Judge::default();
    for (place, event) in job.events.iter().enumerate() {
        judge_of_all.see(event);
        assert_eq!(judge_of_all.verdict(), judge(&job.events[..=place]));
    }
}
