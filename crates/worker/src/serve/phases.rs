//! A unit's spans as the daemon is told of them.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pipeline::{Lane, Spans};

use crate::message::{Part, Phase};

/// The phases of a unit, in the order in which they came, by the system's clock.
pub(super) fn of(spans: &Spans) -> Vec<Phase> {
    let (now, clock) = (Instant::now(), SystemTime::now());
    let clock = clock.duration_since(UNIX_EPOCH).unwrap_or_default();
    let us = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let phase = |span: &pipeline::Span| Phase {
        name: span.name.clone().into_owned(),
        part: match span.lane {
            Lane::Load => Part::Load,
            Lane::Witness => Part::Witness,
            Lane::Device | Lane::Finish => Part::Device,
        },
        start_us: us(clock.saturating_sub(now.saturating_duration_since(span.start))),
        time_us: us(span.time()),
    };
    spans.iter().map(phase).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn phases_keep_their_order_and_their_distance() {
        let mut spans = Spans::default();
        let start = Instant::now() - Duration::from_secs(3);
        let at = |ms| start + Duration::from_millis(ms);
        spans.add("decode", Lane::Witness, at(0), at(20));
        spans.add("h", Lane::Device, at(100), at(350));
        spans.add("verify", Lane::Finish, at(350), at(355));
        let phases = of(&spans);
        let names: Vec<_> = phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(names, ["decode", "h", "verify"]);
        assert_eq!(
            phases.iter().map(|p| p.time_us).collect::<Vec<_>>(),
            [20_000, 250_000, 5_000]
        );
        let distance = phases[1].start_us - phases[0].start_us;
        assert!((99_999..=100_001).contains(&distance), "{distance}");
        assert_eq!(
            (phases[0].part, phases[2].part),
            (Part::Witness, Part::Device)
        );
    }
}
