//! Under a clock of our own: days take no time.

use super::*;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
const LIMITS: Limits = Limits { stall_after: Duration::from_mins(1) };

/// What the job does in a second.
#[derive(Debug, Clone, Copy)]
enum Act {
    Work,
    Idle,
    Starve,
    /// Works a little on a crowded machine, and no look ever meets it.
    CutShort,
    Read,
    Stopped,
    Blocked,
    Gpu,
    UnseenGpu,
}

/// A job under a detector.
struct Scene {
    detector: Detector,
    sample: Sample,
    place: Place,
    expected: Expected,
    told: Vec<(u64, Facts)>,
    start: u64,
}

impl Scene {
    fn new() -> Self {
        let start = 1_000 * SECOND;
        Self {
            detector: Detector::new(LIMITS, Mono(start)),
            sample: Sample {
                t: start,
                gpus: Some(Vec::new()),
                io_bytes: Some(0),
                starved_ms: Some(0),
                ..Sample::default()
            },
            place: Place { build: Some(1), phase: Some(3), name: Some("Timing".to_owned()) },
            expected: Expected::default(),
            told: Vec::new(),
            start,
        }
    }

    fn seconds(&mut self, count: u64, act: Act) -> &mut Self {
        for _ in 0..count {
            self.step(1, act);
        }
        self
    }

    /// One sample, so many seconds after the one before.
    fn step(&mut self, seconds: u64, act: Act) {
        let sample = &mut self.sample;
        sample.t += seconds * SECOND;
        (sample.running, sample.stopped, sample.blocked, sample.gpus) = (0, 0, 0, Some(Vec::new()));
        match act {
            Act::Work => (sample.cpu_ms, sample.running) = (sample.cpu_ms + seconds * 990, 1),
            Act::Starve => (sample.cpu_ms, sample.running) = (sample.cpu_ms + seconds * 10, 1),
            Act::CutShort => {
                sample.cpu_ms += seconds * 12;
                sample.starved_ms = sample.starved_ms.map(|ms| ms + seconds * 140);
            }
            Act::Read => sample.io_bytes = sample.io_bytes.map(|bytes| bytes + seconds * 1_000_000),
            Act::Stopped => sample.stopped = 4,
            Act::Blocked => sample.blocked = 1,
            Act::Idle => {}
            Act::UnseenGpu => sample.gpus = None,
            Act::Gpu => {
                let gpu =
                    crate::resources::GpuUse { percent: Some(80), own_processes: 1, ..Default::default() };
                sample.gpus = Some(vec![gpu]);
            }
        }
        self.detector.sample(&self.sample);
        let told = self.detector.judge(Mono(self.sample.t), &self.place, &self.expected);
        self.told.extend(told.map(|facts| ((self.sample.t - self.start) / SECOND, facts)));
    }

    fn call_back(&mut self) -> &mut Self {
        let told = self.detector.called_back(Mono(self.sample.t));
        self.told.extend(told.map(|facts| ((self.sample.t - self.start) / SECOND, facts)));
        self
    }

    fn verdicts(&self) -> Vec<(SilenceVerdict, &str)> {
        self.told.iter().map(|(_, facts)| (facts.verdict, facts.reason.as_str())).collect()
    }

    fn stalled_at(&self) -> Option<u64> {
        self.told.iter().find(|(_, facts)| facts.verdict == SilenceVerdict::Stalled).map(|(at, _)| *at)
    }
}

use SilenceVerdict::{Advancing, SlowExpected, SlowUnexplained, Stalled};

#[test]
fn a_hang_after_work_is_found_soon_after_its_threshold() {
    let mut scene = Scene::new();
    scene.seconds(100, Act::Work).call_back().seconds(100, Act::Idle);
    let at = scene.stalled_at().unwrap();
    assert!((160..=163).contains(&at), "{at}");
    let last = &scene.told.last().unwrap().1;
    assert_eq!((last.reason.as_str(), last.phase, last.cpu_percent), ("idle", Some(3), 0));
}

#[test]
fn a_hang_in_the_middle_of_a_busy_silence_is_found_by_its_idle_time() {
    let mut scene = Scene::new();
    scene.seconds(1000, Act::Work).seconds(80, Act::Idle);
    let at = scene.stalled_at().unwrap();
    assert!((1058..=1063).contains(&at), "{at}");
}

#[test]
fn threads_tell_how_a_build_stalls() {
    for (act, reason) in [(Act::Stopped, "stopped"), (Act::Blocked, "blocked"), (Act::Idle, "idle")] {
        let mut scene = Scene::new();
        scene.seconds(70, act);
        assert_eq!(scene.verdicts().last(), Some(&(Stalled, reason)));
    }
}

#[test]
fn what_works_is_never_stalled() {
    for (act, hours) in [(Act::Work, 24), (Act::Starve, 1), (Act::CutShort, 1), (Act::Read, 1), (Act::Gpu, 1)]
    {
        let mut scene = Scene::new();
        scene.seconds(hours * 3600, act);
        let expected = [(SlowExpected, "load"), (SlowUnexplained, "long without history")];
        assert_eq!(scene.verdicts(), expected, "{act:?}");
    }
}

#[test]
fn what_a_kernel_does_not_count_explains_nothing() {
    let mut scene = Scene::new();
    scene.sample.starved_ms = None;
    scene.seconds(70, Act::CutShort);
    let last = &scene.told.last().unwrap().1;
    assert_eq!((last.verdict, last.cpu_percent, last.starved_percent), (Stalled, 1, None));
    let mut counted = Scene::new();
    counted.seconds(70, Act::CutShort);
    let last = &counted.told.last().unwrap().1;
    assert_eq!((last.verdict, last.cpu_percent, last.starved_percent), (SlowExpected, 1, Some(14)));
}

