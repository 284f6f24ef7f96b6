//! The search for the fastest plan that fits.

use super::per_sum::{Five, PerSum};
use super::plan::PlanTarget;
use super::sum::{Combiners, SumPlan, SumSize};
use crate::device::Ledger;
use crate::msm::{Candidate, Choice, FullSumLimits, G1, G2, SumCurve};

/// Proofs under way at a time, if they fit: one is uploaded and evaluated while the other's sums
/// run.
pub const UNITS: usize = 2;

/// The same where the sums are short: they fill the device less, and the one to three milliseconds that the host needs
/// between two proofs are more of their time.
const UNITS_SHORT: usize = 3;

/// Sums are short if the model says less milliseconds than this. With three proofs at a time instead of two, porep-2k (21.5 ms)
/// took 7 % less for each, winning-32g (14.8 ms) 12 % (H200).
const SHORT_MS: f64 = 30.0;

/// Logarithms of the bytes of work memory that are tried for the sums.
const WORK_LOGS: std::ops::Range<u32> = 16..40;

/// How much longer the sums may take with less work memory than they could use: what they give up so is
/// there for other circuits.
const MODEST: f64 = 1.01;

/// Numbers of pieces that are tried for the terms of the sums, one after the other in the same
/// memory. Each costs the reduction of its own buckets.
const PIECES: [usize; 5] = [1, 4, 16, 64, PIECES_MAX];

/// The most pieces of a sum's terms.
pub const PIECES_MAX: usize = 256;

pub type Sizes = PerSum<SumSize>;
pub type Ways = PerSum<Candidate>;

impl Sizes {
    /// The choice for each sum. `base_bytes` gets a sum's number and the bytes of its points.
    pub fn choose(
        &self,
        target: PlanTarget,
        pieces: usize,
        work_bytes: u64,
        base_bytes: impl Fn(usize, u64) -> u64,
    ) -> PerSum<Choice> {
        let mut sum = 0;
        let mut limits = |size: &SumSize, point: usize| {
            sum += 1;
            FullSumLimits {
                base_bytes: base_bytes(sum - 1, (size.piece_points(pieces) * point) as u64),
                work_bytes,
            }
        };
        let n = target.multiprocessors;
        let (g1, g2) = (
            size_of::<<G1 as SumCurve>::Affine>(),
            size_of::<<G2 as SumCurve>::Affine>(),
        );
        PerSum {
            h: self.h.choose::<G1>(pieces, limits(&self.h, g1), n),
            l: self.l.choose::<G1>(pieces, limits(&self.l, g1), n),
            a: self.a.choose::<G1>(pieces, limits(&self.a, g1), n),
            b_g1: self.b_g1.choose::<G1>(pieces, limits(&self.b_g1, g1), n),
            b_g2: self.b_g2.choose::<G2>(pieces, limits(&self.b_g2, g2), n),
        }
    }
}

/// The five sums' plans.
pub struct Sums {
    pub h: SumPlan<G1>,
    pub l: SumPlan<G1>,
    pub a: SumPlan<G1>,
    pub b_g1: SumPlan<G1>,
    pub b_g2: SumPlan<G2>,
}

impl Sums {
    pub fn new(
        sizes: &Sizes,
        (ways, pieces): (&Ways, usize),
        target: PlanTarget,
        resident: &mut Ledger,
        unit: &mut Ledger,
    ) -> Self {
        let n = target.multiprocessors;
        Sums {
            h: SumPlan::new(&sizes.h, (&ways.h, pieces), n, resident, unit),
            l: SumPlan::new(&sizes.l, (&ways.l, pieces), n, resident, unit),
            a: SumPlan::new(&sizes.a, (&ways.a, pieces), n, resident, unit),
            b_g1: SumPlan::new(&sizes.b_g1, (&ways.b_g1, pieces), n, resident, unit),
            b_g2: SumPlan::new(&sizes.b_g2, (&ways.b_g2, pieces), n, resident, unit),
        }
    }

    /// For adding up.
    pub fn as_five(&self) -> Combiners<'_> {
        Five {
            h: &self.h,
            l: &self.l,
            a: &self.a,
            b_g1: &self.b_g1,
            b_g2: &self.b_g2,
        }
    }

    /// Group and size of each.
    pub fn sizes(&self) -> [(&'static str, &SumSize); 5] {
        [
            (G1::NAME, self.h.size()),
            (G1::NAME, self.l.size()),
            (G1::NAME, self.a.size()),
            (G1::NAME, self.b_g1.size()),
            (G2::NAME, self.b_g2.size()),
        ]
    }

    /// What decoding the bases and making copies of them takes; one sum after the other has its
    /// bytes.
    pub fn load_bytes(&self) -> u64 {
        [
            self.h.load_bytes(),
            self.l.load_bytes(),
            self.a.load_bytes(),
            self.b_g1.load_bytes(),
            self.b_g2.load_bytes(),
        ]
        .into_iter()
        .max()
        .unwrap_or(0)
    }
}

/// What there is to choose from.
pub struct Search<'a> {
    /// The buffers that are there whatever is chosen.
    pub resident: &'a Ledger,
    pub unit: &'a Ledger,
    /// What the driver takes for each unit.
    pub unit_driver_bytes: u64,
    pub sizes: &'a Sizes,
    pub target: PlanTarget,
}

/// What was chosen.
pub struct Found {
    /// Proofs under way at a time.
    pub units: usize,
    /// Pieces of the sums' terms.
    pub pieces: usize,
    pub ways: Ways,
    /// The same, beside what else there was with the memory that each sum gets.
    pub choices: PerSum<Choice>,
}

