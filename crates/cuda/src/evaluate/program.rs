//! A compiled circuit as a program for the device.
//!
//! Every row of A and of B is in exactly one of four lists, by how it is computed ([`Row`]).
//! Rows stay as the templates have them, once; a *unit* of work says which rows of a template
//! a block of threads computes for which calls. So the program is as small as the compiled
//! circuit, stays in the device's L2 cache, and each row is decoded once for many calls.
//!
//! What a term reads is resolved here: bits by their index in the witness's packed bits, other
//! variables by their index in the *values*, inputs first, then the dense part. Own
//! variables of a call are at the call's first index plus a constant of the template; its
//! arguments are in a list.

use r1cs::{Call, CompiledCircuit, Fr, Layout, Matrix, Place, Shape, Template, Variable};
use rayon::prelude::*;

use super::ProgramError;
use super::digits::Digit;
use super::rows::{Classifier, Piece, Row, SHORT_LIMIT, ShortRow, Term, dictionary_digits};
use super::source::Source;

/// Rows of a template that a block of short rows covers: one per thread.
pub const TILE: usize = 256;

/// Rows of a slice: one per lane of a warp.
pub const SLICE: usize = 32;

/// Slices of a field unit: one per warp of its block.
pub const SLICES_PER_UNIT: usize = 4;

/// Rows of more terms get a warp each.
pub const LONG_TERMS: usize = 256;

/// Calls that a unit of packed or long rows covers at most: a warp takes every eighth.
pub const CALLS_PER_ROW: usize = 32;

/// Most calls of a unit of short rows, among which the cost of decoding the rows is shared.
const CALLS_PER_TILE: usize = 16;

/// Units of short rows wanted: some 60 blocks for each of 132 multiprocessors, 8 of which
/// run at a time, so that the last ones to end leave little idle.
const TILE_UNITS: usize = 8192;

/// No coefficient.
pub const NONE: u32 = u32::MAX;

/// Where a call's variables are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct CallBase {
    /// First row.
    pub row: u32,
    /// First own bit among the packed bits.
    pub bit: u32,
    /// First own variable that is no bit, among the values.
    pub value: u32,
    /// First own input, among the values.
    pub input: u32,
    /// First argument.
    pub argument: u32,
    /// Fills up to two 16-byte loads.
    pub unused: [u32; 3],
}

/// A tile of rows of one matrix of a template, for some calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct ShortUnit {
    /// First row's index in the list of short rows.
    pub code: u32,
    /// First row, within the template.
    pub row: u32,
    /// First call.
    pub first_call: u32,
    /// Number of rows − 1 in bits 7 to 0, 1 for B in bit 8, number of calls from bit 16 on.
    pub shape: u32,
}

/// A packed row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct PackedRow {
    /// First of `steps` × 32 pieces. Lane l of a warp adds those at l, l + 32, …, all of limb
    /// l / 4 of the sum.
    pub pieces: u32,
    /// Pieces of each lane.
    pub steps: u32,
    /// Coefficient of the constant one, or [`NONE`].
    pub constant: u32,
    /// Row within the template; bit 31 for B.
    pub place: u32,
}

/// A row with many terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct LongRow {
    /// First term.
    pub terms: u32,
    /// Number of terms.
    pub count: u32,
    /// Row within the template; bit 31 for B.
    pub place: u32,
    /// Fills up to a 16-byte load.
    pub unused: u32,
}

/// One packed or long row for some calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct RowUnit {
    /// Index in the list of such rows.
    pub row: u32,
    /// First call.
    pub first_call: u32,
    /// Number of calls, at most [`CALLS_PER_ROW`].
    pub calls: u32,
    /// Fills up to a 16-byte load.
    pub unused: u32,
}

/// Up to 32 rows with field elements, about equally long. Term s of lane l is at
/// `terms` + s·`lanes` + l.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct Slice {
    /// First term.
    pub terms: u32,
    /// Terms of each lane; short ones end with [`Source::NOTHING`].
    pub steps: u32,
    /// Number of rows; bit 31 for B.
    pub lanes: u32,
    /// First row's index in the list of the slices' rows.
    pub rows: u32,
}