#[test]
fn a_gpu_that_cannot_be_seen_may_be_at_work() {
    let mut scene = Scene::new();
    scene.seconds(200, Act::UnseenGpu);
    assert_eq!(scene.verdicts().last(), Some(&(SlowUnexplained, "gpu unseen")));
}

#[test]
fn outside_of_a_build_an_idle_command_is_only_unexplained() {
    let mut scene = Scene::new();
    scene.place = Place::default();
    scene.seconds(50, Act::Idle);
    assert_eq!(scene.verdicts(), []);
    scene.seconds(50, Act::Idle).seconds(5, Act::Work);
    assert_eq!(scene.verdicts(), [(SlowUnexplained, "no open build"), (Advancing, "no open build")]);
}

#[test]
fn history_explains_a_silence_and_ends_the_explanation() {
    let mut scene = Scene::new();
    scene.expected = Expected { silence: Some(Duration::from_secs(100)), ..Expected::default() };
    scene.seconds(154, Act::Work);
    assert_eq!(scene.verdicts(), [(SlowExpected, "history")]);
    scene.seconds(10, Act::Work);
    assert_eq!(scene.verdicts().last(), Some(&(SlowUnexplained, "longer than history")));
    scene.call_back();
    assert_eq!(scene.verdicts().last(), Some(&(Advancing, "called back")));
}

#[test]
fn a_build_that_is_often_idle_is_given_longer() {
    let mut scene = Scene::new();
    let (silence, idle) = (Some(Duration::from_secs(90)), Duration::from_secs(80));
    scene.expected = Expected { silence, idle, stalls: 2 };
    scene.seconds(159, Act::Idle);
    assert_eq!(scene.stalled_at(), None);
    scene.seconds(5, Act::Idle);
    assert!(scene.stalled_at().is_some());
    assert_eq!(scene.told.last().unwrap().1.earlier_stalls, 2);
}

#[test]
fn time_in_which_nothing_ran_is_no_idle_time() {
    let mut scene = Scene::new();
    scene.seconds(10, Act::Work);
    // A machine that slept for an hour, twice.
    scene.step(3600, Act::Idle);
    scene.step(3600, Act::Idle);
    assert_eq!(scene.stalled_at(), None);
    let mut paused = Scene::new();
    paused.seconds(50, Act::Idle);
    paused.detector.shift(Duration::from_hours(1));
    paused.sample.t += 3600 * SECOND;
    paused.seconds(5, Act::Idle);
    assert_eq!(paused.stalled_at(), None);
    paused.seconds(10, Act::Idle);
    assert!(paused.stalled_at().is_some());
}

#[test]
fn a_day_of_steps_says_little_and_forgets_the_rest() {
    let mut scene = Scene::new();
    for _ in 0..(24 * 3600 / 10) {
        scene.seconds(10, Act::Work).call_back();
    }
    assert_eq!(scene.verdicts(), []);
}

fn act() -> impl Strategy<Value = Act> {
    proptest::sample::select(vec![
        Act::Work,
        Act::Idle,
        Act::Starve,
        Act::CutShort,
        Act::Read,
        Act::Stopped,
        Act::Blocked,
        Act::Gpu,
        Act::UnseenGpu,
    ])
}

proptest! {
    /// Whatever comes before and at whatever rate: an idle hang is found within ten seconds of its threshold, and nothing
    /// but an idle minute is ever called one.
    #[test]
    fn an_idle_minute_and_nothing_else_is_a_stall(
        acts in proptest::collection::vec((act(), 1_u64..40, any::<bool>()), 0..20),
        apart in 1_u64..=4,
    ) {
        let mut scene = Scene::new();
        for (act, seconds, call_back) in acts {
            (0..seconds.div_ceil(apart)).for_each(|_| scene.step(apart, act));
            if call_back {
                scene.call_back();
            }
        }
        for (_, facts) in scene.told.iter().filter(|(_, facts)| facts.verdict == Stalled) {
            prop_assert!(facts.idle_ns >= 60 * SECOND && facts.silent_ns >= 60 * SECOND);
        }
        scene.seconds(30, Act::Work).call_back();
        scene.told.clear();
        let hung = (scene.sample.t - scene.start) / SECOND;
        (0..80 / apart).for_each(|_| scene.step(apart, Act::Idle));
        let found = scene.stalled_at().expect("a hang of 80 seconds is found") - hung;
        prop_assert!((60..=70).contains(&found), "{found}");
    }

    #[test]
    fn neighbouring_verdicts_differ(acts in proptest::collection::vec((act(), 1_u64..100, any::<bool>()), 0..30)) {
        let mut scene = Scene::new();
        for (act, seconds, call_back) in acts {
            scene.seconds(seconds, act);
            if call_back {
                scene.call_back();
            }
        }
        for pair in scene.verdicts().windows(2) {
            prop_assert!(pair[0] != pair[1], "{pair:?}");
        }
    }

    #[test]
    fn clocks_that_jump_break_nothing(times in proptest::collection::vec(any::<u64>(), 1..50)) {
        let mut detector = Detector::new(LIMITS, Mono(times[0]));
        for t in times {
            detector.sample(&Sample { t, cpu_ms: t, ..Sample::default() });
            let _ = detector.judge(Mono(t), &Place::default(), &Expected::default());
            let _ = detector.called_back(Mono(t));
            detector.shift(Duration::from_nanos(t));
        }
    }
}
