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

    /// Adds phases that follow one another from `start` on.
    pub fn add_from(
        &mut self,
        lane: Lane,
        mut start: Instant,
        phases: impl Iterator<Item = (&'static str, Duration)>,
    ) {
        for (name, time) in phases {
            self.add(name, lane, start, start + time);
            start += time;
        }
    }

    /// Adds what a backend says of a call that began and ended then. Where it says when its device
    /// worked, since `epoch`, that counts; what it did before follows the call's begin, and all
    /// else precedes its end.
    pub fn add_sums(
        &mut self,
        times: &PhaseTimes,
        epoch: Option<Instant>,
        (began, ended): (Instant, Instant),
    ) {
        let known = epoch.map_or(&[][..], |_| times.spans());
        if let Some(epoch) = epoch {
            for span in known {
                let at = |ns| epoch + Duration::from_nanos(ns);
                self.add(span.name, Lane::Device, at(span.start_ns), at(span.end_ns));
            }
        }
        let is_load = |name: &str| name == LOAD_PHASE;
        let is_known = |name: &str| known.iter().any(|span| span.name == name);
        let load = times.iter().filter(|(name, _)| is_load(name));
        self.add_from(Lane::Load, began, load);
        let rest = || {
            let rest = times.iter();
            rest.filter(|(name, _)| !is_load(name) && !is_known(name))
        };
        let total = rest().map(|(_, time)| time).sum();
        let start = ended.checked_sub(total).unwrap_or(began);
        self.add_from(Lane::Device, start, rest());
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
    fn phases_lie_where_the_backend_says_or_before_the_end() {
        let ms = Duration::from_millis;
        let mut times = PhaseTimes::default();
        times.record("load key", ms(30));
        times.record("h", ms(5));
        times.record("combine", ms(2));
        let (epoch, began) = (Instant::now(), Instant::now() + ms(100));
        let call = (began, began + ms(1000));
        let place = |times: &PhaseTimes, epoch| {
            let mut spans = Spans::default();
            spans.add_sums(times, epoch, call);
            let place = |span: &Span| (span.name.to_string(), span.lane, span.start, span.end);
            spans.iter().map(place).collect::<Vec<_>>()
        };
        let load = ("load key".to_owned(), Lane::Load, began, began + ms(30));
        let last = call.1 - ms(2);
        let combine = ("combine".to_owned(), Lane::Device, last, call.1);
        let h = |start| ("h".to_owned(), Lane::Device, start, start + ms(5));
        // A backend that does not say when.
        let expected = [load.clone(), h(last - ms(5)), combine.clone()];
        assert_eq!(place(&times, None), expected);
        assert_eq!(place(&times, Some(epoch)), expected);
        times.record_span(groth16::PhaseSpan {
            name: "h",
            start_ns: 400_000_000,
            end_ns: 405_000_000,
        });
        assert_eq!(place(&times, None), expected);
        assert_eq!(
            place(&times, Some(epoch)),
            [h(epoch + ms(400)), load, combine]
        );
    }
}
