//! What happened to a unit, and when.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use groth16::PhaseTimes;

/// What a span of work occupied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Loading a key.
    Load,
    /// Threads that decode, check and make witnesses.
    Witness,
    /// The device.
    Device,
    /// Threads that assemble and verify.
    Finish,
}

/// A span of work on a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// What was done.
    pub name: Cow<'static, str>,
    /// What it occupied.
    pub lane: Lane,
    /// When it began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
}

impl Span {
    /// How long it took.
    pub fn time(&self) -> Duration {
        self.end.saturating_duration_since(self.start)
    }
}

/// The spans of a unit, as they come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spans(Vec<Span>);

impl Spans {
    /// Runs `work` as a span.
    pub fn run<T>(&mut self, name: &'static str, lane: Lane, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.add(name, lane, start, Instant::now());
        result
    }

    /// Adds a span that was timed elsewhere.
    pub fn add(&mut self, name: &'static str, lane: Lane, start: Instant, end: Instant) {
        self.0.push(Span {
            name: Cow::Borrowed(name),
            lane,
            start,
            end,
        });
    }

    /// Adds phases that followed one another and have ended by `end`.
    pub fn add_phases(&mut self, lane: Lane, end: Instant, times: &PhaseTimes) {
        let mut start = end.checked_sub(times.total()).unwrap_or(end);
        for (name, time) in times.iter() {
            // A backend's loading of a key is its first phase.
            let lane = if name == LOAD_PHASE { Lane::Load } else { lane };
            self.add(name, lane, start, start + time);
            start += time;
        }
    }

    /// In the order in which they were added.
    pub fn iter(&self) -> std::slice::Iter<'_, Span> {
        self.0.iter()
    }
}

/// What backends call loading a key.
const LOAD_PHASE: &str = "load key";

/// How much time the intervals cover together; what several cover counts once.
pub fn covered(intervals: impl IntoIterator<Item = (Instant, Instant)>) -> Duration {
    let mut sorted: Vec<_> = intervals.into_iter().collect();
    sorted.sort_unstable();
    let mut total = Duration::ZERO;
    let mut reached: Option<Instant> = None;
    for (start, end) in sorted {
        let start = reached.map_or(start, |reached| start.max(reached));
        total += end.saturating_duration_since(start);
        reached = Some(reached.map_or(end, |reached| reached.max(end)));
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_counts_once() {
        let zero = Instant::now();
        let at = |ms| zero + Duration::from_millis(ms);
        let cover = |list: &[(u64, u64)]| {
            let all = list.iter().map(|&(start, end)| (at(start), at(end)));
            u64::try_from(covered(all).as_millis()).unwrap_or(u64::MAX)
        };
        assert_eq!(cover(&[]), 0);
        assert_eq!(cover(&[(3, 8)]), 5);
        assert_eq!(cover(&[(10, 12), (3, 8)]), 7);
        assert_eq!(cover(&[(0, 10), (2, 3), (5, 12), (12, 13)]), 13);
        // One that ends before it begins covers nothing.
        assert_eq!(cover(&[(5, 2), (4, 6)]), 2);
    }

    #[test]
    fn phases_end_when_they_were_seen_to() {
        let mut times = PhaseTimes::default();
        times.record("load key", Duration::from_millis(30));
        times.record("h", Duration::from_millis(5));
        let mut spans = Spans::default();
        let end = Instant::now() + Duration::from_secs(1);
        spans.add_phases(Lane::Device, end, &times);
        let [load, h] = &spans.0[..] else {
            panic!("{spans:?}")
        };
        assert_eq!((load.lane, h.lane), (Lane::Load, Lane::Device));
        assert_eq!((load.end, h.end), (h.start, end));
        assert_eq!(load.time(), Duration::from_millis(30));
    }
}
