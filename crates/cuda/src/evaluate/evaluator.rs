//! Runs a program on the device.

use blstrs::Scalar;
use r1cs::Shape;

use super::launch::word;
use super::program::{CallBase, FieldUnit, LongRow, PackedRow, Program, RowUnit, ShortUnit, Slice};
use super::rows::ShortRow;
use super::witness::WitnessBuffers;
use crate::{
    Arena, Device, DeviceSlice, Kernel, Ledger, Lifetime, Params, Pod, Result, Slot, Stream, Topic,
};

macro_rules! pod {
    ($($type:ty),* $(,)?) => {
        $(
            // SAFETY: `repr(C)` over 32-bit words (and four bytes that make one), without padding.
            unsafe impl Pod for $type {}
        )*
    };
}

pod!(
    CallBase, ShortRow, ShortUnit, PackedRow, RowUnit, Slice, FieldUnit, LongRow
);

/// Lists begin at multiples of this within the program's buffer.
const LIST_ALIGNMENT: usize = 256;

/// The buffer of a program.
pub struct EvaluatorPlan {
    program: Program,
    buffer: Slot<u8>,
}

impl EvaluatorPlan {
    /// Names the buffer.
    pub fn new(program: Program, ledger: &mut Ledger) -> Self {
        let mut bytes = Bytes(0);
        program
            .each_list(&mut bytes)
            .unwrap_or_else(|never| match never {});
        let buffer = ledger.reserve("evaluate: program", bytes.0, Lifetime::RESIDENT);
        Self { program, buffer }
    }

    /// Loads the kernels and copies the program to the device.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn bind(&self, device: &Device, arena: &Arena) -> Result<Evaluator> {
        let stream = device.stream()?;
        let mut upload = Upload {
            stream: &stream,
            rest: arena.get(self.buffer),
        };
        let lists = self.program.each_list(&mut upload)?;
        let kernel = |name| device.kernel(Topic::Evaluate, name);
        Ok(Evaluator {
            shape: self.program.shape(),
            lists,
            short: kernel("evaluate_short_kernel")?,
            packed: kernel("evaluate_packed_kernel")?,
            field: kernel("evaluate_field_kernel")?,
            long: kernel("evaluate_long_kernel")?,
        })
    }
}

/// What is done with each list of a program in turn; gives where it is.
trait Visit {
    type Error;
    fn list<T: Pod>(&mut self, list: &[T]) -> Result<DeviceSlice<T>, Self::Error>;
}

fn padded<T>(list: &[T]) -> usize {
    size_of_val(list).next_multiple_of(LIST_ALIGNMENT)
}

/// Counts the bytes.
struct Bytes(usize);

impl Visit for Bytes {
    type Error = std::convert::Infallible;

    fn list<T: Pod>(&mut self, list: &[T]) -> Result<DeviceSlice<T>, Self::Error> {
        self.0 += padded(list);
        Ok(DeviceSlice::empty())
    }
}

/// Copies each list to the front of what is left of the buffer.
struct Upload<'s> {
    stream: &'s Stream,
    rest: DeviceSlice<u8>,
}

impl Visit for Upload<'_> {
    type Error = crate::CudaError;

    fn list<T: Pod>(&mut self, list: &[T]) -> Result<DeviceSlice<T>> {
        let place = self.rest.slice(0..size_of_val(list)).cast();
        self.stream.upload(place, list)?;
        self.rest = self.rest.slice(padded(list)..self.rest.len());
        Ok(place)
    }
}

/// The lists of a program on the device.
#[derive(Clone, Copy)]
struct Lists {
    calls: DeviceSlice<CallBase>,
    arguments: DeviceSlice<u32>,
    coefficients: DeviceSlice<Scalar>,
    table: DeviceSlice<Scalar>,
    short_rows: DeviceSlice<ShortRow>,
    short_units: DeviceSlice<ShortUnit>,
    pieces: DeviceSlice<u32>,
    packed_rows: DeviceSlice<PackedRow>,
    packed_units: DeviceSlice<RowUnit>,
    sources: DeviceSlice<u32>,
    ids: DeviceSlice<u16>,
    slices: DeviceSlice<Slice>,
    slice_rows: DeviceSlice<u32>,
    field_units: DeviceSlice<FieldUnit>,
    long_rows: DeviceSlice<LongRow>,
    long_units: DeviceSlice<RowUnit>,
}

impl Program {
    fn each_list<V: Visit>(&self, visit: &mut V) -> Result<Lists, V::Error> {
        Ok(Lists {
            calls: visit.list(&self.calls)?,
            arguments: visit.list(&self.arguments)?,
            coefficients: visit.list(&self.coefficients)?,
            table: visit.list(&self.table)?,
            short_rows: visit.list(&self.short_rows)?,
            short_units: visit.list(&self.short_units)?,
            pieces: visit.list(&self.pieces)?,
            packed_rows: visit.list(&self.packed_rows)?,
            packed_units: visit.list(&self.packed_units)?,
            sources: visit.list(&self.sources)?,
            ids: visit.list(&self.ids)?,
            slices: visit.list(&self.slices)?,
            slice_rows: visit.list(&self.slice_rows)?,
            field_units: visit.list(&self.field_units)?,
            long_rows: visit.list(&self.long_rows)?,
            long_units: visit.list(&self.long_units)?,
        })
    }
}

