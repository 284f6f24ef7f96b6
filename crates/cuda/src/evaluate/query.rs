//! What a query takes from a witness: bits as they are, the rest as scalars in a list.

use r1cs::{Bitmap, CompiledCircuit};

use super::bitmap::{BitmapSlots, DeviceBitmap, ranks};
use super::launch::{blocks, word};
use super::witness::WitnessBuffers;
use crate::{
    Arena, Device, DeviceSlice, Kernel, Ledger, Lifetime, Params, Result, Slot, Stream, Topic,
};

/// A section of a parameter file that is summed with the witness's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    /// Every aux variable.
    L,
    /// Every input and aux variable: the L query of a prepared key.
    PreparedL,
    /// Every input and the aux variables in A.
    A,
    /// The inputs and aux variables in B; in G1 and in G2.
    B,
}

impl Query {
    fn name(self) -> &'static str {
        match self {
            Query::L | Query::PreparedL => "l",
            Query::A => "a",
            Query::B => "b",
        }
    }

    /// The aux variables that have a point; `None`: all.
    fn present(self, circuit: &CompiledCircuit) -> Option<&Bitmap> {
        match self {
            Query::L | Query::PreparedL => None,
            Query::A => Some(&circuit.density().a_aux),
            Query::B => Some(&circuit.density().b_aux),
        }
    }

    /// The inputs that have a point.
    fn inputs(self, circuit: &CompiledCircuit) -> Vec<u32> {
        match self {
            Query::L => Vec::new(),
            Query::PreparedL | Query::A => (0..word(circuit.shape().inputs)).collect(),
            Query::B => circuit.density().b_inputs.ones().map(word).collect(),
        }
    }
}

/// The constant lists of a query.
///
/// A query's points are those of its inputs, then those of its aux variables. Terms whose value is
/// a bit are added as they are: the points of `ones` and the query's aux variables. The others are
/// its *tail*: the inputs, then the aux variables that are no bits.
pub struct QueryPlan {
    query: Query,
    inputs: Vec<u32>,
    present: Option<Bitmap>,
    tail_ranks: Vec<u32>,
    points: usize,
    terms: usize,
    aux: usize,
    first_dense: usize,
    input_slot: Slot<u32>,
    present_slots: Option<BitmapSlots>,
    rank_slot: Slot<u32>,
}

impl QueryPlan {
    /// Counts the tail and names the buffers.
    pub fn new(query: Query, circuit: &CompiledCircuit, ledger: &mut Ledger) -> Self {
        let shape = circuit.shape();
        let inputs = query.inputs(circuit);
        let present = query.present(circuit);
        let is_bit = circuit.layout().bitmap().words();
        let tail = is_bit.iter().enumerate().map(|(k, is_bit)| {
            let all = match shape.aux - k * 64 {
                left @ 0..64 => (1 << left) - 1,
                _ => u64::MAX,
            };
            present.map_or(all, |present| present.words()[k]) & !is_bit
        });
        let dense: usize = tail.clone().map(|word| word.count_ones() as usize).sum();
        let name = |what: &str| format!("query {}: {what}", query.name());
        let input_slot = ledger.reserve(name("inputs"), inputs.len(), Lifetime::RESIDENT);
        let rank_slot = ledger.reserve(name("tail ranks"), is_bit.len(), Lifetime::RESIDENT);
        let slots = |_| BitmapSlots::reserve(ledger, &name("present"), is_bit.len());
        Self {
            query,
            terms: inputs.len() + dense,
            points: inputs.len() + present.map_or(shape.aux, Bitmap::count_ones),
            tail_ranks: ranks(tail),
            inputs,
            present_slots: present.map(slots),
            present: present.cloned(),
            aux: shape.aux,
            first_dense: shape.inputs,
            input_slot,
            rank_slot,
        }
    }

    /// Number of points in the parameter file's section.
    pub fn points(&self) -> usize {
        self.points
    }

    /// Number of terms of the tail.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// Which query it is.
    pub fn query(&self) -> Query {
        self.query
    }

