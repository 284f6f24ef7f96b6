//! One pass over the key: the first halves of some proofs, then every chunk for all of them.

use groth16::key::ProvingKey;
use groth16::progress::Progress;
use groth16::{GroupSums, PhaseTimes};
use r1cs::PackedWitness;

use super::super::BackendFailure;
use super::super::clock::Clock;
use super::super::fixed::Fixed;
use super::super::front::{Front, Marks, Shared, Tail};
use super::super::key::h_order;
use super::super::per_sum::Five;
use super::super::query_bits::QueryBits;
use super::super::sum::{PartialSums, Partials};
use super::super::unit::{Stages, Vectors, phase_times};
use super::plan::{StreamedSum, StreamedSums};
use super::{HostBases, RING};
use crate::device::{Arena, Device, DeviceSlice, Event, PinnedBuffer, Pod, Stream};
use crate::error::Result;
use crate::evaluate::{BitmapSlots, DeviceBitmap};
use crate::msm::{BitSelection, BitSum, FullSum, FullSumTerms, G1, G2, Mask, SumCurve};
use crate::points::PointOrder;

/// What one proof keeps during a pass.
pub struct Held {
    front: Front,
    results: Five<Results<G1>, Results<G2>>,
}

/// Partial sums of all chunks of a sum.
struct Results<C: SumCurve> {
    full: DeviceSlice<[C::Affine; 2]>,
    bits: DeviceSlice<[C::Affine; 2]>,
}

impl<C: SumCurve> Results<C> {
    fn bind(sum: &StreamedSum<C>, held: &Arena) -> Self {
        Results {
            full: held.get(sum.full_results),
            bits: held.get(sum.bit_results),
        }
    }

    fn download(&self, stream: &Stream) -> Result<PartialSums<C>> {
        let fetch = |from: DeviceSlice<[C::Affine; 2]>| {
            let mut sums = vec![[C::Affine::default(); 2]; from.len()];
            stream.download(from, &mut sums).map(|()| sums)
        };
        Ok(PartialSums {
            full: fetch(self.full)?,
            bits: fetch(self.bits)?,
        })
    }
}

impl Held {
    /// Loads kernels and tables. `work` is shared with the other proofs of the pass.
    pub fn bind(
        fixed: &Fixed,
        sums: &StreamedSums,
        device: &Device,
        held: &Arena,
        work: &Arena,
    ) -> Result<Self> {
        Ok(Held {
            front: Front::bind(fixed, device, held, work)?,
            results: Five {
                h: Results::bind(&sums.h, held),
                l: Results::bind(&sums.l, held),
                a: Results::bind(&sums.a, held),
                b_g1: Results::bind(&sums.b_g1, held),
                b_g2: Results::bind(&sums.b_g2, held),
            },
        })
    }

    /// Puts a witness where the device can fetch it.
    pub fn stage(&mut self, witness: &PackedWitness) -> Result<()> {
        self.front.stage(witness)
    }

    fn download(&self, stream: &Stream) -> Result<Partials> {
        Ok(Five {
            h: self.results.h.download(stream)?,
            l: self.results.l.download(stream)?,
            a: self.results.a.download(stream)?,
            b_g1: self.results.b_g1.download(stream)?,
            b_g2: self.results.b_g2.download(stream)?,
        })
    }
}

/// One sum, ready to run, and its points.
struct Part<C: SumCurve> {
    bases: HostBases,
    full: FullSum<C>,
    bits: BitSum<C>,
}

impl<C: SumCurve> Part<C> {
    fn bind(sum: &StreamedSum<C>, device: &Device, work: &Arena, bases: HostBases) -> Result<Self> {
        Ok(Part {
            bases,
            full: sum.full.bind(device, work)?,
            bits: sum.bits.bind(device, work)?,
        })
    }
}

/// What passes over the key, one at a time.
pub struct Pass {
    stream: Stream,
    ring: Ring,
    parts: Five<Part<G1>, Part<G2>>,
    l_bits: DeviceBitmap,
    a_bits: DeviceBitmap,
    b_bits: DeviceBitmap,
}

/// Buffers that chunks are copied to in turn, on a stream of their own.
struct Ring {
    stream: Stream,
    slots: [Slot; RING],
}

struct Slot {
    place: DeviceSlice<u8>,
    /// Where what was in it last has been summed.
    drained: Option<Event>,
}

impl Ring {
    /// Queues the copy of `points` points from the place of number `first` in `from`, once the buffer that is
    /// longest in use is free; what is queued on `stream` from here on waits for it.
    fn fill<A: Pod>(
        &mut self,
        stream: &Stream,
        from: &PinnedBuffer,
        first: usize,
        points: usize,
    ) -> Result<DeviceSlice<A>> {
        self.slots.rotate_left(1);
        let slot = &mut self.slots[0];
        if let Some(drained) = slot.drained.take() {
            self.stream.wait(&drained)?;
        }
        let place = slot.place.cast::<A>().slice(0..points);
        self.stream
            .upload_pinned(place, from, first * size_of::<A>())?;
        stream.wait(&self.stream.record()?)?;
        Ok(place)
    }