/// Consecutive slices for one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct FieldUnit {
    /// First slice.
    pub slice: u32,
    /// Number of slices, at most [`SLICES_PER_UNIT`].
    pub slices: u32,
    /// The call.
    pub call: u32,
    /// Fills up to a 16-byte load.
    pub unused: u32,
}

/// The program; see the module's documentation. Vectors are as the device has them.
pub struct Program {
    pub(super) shape: Shape,
    pub(super) bit_count: usize,
    pub(super) value_count: usize,
    /// Grouped by template.
    pub(super) calls: Vec<CallBase>,
    /// Index of a packed bit or of a value, as the template says.
    pub(super) arguments: Vec<u32>,
    /// The circuit's dictionary.
    pub(super) coefficients: Vec<Fr>,
    /// −31 to 31 as field elements.
    pub(super) table: Vec<Fr>,
    pub(super) short_rows: Vec<ShortRow>,
    pub(super) short_units: Vec<ShortUnit>,
    pub(super) pieces: Vec<u32>,
    pub(super) packed_rows: Vec<PackedRow>,
    pub(super) packed_units: Vec<RowUnit>,
    /// Sources of the terms of slices and long rows.
    pub(super) sources: Vec<u32>,
    /// Coefficient ids of the same.
    pub(super) ids: Vec<u16>,
    pub(super) slices: Vec<Slice>,
    /// Row within the template of each lane of each slice.
    pub(super) slice_rows: Vec<u32>,
    pub(super) field_units: Vec<FieldUnit>,
    pub(super) long_rows: Vec<LongRow>,
    pub(super) long_units: Vec<RowUnit>,
}

impl Program {
    /// Translates a circuit.
    ///
    /// # Errors
    /// [`ProgramError::TooLarge`] for a circuit that no Filecoin proof comes near.
    pub fn new(circuit: &CompiledCircuit) -> Result<Self, ProgramError> {
        let by_template = calls_by_template(circuit);
        let inputs = index("number of inputs", circuit.shape().inputs)?;
        let ordered = || by_template.iter().flatten();
        let digits = dictionary_digits(circuit.dictionary());
        let mut program = Self {
            shape: circuit.shape(),
            bit_count: circuit.layout().bit_count(),
            value_count: circuit.shape().inputs + circuit.layout().dense_count(),
            calls: ordered().map(|call| base(call, inputs)).collect(),
            arguments: resolve_arguments(circuit, inputs),
            coefficients: circuit.dictionary().values().to_vec(),
            table: (-SHORT_LIMIT..=SHORT_LIMIT).map(integer).collect(),
            short_rows: Vec::new(),
            short_units: Vec::new(),
            pieces: Vec::new(),
            packed_rows: Vec::new(),
            packed_units: Vec::new(),
            sources: Vec::new(),
            ids: Vec::new(),
            slices: Vec::new(),
            slice_rows: Vec::new(),
            field_units: Vec::new(),
            long_rows: Vec::new(),
            long_units: Vec::new(),
        };
        let calls_per_tile = calls_per_tile(circuit, &by_template);
        let mut first_call = 0;
        for (template, calls) in circuit.templates().iter().zip(&by_template) {
            let classifier = Classifier::new(circuit.dictionary(), &digits, template)?;
            let calls = Calls {
                first: first_call,
                count: calls.len(),
            };
            first_call += calls.count;
            program.add_template(template, &classifier, calls, calls_per_tile)?;
        }
        Ok(program)
    }

    /// Rows, inputs and aux variables of the circuit.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Bits of a packed witness.
    pub fn bit_count(&self) -> usize {
        self.bit_count
    }

    /// Field elements of a witness: inputs, then the dense part.
    pub fn value_count(&self) -> usize {
        self.value_count
    }