    /// Loads the kernel and copies the lists to the device.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn bind(&self, device: &Device, arena: &Arena) -> Result<QueryTail> {
        let stream = device.stream()?;
        let upload = |slot: Slot<u32>, list: &[u32]| {
            let place = arena.get(slot);
            stream.upload(place, list).map(|()| place)
        };
        let present = match (&self.present_slots, &self.present) {
            (Some(slots), Some(present)) => Some(slots.upload(arena, &stream, present.words())?),
            _ => None,
        };
        Ok(QueryTail {
            kernel: device.kernel(Topic::Evaluate, "query_tail_kernel")?,
            inputs: upload(self.input_slot, &self.inputs)?,
            tail_ranks: upload(self.rank_slot, &self.tail_ranks)?,
            present,
            terms: self.terms,
            aux: self.aux,
            first_dense: self.first_dense,
        })
    }
}

/// A query's lists on the device.
pub struct QueryTail {
    kernel: Kernel,
    inputs: DeviceSlice<u32>,
    present: Option<DeviceBitmap>,
    tail_ranks: DeviceSlice<u32>,
    terms: usize,
    aux: usize,
    first_dense: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct QueryTailParams {
    values: u64,
    inputs: u64,
    present: u64,
    present_ranks: u64,
    is_bit: u64,
    is_bit_ranks: u64,
    tail_ranks: u64,
    scalars: u64,
    points: u64,
    input_terms: u32,
    input_blocks: u32,
    aux: u32,
    first_dense: u32,
}

// SAFETY: the layout of QueryTailParams in kernels/evaluate/query.cu.
unsafe impl Params for QueryTailParams {}

impl QueryTail {
    /// The aux variables that have a point; `None`: all, so variable j has point j.
    ///
    /// The point of aux variable j is number (inputs with a point) + (present ones before j).
    pub fn present(&self) -> Option<DeviceBitmap> {
        self.present
    }

    /// Inputs with a point: the first points of the query.
    pub fn input_points(&self) -> usize {
        self.inputs.len()
    }

    /// Number of terms of the tail.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// Writes the tail's scalars, canonical and 8 words each: inputs first, then the aux variables
    /// that are no bits.
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If `scalars` has not 8 words per term.
    pub fn scalars(
        &self,
        stream: &Stream,
        witness: &WitnessBuffers,
        scalars: DeviceSlice<u32>,
    ) -> Result<()> {
        assert_eq!(scalars.len(), 8 * self.terms, "8 words per term");
        self.run(
            stream,
            witness.is_bit(),
            witness.values().ptr(),
            scalars.ptr(),
            0,
        )
    }

    /// Writes the index of each term's point, in the same order. They are the same for every
    /// witness of the circuit.
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If `points` has not one word per term.
    pub fn points(
        &self,
        stream: &Stream,
        witness: &WitnessBuffers,
        points: DeviceSlice<u32>,
    ) -> Result<()> {
        assert_eq!(points.len(), self.terms, "one word per term");
        self.run(stream, witness.is_bit(), 0, 0, points.ptr())
    }

    fn run(
        &self,
        stream: &Stream,
        is_bit: DeviceBitmap,
        values: u64,
        scalars: u64,
        points: u64,
    ) -> Result<()> {
        let input_blocks = blocks(self.inputs.len(), 256);
        let params = QueryTailParams {
            values,
            inputs: self.inputs.ptr(),
            present: self.present.map_or(0, |present| present.words.ptr()),
            present_ranks: self.present.map_or(0, |present| present.ranks.ptr()),
            is_bit: is_bit.words.ptr(),
            is_bit_ranks: is_bit.ranks.ptr(),
            tail_ranks: self.tail_ranks.ptr(),
            scalars,
            points,
            input_terms: word(self.inputs.len()),
            input_blocks,
            aux: word(self.aux),
            first_dense: word(self.first_dense),
        };
        let blocks = input_blocks + blocks(self.tail_ranks.len(), 256);
        stream.launch(&self.kernel, blocks, 256, 0, &params)
    }
}
