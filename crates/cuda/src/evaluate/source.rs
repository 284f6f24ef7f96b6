//! Where a term takes its value, relative to a call.

use r1cs::{Slot, Template};

use super::ProgramError;

/// Kind in bits 31 to 29, index below; see the constants. `kernels/evaluate/program.cuh` has
/// the same layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Source(u32);

/// What a [`Source`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// The constant one.
    One = 0,
    /// Bit `call.bit + index` of the packed bits.
    OwnBit = 1,
    /// The packed bit that argument `call.argument + index` names.
    ArgumentBit = 2,
    /// Value `call.value + index`.
    OwnValue = 3,
    /// Value `call.input + index`.
    OwnInput = 4,
    /// The value that argument `call.argument + index` names.
    ArgumentValue = 5,
    /// Nothing: fills up a slice.
    Nothing = 7,
}

impl Source {
    const INDEX_BITS: u32 = 29;

    /// Fills up a slice.
    pub const NOTHING: Self = Self(u32::MAX);

    /// # Errors
    /// An index of 2^29 or more.
    pub fn new(kind: Kind, index: usize) -> Result<Self, ProgramError> {
        if index >> Self::INDEX_BITS != 0 {
            return Err(ProgramError::TooLarge {
                what: "number of variables of a template",
                value: index as u64,
                limit: 1 << Self::INDEX_BITS,
            });
        }
        // The index is below 2^29.
        Ok(Self((kind as u32) << Self::INDEX_BITS | index as u32))
    }

    /// What it names.
    pub fn kind(self) -> Kind {
        match self.0 >> Self::INDEX_BITS {
            0 => Kind::One,
            1 => Kind::OwnBit,
            2 => Kind::ArgumentBit,
            3 => Kind::OwnValue,
            4 => Kind::OwnInput,
            5 => Kind::ArgumentValue,
            _ => Kind::Nothing,
        }
    }

    /// The index within its kind.
    pub fn index(self) -> u32 {
        self.0 & ((1 << Self::INDEX_BITS) - 1)
    }

    /// The word that the device reads.
    pub fn word(self) -> u32 {
        self.0
    }

    /// Whether the value is 0 or 1 and in the packed bits.
    pub fn is_bit(self) -> bool {
        matches!(self.kind(), Kind::OwnBit | Kind::ArgumentBit)
    }
}

#[cfg(test)]
impl From<u32> for Source {
    fn from(word: u32) -> Self {
        Self(word)
    }
}

/// The source of every slot of a template, in slot order.
///
/// # Errors
/// More slots than a source can name.
pub fn of_slots(template: &Template) -> Result<Vec<Source>, ProgramError> {
    let (mut bits, mut values) = (0, 0);
    let mut next = |is_bit: bool| {
        let (kind, count) = if is_bit {
            (Kind::OwnBit, &mut bits)
        } else {
            (Kind::OwnValue, &mut values)
        };
        *count += 1;
        Source::new(kind, *count - 1)
    };
    (0..template.slots())
        .map(|slot| {
            let slot = u32::try_from(slot).expect("slots are u32");
            let is_bit = template.is_bit(slot);
            match template.slot(slot) {
                Slot::One => Source::new(Kind::One, 0),
                Slot::Input(k) => Source::new(Kind::OwnInput, k as usize),
                Slot::Aux(_) => next(is_bit),
                Slot::Argument(k) if is_bit => Source::new(Kind::ArgumentBit, k as usize),
                Slot::Argument(k) => Source::new(Kind::ArgumentValue, k as usize),
            }
        })
        .collect()
}