/// A part of the rows of A·w and B·w: each of the first four is one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Rows of very many products.
    Long,
    /// Rows of products.
    Field,
    /// Packed sums of bits.
    Packed,
    /// Rows of a few bits, and copies.
    Short,
    /// What follows the circuit's rows.
    Rest,
}

impl Step {
    /// All, in the order of [`Evaluator::run`].
    pub const ALL: [Self; 5] = [
        Self::Long,
        Self::Field,
        Self::Packed,
        Self::Short,
        Self::Rest,
    ];
}

/// A program on the device.
pub struct Evaluator {
    shape: Shape,
    lists: Lists,
    short: Kernel,
    packed: Kernel,
    field: Kernel,
    long: Kernel,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Operands {
    bits: u64,
    values: u64,
    calls: u64,
    arguments: u64,
    coefficients: u64,
    table: u64,
    a: u64,
    b: u64,
}

/// Operands, units, rows and further lists of a kernel.
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelParams<const N: usize> {
    operands: Operands,
    lists: [u64; N],
}

// SAFETY: the layouts of ShortParams, PackedParams, FieldParams and LongParams in
// kernels/evaluate: the operands, then pointers.
unsafe impl<const N: usize> Params for KernelParams<N> {}

impl Evaluator {
    /// Writes A·w and B·w, in Montgomery form and row order, into `a` and `b`, each of the
    /// domain's size: the circuit's rows, then one row per input (A holds the input), then zeros.
    ///
    /// The witness must be uploaded; it need not be unpacked.
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If `a` or `b` is not of the domain's size.
    pub fn run(
        &self,
        stream: &Stream,
        witness: &WitnessBuffers,
        a: DeviceSlice<Scalar>,
        b: DeviceSlice<Scalar>,
    ) -> Result<()> {
        for step in Step::ALL {
            self.run_step(step, stream, witness, a, b)?;
        }
        Ok(())
    }

    /// One step of [`Self::run`], to time it. The steps write different elements, so they may
    /// run in any order.
    ///
    /// # Errors
    /// As for [`Self::run`].
    ///
    /// # Panics
    /// As for [`Self::run`].
    pub fn run_step(
        &self,
        step: Step,
        stream: &Stream,
        witness: &WitnessBuffers,
        a: DeviceSlice<Scalar>,
        b: DeviceSlice<Scalar>,
    ) -> Result<()> {
        let n = self.shape.domain();
        assert_eq!([a.len(), b.len()], [n; 2], "vectors of the domain's size");
        let operands = self.operands(witness, a, b);
        let lists = &self.lists;
        match step {
            Step::Long => {
                let params = KernelParams {
                    operands,
                    lists: [
                        lists.long_units.ptr(),
                        lists.long_rows.ptr(),
                        lists.sources.ptr(),
                        lists.ids.ptr(),
                    ],
                };
                let units = word(lists.long_units.len());
                stream.launch(&self.long, units, 256, 0, &params)
            }
            Step::Field => {
                let params = KernelParams {
                    operands,
                    lists: [
                        lists.field_units.ptr(),
                        lists.slices.ptr(),
                        lists.slice_rows.ptr(),
                        lists.sources.ptr(),
                        lists.ids.ptr(),
                    ],
                };
                let units = word(lists.field_units.len());
                stream.launch(&self.field, units, 128, 0, &params)
            }
            Step::Packed => {
                let params = KernelParams {
                    operands,
                    lists: [
                        lists.packed_units.ptr(),
                        lists.packed_rows.ptr(),
                        lists.pieces.ptr(),
                    ],
                };
                let units = word(lists.packed_units.len());
                stream.launch(&self.packed, units, 256, 0, &params)
            }
            Step::Short => {
                let params = KernelParams {
                    operands,
                    lists: [lists.short_units.ptr(), lists.short_rows.ptr()],
                };
                let units = word(lists.short_units.len());
                stream.launch(&self.short, units, 256, 0, &params)
            }
            Step::Rest => {
                let rows = self.shape.constraints;
                let appended = rows + self.shape.inputs;
                stream.copy(a.slice(rows..appended), witness.inputs())?;
                stream.zero(a.slice(appended..n))?;
                stream.zero(b.slice(rows..n))
            }
        }
    }

    fn operands(
        &self,
        witness: &WitnessBuffers,
        a: DeviceSlice<Scalar>,
        b: DeviceSlice<Scalar>,
    ) -> Operands {
        Operands {
            bits: witness.bits().ptr(),
            values: witness.values().ptr(),
            calls: self.lists.calls.ptr(),
            arguments: self.lists.arguments.ptr(),
            coefficients: self.lists.coefficients.ptr(),
            table: self.lists.table.ptr(),
            a: a.ptr(),
            b: b.ptr(),
        }
    }
}
