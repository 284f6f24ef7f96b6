//! Sorts a template's rows by how the device computes them.

use r1cs::{Dictionary, Template, TermMatrix};

use super::ProgramError;
use super::digits::{Digit, Total, signed_digits};
use super::source::{Kind, Source, of_slots};

/// Bit terms that a short row has room for.
pub const SHORT_TERMS: usize = 3;

/// Short rows lie within ±31; the device has a table of these values as field elements.
pub const SHORT_LIMIT: i64 = 31;

/// In place of a short row's constant: the row is the value that term 0 names.
pub const COPY: i8 = -128;

/// In place of a short row's constant: another kernel writes the row.
pub const ELSEWHERE: i8 = -127;

/// A row of up to three bits with small coefficients, or the copy of one value. The device
/// reads 16 bytes: three sources, then constant and coefficients as one word, constant lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct ShortRow {
    /// [`Source`] words; those with coefficient 0 are [`Source::NOTHING`].
    pub terms: [u32; SHORT_TERMS],
    /// Constant, or [`COPY`], or [`ELSEWHERE`].
    pub constant: i8,
    /// Coefficient of each term.
    pub coefficients: [i8; SHORT_TERMS],
}

impl ShortRow {
    /// A row that another kernel writes.
    pub const ELSEWHERE: Self = Self {
        terms: [u32::MAX; SHORT_TERMS],
        constant: ELSEWHERE,
        coefficients: [0; SHORT_TERMS],
    };
}

/// A term: where its value is and its coefficient's id.
pub type Term = (Source, u16);

/// How the device computes a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// By a thread, as a small integer or a copy.
    Short(ShortRow),
    /// By a warp, as an integer of 256 bits: a packed sum of bits.
    Packed {
        /// ±2^exponent times a bit.
        pieces: Vec<(Source, Digit)>,
        /// Coefficient of the constant one.
        constant: Option<u16>,
    },
    /// Products of field elements.
    Field(Vec<Term>),
}

/// What sorting a template's rows takes.
pub struct Classifier<'c> {
    dictionary: &'c Dictionary,
    /// Per coefficient its digits, if they are few.
    digits: &'c [Option<Vec<Digit>>],
    sources: Vec<Source>,
}

/// [`signed_digits`] of every coefficient.
pub fn dictionary_digits(dictionary: &Dictionary) -> Vec<Option<Vec<Digit>>> {
    dictionary.values().iter().map(signed_digits).collect()
}

impl<'c> Classifier<'c> {
    /// # Errors
    /// A template with more variables than a [`Source`] can name.
    pub fn new(
        dictionary: &'c Dictionary,
        digits: &'c [Option<Vec<Digit>>],
        template: &Template,
    ) -> Result<Self, ProgramError> {
        Ok(Self {
            dictionary,
            digits,
            sources: of_slots(template)?,
        })
    }

    /// How row `row` is computed.
    pub fn row(&self, matrix: &TermMatrix, row: usize) -> Row {
        let (slots, ids) = matrix.row(row);
        let terms = || {
            slots
                .iter()
                .zip(ids)
                .map(|(&slot, &id)| (self.sources[slot as usize], id))
        };
        if let Some(short) = self.short(terms()) {
            return Row::Short(short);
        }
        let terms: Vec<Term> = terms().collect();
        self.packed(&terms).unwrap_or(Row::Field(terms))
    }

    fn short(&self, terms: impl ExactSizeIterator<Item = Term>) -> Option<ShortRow> {
        if terms.len() > SHORT_TERMS + 1 {
            return None;
        }
        let alone = terms.len() == 1;
        let mut row = ShortRow {
            constant: 0,
            ..ShortRow::ELSEWHERE
        };
        let (mut used, mut constant, mut magnitude) = (0, 0, 0);
        for (source, id) in terms {
            let coefficient = self.dictionary.small(id)?;
            if source.kind() == Kind::One {
                constant += coefficient;
            } else if source.is_bit() {
                *row.terms.get_mut(used)? = source.word();
                row.coefficients[used] = i8::try_from(coefficient).ok()?;
                used += 1;
            } else {
                row.terms[0] = source.word();
                row.constant = COPY;
                return (alone && coefficient == 1).then_some(row);
            }
            magnitude += coefficient.abs();
        }
        row.constant = i8::try_from(constant).ok()?;
        (magnitude <= SHORT_LIMIT).then_some(row)
    }

    /// Sums of positive and of negative digits stay below 2^256 each, so the difference and its
    /// sign fit 8 limbs and a borrow.
    fn packed(&self, terms: &[Term]) -> Option<Row> {
        let mut constant = None;
        let mut pieces = Vec::with_capacity(terms.len());
        let mut totals = [Total::default(); 2];
        for &(source, id) in terms {
            if source.kind() == Kind::One && constant.is_none() {
                constant = Some(id);
                continue;
            }
            if !source.is_bit() || source.index() >= Piece::INDEX_LIMIT {
                return None;
            }
            for &digit in self.digits[usize::from(id)].as_ref()? {
                if !totals[usize::from(digit.negative)].add(digit.exponent) {
                    return None;
                }
                pieces.push((source, digit));
            }
        }
        Some(Row::Packed { pieces, constant })
    }
}

/// A piece of a packed row: ±2^shift times a bit, within one 32-bit limb.
///
/// Bit 31 says that the bit is an argument, bit 30 that it is subtracted, bits 29 to 25 are the
/// shift, the rest the source's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Piece(u32);

impl Piece {
    /// Indices are below this.
    pub const INDEX_LIMIT: u32 = (1 << 25) - 1;

    /// Fills up a lane's list.
    pub const NOTHING: Self = Self(u32::MAX);

    /// Of a bit source with an index below [`Piece::INDEX_LIMIT`].
    pub fn new(source: Source, digit: Digit) -> Self {
        debug_assert!(source.is_bit() && source.index() < Self::INDEX_LIMIT);
        let argument = u32::from(source.kind() == Kind::ArgumentBit);
        Self(
            argument << 31
                | u32::from(digit.negative) << 30
                | (digit.exponent % 32) << 25
                | source.index(),
        )
    }

    /// The word that the device reads.
    pub fn word(self) -> u32 {
        self.0
    }
}