    fn add_template(
        &mut self,
        template: &Template,
        classifier: &Classifier<'_>,
        calls: Calls,
        calls_per_tile: usize,
    ) -> Result<(), ProgramError> {
        let [packed, slices, long] = [
            &self.packed_rows.len(),
            &self.slices.len(),
            &self.long_rows.len(),
        ]
        .map(|&n| n);
        for matrix in [Matrix::A, Matrix::B] {
            let first_code = self.short_rows.len();
            let mut field = Vec::new();
            for row in 0..template.rows() {
                let short = match classifier.row(template.matrix(matrix), row) {
                    Row::Short(short) => short,
                    Row::Packed { pieces, constant } => {
                        let place = place(matrix, row)?;
                        self.add_packed(&pieces, constant, place)?;
                        ShortRow::ELSEWHERE
                    }
                    Row::Field(terms) if terms.len() > LONG_TERMS => {
                        self.add_long(&terms, place(matrix, row)?)?;
                        ShortRow::ELSEWHERE
                    }
                    Row::Field(terms) => {
                        field.push((index("rows of a template", row)?, terms));
                        ShortRow::ELSEWHERE
                    }
                };
                self.short_rows.push(short);
            }
            self.add_tiles(matrix, first_code, calls, calls_per_tile)?;
            self.add_slices(matrix, field)?;
        }
        let [first_call, end] = [calls.first, calls.first + calls.count];
        for call in first_call..end {
            for slice in (slices..self.slices.len()).step_by(SLICES_PER_UNIT) {
                let count = SLICES_PER_UNIT.min(self.slices.len() - slice);
                self.field_units.push(FieldUnit {
                    slice: index("slices", slice)?,
                    slices: index("slices", count)?,
                    call: index("calls", call)?,
                    unused: 0,
                });
            }
        }
        row_units(
            &mut self.packed_units,
            packed..self.packed_rows.len(),
            calls,
        )?;
        row_units(&mut self.long_units, long..self.long_rows.len(), calls)
    }

    /// Units of the short rows from `first_code` on, which are all rows of one matrix.
    fn add_tiles(
        &mut self,
        matrix: Matrix,
        first_code: usize,
        calls: Calls,
        calls_per_tile: usize,
    ) -> Result<(), ProgramError> {
        let mut tiles = Vec::new();
        for (tile, rows) in self.short_rows[first_code..].chunks(TILE).enumerate() {
            if rows.iter().any(|row| *row != ShortRow::ELSEWHERE) {
                tiles.push((tile * TILE, rows.len()));
            }
        }
        for (first_call, calls) in calls.groups(calls_per_tile) {
            for &(row, rows) in &tiles {
                self.short_units.push(ShortUnit {
                    code: index("short rows", first_code + row)?,
                    row: index("rows of a template", row)?,
                    first_call: index("calls", first_call)?,
                    // At most 256 rows and CALLS_PER_TILE calls.
                    shape: (rows - 1) as u32 | (matrix as u32) << 8 | (calls as u32) << 16,
                });
            }
        }
        Ok(())
    }

    fn add_packed(
        &mut self,
        pieces: &[(Source, Digit)],
        constant: Option<u16>,
        place: u32,
    ) -> Result<(), ProgramError> {
        let mut by_limb: [Vec<u32>; 8] = Default::default();
        for &(source, digit) in pieces {
            let limb = digit.exponent as usize / 32;
            by_limb[limb].push(Piece::new(source, digit).word());
        }
        let longest = by_limb.iter().map(Vec::len).max().unwrap_or(0);
        let steps = longest.div_ceil(4);
        self.packed_rows.push(PackedRow {
            pieces: index("pieces of packed rows", self.pieces.len())?,
            steps: index("pieces of packed rows", steps)?,
            constant: constant.map_or(NONE, u32::from),
            place,
        });
        for step in 0..steps {
            for lane in 0..32 {
                let piece = by_limb[lane / 4].get(step * 4 + lane % 4);
                self.pieces
                    .push(piece.copied().unwrap_or(Piece::NOTHING.word()));
            }
        }
        Ok(())
    }

    fn add_long(&mut self, terms: &[Term], place: u32) -> Result<(), ProgramError> {
        self.long_rows.push(LongRow {
            terms: index("terms", self.sources.len())?,
            count: index("terms", terms.len())?,
            place,
            unused: 0,
        });
        for &term in terms {
            self.push_term(term);
        }
        Ok(())
    }

    /// Cuts the rows with field elements into slices, the longest rows first.
    fn add_slices(
        &mut self,
        matrix: Matrix,
        mut rows: Vec<(u32, Vec<Term>)>,
    ) -> Result<(), ProgramError> {
        rows.sort_by_key(|(_, terms)| std::cmp::Reverse(terms.len()));
        for lanes in rows.chunks(SLICE) {
            let steps = lanes[0].1.len();
            self.slices.push(Slice {
                terms: index("terms", self.sources.len())?,
                steps: index("terms", steps)?,
                lanes: place(matrix, lanes.len())?,
                rows: index("rows of slices", self.slice_rows.len())?,
            });
            self.slice_rows.extend(lanes.iter().map(|(row, _)| row));
            for step in 0..steps {
                for (_, terms) in lanes {
                    let nothing = (Source::NOTHING, 0);
                    self.push_term(terms.get(step).copied().unwrap_or(nothing));
                }
            }
        }
        Ok(())
    }

