//! The first half of a proof on the device: from the packed witness to scalars.

use blstrs::Scalar;
use r1cs::PackedWitness;

use super::fixed::{Fixed, TailPlan};
use crate::device::{
    Arena, Device, DeviceSlice, Event, PinnedBuffer, Stream, copy_parallel, elements_mut,
};
use crate::error::Result;
use crate::evaluate::{Evaluator, QueryTail, WitnessBuffers};
use crate::msm::TermIndices;
use crate::ntt::Quotient;

/// What all proofs of a circuit share, besides the key's points.
pub struct Shared {
    evaluator: Evaluator,
    pub l: Tail,
    pub a: Tail,
    pub b: Tail,
}

/// A query's terms that are no bits, and which of its points bits select.
pub struct Tail {
    pub query: QueryTail,
    /// The terms' points, where those are not all points in order.
    pub indices: Option<TermIndices>,
}

impl Shared {
    /// Copies the constant lists to the device. `held` is the memory of a proof that is not under
    /// way.
    pub fn bind(fixed: &Fixed, device: &Device, resident: &Arena, held: &Arena) -> Result<Self> {
        let stream = device.stream()?;
        let identity = resident.get(fixed.identity);
        let numbers: Vec<u32> = (0..identity.len() as u32).collect();
        stream.upload(identity, &numbers)?;
        // The lists of points need the circuit's bitmaps alone.
        let witness = fixed.witness.bind(device, held)?;
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

/// Ends of phases in the stream.
pub struct Marks {
    pub start: Event,
    pub ends: Vec<(&'static str, Event)>,
}

impl Marks {
    pub fn begin(stream: &Stream) -> Result<Self> {
        Ok(Marks {
            start: stream.record()?,
            ends: Vec::new(),
        })
    }

    pub fn end(&mut self, phase: &'static str, stream: &Stream) -> Result<()> {
        self.ends.push((phase, stream.record()?));
        Ok(())
    }
}

/// The vectors of one proof at a time.
pub struct Front {
    /// The packed witness on its way to the device.
    staging: PinnedBuffer,
    pub witness: WitnessBuffers,
    a: DeviceSlice<Scalar>,
    b: DeviceSlice<Scalar>,
    /// What follows b in its buffer.
    padding: DeviceSlice<Scalar>,
    quotient: Quotient,
    pub l_scalars: DeviceSlice<[u32; 8]>,
    pub a_scalars: DeviceSlice<[u32; 8]>,
    pub b_scalars: DeviceSlice<[u32; 8]>,
}

impl Front {
    /// Loads kernels and tables. `held` is what the proof keeps, `work` what it may share with others;
    /// both are the same memory where that is not divided.
    pub fn bind(fixed: &Fixed, device: &Device, held: &Arena, work: &Arena) -> Result<Self> {
        let witness = fixed.witness.bind(device, held)?;
        let staging = witness.bits().bytes() + witness.values().bytes();
        let b = held.get(fixed.b);
        Ok(Front {
            staging: device.pinned(staging)?,
            a: work.get(fixed.a),
            b: b.slice(0..fixed.domain),
            padding: b.slice(fixed.domain..b.len()),
            quotient: fixed.quotient.bind(device, work)?,
            l_scalars: held.get(fixed.l_query.scalars),
            a_scalars: held.get(fixed.a_query.scalars),
            b_scalars: held.get(fixed.b_query.scalars),
            witness,
        })
    }

    /// Puts the witness where the device can fetch it: inputs and dense part, then the bits.
    pub fn stage(&mut self, witness: &PackedWitness) -> Result<()> {
        let values = self.witness.values();
        let (dense, bits) = self.staging.bytes_mut()?.split_at_mut(values.bytes());
        let dense = elements_mut::<Scalar>(dense, values.len());
        let (inputs, dense) = dense.split_at_mut(witness.inputs().len());
        inputs.copy_from_slice(witness.inputs());
        copy_parallel(dense, witness.dense());
        copy_parallel(elements_mut(bits, witness.bits().len()), witness.bits());
        Ok(())
    }

    /// Queues A·w and B·w, from the staged witness; gives their places.
    pub fn evaluate(
        &self,
        stream: &Stream,
        shared: &Shared,
        marks: &mut Marks,
    ) -> Result<[DeviceSlice<Scalar>; 2]> {
        let (bits, values) = (self.witness.bits(), self.witness.values());
        stream.upload_pinned(bits, &self.staging, values.bytes())?;
        stream.upload_pinned(values, &self.staging, 0)?;
        marks.end("upload", stream)?;
        self.witness.unpack(stream)?;
        let (a, b) = (self.a, self.b);
        shared.evaluator.run(stream, &self.witness, a, b)?;
        marks.end("evaluate", stream)?;
        Ok([a, b])
    }

    /// Queues the quotient's coefficients, canonical: in b's bytes, with zeros up to the buffer's end.
    pub fn transform(&self, stream: &Stream, marks: &mut Marks) -> Result<DeviceSlice<[u32; 8]>> {
        let quotient = self.quotient.run(stream, self.a, self.b)?;
        assert_eq!(quotient.ptr(), self.b.ptr(), "b's bytes outlive a's");
        stream.zero(self.padding)?;
        marks.end("ntt", stream)?;
        Ok(quotient)
    }

    /// The quotient's coefficients and the zeros after them.
    pub fn h_scalars(&self) -> DeviceSlice<[u32; 8]> {
        let len = self.b.len() + self.padding.len();
        DeviceSlice::<Scalar>::new(self.b.ptr(), len).cast()
    }

    /// Queues the scalars of a tail, with zeros up to the buffer's end.
    pub fn tail_scalars(
        &self,
        stream: &Stream,
        tail: &Tail,
        scalars: DeviceSlice<[u32; 8]>,
    ) -> Result<()> {
        let terms = tail.query.terms();
        stream.zero(scalars.slice(terms..scalars.len()))?;
        let scalars = scalars.slice(0..terms).cast();
        tail.query.scalars(stream, &self.witness, scalars)
    }
}
