//! One proof on the device over a key that is there: from the packed witness to partial sums.

use std::time::Duration;

use blstrs::Scalar;
use groth16::{GroupSums, PhaseSpan, PhaseTimes};
use r1cs::PackedWitness;

use super::clock::Clock;
use super::fixed::Fixed;
use super::front::{Front, Marks, Shared, Tail};
use super::per_sum::Five;
use super::search::Sums;
use super::sum::{Partials, Sum};
use crate::device::{Arena, Device, DeviceSlice, Stream};
use crate::error::Result;
use crate::msm::{BitSelection, G1, G2, Mask, SumCurve};

/// The memory and the stream of one proof at a time.
pub struct Unit {
    stream: Stream,
    front: Front,
    sums: Five<Sum<G1>, Sum<G2>>,
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
    pub fn bind(
        fixed: &Fixed,
        sums: &Sums,
        device: &Device,
        resident: &Arena,
        unit: &Arena,
    ) -> Result<Self> {
        Ok(Unit {
            stream: device.stream()?,
            front: Front::bind(fixed, device, unit, unit)?,
            sums: Five {
                h: sums.h.bind(device, resident, unit)?,
                l: sums.l.bind(device, resident, unit)?,
                a: sums.a.bind(device, resident, unit)?,
                b_g1: sums.b_g1.bind(device, resident, unit)?,
                b_g2: sums.b_g2.bind(device, resident, unit)?,
            },
        })
    }

    /// Computes the sums of a witness, whose lengths are the circuit's.
    pub fn prove(
        &mut self,
        sums: &Sums,
        shared: &Shared,
        witness: &PackedWitness,
        clock: &Clock,
    ) -> Result<(GroupSums, PhaseTimes)> {
        let queued = self.queue(shared, witness);
        let result = queued.and_then(|marks| {
            let (partial, mut times) = self.collect(&marks, clock)?;
            let sums = times.measure("combine", || partial.combine(&sums.as_five()));
            Ok((sums, times))
        });
        self.settle(result)
    }

    /// Nothing of a proof that failed may run on while the next one begins.
    fn settle<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            let _ = self.stream.synchronize();
        }
        result
    }

    /// Queues everything from the upload to the last sum; waits for nothing on the device.
    fn queue(&mut self, shared: &Shared, witness: &PackedWitness) -> Result<Marks> {
        self.front.stage(witness)?;
        let mut marks = Marks::begin(&self.stream)?;
        self.front.evaluate(&self.stream, shared, &mut marks)?;
        let quotient = self.front.transform(&self.stream, &mut marks)?;
        self.sum(shared, quotient, &mut marks)?;
        Ok(marks)
    }

    fn sum(
        &self,
        shared: &Shared,
        quotient: DeviceSlice<[u32; 8]>,
        marks: &mut Marks,
    ) -> Result<()> {
        let (stream, sums, front) = (&self.stream, &self.sums, &self.front);
        sums.h.run_full(stream, quotient, None)?;
        marks.end("h", stream)?;
        front.tail_scalars(stream, &shared.l, front.l_scalars)?;
        self.query(&sums.l, &shared.l, front.l_scalars)?;
        marks.end("l", stream)?;
        front.tail_scalars(stream, &shared.a, front.a_scalars)?;
        self.query(&sums.a, &shared.a, front.a_scalars)?;
        marks.end("a", stream)?;
        front.tail_scalars(stream, &shared.b, front.b_scalars)?;
        self.query(&sums.b_g1, &shared.b, front.b_scalars)?;
        marks.end("b_g1", stream)?;
        self.query(&sums.b_g2, &shared.b, front.b_scalars)?;
        marks.end("b_g2", stream)
    }

    /// As [`Self::prove`], stopping after each stage to fetch what it computed.
    pub fn stages(
        &mut self,
        sums: &Sums,
        shared: &Shared,
        witness: &PackedWitness,
    ) -> Result<Stages> {
        let result = self.fetch_stages(sums, shared, witness);
        self.settle(result)
    }

    fn fetch_stages(
        &mut self,
        sums: &Sums,
        shared: &Shared,
        witness: &PackedWitness,
    ) -> Result<Stages> {
        self.front.stage(witness)?;
        let mut marks = Marks::begin(&self.stream)?;
        let vectors = Vectors::fetch(&self.front, &self.stream, shared, &mut marks)?;
        self.sum(shared, vectors.on_device, &mut marks)?;
        let partial = self.partial_sums()?;
        Ok(vectors.with(partial.combine(&sums.as_five())))
    }

    fn query<C: SumCurve>(
        &self,
        sum: &Sum<C>,
        tail: &Tail,
        scalars: DeviceSlice<[u32; 8]>,
    ) -> Result<()> {
        sum.run_full(&self.stream, scalars, tail.indices)?;
        let selection = BitSelection {
            ones: self.front.witness.ones(),
            mask: tail.query.present().map(|present| Mask {
                words: present.words,
                ranks: present.ranks,
            }),
            first_point: tail.query.input_points() as u32,
        };
        sum.run_bits(&self.stream, &selection)
    }

    /// Waits for the sums and fetches them; their times.
    fn collect(&self, marks: &Marks, clock: &Clock) -> Result<(Partials, PhaseTimes)> {
        let partial = self.partial_sums()?;
        let times = phase_times(marks, clock)?;
        clock.follow(&self.stream)?;
        Ok((partial, times))
    }

    /// Waits for the sums and fetches what the device left apart.
    fn partial_sums(&self) -> Result<Partials> {
        let (stream, sums) = (&self.stream, &self.sums);
        Ok(Partials {
            h: sums.h.partial_sums(stream)?,
            l: sums.l.partial_sums(stream)?,
            a: sums.a.partial_sums(stream)?,
            b_g1: sums.b_g1.partial_sums(stream)?,
            b_g2: sums.b_g2.partial_sums(stream)?,
        })
    }
}

