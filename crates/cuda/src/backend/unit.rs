//! One proof on the device: from the packed witness to partial sums.

use std::time::Duration;

use blstrs::Scalar;
use groth16::{GroupSums, PhaseTimes};
use r1cs::PackedWitness;

use super::key::elements_mut;
use super::plan::{ProofPlan, TailPlan};
use super::sum::{PartialSums, Sum};
use crate::device::{Arena, Device, DeviceSlice, Event, PinnedBuffer, Stream};
use crate::error::Result;
use crate::evaluate::{Evaluator, QueryTail, WitnessBuffers};
use crate::msm::{BitSelection, G1, G2, Mask, TermIndices};
use crate::ntt::Quotient;

/// What all proofs of a circuit share, besides the key's points.
pub struct Shared {
    evaluator: Evaluator,
    l: Tail,
    a: Tail,
    b: Tail,
}

/// A query's terms that are no bits, and which of its points bits select.
struct Tail {
    query: QueryTail,
    indices: Option<TermIndices>,
}

impl Shared {
    /// Copies the constant lists to the device. `unit` is the memory of a unit that is not in use.
    pub fn bind(plan: &ProofPlan, device: &Device, resident: &Arena, unit: &Arena) -> Result<Self> {
        let fixed = &plan.fixed;
        let stream = device.stream()?;
        let identity = resident.get(fixed.identity);
        let numbers: Vec<u32> = (0..identity.len() as u32).collect();
        stream.upload(identity, &numbers)?;
        // The lists of points need the circuit's bitmaps alone.
        let witness = fixed.witness.bind(device, unit)?;
        let tail = |plan: &TailPlan| -> Result<Tail> {
            let query = plan.query.bind(device, resident)?;
            let points = resident.get(plan.points);
            let indices = if points.is_empty() {
                None
            } else {
                let terms = query.terms();
                query.points(&stream, &witness, points.slice(0..terms))?;
                stream.zero(points.slice(terms..points.len()))?;
                Some(TermIndices {
                    points,
                    scalars: identity.slice(0..points.len()),
                })
            };
            Ok(Tail { query, indices })
        };
        let shared = Shared {
            evaluator: fixed.evaluator.bind(device, resident)?,
            l: tail(&fixed.l_query)?,
            a: tail(&fixed.a_query)?,
            b: tail(&fixed.b_query)?,
        };
        stream.synchronize()?;
        Ok(shared)
    }
}

/// The memory and the stream of one proof at a time.
pub struct Unit {
    stream: Stream,
    /// The packed witness on its way to the device.
    staging: PinnedBuffer,
    witness: WitnessBuffers,
    a: DeviceSlice<Scalar>,
    b: DeviceSlice<Scalar>,
    quotient: Quotient,
    l_scalars: DeviceSlice<[u32; 8]>,
    a_scalars: DeviceSlice<[u32; 8]>,
    b_scalars: DeviceSlice<[u32; 8]>,
    sums: UnitSums,
}

struct UnitSums {
    h: Sum<G1>,
    l: Sum<G1>,
    a: Sum<G1>,
    b_g1: Sum<G1>,
    b_g2: Sum<G2>,
}

/// Ends of phases in the stream.
struct Marks {
    start: Event,
    ends: Vec<(&'static str, Event)>,
}

impl Marks {
    fn end(&mut self, phase: &'static str, stream: &Stream) -> Result<()> {
        self.ends.push((phase, stream.record()?));
        Ok(())
    }
}

/// What the stages of a proof compute.
pub struct Stages {
    /// A·w and B·w on the domain.
    pub a: Vec<Scalar>,
    pub b: Vec<Scalar>,
    /// The quotient's coefficients, canonical.
    pub quotient: Vec<[u32; 8]>,
    pub sums: GroupSums,
}

impl Unit {
    /// Loads kernels and tables.
    pub fn bind(plan: &ProofPlan, device: &Device, resident: &Arena, unit: &Arena) -> Result<Self> {
        let (fixed, sums) = (&plan.fixed, &plan.sums);
        let witness = fixed.witness.bind(device, unit)?;
        let staging = witness.bits().bytes() + witness.values().bytes();
        Ok(Unit {
            stream: device.stream()?,
            staging: device.pinned(staging)?,
            a: unit.get(fixed.a),
            b: unit.get(fixed.b),
            quotient: fixed.quotient.bind(device, unit)?,
            l_scalars: unit.get(fixed.l_query.scalars),
            a_scalars: unit.get(fixed.a_query.scalars),
            b_scalars: unit.get(fixed.b_query.scalars),
            sums: UnitSums {
                h: sums.h.bind(device, resident, unit)?,
                l: sums.l.bind(device, resident, unit)?,
                a: sums.a.bind(device, resident, unit)?,
                b_g1: sums.b_g1.bind(device, resident, unit)?,
                b_g2: sums.b_g2.bind(device, resident, unit)?,
            },
            witness,
        })
    }

