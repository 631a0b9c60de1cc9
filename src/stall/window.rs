//! The samples of a silence, in bounded memory: spans of time with what was used in them, newest last.

use std::collections::VecDeque;
use std::time::Duration;

/// Spans that are kept; more are merged.
const SPANS: u32 = 64;
/// Processor time that an idle job may use and lack, in thousandths of a core: runtimes have threads that look around.
const IDLE_CPU: u128 = 30;
/// Of a hundred looks, so many may meet a thread that runs or could run.
const IDLE_RUNS: u64 = 10;
/// Bytes a second that an idle job may read and write.
const IDLE_IO: u128 = 16 * 1024;

/// What was used between two samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    /// How long it counts.
    pub(super) length: Duration,
    /// Processor time.
    pub(super) cpu: Duration,
    /// Time that threads with more to do were kept from a processor, as far as it is known.
    pub(super) starved: Duration,
    /// Bytes read and written.
    pub(super) io: u64,
    /// Looks, and of those how many met a thread that runs or could run, and how many a GPU at work.
    pub(super) looks: u64,
    pub(super) runs: u64,
    pub(super) gpu: u64,
}

impl Span {
    fn add(&mut self, other: Self) {
        self.length = self.length.saturating_add(other.length);
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.starved = self.starved.saturating_add(other.starved);
        self.io = self.io.saturating_add(other.io);
        self.looks += other.looks;
        self.runs += other.runs;
        self.gpu += other.gpu;
    }

    /// Whether a job that used this was idle.
    pub(super) fn is_idle(&self) -> bool {
        let ms = self.length.as_millis();
        self.cpu.saturating_add(self.starved).as_millis() * 1000 <= ms * IDLE_CPU
            && u128::from(self.io) * 1000 <= ms * IDLE_IO
            && self.runs * 100 <= self.looks * IDLE_RUNS
            && self.gpu == 0
    }
}

/// The last part of a silence.
#[derive(Debug, Clone)]
pub(super) struct Window {
    /// The longest time that must be remembered.
    reach: Duration,
    spans: VecDeque<Span>,
    kept: Duration,
    /// Idle time before what is remembered and without a break up to it.
    before: Duration,
    /// Everything since the silence began.
    all: Span,
}

impl Window {
    pub(super) fn new(reach: Duration) -> Self {
        Self {
            reach,
            spans: VecDeque::new(),
            kept: Duration::ZERO,
            before: Duration::ZERO,
            all: Span::default(),
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.reach);
    }

    pub(super) fn push(&mut self, span: Span) {
        self.all.add(span);
        self.kept += span.length;
        let grain = self.reach / SPANS;
        match self.spans.back_mut() {
            Some(last) if last.length + span.length <= grain => last.add(span),
            _ => self.spans.push_back(span),
        }
        while let Some(first) = self.spans.front().copied() {
            let without = self.kept.saturating_sub(first.length);
            if without < self.reach {
                break;
            }
            let unbroken = self.idle() == self.kept + self.before;
            self.before = if unbroken { self.before + first.length } else { Duration::ZERO };
            self.spans.pop_front();
            self.kept = without;
        }
    }

    /// How long the job has been idle up to now.
    pub(super) fn idle(&self) -> Duration {
        let (mut seen, mut idle) = (Span::default(), Duration::ZERO);
        for span in self.spans.iter().rev() {
            seen.add(*span);
            if seen.is_idle() {
                idle = seen.length;
            }
        }
        if idle == self.kept && !idle.is_zero() { idle + self.before } else { idle }
    }

    /// Whether nothing is known of the silence yet.
    pub(super) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Everything since the silence began.
    pub(super) fn all(&self) -> Span {
        self.all
    }

    #[cfg(test)]
    pub(super) fn spans(&self) -> usize {
        self.spans.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(cpu_ms: u64) -> Span {
        Span {
            length: Duration::from_secs(1),
            cpu: Duration::from_millis(cpu_ms),
            looks: 1,
            runs: u64::from(cpu_ms > 500),
            ..Span::default()
        }
    }

    #[test]
    fn idle_time_begins_when_the_work_ends() {
        let mut window = Window::new(Duration::from_mins(1));
        (0..100).for_each(|_| window.push(second(990)));
        assert_eq!(window.idle(), Duration::ZERO);
        (0..50).for_each(|_| window.push(second(0)));
        let idle = window.idle().as_secs();
        assert!((50..=51).contains(&idle), "{idle}");
        (0..500).for_each(|_| window.push(second(10)));
        let idle = window.idle().as_secs();
        assert!((545..=556).contains(&idle), "{idle}");
        (0..3).for_each(|_| window.push(second(990)));
        assert_eq!(window.idle(), Duration::ZERO);
    }

    #[test]
    fn a_thread_that_looks_around_now_and_then_does_not_hide_that_nothing_is_done() {
        let mut window = Window::new(Duration::from_mins(1));
        for at in 0..120 {
            window.push(second(if at % 10 == 0 { 100 } else { 5 }));
        }
        assert!(window.idle() > Duration::from_mins(1), "{:?}", window.idle());
    }

    #[test]
    fn a_day_takes_no_more_memory_than_a_minute() {
        let mut window = Window::new(Duration::from_mins(1));
        for _ in 0..86_400 {
            window.push(second(0));
            assert!(window.spans() <= SPANS as usize + 2, "{}", window.spans());
        }
        assert_eq!(window.idle(), Duration::from_hours(24));
    }
}