impl Search<'_> {
    /// Tries several units, then one whose sums have ever less work memory, then sums in pieces.
    /// Of what is left over then, copies of the bases get what pays.
    ///
    /// # Errors
    /// The least memory that would do.
    pub fn run(&self) -> Result<Found, u64> {
        let vram = self.target.vram_bytes;
        let modest = self.modest_work();
        if self.bytes(UNITS, (&self.one_copy(1, modest), 1)) <= vram {
            return Ok(self.with_third(self.with_copies(UNITS, modest)));
        }
        // Looked at first, so that less memory than this is refused soon, and this is enough.
        let smallest = PIECES.map(|pieces| self.bytes(1, (&self.one_copy(pieces, 0), pieces)));
        let least = smallest.into_iter().min().unwrap_or(u64::MAX);
        if least > vram {
            return Err(least);
        }
        for pieces in PIECES {
            for shift in WORK_LOGS.rev().chain([0]) {
                let work_bytes = ((1u64 << shift) - 1).min(modest);
                let ways = self.one_copy(pieces, work_bytes);
                let needed = self.bytes(1, (&ways, pieces));
                if needed <= vram && pieces == 1 {
                    return Ok(self.with_copies(1, work_bytes));
                }
                if needed <= vram {
                    return Ok(self.in_pieces(pieces, work_bytes, ways));
                }
            }
        }
        Err(least)
    }

    /// Room for a third proof beside two, if the sums are short and that takes no copies from them.
    fn with_third(&self, found: Found) -> Found {
        let is_short = total_ms(&found.ways) < SHORT_MS;
        if is_short && self.bytes(UNITS_SHORT, (&found.ways, 1)) <= self.target.vram_bytes {
            return Found {
                units: UNITS_SHORT,
                ..found
            };
        }
        found
    }

    /// The least work memory that is tried with which the sums take at most [`MODEST`] times as long as with
    /// as much as they could use.
    fn modest_work(&self) -> u64 {
        let best = total_ms(&self.one_copy(1, u64::MAX));
        let enough = |work_bytes: &u64| total_ms(&self.one_copy(1, *work_bytes)) <= MODEST * best;
        let tried = WORK_LOGS.map(|shift| (1u64 << shift) - 1);
        tried.into_iter().find(enough).unwrap_or(u64::MAX)
    }

    /// A plan whose sums go over their terms in pieces.
    fn in_pieces(&self, pieces: usize, work_bytes: u64, ways: Ways) -> Found {
        let choose = |_, points| points;
        Found {
            units: 1,
            pieces,
            choices: self.sizes.choose(self.target, pieces, work_bytes, choose),
            ways,
        }
    }

    /// The fastest way of each sum with one copy of the bases; the smallest, if none does with
    /// `work_bytes`.
    fn one_copy(&self, pieces: usize, work_bytes: u64) -> Ways {
        let choices = self
            .sizes
            .choose(self.target, pieces, work_bytes, |_, points| points);
        choices.map(|choice| choice.chosen)
    }

    /// Bytes of the whole plan.
    fn bytes(&self, units: usize, ways: (&Ways, usize)) -> u64 {
        let [mut resident, mut unit] = [self.resident.clone(), self.unit.clone()];
        let sums = Sums::new(self.sizes, ways, self.target, &mut resident, &mut unit);
        let unit_bytes = unit.peak_bytes().max(sums.load_bytes()) + self.unit_driver_bytes;
        resident.peak_bytes() + units as u64 * unit_bytes
    }

    /// Spends memory that is left on copies of bases: always on the step that saves most time for a
    /// byte, of those that fit and pay. One pays if it saves a larger part of the sums' time than it takes
    /// of the memory.
    fn with_copies(&self, units: usize, work_bytes: u64) -> Found {
        let vram = self.target.vram_bytes;
        let all = self.sizes.choose(self.target, 1, work_bytes, |_, _| vram);
        let mut ways = self.one_copy(1, work_bytes);
        while self.take_best_step(units, work_bytes, &all, &mut ways) {}
        let bases: Vec<u64> = ways.as_array().iter().map(|way| way.base_bytes).collect();
        let given = |sum: usize, _| bases[sum];
        Found {
            units,
            pieces: 1,
            choices: self.sizes.choose(self.target, 1, work_bytes, given),
            ways,
        }
    }

    fn take_best_step(
        &self,
        units: usize,
        work_bytes: u64,
        all: &PerSum<Choice>,
        ways: &mut Ways,
    ) -> bool {
        let mut steps = Vec::new();
        let worth = total_ms(ways) / self.target.vram_bytes as f64;
        for (sum, (choice, now)) in all.as_array().into_iter().zip(ways.as_array()).enumerate() {
            for way in &choice.candidates {
                let larger = way.base_bytes > now.base_bytes && way.work_bytes <= work_bytes;
                if larger && way.ms < now.ms {
                    let bytes = (way.base_bytes - now.base_bytes) as f64;
                    let saved = (now.ms - way.ms) / bytes;
                    if saved > worth {
                        steps.push((saved, sum, way));
                    }
                }
            }
        }
        steps.sort_by(|x, y| y.0.total_cmp(&x.0));
        for (_, sum, way) in steps {
            let before = std::mem::replace(ways.at(sum), way.clone());
            if self.bytes(units, (ways, 1)) <= self.target.vram_bytes {
                return true;
            }
            *ways.at(sum) = before;
        }
        false
    }
}

/// Milliseconds of all sums by the model.
fn total_ms(ways: &Ways) -> f64 {
    ways.as_array().iter().map(|way| way.ms).sum()
}