    /// Computes the sums of a witness, whose lengths are the circuit's.
    pub fn prove(
        &mut self,
        plan: &ProofPlan,
        shared: &Shared,
        witness: &PackedWitness,
    ) -> Result<(GroupSums, PhaseTimes)> {
        let queued = self.queue(shared, witness);
        let result = queued.and_then(|marks| self.collect(plan, &marks));
        if result.is_err() {
            // Nothing of this proof may run on while the next one begins.
            let _ = self.stream.synchronize();
        }
        result
    }

    /// Queues everything from the upload to the last sum; waits for nothing on the device.
    fn queue(&mut self, shared: &Shared, witness: &PackedWitness) -> Result<Marks> {
        self.stage(witness)?;
        let mut marks = Marks {
            start: self.stream.record()?,
            ends: Vec::new(),
        };
        self.evaluate(shared, &mut marks)?;
        let quotient = self.transform(&mut marks)?;
        self.sum(shared, quotient, &mut marks)?;
        Ok(marks)
    }

    /// A·w and B·w, from the staged witness.
    fn evaluate(&self, shared: &Shared, marks: &mut Marks) -> Result<()> {
        let stream = &self.stream;
        let (bits, values) = (self.witness.bits(), self.witness.values());
        stream.upload_pinned(bits, &self.staging, values.bytes())?;
        stream.upload_pinned(values, &self.staging, 0)?;
        marks.end("upload", stream)?;
        self.witness.unpack(stream)?;
        let (a, b) = (self.a, self.b);
        shared.evaluator.run(stream, &self.witness, a, b)?;
        marks.end("evaluate", stream)
    }

    /// The quotient's coefficients, canonical: in b's bytes.
    fn transform(&self, marks: &mut Marks) -> Result<DeviceSlice<[u32; 8]>> {
        let quotient = self.quotient.run(&self.stream, self.a, self.b)?;
        assert_eq!(quotient.ptr(), self.b.ptr(), "b's bytes outlive a's");
        marks.end("ntt", &self.stream)?;
        Ok(quotient)
    }

    fn sum(
        &self,
        shared: &Shared,
        quotient: DeviceSlice<[u32; 8]>,
        marks: &mut Marks,
    ) -> Result<()> {
        let (stream, sums) = (&self.stream, &self.sums);
        // The quotient's last coefficient is zero and has no point.
        sums.h.run_full(stream, quotient, None)?;
        marks.end("h", stream)?;
        self.scalars(&shared.l, self.l_scalars)?;
        self.query(&sums.l, &shared.l, self.l_scalars)?;
        marks.end("l", stream)?;
        self.scalars(&shared.a, self.a_scalars)?;
        self.query(&sums.a, &shared.a, self.a_scalars)?;
        marks.end("a", stream)?;
        self.scalars(&shared.b, self.b_scalars)?;
        self.query(&sums.b_g1, &shared.b, self.b_scalars)?;
        marks.end("b_g1", stream)?;
        self.query(&sums.b_g2, &shared.b, self.b_scalars)?;
        marks.end("b_g2", stream)
    }

    /// As [`Self::prove`], stopping after each stage to fetch what it computed.
    pub fn stages(
        &mut self,
        plan: &ProofPlan,
        shared: &Shared,
        witness: &PackedWitness,
    ) -> Result<Stages> {
        let fetch = |unit: &Self, from: DeviceSlice<Scalar>| {
            let mut values = vec![Scalar::default(); from.len()];
            unit.stream.download(from, &mut values).map(|()| values)
        };
        self.stage(witness)?;
        let mut marks = Marks {
            start: self.stream.record()?,
            ends: Vec::new(),
        };
        self.evaluate(shared, &mut marks)?;
        let (a, b) = (fetch(self, self.a)?, fetch(self, self.b)?);
        let on_device = self.transform(&mut marks)?;
        let mut quotient = vec![[0; 8]; on_device.len()];
        self.stream.download(on_device, &mut quotient)?;
        self.sum(shared, on_device, &mut marks)?;
        let (sums, _) = self.collect(plan, &marks)?;
        Ok(Stages {
            a,
            b,
            quotient,
            sums,
        })
    }