/// What the events between the phases say; all have been reached. A phase that several proofs of a pass
/// went through has the time of all of them.
pub fn phase_times(marks: &Marks, clock: &Clock) -> Result<PhaseTimes> {
    let mut all: Vec<(&'static str, Duration)> = Vec::new();
    let mut times = PhaseTimes::default();
    let mut last = &marks.start;
    let mut last_ns = clock.ns(last)?;
    for (phase, event) in &marks.ends {
        let end_ns = clock.ns(event)?.max(last_ns);
        times.record_span(PhaseSpan {
            name: phase,
            start_ns: last_ns,
            end_ns,
        });
        last_ns = end_ns;
        let ms = event.elapsed_ms(last)?;
        let time = Duration::from_secs_f64(f64::from(ms.max(0.0)) / 1e3);
        match all.iter_mut().find(|(name, _)| name == phase) {
            Some((_, sum)) => *sum += time,
            None => all.push((phase, time)),
        }
        last = event;
    }
    for (phase, time) in all {
        times.record(phase, time);
    }
    Ok(times)
}

/// What the first half of a proof computes, on the host.
pub struct Vectors {
    a: Vec<Scalar>,
    b: Vec<Scalar>,
    quotient: Vec<[u32; 8]>,
    /// The quotient.
    pub on_device: DeviceSlice<[u32; 8]>,
}

impl Vectors {
    /// Computes and fetches them, from the staged witness.
    pub fn fetch(
        front: &Front,
        stream: &Stream,
        shared: &Shared,
        marks: &mut Marks,
    ) -> Result<Self> {
        let fetch = |from: DeviceSlice<Scalar>| {
            let mut values = vec![Scalar::default(); from.len()];
            stream.download(from, &mut values).map(|()| values)
        };
        let [a, b] = front.evaluate(stream, shared, marks)?;
        let (a, b) = (fetch(a)?, fetch(b)?);
        let on_device = front.transform(stream, marks)?;
        let mut quotient = vec![[0; 8]; on_device.len()];
        stream.download(on_device, &mut quotient)?;
        Ok(Vectors {
            a,
            b,
            quotient,
            on_device,
        })
    }

    /// With the sums that follow from them.
    pub fn with(self, sums: GroupSums) -> Stages {
        Stages {
            a: self.a,
            b: self.b,
            quotient: self.quotient,
            sums,
        }
    }
}