    /// Marks what was filled last as summed, when `stream` has come here.
    fn drain(&mut self, stream: &Stream) -> Result<()> {
        self.slots[0].drained = Some(stream.record()?);
        Ok(())
    }

    /// Lets the next copies wait for what `stream` has done up to here.
    fn follow(&mut self, stream: &Stream) -> Result<()> {
        self.stream.wait(&stream.record()?)
    }
}

impl Pass {
    /// Reads the key's points into memory of the host; loads kernels and tables.
    pub fn load(
        fixed: &Fixed,
        sums: &StreamedSums,
        device: &Device,
        [resident, work]: [&Arena; 2],
        key: &ProvingKey,
        progress: &dyn Progress,
    ) -> std::result::Result<Self, BackendFailure> {
        let points = sums.sizes().into_iter().map(|(_, size)| size.points as u64);
        progress.begin("load key", points.sum());
        let [l, a, b] = [&fixed.l_query, &fixed.a_query, &fixed.b_query].map(|tail| &tail.bits);
        let natural = PointOrder::Natural;
        let (b_g1, b_g2) = ((key.b_g1(), natural), (key.b_g2(), natural));
        let bases = Five {
            h: HostBases::load(device, &sums.h, None, (key.h(), h_order(key)), progress)?,
            l: HostBases::load(device, &sums.l, Some(l), (key.l(), natural), progress)?,
            a: HostBases::load(device, &sums.a, Some(a), (key.a(), natural), progress)?,
            b_g1: HostBases::load(device, &sums.b_g1, Some(b), b_g1, progress)?,
            b_g2: HostBases::load(device, &sums.b_g2, Some(b), b_g2, progress)?,
        };
        let stream = device.stream()?;
        let mask =
            |slots: BitmapSlots, bits: &QueryBits| slots.upload(resident, &stream, bits.words());
        Ok(Pass {
            l_bits: mask(sums.l_bits, l)?,
            a_bits: mask(sums.a_bits, a)?,
            b_bits: mask(sums.b_bits, b)?,
            ring: Ring {
                stream: device.stream()?,
                slots: sums.ring.map(|slot| Slot {
                    place: work.get(slot),
                    drained: None,
                }),
            },
            parts: Five {
                h: Part::bind(&sums.h, device, work, bases.h)?,
                l: Part::bind(&sums.l, device, work, bases.l)?,
                a: Part::bind(&sums.a, device, work, bases.a)?,
                b_g1: Part::bind(&sums.b_g1, device, work, bases.b_g1)?,
                b_g2: Part::bind(&sums.b_g2, device, work, bases.b_g2)?,
            },
            stream,
        })
    }

    /// The sums of the proofs whose witnesses are staged. The times are those of the pass.
    pub fn run(
        &mut self,
        sums: &StreamedSums,
        shared: &Shared,
        proofs: &[&Held],
        clock: &Clock,
    ) -> Result<Vec<(GroupSums, PhaseTimes)>> {
        let result = self.prove(sums, shared, proofs, clock);
        self.settle(result)
    }

    /// As [`Self::run`] for one proof, stopping after each stage to fetch what it computed.
    pub fn stages(&mut self, sums: &StreamedSums, shared: &Shared, proof: &Held) -> Result<Stages> {
        let result = self.fetch_stages(sums, shared, proof);
        self.settle(result)
    }

