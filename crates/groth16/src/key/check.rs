//! A full check of a proving key's points, for keys that no published digest vouches for.
//!
//! That a point lies on its curve is checked point by point. That it lies in the subgroup of
//! prime order is checked for many points at once: a subgroup check per point would take
//! hours for a large key, and one random linear combination is not enough, because the
//! cofactor of G1 is divisible by 3 and a combination misses a component of order 3 once in
//! three times.
//!
//! Instead every point goes into one of 2^16 buckets, chosen by secret random bits after the
//! file is fixed, and every bucket's sum must lie in the subgroup. If some point does not,
//! then whatever the other points are and wherever they went, at most one of the 2^16 choices
//! for that point makes every sum right. Three independent rounds: a bad key passes with a
//! probability of at most 2^−48.
//!
//! The 3·2^16 sums of the three rounds are checked in the same way once more: six rounds of
//! 2^8 buckets each, again 2^−48, and only the sums of those are checked one by one.
//!
//! The same sums serve for linear combinations of a vector ([`Weights`]): each bucket has a random value, and
//! a point's weight is the sum of those of its three buckets. Whatever the other points are, at most
//! one of the 2^48 choices of buckets gives a point a given weight, unless values collide, which
//! has a probability below 2^−150.

use std::sync::atomic::{AtomicUsize, Ordering};

use blstrs::{G1Affine, G1Projective, Scalar};
use ff::Field;
use group::Curve;
use group::prime::PrimeCurveAffine;
use rand_chacha::ChaCha8Rng;
use rand_core::{OsRng, RngCore, SeedableRng};
use rayon::prelude::*;

use super::KeyError;
use super::encoding::{KeyPoint, PointFault};
use super::{ProvingKey, Section};
use crate::curve::{AffinePoint, BatchAdder, Pick};
use crate::msm;
use crate::points::Points;
use crate::progress::Progress;

/// Rounds of the first level, and bits that choose a bucket there.
const ROUNDS: usize = 3;
const BUCKET_BITS: u32 = 16;
const BUCKETS: usize = 1 << BUCKET_BITS;
/// Rounds and buckets of the second level, over the sums of the first.
const SUM_ROUNDS: usize = 6;
const SUM_BUCKETS: usize = 1 << 8;
/// With fewer points, one check for each is cheaper than the second level alone.
const DIRECT: usize = 8192;
/// Points read, and bucketed, at a time: their bytes and the points fit the L2 cache.
const CHUNK: usize = 4096;
/// Each worker holds all buckets (19 MB in G1, 38 MB in G2): a bound on their memory.
const MAX_WORKERS: usize = 64;

/// A group's points in a key file.
trait Checked: KeyPoint + AffinePoint {}
impl<P: KeyPoint + AffinePoint> Checked for P {}

/// Checks that every point of the key is on its curve and in the subgroup, on all threads.
///
/// # Errors
/// [`KeyError::Point`] names a bad point; [`KeyError::Changed`] if the file changes meanwhile.
pub(crate) fn check_points(key: &ProvingKey, progress: &dyn Progress) -> Result<(), KeyError> {
    let g1 = [key.h(), key.l(), key.a(), key.b_g1()];
    let g2 = [key.b_g2()];
    let total: usize = g1.iter().map(|section| section.len()).sum::<usize>() + g2[0].len();
    progress.begin("points", total as u64);
    check_group(&g1, progress)?;
    check_group(&g2, progress)
}

fn check_group<P: Checked>(
    sections: &[&Section<P>],
    progress: &dyn Progress,
) -> Result<(), KeyError> {
    let chunks = Chunk::all(sections);
    if few(sections) {
        return chunks
            .par_iter()
            .try_for_each(|chunk| chunk.check_each(sections, progress, |_| true));
    }
    let assignment = Assignment::random()?;
    let sums = bucket_sums(sections, &chunks, &assignment, progress)?;
    if sums_in_subgroup(&sums)? {
        return Ok(());
    }
    Err(name_bad_point(sections, &chunks, &assignment, &sums))
}

/// Whether checking each point is cheapest.
fn few<P: KeyPoint>(sections: &[&Section<P>]) -> bool {
    sections.iter().map(|section| section.len()).sum::<usize>() < DIRECT
}

/// Secret weights of a vector's points, drawn once the vector is fixed or by somebody whom its maker cannot
/// ask.
pub(crate) struct Weights {
    assignment: Assignment,
    /// ROUNDS × BUCKETS.
    values: Vec<Scalar>,
}

impl Weights {
    /// From the operating system's randomness.
    ///
    /// # Errors
    /// [`KeyError::Random`].
    pub fn random() -> Result<Self, KeyError> {
        let mut rng = ChaCha8Rng::from_seed(random_seed()?);
        Ok(Weights {
            assignment: Assignment::random()?,
            values: (0..ROUNDS * BUCKETS)
                .map(|_| Scalar::random(&mut rng))
                .collect(),
        })
    }

