//! The backend that needs no device: all threads of the processor.

mod query;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use blstrs::{G1Affine, G2Affine, Scalar};
use group::prime::PrimeCurveAffine;
use r1cs::{CompiledCircuit, Matrix, PackedWitness};
use rayon::prelude::*;

use crate::backend::{Backend, BackendError, DeviceInfo, DeviceKind, GroupSums, PhaseTimes};
use crate::curve::{AffinePoint, Kernel};
use crate::key::{KeyError, KeyForm, ProvingKey};
use crate::msm::{Dense, Terms, sum_terms};
use crate::ntt::Domain;
use crate::points::Points;
use crate::progress::Progress;
use crate::quotient::{coset_product, quotient};
use query::{Present, QueryTerms};

/// Proves on the processor.
///
/// Memory for a domain of n elements: four vectors of 32·n bytes during the transforms, one
/// of them the table of roots, and one during the sums; buckets and chunks beside them take
/// up to some hundred megabytes a thread. The parameter file is read through its map.
pub struct CpuBackend {
    /// `None`: the pool of whoever calls.
    pool: Option<rayon::ThreadPool>,
    kernel: Kernel,
    progress: Arc<dyn Progress + Send + Sync>,
}

impl CpuBackend {
    /// On the threads of the caller's rayon pool, which is usually one thread per processor.
    pub fn new() -> Self {
        CpuBackend {
            pool: None,
            kernel: Kernel::detect(),
            progress: Arc::new(()),
        }
    }

    /// On `threads` threads of its own.
    ///
    /// # Errors
    /// [`BackendError::Threads`] when they cannot be started.
    pub fn with_threads(threads: usize) -> Result<Self, BackendError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("prove-{i}"))
            .build()
            .map_err(|error| BackendError::Threads {
                threads,
                reason: error.to_string(),
            })?;
        Ok(CpuBackend {
            pool: Some(pool),
            ..Self::new()
        })
    }

    /// Reports the phases of every proof to `progress`.
    #[must_use]
    pub fn with_progress(self, progress: Arc<dyn Progress + Send + Sync>) -> Self {
        CpuBackend { progress, ..self }
    }

    /// Adds points with `kernel`, which must come from [`Kernel::available`].
    #[must_use]
    pub fn with_kernel(self, kernel: Kernel) -> Self {
        CpuBackend { kernel, ..self }
    }

    fn threads(&self) -> usize {
        match &self.pool {
            Some(pool) => pool.current_num_threads(),
            None => rayon::current_num_threads(),
        }
    }

    fn run(
        &self,
        circuit: &CompiledCircuit,
        queries: &Queries<'_>,
        witness: &PackedWitness,
    ) -> Result<(GroupSums, PhaseTimes), BackendError> {
        let prover = Prover {
            kernel: self.kernel,
            progress: &*self.progress,
            circuit,
            witness,
        };
        match &self.pool {
            Some(pool) => pool.install(|| prover.sums(queries)),
            None => prover.sums(queries),
        }
    }
}

impl Default for CpuBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl Backend for CpuBackend {
    fn device(&self) -> DeviceInfo {
        let threads = self.threads();
        let plural = if threads == 1 { "" } else { "s" };
        DeviceInfo {
            kind: DeviceKind::Cpu,
            description: format!("{threads} thread{plural}, {}", self.kernel),
            uuid: None,
        }
    }

    fn sums(
        &self,
        circuit: &CompiledCircuit,
        key: &ProvingKey,
        witness: &PackedWitness,
    ) -> Result<(GroupSums, PhaseTimes), BackendError> {
        let queries = Queries {
            form: key.form(),
            h: key.h(),
            l: key.l(),
            a: key.a(),
            b_g1: key.b_g1(),
            b_g2: key.b_g2(),
        };
        self.run(circuit, &queries, witness)
    }
}

/// The five sections of a key.
struct Queries<'a> {
    form: KeyForm,
    h: &'a dyn Points<G1Affine>,
    l: &'a dyn Points<G1Affine>,
    a: &'a dyn Points<G1Affine>,
    b_g1: &'a dyn Points<G1Affine>,
    b_g2: &'a dyn Points<G2Affine>,
}

