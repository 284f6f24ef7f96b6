//! A packed witness on the device.

use blstrs::Scalar;
use r1cs::{Bitmap, CompiledCircuit, PackedWitness};

use super::bitmap::{BitmapSlots, DeviceBitmap};
use super::launch::{blocks, word};
use crate::{
    Arena, Device, DeviceSlice, Kernel, Ledger, Params, Phase, Result, Slot, Stream, Topic,
};

/// The buffers of one witness of a circuit.
#[derive(Debug)]
pub struct WitnessPlan {
    is_bit: Bitmap,
    inputs: usize,
    bits: Slot<u64>,
    values: Slot<Scalar>,
    ones: Slot<u64>,
    is_bit_slots: BitmapSlots,
}

impl WitnessPlan {
    /// Names the buffers.
    pub fn new(circuit: &CompiledCircuit, ledger: &mut Ledger) -> Self {
        let (shape, layout) = (circuit.shape(), circuit.layout());
        let words = shape.aux.div_ceil(64);
        Self {
            is_bit: layout.bitmap().clone(),
            inputs: shape.inputs,
            bits: ledger.reserve(
                "witness: packed bits",
                layout.bit_count().div_ceil(64),
                Phase::Upload.to(Phase::Evaluate),
            ),
            values: ledger.reserve(
                "witness: values",
                shape.inputs + layout.dense_count(),
                Phase::Upload.to(Phase::SumBG2),
            ),
            ones: ledger.reserve("witness: ones", words, Phase::Unpack.to(Phase::SumBG2)),
            is_bit_slots: BitmapSlots::reserve(ledger, "witness: is_bit", words),
        }
    }

    /// Bytes of host memory that a witness is fetched from.
    pub fn staged_bytes(&self) -> u64 {
        (self.bits.len() * size_of::<u64>() + self.values.len() * size_of::<Scalar>()) as u64
    }

    /// Loads the kernel and the circuit's bitmap.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn bind(&self, device: &Device, arena: &Arena) -> Result<WitnessBuffers> {
        let stream = device.stream()?;
        Ok(WitnessBuffers {
            kernel: device.kernel(Topic::Evaluate, "unpack_bits_kernel")?,
            inputs: self.inputs,
            bits: arena.get(self.bits),
            values: arena.get(self.values),
            ones: arena.get(self.ones),
            is_bit: self
                .is_bit_slots
                .upload(arena, &stream, self.is_bit.words())?,
        })
    }
}

/// Where one witness is on the device.
#[derive(Debug)]
pub struct WitnessBuffers {
    kernel: Kernel,
    inputs: usize,
    bits: DeviceSlice<u64>,
    values: DeviceSlice<Scalar>,
    ones: DeviceSlice<u64>,
    is_bit: DeviceBitmap,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct UnpackParams {
    packed: u64,
    is_bit: u64,
    ranks: u64,
    ones: u64,
    words: u32,
    packed_words: u32,
}

// SAFETY: the layout of UnpackParams in kernels/evaluate/unpack.cu.
unsafe impl Params for UnpackParams {}

impl WitnessBuffers {
    /// The packed bits, in their own order.
    pub fn bits(&self) -> DeviceSlice<u64> {
        self.bits
    }

    /// The inputs, the constant one first, then the dense part. Montgomery.
    pub fn values(&self) -> DeviceSlice<Scalar> {
        self.values
    }

    /// The inputs.
    pub fn inputs(&self) -> DeviceSlice<Scalar> {
        self.values.slice(0..self.inputs)
    }

    /// The dense part: aux variable j that is no bit is element j − (bits before j).
    pub fn dense(&self) -> DeviceSlice<Scalar> {
        self.values.slice(self.inputs..self.values.len())
    }

    /// Bit j is set where aux variable j is a bit of value 1; after [`Self::unpack`].
    pub fn ones(&self) -> DeviceSlice<u64> {
        self.ones
    }

    /// Which aux variables are bits.
    pub fn is_bit(&self) -> DeviceBitmap {
        self.is_bit
    }

    /// Copies a witness of the circuit to the device; waits until it is there.
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If the witness is of a circuit of other lengths.
    pub fn upload(&self, stream: &Stream, witness: &PackedWitness) -> Result<()> {
        stream.upload(self.bits, witness.bits())?;
        stream.upload(self.inputs(), witness.inputs())?;
        stream.upload(self.dense(), witness.dense())
    }

    /// Makes [`Self::ones`] from the packed bits.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn unpack(&self, stream: &Stream) -> Result<()> {
        let params = UnpackParams {
            packed: self.bits.ptr(),
            is_bit: self.is_bit.words.ptr(),
            ranks: self.is_bit.ranks.ptr(),
            ones: self.ones.ptr(),
            words: word(self.ones.len()),
            packed_words: word(self.bits.len()),
        };
        let blocks = blocks(self.ones.len(), 256);
        stream.launch(&self.kernel, blocks, 256, 0, &params)
    }
}
