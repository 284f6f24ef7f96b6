//! The work on a prepared key's vectors, in two lanes: transforms in one, all else in the other.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use blstrs::{G1Affine, Scalar};
use ff::PrimeField;
use r1cs::CompiledCircuit;
use rayon::prelude::*;

use super::super::prepared::PreparedLayout;
use super::super::{KeyError, KeyPoint, ProvingKey, Section};
use super::check::Check;
use super::fold;
use super::output::Output;
use super::steps::{Lane, Timeline};
use super::transform::GroupTransform;
use crate::backend::BackendError;
use crate::ntt::EvaluationSet;
use crate::points::Points;
use crate::progress::Progress;

/// Points that a thread reads at a time.
const CHUNK: usize = 4096;

/// What comes from the other lane: the points of a transform.
type Transformed = Result<Vec<G1Affine>, KeyError>;

/// All vectors.
pub(super) struct Job<'a> {
    pub circuit: &'a CompiledCircuit,
    pub key: &'a ProvingKey,
    pub layout: PreparedLayout,
    pub transform: &'a dyn GroupTransform,
    pub progress: &'a dyn Progress,
    pub timeline: &'a Timeline,
}

impl Job<'_> {
    /// Writes all vectors that are missing and checks all of them; returns the names of those that were there.
    ///
    /// # Errors
    /// Reading, writing, a transform; [`KeyError::Prepared`] or [`KeyError::Point`] for vectors that
    /// are wrong.
    pub fn run(&self, output: &mut Output) -> Result<Vec<&'static str>, KeyError> {
        let missing = |part| !output.has(part);
        // D first: what follows from it takes longer than what follows from E.
        let sets: Vec<_> = [("l", EvaluationSet::Subgroup), ("h", EvaluationSet::Coset)]
            .into_iter()
            .filter(|(part, _)| missing(part))
            .map(|(_, set)| set)
            .collect();
        // Threads of its own: those of the other lane take no work from outside while they have some.
        let threads = rayon::current_num_threads();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let pool = pool.build().map_err(|error| {
            KeyError::device(BackendError::Threads {
                threads,
                reason: error.to_string(),
            })
        })?;
        thread::scope(|scope| {
            let (sender, points) = channel();
            scope.spawn(move || pool.install(|| self.transform_all(&sets, &sender)));
            self.write_and_check(output, &points)
        })
    }

    /// The lane of the transforms. It ends when the other lane has gone.
    fn transform_all(&self, sets: &[EvaluationSet], results: &Sender<Transformed>) {
        for &set in sets {
            let transformed = self.transformed(set);
            let failed = transformed.is_err();
            if results.send(transformed).is_err() || failed {
                return;
            }
        }
    }

    /// ½·D for the domain, −½·E for the coset.
    fn transformed(&self, set: EvaluationSet) -> Transformed {
        let h = self.key.h();
        let mut points = self.timeline.run("read h", Lane::Transform, || {
            let mut points = vec![G1Affine::default(); h.len() + 1];
            read_all(h, &mut points[..h.len()]).map(|()| points)
        })?;
        let scale = match set {
            EvaluationSet::Subgroup => Scalar::TWO_INV,
            EvaluationSet::Coset => -Scalar::TWO_INV,
        };
        // How far it is, only the transform knows.
        self.progress.begin("transform", 0);
        let times = self
            .transform
            .inverse(&mut points, set, scale)
            .map_err(KeyError::device)?;
        self.timeline.phases(&times);
        Ok(points)
    }

    /// The CPU's lane.
    fn write_and_check(
        &self,
        output: &mut Output,
        points: &Receiver<Transformed>,
    ) -> Result<Vec<&'static str>, KeyError> {
        let mut resumed = Vec::new();
        // The bar is the transform's while there is one.
        let quiet: &dyn Progress = match output.has("l") && output.has("h") {
            true => self.progress,
            false => &(),
        };
        let check = Check::new(self.circuit, self.key)?;
        let (a, b_g1, b_g2) = (self.key.a(), self.key.b_g1(), self.key.b_g2());
        self.part("a", "convert a", output, &mut resumed, |output| {
            self.convert(output, a, 3, quiet)
        })?;
        self.part("b_g1", "convert b_g1", output, &mut resumed, |output| {
            self.convert(output, b_g1, 4, quiet)
        })?;
        self.part("b_g2", "convert b_g2", output, &mut resumed, |output| {
            self.convert(output, b_g2, 5, quiet)
        })?;
        let made = |output: &Output| ProvingKey::of(output.map()?, self.key.counts());
        self.timeline.host("compare a and b", || {
            check.compare_kept(&made(output)?, quiet)
        })?;
        let expected = self
            .timeline
            .host("sums over the source", || check.expected(quiet))?;

        self.part("l", "fold and write l", output, &mut resumed, |output| {
            self.write_l(output, &received(points)?, quiet)
        })?;
        let l = self
            .timeline
            .host("check l", || check.sum_l(&made(output)?, quiet))?;
        self.part("h", "write h", output, &mut resumed, |output| {
            self.write_h(output, &received(points)?)
        })?;
        let h = self
            .timeline
            .host("check h", || check.sum_h(&made(output)?, self.progress))?;
        check.compare(&made(output)?, h + l, expected)?;
        Ok(resumed)
    }

    /// Does a part that is missing, as the step `step`.
    fn part(
        &self,
        name: &'static str,
        step: &'static str,
        output: &mut Output,
        resumed: &mut Vec<&'static str>,
        write: impl FnOnce(&Output) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        if output.has(name) {
            resumed.push(name);
            return Ok(());
        }
        self.timeline.host(step, || {
            write(output)?;
            output.finished(name)
        })
    }

    /// Writes a vector whose points stay as they are.
    fn convert<P: KeyPoint>(
        &self,
        output: &Output,
        section: &Section<P>,
        place: usize,
        progress: &dyn Progress,
    ) -> Result<(), KeyError> {
        progress.begin(section.name(), section.len() as u64);
        output.write_points(self.layout.offsets[place], section.len(), |start, out| {
            section.read(start, out)?;
            progress.advance(out.len() as u64);
            Ok(())
        })
    }

    fn write_h(&self, output: &Output, e: &[G1Affine]) -> Result<(), KeyError> {
        let bits = e.len().ilog2();
        let reversed = |index: usize| match bits {
            0 => 0,
            bits => index.reverse_bits() >> (usize::BITS - bits),
        };
        output.write_points(self.layout.offsets[1], e.len(), |start, out| {
            for (index, out) in out.iter_mut().enumerate() {
                *out = e[reversed(start + index)];
            }
            Ok(())
        })
    }

    fn write_l(
        &self,
        output: &Output,
        d: &[G1Affine],
        progress: &dyn Progress,
    ) -> Result<(), KeyError> {
        let inputs = self.circuit.shape().inputs;
        let mut l = vec![G1Affine::default(); inputs + self.key.l().len()];
        read_all(self.key.l(), &mut l[inputs..])?;
        fold::add_columns(self.circuit, d, &mut l, progress);
        output.write_points(self.layout.offsets[2], l.len(), |start, out| {
            out.copy_from_slice(&l[start..start + out.len()]);
            Ok(())
        })
    }
}

/// Waits for the other lane's next vector, or its error.
fn received(points: &Receiver<Transformed>) -> Transformed {
    points
        .recv()
        .expect("invariant: the other lane sends every vector, or an error as its last word")
}

/// A whole section, decoded on all threads.
fn read_all(section: &Section<G1Affine>, out: &mut [G1Affine]) -> Result<(), KeyError> {
    out.par_chunks_mut(CHUNK)
        .enumerate()
        .try_for_each(|(index, out)| section.read(index * CHUNK, out))
}