/// From A·w and B·w to the scalars of the sum over h.
type Transform = fn(&Domain, Vec<Scalar>, Vec<Scalar>) -> Vec<Scalar>;

/// What all phases of one proof share.
struct Prover<'a> {
    kernel: Kernel,
    progress: &'a dyn Progress,
    circuit: &'a CompiledCircuit,
    witness: &'a PackedWitness,
}

impl Prover<'_> {
    fn sums(&self, queries: &Queries<'_>) -> Result<(GroupSums, PhaseTimes), BackendError> {
        let size = self.circuit.shape().domain();
        // Published: the coefficients of H, of which the last is zero. Prepared: A·B on the coset.
        let (transform, h_terms): (Transform, usize) = match queries.form {
            KeyForm::Published => (quotient, size - 1),
            KeyForm::Prepared => (coset_product, size),
        };
        expect("h", queries.h.len(), h_terms)?;
        let mut times = PhaseTimes::default();
        let (a, b) = times.measure("evaluate", || self.evaluate(size))?;
        let scalars = times.measure("ntt", || -> Result<_, BackendError> {
            self.progress.begin("ntt", 1);
            let domain = Domain::new(size)?;
            let scalars = transform(&domain, a, b);
            self.progress.advance(1);
            Ok(scalars)
        })?;
        let h = times.measure("h", || {
            self.sum("h", &Dense::new(queries.h, &scalars[..h_terms]))
        })?;
        drop(scalars);

        let l = match queries.form {
            KeyForm::Published => Present::l(self.circuit),
            KeyForm::Prepared => Present::all(self.circuit),
        };
        let [a, b] = [Present::a, Present::b].map(|of| of(self.circuit));
        let l = times.measure("l", || self.query("l", queries.l, &l))?;
        let a = times.measure("a", || self.query("a", queries.a, &a))?;
        let b_g1 = times.measure("b_g1", || self.query("b_g1", queries.b_g1, &b))?;
        let b_g2 = times.measure("b_g2", || self.query("b_g2", queries.b_g2, &b))?;
        Ok((
            GroupSums {
                a,
                b_g1,
                b_g2,
                l,
                h,
            },
            times,
        ))
    }

    /// A·w and B·w on the whole domain: the circuit's rows, then one row per input
    /// (input_i · 0 = 0, so A holds the input), then zeros.
    fn evaluate(&self, size: usize) -> Result<(Vec<Scalar>, Vec<Scalar>), BackendError> {
        self.progress.begin("evaluate", 2);
        let rows = self.circuit.shape().constraints;
        let inputs = self.witness.inputs();
        let mut a = zeros(size);
        self.circuit
            .evaluate(Matrix::A, self.witness, &mut a[..rows])?;
        a[rows..rows + inputs.len()].copy_from_slice(inputs);
        self.progress.advance(1);
        let mut b = zeros(size);
        self.circuit
            .evaluate(Matrix::B, self.witness, &mut b[..rows])?;
        self.progress.advance(1);
        Ok((a, b))
    }

    fn query<P: AffinePoint>(
        &self,
        section: &'static str,
        points: &dyn Points<P>,
        present: &Present<'_>,
    ) -> Result<P::Curve, BackendError> {
        let terms = QueryTerms::new(points, present, self.circuit, self.witness);
        expect(section, points.len(), terms.points())?;
        Ok(self.sum(section, &terms)?)
    }

    fn sum<P: AffinePoint, T: Terms<P>>(
        &self,
        phase: &'static str,
        terms: &T,
    ) -> Result<<P as PrimeCurveAffine>::Curve, KeyError> {
        self.progress.begin(phase, terms.chunks() as u64);
        sum_terms(terms, self.kernel, self.progress)
    }
}

/// Refuses a section of another length than the circuit's.
fn expect(section: &'static str, found: usize, expected: usize) -> Result<(), BackendError> {
    if found == expected {
        return Ok(());
    }
    Err(BackendError::OtherCircuit {
        section,
        found,
        expected,
    })
}

/// A vector of zeros, written by all threads: the first write to fresh memory is what costs.
fn zeros(size: usize) -> Vec<Scalar> {
    rayon::iter::repeat_n(Scalar::default(), size).collect()
}
