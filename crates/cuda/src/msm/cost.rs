//! The choice of windows and copies for a sum, from its size and the memory it may have.
//!
//! The scalars of a full sum are taken as uniform: others are never slower by much, since equal
//! digits make longer buckets but not more additions, and zero digits make fewer. (Sums over
//! variables that are bits do not come here.)

use std::fmt;

use super::curve::SumCurve;
use super::full::{FullSumPlan, FullSumShape};
use super::layout::{Group, Pass, Passes};
use super::rounds::rounds;
use super::windows::Windows;
use crate::device::{Ledger, Phase};

/// Multiprocessors of the device that the constants below were measured on, an H200.
const MEASURED_MULTIPROCESSORS: f64 = 132.0;
/// Bytes a millisecond that a kernel reads or writes.
const BYTES_PER_MS: f64 = 3.5e9;
/// A radix sort of 32-bit pairs: reading the keys for the histograms, and each 8 bits of the key.
const SORT_READ_MS: f64 = 0.13e-8;
const SORT_DIGIT_MS: f64 = 0.64e-8;
/// Listing an entry's pairs, and finding a bucket and its single point: 12.5 ms for the 11·2^27 entries of
/// a sum of 2^27 terms, 3.7 ms for its 13·2^22 buckets.
const LIST_MS: f64 = 0.85e-8;
const BUCKET_MS: f64 = 6.8e-8;
/// A launch, also one that finds nothing to do.
const LAUNCH_MS: f64 = 0.003;
/// The last sums over bits, their way to the host and the combination there.
const LAST_SUMS_MS: f64 = 0.35;

/// The memory that a sum may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullSumLimits {
    /// For the bases, all copies together.
    pub base_bytes: u64,
    /// For everything else.
    pub work_bytes: u64,
}

/// A way to compute a sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its shape.
    pub shape: FullSumShape,
    /// The model's time.
    pub ms: f64,
    /// Memory for all copies of the bases.
    pub base_bytes: u64,
    /// Memory for everything else.
    pub work_bytes: u64,
}

/// The way chosen for a sum, beside the best one for every other number of copies.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The fastest that fits; if none fits, the smallest.
    pub chosen: Candidate,
    /// The fastest for each number of copies, with what fits first.
    pub candidates: Vec<Candidate>,
    limits: FullSumLimits,
}

/// Numbers of copies that are tried besides one copy for each window.
const COPIES: [u32; 5] = [1, 2, 3, 4, 6];
/// Numbers of digits that are tried: windows of 4 to 26 bits.
const DIGITS: std::ops::RangeInclusive<u32> = 10..=63;

impl Choice {
    /// For a sum of `terms` terms over `points` bases in the group `C`.
    pub fn new<C: SumCurve>(
        terms: usize,
        points: usize,
        limits: FullSumLimits,
        multiprocessors: u32,
    ) -> Self {
        let candidate = |windows: Windows| {
            Candidate::new::<C>(terms, points, &windows, limits, multiprocessors)
        };
        let mut candidates = Vec::new();
        for copies in COPIES {
            let sets = DIGITS.start().div_ceil(copies)..=DIGITS.end() / copies;
            let windows = sets.filter_map(|sets| Windows::new(sets, copies));
            candidates.extend(fastest(windows.map(candidate), limits));
        }
        let one_set = DIGITS.filter_map(|copies| Windows::new(1, copies));
        candidates.extend(fastest(one_set.map(candidate), limits));
        let smallest = || {
            let windows = DIGITS
                .filter_map(|sets| Windows::new(sets, 1))
                .map(candidate);
            windows.min_by_key(|candidate| candidate.work_bytes)
        };
        let chosen = fastest(candidates.iter().cloned(), limits)
            .filter(|candidate| candidate.fits(limits))
            .or_else(smallest)
            .expect("there are windows for one copy");
        Choice {
            chosen,
            candidates,
            limits,
        }
    }
}

/// The fastest of those that fit, or of all if none does.
fn fastest(
    candidates: impl Iterator<Item = Candidate>,
    limits: FullSumLimits,
) -> Option<Candidate> {
    candidates.min_by(|x, y| {
        let key = |candidate: &Candidate| !candidate.fits(limits);
        key(x).cmp(&key(y)).then(x.ms.total_cmp(&y.ms))
    })
}

impl Candidate {
    fn new<C: SumCurve>(
        terms: usize,
        points: usize,
        windows: &Windows,
        limits: FullSumLimits,
        multiprocessors: u32,
    ) -> Self {
        let base_bytes =
            points as u64 * u64::from(windows.copies()) * size_of::<C::Affine>() as u64;
        // What does not fit goes with fewer passes a group, then with fewer sets a pass.
        let mut shape = FullSumShape::new(terms, points, windows.clone());
        loop {
            let candidate = Candidate {
                ms: model_ms::<C>(&shape, multiprocessors),
                base_bytes,
                work_bytes: work_bytes::<C>(&shape, multiprocessors),
                shape: shape.clone(),
            };
            let smallest = shape.passes_per_group == 1 && shape.sets_per_pass == 1;
            if smallest || candidate.work_bytes <= limits.work_bytes {
                return candidate;
            }
            if shape.passes_per_group > 1 {
                shape.passes_per_group = shape.passes_per_group.div_ceil(2);
            } else {
                shape.sets_per_pass = shape.sets_per_pass.div_ceil(2);
            }
        }
    }

    fn fits(&self, limits: FullSumLimits) -> bool {
        self.base_bytes <= limits.base_bytes && self.work_bytes <= limits.work_bytes
    }
}