    /// Puts the witness where the device can fetch it: inputs and dense part, then the bits.
    fn stage(&mut self, witness: &PackedWitness) -> Result<()> {
        let values = self.witness.values();
        let (dense, bits) = self.staging.bytes_mut()?.split_at_mut(values.bytes());
        let dense = elements_mut::<Scalar>(dense, values.len());
        let (inputs, dense) = dense.split_at_mut(witness.inputs().len());
        inputs.copy_from_slice(witness.inputs());
        copy_parallel(dense, witness.dense());
        copy_parallel(elements_mut(bits, witness.bits().len()), witness.bits());
        Ok(())
    }

    fn scalars(&self, tail: &Tail, scalars: DeviceSlice<[u32; 8]>) -> Result<()> {
        let (stream, terms) = (&self.stream, tail.query.terms());
        stream.zero(scalars.slice(terms..scalars.len()))?;
        let scalars = scalars.slice(0..terms).cast();
        tail.query.scalars(stream, &self.witness, scalars)
    }

    fn query<C: crate::msm::SumCurve>(
        &self,
        sum: &Sum<C>,
        tail: &Tail,
        scalars: DeviceSlice<[u32; 8]>,
    ) -> Result<()> {
        sum.run_full(&self.stream, scalars, tail.indices)?;
        let selection = BitSelection {
            ones: self.witness.ones(),
            mask: tail.query.present().map(|present| Mask {
                words: present.words,
                ranks: present.ranks,
            }),
            first_point: tail.query.input_points() as u32,
        };
        sum.run_bits(&self.stream, &selection)
    }

    /// Waits for the sums, fetches them and adds up on the host what the device left apart.
    fn collect(&self, plan: &ProofPlan, marks: &Marks) -> Result<(GroupSums, PhaseTimes)> {
        let (stream, sums) = (&self.stream, &self.sums);
        let h = sums.h.partial_sums(stream)?;
        let l = sums.l.partial_sums(stream)?;
        let a = sums.a.partial_sums(stream)?;
        let b_g1 = sums.b_g1.partial_sums(stream)?;
        let b_g2 = sums.b_g2.partial_sums(stream)?;
        let mut times = PhaseTimes::default();
        let mut last = &marks.start;
        for (phase, event) in &marks.ends {
            let ms = event.elapsed_ms(last)?;
            times.record(phase, Duration::from_secs_f64(f64::from(ms.max(0.0)) / 1e3));
            last = event;
        }
        let sums = times.measure("combine", || combine(plan, &h, [&l, &a, &b_g1], &b_g2));
        Ok((sums, times))
    }
}

fn combine(
    plan: &ProofPlan,
    h: &PartialSums<G1>,
    [l, a, b_g1]: [&PartialSums<G1>; 3],
    b_g2: &PartialSums<G2>,
) -> GroupSums {
    let plans = &plan.sums;
    let ((h, l), ((a, b_g1), b_g2)) = rayon::join(
        || {
            rayon::join(
                || plans.h.combine(&h.full, &h.bits),
                || plans.l.combine(&l.full, &l.bits),
            )
        },
        || {
            rayon::join(
                || {
                    let a = plans.a.combine(&a.full, &a.bits);
                    (a, plans.b_g1.combine(&b_g1.full, &b_g1.bits))
                },
                || plans.b_g2.combine(&b_g2.full, &b_g2.bits),
            )
        },
    );
    GroupSums {
        a,
        b_g1,
        b_g2,
        l,
        h,
    }
}

/// Copies with all threads: one alone writes to memory at a fifth of the bus's speed.
fn copy_parallel<T: Copy + Send + Sync>(to: &mut [T], from: &[T]) {
    use rayon::prelude::*;
    const PIECE: usize = 1 << 15;
    assert_eq!(to.len(), from.len());
    to.par_chunks_mut(PIECE)
        .zip(from.par_chunks(PIECE))
        .for_each(|(to, from)| to.copy_from_slice(from));
}