    /// Nothing of a pass that failed may run on while the next one begins.
    fn settle<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            let _ = self.ring.stream.synchronize();
            let _ = self.stream.synchronize();
        }
        result
    }

    fn prove(
        &mut self,
        sums: &StreamedSums,
        shared: &Shared,
        proofs: &[&Held],
        clock: &Clock,
    ) -> Result<Vec<(GroupSums, PhaseTimes)>> {
        let mut marks = Marks::begin(&self.stream)?;
        for proof in proofs {
            proof.front.evaluate(&self.stream, shared, &mut marks)?;
            proof.front.transform(&self.stream, &mut marks)?;
        }
        self.sum(sums, shared, proofs, &mut marks)?;
        let partial: Vec<Partials> = proofs
            .iter()
            .map(|proof| proof.download(&self.stream))
            .collect::<Result<_>>()?;
        let times = phase_times(&marks, clock)?;
        clock.follow(&self.stream)?;
        let combine = |partial: &Partials| {
            let mut times = times.clone();
            let sums = times.measure("combine", || partial.combine(&sums.as_five()));
            (sums, times)
        };
        Ok(partial.iter().map(combine).collect())
    }

    fn fetch_stages(
        &mut self,
        sums: &StreamedSums,
        shared: &Shared,
        proof: &Held,
    ) -> Result<Stages> {
        let mut marks = Marks::begin(&self.stream)?;
        let vectors = Vectors::fetch(&proof.front, &self.stream, shared, &mut marks)?;
        self.sum(sums, shared, &[proof], &mut marks)?;
        let partial = proof.download(&self.stream)?;
        Ok(vectors.with(partial.combine(&sums.as_five())))
    }

    /// Queues all sums of all proofs. The ring lies where the transforms worked.
    fn sum(
        &mut self,
        plan: &StreamedSums,
        shared: &Shared,
        proofs: &[&Held],
        marks: &mut Marks,
    ) -> Result<()> {
        let Pass {
            stream,
            ring,
            parts,
            l_bits,
            a_bits,
            b_bits,
        } = self;
        ring.follow(stream)?;
        let mut line = Line {
            stream,
            ring,
            proofs,
        };
        let h: Of<G1> = |proof| &proof.results.h;
        line.full(&plan.h, &parts.h, Front::h_scalars, h)?;
        marks.end("h", stream)?;

        let (scalars, l): (Scalars, Of<G1>) = (|front| front.l_scalars, |proof| &proof.results.l);
        line.tails(&shared.l, scalars)?;
        line.full(&plan.l, &parts.l, scalars, l)?;
        line.bits(&plan.l, &parts.l, *l_bits, l)?;
        marks.end("l", stream)?;

        let (scalars, a): (Scalars, Of<G1>) = (|front| front.a_scalars, |proof| &proof.results.a);
        line.tails(&shared.a, scalars)?;
        line.full(&plan.a, &parts.a, scalars, a)?;
        line.bits(&plan.a, &parts.a, *a_bits, a)?;
        marks.end("a", stream)?;

        let scalars: Scalars = |front| front.b_scalars;
        let b_g1: Of<G1> = |proof| &proof.results.b_g1;
        line.tails(&shared.b, scalars)?;
        line.full(&plan.b_g1, &parts.b_g1, scalars, b_g1)?;
        line.bits(&plan.b_g1, &parts.b_g1, *b_bits, b_g1)?;
        marks.end("b_g1", stream)?;

        let b_g2: Of<G2> = |proof| &proof.results.b_g2;
        line.full(&plan.b_g2, &parts.b_g2, scalars, b_g2)?;
        line.bits(&plan.b_g2, &parts.b_g2, *b_bits, b_g2)?;
        marks.end("b_g2", stream)
    }
}

/// Where a proof keeps the scalars of a sum, and its results.
type Scalars = fn(&Front) -> DeviceSlice<[u32; 8]>;
type Of<C> = fn(&Held) -> &Results<C>;

/// Chunks on their way through the ring, and the sums over them.
struct Line<'a> {
    stream: &'a Stream,
    ring: &'a mut Ring,
    proofs: &'a [&'a Held],
}

impl Line<'_> {
    /// Queues the scalars of a tail of each proof.
    fn tails(&self, tail: &Tail, scalars: Scalars) -> Result<()> {
        for proof in self.proofs {
            let front = &proof.front;
            front.tail_scalars(self.stream, tail, scalars(front))?;
        }
        Ok(())
    }

    /// Queues the sums of the terms with scalars of all proofs, chunk by chunk.
    fn full<C: SumCurve>(
        &mut self,
        plan: &StreamedSum<C>,
        part: &Part<C>,
        scalars: Scalars,
        results: Of<C>,
    ) -> Result<()> {
        let (terms, sums) = (plan.cut.full_terms, part.full.sums());
        for chunk in 0..plan.cut.full_chunks {
            let range = chunk * terms..(chunk + 1) * terms;
            let points = &part.bases.full;
            let bases = self.ring.fill(self.stream, points, range.start, terms)?;
            for proof in self.proofs {
                let terms = FullSumTerms {
                    bases,
                    scalars: scalars(&proof.front).slice(range.clone()),
                    indices: None,
                };
                part.full.run(self.stream, &terms)?;
                let kept = chunk * sums.len()..(chunk + 1) * sums.len();
                self.stream.copy(results(proof).full.slice(kept), sums)?;
            }
            self.ring.drain(self.stream)?;
        }
        Ok(())
    }

    /// Queues the sums of the points that the bits of each proof select, chunk by chunk.
    fn bits<C: SumCurve>(
        &mut self,
        plan: &StreamedSum<C>,
        part: &Part<C>,
        mask: DeviceBitmap,
        results: Of<C>,
    ) -> Result<()> {
        let sums = part.bits.sums();
        for (i, chunk) in plan.cut.bits.iter().enumerate() {
            let (words, start) = (chunk.words.clone(), chunk.points.start);
            let (points, count) = (&part.bases.bits, chunk.points.len());
            let bases = self.ring.fill(self.stream, points, start, count)?;
            for proof in self.proofs {
                let selection = BitSelection {
                    ones: proof.front.witness.ones().slice(words.clone()),
                    mask: Some(Mask {
                        words: mask.words.slice(words.clone()),
                        ranks: mask.ranks.slice(words.clone()),
                    }),
                    // The ranks count from the first bit of all: modulo 2^32, less the chunk's first.
                    first_point: (start as u32).wrapping_neg(),
                };
                part.bits.run(self.stream, &selection, bases)?;
                let kept = i * sums.len()..(i + 1) * sums.len();
                self.stream.copy(results(proof).bits.slice(kept), sums)?;
            }
            self.ring.drain(self.stream)?;
        }
        Ok(())
    }
}
