//! The one cancellation state of a job.
//!
//! Every source that can stop a job (signals, the control socket, the cancel file, the deadline) calls
//! [`Cancellation::request`] on its own thread. There the request is stamped and decided, and the cancel word is
//! written before anything else happens: no disk sync and no queue stands between an interrupt and the builder. The
//! main loop hears of it afterwards and puts it on record.

use crate::clock::Mono;
use crate::event::CancelSource;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Two interrupts within this time count as one: package runners and make pass a Ctrl-C on that the terminal has
/// already delivered.
pub const SAME_INTERRUPT: Duration = Duration::from_millis(100);

/// The exact way in which a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP.
    HangUp,
    /// `stuckproof cancel`, or a program at the control socket.
    ControlSocket,
    /// The file named by `--cancel-file` appeared.
    CancelFile,
    /// Standard input ended.
    StdinClosed,
    /// The time given by `--deadline` was over.
    Deadline,
    /// A build stalled, and `--on-stall cancel` was given.
    Stall,
    /// A phase was open for longer than `--max-phase` allows.
    PhaseLimit,
    /// The runner died, and the keeper took its place.
    RunnerLost,
}

impl Via {
    const ALL: [Self; 10] = [
        Self::Interrupt,
        Self::Terminate,
        Self::HangUp,
        Self::ControlSocket,
        Self::CancelFile,
        Self::StdinClosed,
        Self::Deadline,
        Self::Stall,
        Self::PhaseLimit,
        Self::RunnerLost,
    ];

    /// The word that the evidence uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::HangUp => "SIGHUP",
            Self::ControlSocket => "control socket",
            Self::CancelFile => "cancel file",
            Self::StdinClosed => "stdin closed",
            Self::Deadline => "deadline",
            Self::Stall => "stall",
            Self::PhaseLimit => "phase limit",
            Self::RunnerLost => "runner lost",
        }
    }

    /// Whether a time limit of the user's own asked.
    #[must_use]
    pub fn is_limit(self) -> bool {
        matches!(self, Self::Deadline | Self::PhaseLimit)
    }

    /// Whether it came as a signal.
    #[must_use]
    pub fn is_signal(self) -> bool {
        matches!(self, Self::Interrupt | Self::Terminate | Self::HangUp)
    }

    /// The way whose word begins like this; the control page keeps eight bytes of it, and no two begin with the same.
    #[must_use]
    pub fn beginning_with(start: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|via| !start.is_empty() && via.name().starts_with(start))
    }
}

/// A wish to stop, as its source brings it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Who asks, in the words of the acceptance test.
    pub source: CancelSource,
    /// How.
    pub via: Via,
    /// The reason given.
    pub reason: Option<String>,
    /// The asking process, where the kernel tells it.
    pub pid: Option<u32>,
    /// The asking user, where the kernel tells it.
    pub uid: Option<u32>,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is the first: it fixed the source and the clock, and the cancel word is written.
    Accepted,
    /// A stop was under way already; the request is put on record and changes nothing.
    Recorded,
    /// Somebody insists, a person with a second interrupt or a host with its last signal: recorded, and the command is
    /// killed now.
    Kill,
    /// The job's end is on record, and nothing changes it. The request is put on record beside the bundle.
    Over,
    /// The same, and nobody is left to put anything on record.
    Gone,
}

/// A request that was stamped and decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its number, from 1 in order of arrival; 0 when the job was over.
    pub number: u32,
    /// When it arrived.
    pub at: Mono,
    /// What was asked.
    pub ask: Ask,
    /// What became of it.
    pub answer: Answer,
    /// Whether the command had ended when it arrived, so that there was nothing left to stop.
    pub late: bool,
    /// Why the cancel word could not be written, when it could not.
    pub word_lost: Option<String>,
}

/// What a signal after the first request means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insists {
    /// Nothing: it is recorded.
    Never,
    /// A second SIGINT means "kill now": a person pressed Ctrl-C once more.
    ByInterrupt,
    /// SIGTERM after SIGINT means "kill now": the host has a few seconds left, and SIGKILL is next.
    ByTerminate,
}

/// Writes the cancel word for an accepted request, so that builders see it at once. The error is for a person.
pub type WriteWord = Box<dyn Fn(&Request) -> Result<(), String> + Send + Sync>;

/// Tells the main loop of a decided request. It is called in the order of the numbers.
pub type Tell = Box<dyn Fn(Request) + Send + Sync>;

/// The cancellation state of one job. All sources share it.
pub struct Cancellation {
    state: Mutex<State>,
    insists: Insists,
    write_word: WriteWord,
    tell: Tell,
}

#[derive(Default)]
struct State {
    requests: u32,
    interrupt: Option<Mono>,
    over: bool,
    sealed: bool,
    ended: Option<String>,
    gone: bool,
}