    fn push_term(&mut self, (source, id): Term) {
        self.sources.push(source.word());
        self.ids.push(id);
    }
}

fn integer(value: i64) -> Fr {
    let magnitude = Fr::from(value.unsigned_abs());
    if value < 0 { -magnitude } else { magnitude }
}

/// Calls of one template, by their place in [`Program::calls`].
#[derive(Clone, Copy)]
struct Calls {
    first: usize,
    count: usize,
}

impl Calls {
    /// First call and number of calls of groups of at most `size`.
    fn groups(self, size: usize) -> impl Iterator<Item = (usize, usize)> {
        let groups = (0..self.count).step_by(size);
        groups.map(move |k| (self.first + k, size.min(self.count - k)))
    }
}

fn row_units(
    units: &mut Vec<RowUnit>,
    rows: std::ops::Range<usize>,
    calls: Calls,
) -> Result<(), ProgramError> {
    for row in rows {
        for (first_call, calls) in calls.groups(CALLS_PER_ROW) {
            units.push(RowUnit {
                row: index("rows", row)?,
                first_call: index("calls", first_call)?,
                calls: index("calls", calls)?,
                unused: 0,
            });
        }
    }
    Ok(())
}

fn calls_by_template(circuit: &CompiledCircuit) -> Vec<Vec<Call>> {
    let mut by_template = vec![Vec::new(); circuit.templates().len()];
    for call in circuit.calls() {
        by_template[call.template as usize].push(*call);
    }
    by_template
}

/// As many as leave about [`TILE_UNITS`] units.
fn calls_per_tile(circuit: &CompiledCircuit, by_template: &[Vec<Call>]) -> usize {
    let tiles = circuit.templates().iter().zip(by_template);
    let pairs: usize = tiles
        .map(|(template, calls)| 2 * template.rows().div_ceil(TILE) * calls.len())
        .sum();
    (pairs / TILE_UNITS).clamp(1, CALLS_PER_TILE)
}

/// Inputs and aux variables are at most 2^28 each, so their sum fits.
fn base(call: &Call, inputs: u32) -> CallBase {
    CallBase {
        row: call.row,
        bit: call.bit,
        value: inputs + call.dense,
        input: call.input,
        argument: call.argument,
        unused: [0; 3],
    }
}

/// The packed bit or the value of every argument of every call, in the circuit's order.
fn resolve_arguments(circuit: &CompiledCircuit, inputs: u32) -> Vec<u32> {
    let mut arguments = vec![0; circuit.statistics().arguments];
    let mut rest = arguments.as_mut_slice();
    let mut pieces = Vec::with_capacity(circuit.calls().len());
    for call in circuit.calls() {
        let (piece, after) = rest.split_at_mut(circuit.template(call).arguments());
        pieces.push((call, piece));
        rest = after;
    }
    pieces.into_par_iter().for_each(|(call, piece)| {
        for (out, variable) in piece.iter_mut().zip(circuit.arguments(call)) {
            *out = resolve(circuit.layout(), variable, inputs);
        }
    });
    arguments
}

fn resolve(layout: &Layout, variable: Variable, inputs: u32) -> u32 {
    match variable {
        Variable::Input(input) => input,
        Variable::Aux(aux) => match layout.place(aux) {
            Place::Bit(bit) => bit,
            Place::Dense(dense) => inputs + dense,
        },
    }
}

/// A number below 2^31 with bit 31 for B.
fn place(matrix: Matrix, number: usize) -> Result<u32, ProgramError> {
    let number = index("rows of a template", number)?;
    // Circuits have at most 2^28 rows.
    Ok(number | (matrix as u32) << 31)
}

fn index(what: &'static str, value: usize) -> Result<u32, ProgramError> {
    u32::try_from(value).map_err(|_| ProgramError::TooLarge {
        what,
        value: value as u64,
        limit: u64::from(u32::MAX),
    })
}