    /// Those of the first `count` points, on all threads.
    pub fn of(&self, count: usize) -> Vec<Scalar> {
        let mut weights = vec![Scalar::ZERO; count];
        weights.par_chunks_mut(CHUNK).enumerate().for_each_init(
            Vec::new,
            |buckets, (index, weights)| {
                let chunk = Chunk {
                    section: 0,
                    start: index * CHUNK,
                    len: weights.len(),
                };
                self.assignment.buckets(&chunk, buckets);
                for (weight, buckets) in weights.iter_mut().zip(buckets) {
                    let rounds = self.values.chunks_exact(BUCKETS).zip(buckets);
                    *weight = rounds.map(|(values, b)| values[usize::from(*b)]).sum();
                }
            },
        );
        weights
    }

    /// Checks a vector as [`check_points`] does, and gives the sum of its points times their weights.
    ///
    /// # Errors
    /// As [`check_points`].
    pub fn check_and_sum(
        &self,
        section: &Section<G1Affine>,
        progress: &dyn Progress,
    ) -> Result<G1Projective, KeyError> {
        let sections = [section];
        let chunks = Chunk::all(&sections);
        progress.begin("points", section.len() as u64);
        let sums = bucket_sums(&sections, &chunks, &self.assignment, progress)?;
        if few(&sections) {
            chunks
                .par_iter()
                .try_for_each(|chunk| chunk.check_each(&sections, &(), |_| true))?;
        } else if !sums_in_subgroup(&sums)? {
            return Err(name_bad_point(&sections, &chunks, &self.assignment, &sums));
        }
        let used = |(sum, _): &(G1Affine, Scalar)| !bool::from(sum.is_identity());
        let weighted = sums.into_iter().zip(self.values.iter().copied());
        let (points, values): (Vec<_>, Vec<_>) = weighted.filter(used).unzip();
        msm::sum(&points, &values)
    }
}

/// A run of points within one section.
struct Chunk {
    section: usize,
    start: usize,
    len: usize,
}

impl Chunk {
    fn all<P: KeyPoint>(sections: &[&Section<P>]) -> Vec<Chunk> {
        sections
            .iter()
            .enumerate()
            .flat_map(|(index, section)| {
                let len = section.len();
                (0..len).step_by(CHUNK).map(move |start| Chunk {
                    section: index,
                    start,
                    len: CHUNK.min(len - start),
                })
            })
            .collect()
    }

    /// Reads the points and checks the curve equation of each.
    fn read<P: KeyPoint>(
        &self,
        sections: &[&Section<P>],
        points: &mut Vec<P>,
    ) -> Result<(), KeyError> {
        let section = sections[self.section];
        points.clear();
        points.resize(self.len, P::default());
        section.read(self.start, points)?;
        // The identity, where a key's encoding has it, is no pair of coordinates.
        let off = |point: &P| !point.on_curve() && !bool::from(point.is_identity());
        match points.iter().position(off) {
            Some(i) => Err(section.fault(self.start + i, PointFault::NotOnCurve)),
            None => Ok(()),
        }
    }

    /// Checks curve and subgroup of each point whose position in the chunk is `chosen`.
    fn check_each<P: KeyPoint>(
        &self,
        sections: &[&Section<P>],
        progress: &dyn Progress,
        chosen: impl Fn(usize) -> bool,
    ) -> Result<(), KeyError> {
        let mut points = Vec::new();
        self.read(sections, &mut points)?;
        for (i, point) in points.iter().enumerate() {
            if chosen(i) && !point.in_subgroup() {
                return Err(sections[self.section].fault(self.start + i, PointFault::NotInSubgroup));
            }
        }
        progress.advance(self.len as u64);
        Ok(())
    }
}

/// Which bucket each point goes to in each round: 64 bits of a ChaCha8 stream per point, at a
/// place that follows from the point's section and index, so that a chunk's buckets can be
/// drawn again.
struct Assignment {
    seed: [u8; 32],
}

impl Assignment {
    fn random() -> Result<Self, KeyError> {
        Ok(Assignment {
            seed: random_seed()?,
        })
    }

    /// For every point of a chunk, its bucket in each round.
    fn buckets(&self, chunk: &Chunk, out: &mut Vec<[u16; ROUNDS]>) {
        let mut rng = ChaCha8Rng::from_seed(self.seed);
        rng.set_stream(chunk.section as u64);
        rng.set_word_pos(2 * chunk.start as u128);
        out.clear();
        out.extend((0..chunk.len).map(|_| {
            let bits = rng.next_u64();
            std::array::from_fn(|round| (bits >> (BUCKET_BITS as usize * round)) as u16)
        }));
    }
}

fn random_seed() -> Result<[u8; 32], KeyError> {
    let mut seed = [0; 32];
    OsRng
        .try_fill_bytes(&mut seed)
        .map_err(|error| KeyError::Random {
            reason: error.to_string(),
        })?;
    Ok(seed)
}