impl Cancellation {
    /// A state that nobody has asked anything of.
    #[must_use]
    pub fn new(insists: Insists, write_word: WriteWord, tell: Tell) -> Self {
        Self { state: Mutex::default(), insists, write_word, tell }
    }

    /// Stamps and decides a request, writes the cancel word if it is the first, and tells the main loop.
    pub fn request(&self, ask: Ask) -> Request {
        self.request_by(Mono::now, ask)
    }

    fn request_by(&self, clock: impl FnOnce() -> Mono, ask: Ask) -> Request {
        let mut state = self.lock();
        // Stamped inside, so that the numbers and the stamps have one order.
        let at = clock();
        let answer = self.decide(&mut state, &ask, at);
        let late = state.over;
        let mut request = Request { number: state.requests, at, ask, answer, late, word_lost: None };
        match answer {
            Answer::Accepted => request.word_lost = (self.write_word)(&request).err(),
            Answer::Over | Answer::Gone => request.number = 0,
            Answer::Recorded | Answer::Kill => {}
        }
        (self.tell)(request.clone());
        request
    }

    /// Whether anybody has asked.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.lock().requests > 0
    }

    /// The command has ended. Requests are still put on record: the job puts its files in order.
    pub fn command_ended(&self) {
        self.lock().over = true;
    }

    /// Ends the state: from here on every request is answered with [`Answer::Over`]. Whatever was decided before has
    /// been told.
    pub fn seal(&self) {
        self.lock().sealed = true;
    }

    /// The end is on record; this is what became of the job.
    pub fn ended(&self, state: String) {
        self.lock().ended = Some(state);
    }

    /// What became of the job, once its end is on record.
    #[must_use]
    pub fn end(&self) -> Option<String> {
        self.lock().ended.clone()
    }

    /// Nobody listens from here on: every request is answered with [`Answer::Gone`]. Whatever was decided before has been
    /// told.
    pub fn leave(&self) {
        self.lock().gone = true;
    }

    fn decide(&self, state: &mut State, ask: &Ask, at: Mono) -> Answer {
        if state.gone {
            return Answer::Gone;
        }
        if state.sealed {
            return Answer::Over;
        }
        state.requests += 1;
        match (state.requests, self.is_insisting(state, ask.via, at)) {
            (1, _) => Answer::Accepted,
            (_, true) => Answer::Kill,
            (_, false) => Answer::Recorded,
        }
    }

    /// Whether this signal comes after a first interrupt and means that there is no more time.
    fn is_insisting(&self, state: &mut State, via: Via, at: Mono) -> bool {
        let insists = match via {
            Via::Interrupt => self.insists == Insists::ByInterrupt,
            Via::Terminate => self.insists == Insists::ByTerminate,
            _ => return false,
        };
        let Some(first) = state.interrupt else {
            state.interrupt = (via == Via::Interrupt).then_some(at);
            return false;
        };
        insists && at.since(first) >= SAME_INTERRUPT
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere must not take the stop button away.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::Arc;

    fn ask(via: Via) -> Ask {
        Ask { source: CancelSource::Api, via, reason: None, pid: None, uid: None }
    }

    type Shared<T> = Arc<Mutex<Vec<T>>>;

    /// A state together with the words written and the requests told.
    fn state(insists: Insists) -> (Arc<Cancellation>, Shared<u32>, Shared<Request>) {
        let (words, told) = (Shared::<u32>::default(), Shared::<Request>::default());
        let (w, t) = (Arc::clone(&words), Arc::clone(&told));
        let write_word = Box::new(move |r: &Request| {
            w.lock().unwrap().push(r.number);
            Ok(())
        });
        let tell = Box::new(move |r| t.lock().unwrap().push(r));
        (Arc::new(Cancellation::new(insists, write_word, tell)), words, told)
    }

    #[test]
    fn the_first_eight_bytes_tell_the_ways_apart() {
        for via in Via::ALL {
            let name = via.name();
            assert_eq!(Via::beginning_with(&name[..name.len().min(8)]), Some(via));
        }
        assert_eq!(Via::beginning_with(""), None);
        assert_eq!(Via::beginning_with("SIGKILL"), None);
    }

    #[test]
    fn the_first_fixes_and_later_ones_are_recorded() {
        let (state, words, told) = state(Insists::ByInterrupt);
        assert_eq!(state.request(ask(Via::Terminate)).answer, Answer::Accepted);
        assert_eq!(state.request(ask(Via::Terminate)).answer, Answer::Recorded);
        assert_eq!(state.request(ask(Via::CancelFile)).answer, Answer::Recorded);
        assert_eq!(*words.lock().unwrap(), [1]);
        assert_eq!(told.lock().unwrap().len(), 3);
    }

    #[test]
    fn a_second_interrupt_kills_at_a_terminal_only_and_not_within_the_same_keypress() {
        let pressed = |state: &Cancellation, ms: u64| {
            state.request_by(|| Mono(ms * 1_000_000), ask(Via::Interrupt)).answer
        };
        let (terminal, ..) = state(Insists::ByInterrupt);
        assert_eq!(pressed(&terminal, 1_000), Answer::Accepted);
        assert_eq!(pressed(&terminal, 1_099), Answer::Recorded);
        assert_eq!(pressed(&terminal, 1_100), Answer::Kill);
        let (ci, ..) = state(Insists::Never);
        assert_eq!(pressed(&ci, 1_000), Answer::Accepted);
        assert_eq!(pressed(&ci, 9_000), Answer::Recorded);
    }

    #[test]
    fn an_interrupt_after_another_kind_of_request_is_a_persons_first() {
        let (terminal, ..) = state(Insists::ByInterrupt);
        let at = |ms: u64, via| terminal.request_by(|| Mono(ms * 1_000_000), ask(via)).answer;
        assert_eq!(at(1_000, Via::Deadline), Answer::Accepted);
        assert_eq!(at(5_000, Via::Interrupt), Answer::Recorded);
        assert_eq!(at(6_000, Via::Interrupt), Answer::Kill);
    }

    #[test]
    fn the_last_signal_of_a_host_kills_and_one_that_is_sent_again_does_not() {
        let (host, ..) = state(Insists::ByTerminate);
        let at = |ms: u64, via| host.request_by(|| Mono(ms * 1_000_000), ask(via)).answer;
        assert_eq!(at(1_000, Via::Interrupt), Answer::Accepted);
        assert_eq!(at(1_050, Via::Terminate), Answer::Recorded, "both came at once");
        assert_eq!(at(3_000, Via::Interrupt), Answer::Recorded);
        assert_eq!(at(8_500, Via::Terminate), Answer::Kill);
        let (host, ..) = state(Insists::ByTerminate);
        let at = |ms: u64, via| host.request_by(|| Mono(ms * 1_000_000), ask(via)).answer;
        assert_eq!(at(1_000, Via::Terminate), Answer::Accepted);
        assert_eq!(at(5_000, Via::Terminate), Answer::Recorded, "no interrupt came before");
    }

    #[test]
    fn after_the_seal_nothing_is_accepted() {
        let (state, words, told) = state(Insists::ByInterrupt);
        state.seal();
        let late = state.request(ask(Via::Interrupt));
        assert_eq!((late.number, late.answer), (0, Answer::Over));
        assert!(words.lock().unwrap().is_empty());
        assert_eq!(told.lock().unwrap().len(), 1, "the main loop still hears of it, to put it on record");
        assert_eq!(state.end(), None);
        state.ended("succeeded".to_owned());
        assert_eq!(state.end().as_deref(), Some("succeeded"));
        state.leave();
        let gone = state.request(ask(Via::Interrupt));
        assert_eq!((gone.number, gone.answer), (0, Answer::Gone));
    }

    fn via() -> impl Strategy<Value = Via> {
        prop_oneof![
            Just(Via::Interrupt),
            Just(Via::Terminate),
            Just(Via::HangUp),
            Just(Via::ControlSocket),
            Just(Via::CancelFile),
            Just(Via::Deadline)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn concurrent_requests_have_one_winner(
            threads in prop::collection::vec(prop::collection::vec(via(), 1..6), 1..6),
            kills in prop_oneof![Just(Insists::Never), Just(Insists::ByInterrupt), Just(Insists::ByTerminate)],
        ) {
            let (state, words, told) = state(kills);
            let start = Arc::new(std::sync::Barrier::new(threads.len()));
            let total: usize = threads.iter().map(Vec::len).sum();
            let running: Vec<_> = threads
                .into_iter()
                .map(|asks| {
                    let (state, start) = (Arc::clone(&state), Arc::clone(&start));
                    std::thread::spawn(move || {
                        start.wait();
                        asks.into_iter().map(|via| state.request(ask(via)).number).collect::<Vec<_>>()
                    })
                })
                .collect();
            let mut numbers: Vec<u32> = running.into_iter().flat_map(|t| t.join().unwrap()).collect();
            numbers.sort_unstable();
            prop_assert_eq!(&numbers, &(1..=total as u32).collect::<Vec<_>>());
            let told = told.lock().unwrap();
            let accepted: Vec<u32> =
                told.iter().filter(|r| r.answer == Answer::Accepted).map(|r| r.number).collect();
            prop_assert_eq!(accepted, vec![1]);
            prop_assert_eq!(&*words.lock().unwrap(), &vec![1]);
            prop_assert!(told.windows(2).all(|w| w[0].number < w[1].number && w[0].at <= w[1].at));
        }
    }
}