/// Memory besides the bases.
fn work_bytes<C: SumCurve>(shape: &FullSumShape, multiprocessors: u32) -> u64 {
    if shape.points as u64 * u64::from(shape.windows.copies()) >= 1 << 31 {
        return u64::MAX;
    }
    let mut ledger = Ledger::new("a sum");
    let _ = FullSumPlan::<C>::new("", shape.clone(), multiprocessors, &mut ledger, Phase::SumH);
    ledger.entries().iter().map(|entry| entry.bytes).sum()
}

/// Milliseconds that a sum with uniform scalars takes.
fn model_ms<C: SumCurve>(shape: &FullSumShape, multiprocessors: u32) -> f64 {
    let speed = f64::from(multiprocessors) / MEASURED_MULTIPROCESSORS;
    let passes: Passes = shape.passes();
    let readings = passes.groups.len() as f64;
    let digits = shape.terms as f64 * (32.0 * readings + 8.0 * f64::from(shape.windows.digits()))
        / BYTES_PER_MS;
    let of_passes: f64 = passes.passes.iter().map(|pass| pass_ms::<C>(pass)).sum();
    let of_groups: f64 = passes.groups.iter().map(|group| group_ms::<C>(group)).sum();
    (digits + of_passes + of_groups) / speed + LAST_SUMS_MS
}

fn pass_ms<C: SumCurve>(pass: &Pass) -> f64 {
    let entries = pass.entries as f64;
    let buckets = f64::from(pass.buckets());
    let key_bytes = f64::from(pass.key_bits().div_ceil(8));
    let front =
        entries * (SORT_READ_MS + SORT_DIGIT_MS * key_bytes + LIST_MS) + buckets * BUCKET_MS;

    let used_rounds = f64::from(pass.expected_rounds());
    let launches = f64::from(rounds(pass.entries)) + 5.0 + key_bytes;
    let folds = pass.expected_additions() / C::ADDITIONS_PER_MS + used_rounds * C::ROUND_MS;
    let reduction = buckets / C::ADDITIONS_PER_MS + C::ROUND_MS;
    front + folds + reduction + launches * LAUNCH_MS
}

/// The reduction of a group after its first round.
fn group_ms<C: SumCurve>(group: &Group) -> f64 {
    let halves = f64::from(group.grid.buckets());
    halves / C::ADDITIONS_PER_MS + f64::from(group.grid_rounds) * (C::ROUND_MS + LAUNCH_MS)
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:>6} {:>6} {:>6} {:>10} {:>10} {:>9}  reason",
            "copies", "digits", "bits", "bases MiB", "work MiB", "model ms"
        )?;
        for candidate in &self.candidates {
            let windows = &candidate.shape.windows;
            let reason = if candidate.shape == self.chosen.shape {
                "chosen: the fastest that fits".to_owned()
            } else if candidate.base_bytes > self.limits.base_bytes {
                format!("bases may take {} MiB", self.limits.base_bytes >> 20)
            } else if candidate.work_bytes > self.limits.work_bytes {
                format!("work may take {} MiB", self.limits.work_bytes >> 20)
            } else {
                "slower".to_owned()
            };
            writeln!(
                f,
                "{:>6} {:>6} {:>6} {:>10} {:>10} {:>9.2}  {reason}",
                windows.copies(),
                windows.digits(),
                windows.widths()[0],
                candidate.base_bytes >> 20,
                candidate.work_bytes >> 20,
                candidate.ms,
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msm::G1;

    const AMPLE: FullSumLimits = FullSumLimits {
        base_bytes: 140 << 30,
        work_bytes: 140 << 30,
    };

    fn choose(log_terms: u32, copies_fit: u64) -> Choice {
        let terms = 1 << log_terms;
        let limits = FullSumLimits {
            base_bytes: (96 << log_terms) * copies_fit,
            ..AMPLE
        };
        Choice::new::<G1>(terms, terms, limits, 132)
    }

    #[test]
    fn chooses_what_was_measured_to_be_best() {
        let digits = |log_terms, copies| choose(log_terms, copies).chosen.shape.windows.digits();
        assert_eq!(digits(27, 1), 11);
        assert!((11..=12).contains(&digits(26, 1)));
        let small = choose(20, 20).chosen.shape.windows;
        assert_eq!(
            small.widths().len(),
            1,
            "one set of buckets for all windows"
        );
        assert!((12..=14).contains(&small.copies()));
    }

    #[test]
    fn the_model_is_near_the_measurements() {
        for (log_terms, copies, measured) in [
            (27, 1, 468.6),
            (26, 1, 250.9),
            (22, 1, 21.8),
            (20, 20, 5.82),
            (22, 20, 17.68),
        ] {
            let ms = choose(log_terms, copies).chosen.ms;
            let ratio = ms / measured;
            assert!(
                (0.8..1.1).contains(&ratio),
                "2^{log_terms}: {ms} ms, measured {measured}"
            );
        }
    }

    #[test]
    fn less_memory_takes_longer_and_the_least_is_named() {
        let terms = 1 << 24;
        let mut last = f64::MAX;
        for work_mib in [600, 1200, 2400, 4800, 9600] {
            let limits = FullSumLimits {
                base_bytes: 96 * terms as u64,
                work_bytes: work_mib << 20,
            };
            let choice = Choice::new::<G1>(terms, terms, limits, 132);
            let chosen = &choice.chosen;
            if chosen.fits(limits) {
                assert!(chosen.ms <= last);
                last = chosen.ms;
            }
            assert!(choice.to_string().lines().count() > 3);
        }
        assert!(last < f64::MAX);
    }

    #[test]
    fn any_size_has_a_choice() {
        for terms in [0, 1, 2, 3, 17, 100, 1000, 43_806, 1_700_000] {
            let choice = Choice::new::<G1>(terms, terms.max(5), AMPLE, 132);
            assert_eq!(choice.chosen.shape.terms, terms);
        }
    }
}
