//! The bytes of a whole key, in either form.

use blstrs::{G1Affine, G2Affine, Scalar};
use group::Curve;
use group::prime::PrimeCurveAffine;

use super::multiplier::{FixedBaseMultiplier, SetupPoint};
use super::queries::Queries;
use super::sink::Sink;
use super::stream::write_multiples;
use super::trapdoor::Trapdoor;
use crate::key::{
    ENCODING, KeyCounts, KeyError, PointEncoding, PreparedHeader, PreparedLayout, VerifyingKey,
};
use crate::progress::Progress;

/// What a key is written from.
pub(super) struct Writer<'a> {
    pub queries: &'a Queries,
    pub secrets: &'a Trapdoor,
    pub counts: &'a KeyCounts,
    pub multiplier: &'a dyn FixedBaseMultiplier,
    pub progress: &'a dyn Progress,
}

impl Writer<'_> {
    /// Writes a parameter file and returns the verifying key at its head.
    pub fn published(&self, out: &mut impl Sink) -> Result<VerifyingKey, KeyError> {
        let vk = self.verifying_key()?;
        out.bytes(&vk.to_bytes())?;
        let queries = self.queries;
        let h = |i: usize, out: &mut [Scalar]| queries.h(i, out);
        let h_count = self.counts.h as usize;
        self.counted::<G1Affine>(h_count, h, out)?;
        for scalars in [queries.l(), &queries.a, &queries.b] {
            self.counted::<G1Affine>(scalars.len(), part_of(scalars), out)?;
        }
        self.counted::<G2Affine>(queries.b.len(), part_of(&queries.b), out)?;
        Ok(vk)
    }

    /// Writes a prepared key's file and returns the verifying key in it.
    pub fn prepared(
        &self,
        header: &PreparedHeader,
        out: &mut impl Sink,
    ) -> Result<VerifyingKey, KeyError> {
        let layout = PreparedLayout::of(self.counts);
        // The zeros after each part of the file but the last.
        let gaps: [u64; 5] =
            std::array::from_fn(|i| layout.offsets[i + 1] - layout.offsets[i] - layout.lengths[i]);
        let zeros = |gap: u64| vec![0; gap as usize];
        out.bytes(&header.to_bytes(self.counts))?;
        let vk = self.verifying_key()?;
        out.bytes(&vk.to_bytes())?;
        out.bytes(&zeros(gaps[0]))?;
        let queries = self.queries;
        let h = |i: usize, out: &mut [Scalar]| queries.h(i, out);
        self.vector::<G1Affine>(self.counts.prepared_h() as usize, h, ENCODING, out)?;
        for (scalars, gap) in [queries.l(), &queries.a, &queries.b].iter().zip(&gaps[1..]) {
            out.bytes(&zeros(*gap))?;
            self.vector::<G1Affine>(scalars.len(), part_of(scalars), ENCODING, out)?;
        }
        out.bytes(&zeros(gaps[4]))?;
        self.vector::<G2Affine>(queries.b.len(), part_of(&queries.b), ENCODING, out)?;
        Ok(vk)
    }

    /// Begins the progress over all points with those of the verifying key.
    fn verifying_key(&self) -> Result<VerifyingKey, KeyError> {
        let (queries, secrets) = (self.queries, self.secrets);
        let h = match queries.is_prepared() {
            true => self.counts.prepared_h(),
            false => self.counts.h,
        };
        let vectors = queries.l().len() + queries.a.len() + 2 * queries.b.len();
        self.progress
            .begin("points", self.counts.inputs + h + vectors as u64);
        let mut ic = vec![G1Affine::identity(); queries.ic.len()];
        G1Affine::multiply(self.multiplier, &queries.ic, &mut ic)?;
        self.progress.advance(self.counts.inputs);
        let g1 = |scalar: &Scalar| (G1Affine::generator() * scalar).to_affine();
        let g2 = |scalar: &Scalar| (G2Affine::generator() * scalar).to_affine();
        Ok(VerifyingKey {
            alpha_g1: g1(&secrets.alpha),
            beta_g1: g1(&secrets.beta),
            beta_g2: g2(&secrets.beta),
            gamma_g2: g2(&secrets.gamma),
            delta_g1: g1(&secrets.delta),
            delta_g2: g2(&secrets.delta),
            ic,
        })
    }

    /// A vector with its count before it, as parameter files have it.
    fn counted<P: SetupPoint>(
        &self,
        count: usize,
        scalars: impl Fn(usize, &mut [Scalar]) + Sync,
        out: &mut impl Sink,
    ) -> Result<(), KeyError> {
        let head = u32::try_from(count).expect("invariant: circuits have less than 2^32 variables");
        out.bytes(&head.to_be_bytes())?;
        self.vector::<P>(count, scalars, PointEncoding::Published, out)
    }

    fn vector<P: SetupPoint>(
        &self,
        count: usize,
        scalars: impl Fn(usize, &mut [Scalar]) + Sync,
        encoding: PointEncoding,
        out: &mut impl Sink,
    ) -> Result<(), KeyError> {
        write_multiples::<P>(
            self.multiplier,
            count,
            scalars,
            encoding,
            out,
            self.progress,
        )
    }
}

/// Copies the scalars from an index on.
fn part_of(scalars: &[Scalar]) -> impl Fn(usize, &mut [Scalar]) + Sync {
    |start, out| out.copy_from_slice(&scalars[start..start + out.len()])
}