/// The sums of all buckets, round after round: ROUNDS × BUCKETS points.
fn bucket_sums<P: Checked>(
    sections: &[&Section<P>],
    chunks: &[Chunk],
    assignment: &Assignment,
    progress: &dyn Progress,
) -> Result<Vec<P>, KeyError> {
    let workers = rayon::current_num_threads().clamp(1, MAX_WORKERS);
    let next = AtomicUsize::new(0);
    let parts: Vec<Vec<P>> = (0..workers)
        .into_par_iter()
        .with_max_len(1)
        .map(|_| {
            let mut worker = Worker::new();
            while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                worker.add(sections, chunk, assignment)?;
                progress.advance(chunk.len as u64);
            }
            Ok(worker.sums)
        })
        .collect::<Result<_, KeyError>>()?;
    let mut parts = parts.into_iter();
    let mut sums = parts.next().unwrap_or_default();
    let mut adder = BatchAdder::new();
    for part in parts {
        adder.add_assign(&mut sums, &part);
    }
    Ok(sums)
}

/// One thread's buckets.
struct Worker<P> {
    /// ROUNDS × BUCKETS.
    sums: Vec<P>,
    adder: BatchAdder<P>,
    points: Vec<P>,
    buckets: Vec<[u16; ROUNDS]>,
    /// For each bucket, the last batch that added to it: a batch adds to a bucket once.
    last_batch: Vec<u32>,
    batch: u32,
    waiting: Vec<u32>,
    targets: Vec<u32>,
    picks: Vec<Pick>,
}

impl<P: Checked> Worker<P> {
    fn new() -> Self {
        Worker {
            sums: vec![P::identity(); ROUNDS * BUCKETS],
            adder: BatchAdder::new(),
            points: Vec::with_capacity(CHUNK),
            buckets: Vec::with_capacity(CHUNK),
            last_batch: vec![0; BUCKETS],
            batch: 0,
            waiting: Vec::with_capacity(CHUNK),
            targets: Vec::with_capacity(CHUNK),
            picks: Vec::with_capacity(CHUNK),
        }
    }

    fn add(
        &mut self,
        sections: &[&Section<P>],
        chunk: &Chunk,
        assignment: &Assignment,
    ) -> Result<(), KeyError> {
        chunk.read(sections, &mut self.points)?;
        assignment.buckets(chunk, &mut self.buckets);
        for round in 0..ROUNDS {
            self.waiting.clear();
            self.waiting.extend(0..chunk.len as u32);
            while !self.waiting.is_empty() {
                self.add_batch(round);
            }
        }
        Ok(())
    }

    /// Adds the waiting points whose buckets differ; the others go on waiting.
    fn add_batch(&mut self, round: usize) {
        // Wrapping around would take 2^32 batches, more than a key of 2^40 points.
        self.batch += 1;
        self.targets.clear();
        self.picks.clear();
        let Worker {
            buckets,
            last_batch,
            batch,
            targets,
            picks,
            ..
        } = self;
        self.waiting.retain(|&point| {
            let bucket = buckets[point as usize][round];
            let taken = last_batch[usize::from(bucket)] == *batch;
            if !taken {
                last_batch[usize::from(bucket)] = *batch;
                targets.push(u32::from(bucket));
                picks.push(Pick::new(point as usize, false));
            }
            taken
        });
        self.adder.scatter_picks(
            &mut self.sums[round * BUCKETS..][..BUCKETS],
            &self.targets,
            &self.points,
            &self.picks,
        );
    }
}

/// Whether all points lie in the subgroup, by the second level of buckets.
fn sums_in_subgroup<P: Checked>(points: &[P]) -> Result<bool, KeyError> {
    let mut rng = ChaCha8Rng::from_seed(random_seed()?);
    for _ in 0..SUM_ROUNDS {
        let mut buckets = vec![Vec::new(); SUM_BUCKETS];
        for point in points {
            buckets[rng.next_u32() as usize % SUM_BUCKETS].push(*point);
        }
        let sound = buckets.par_iter_mut().all(|bucket| {
            let sum: P = BatchAdder::new().sum(bucket).to_affine();
            sum.in_subgroup()
        });
        if !sound {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Finds a point outside the subgroup, once the sums have shown that there is one: only the
/// points of one bad bucket need a check of their own.
fn name_bad_point<P: Checked>(
    sections: &[&Section<P>],
    chunks: &[Chunk],
    assignment: &Assignment,
    sums: &[P],
) -> KeyError {
    let Some(bad) = sums.par_iter().position_any(|sum| !sum.in_subgroup()) else {
        // Sums of points of the subgroup are in it: then memory is not to be trusted.
        return sections[0].changed();
    };
    let (round, bucket) = (bad / BUCKETS, bad % BUCKETS);
    let found = chunks.par_iter().try_for_each(|chunk| {
        let mut buckets = Vec::new();
        assignment.buckets(chunk, &mut buckets);
        chunk.check_each(sections, &(), |i| usize::from(buckets[i][round]) == bucket)
    });
    // The same points, read again, sum up to something else: the file changed.
    found.err().unwrap_or_else(|| sections[0].changed())
}
