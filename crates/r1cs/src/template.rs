//! Templates: runs of rows with columns relative to the run. Calls: where they stand.

use crate::bitmap::Bitmap;
use crate::rules::Rule;
use crate::{Matrix, Variable};

/// Columns of a template are *slots*, numbered
/// `[ one | inputs allocated inside | aux allocated inside | arguments ]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Input 0, the constant one.
    One,
    /// The k-th input allocated inside.
    Input(u32),
    /// The k-th aux variable allocated inside.
    Aux(u32),
    /// The k-th argument: a variable allocated before the call.
    Argument(u32),
}

/// One matrix of a template, compressed by rows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TermMatrix {
    /// Row r has the terms `starts[r]..starts[r + 1]`; rows + 1 entries.
    pub(crate) starts: Vec<u32>,
    /// Slot of each term.
    pub(crate) slots: Vec<u32>,
    /// Coefficient id of each term.
    pub(crate) coefficients: Vec<u16>,
}

impl TermMatrix {
    /// Row offsets into the terms, rows + 1 of them.
    #[must_use]
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Slot of each term, row after row. Within a row the variables that the slots stand
    /// for ascend: inputs before aux, each by index.
    #[must_use]
    pub fn slots(&self) -> &[u32] {
        &self.slots
    }

    /// Coefficient id (see [`crate::Dictionary`]) of each term.
    #[must_use]
    pub fn coefficients(&self) -> &[u16] {
        &self.coefficients
    }

    /// Slots and coefficient ids of one row.
    ///
    /// # Panics
    /// Where the template has no such row.
    #[must_use]
    #[inline]
    pub fn row(&self, row: usize) -> (&[u32], &[u16]) {
        let range = self.starts[row] as usize..self.starts[row + 1] as usize;
        (&self.slots[range.clone()], &self.coefficients[range])
    }

    pub(crate) fn clear(&mut self) {
        self.starts.clear();
        self.slots.clear();
        self.coefficients.clear();
    }
}

/// A run of rows, and what is known of its variables. Two runs with equal matrices share a
/// template only when the same arguments are bits, so every slot is statically a bit or a
/// field element.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Template {
    pub(crate) rows: u32,
    pub(crate) inputs: u32,
    pub(crate) aux: u32,
    pub(crate) matrices: [TermMatrix; 3],
    pub(crate) argument_bits: Bitmap,
    pub(crate) bits: Bitmap,
    /// Per row the rule by which it makes a variable a bit: 0 for none, else `Rule::id`.
    pub(crate) row_rules: Vec<u8>,
}

impl Template {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Inputs allocated inside.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.inputs as usize
    }

    /// Aux variables allocated inside.
    #[must_use]
    pub fn aux(&self) -> usize {
        self.aux as usize
    }

    /// Number of arguments.
    #[must_use]
    pub fn arguments(&self) -> usize {
        self.argument_bits.len()
    }

    /// Number of slots.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.first_argument() + self.arguments()
    }

    /// First slot of the aux variables.
    #[inline]
    pub(crate) fn first_aux(&self) -> usize {
        1 + self.inputs as usize
    }

    /// First slot of the arguments.
    #[inline]
    pub(crate) fn first_argument(&self) -> usize {
        self.first_aux() + self.aux as usize
    }

    /// What a slot stands for.
    #[must_use]
    #[inline]
    pub fn slot(&self, slot: u32) -> Slot {
        let (aux, argument) = (1 + self.inputs, 1 + self.inputs + self.aux);
        match slot {
            0 => Slot::One,
            s if s < aux => Slot::Input(s - 1),
            s if s < argument => Slot::Aux(s - aux),
            s => Slot::Argument(s - argument),
        }
    }

    /// Whether a slot's value is known to be 0 or 1: the constant one, the variables made
    /// bits inside, the arguments that are bits.
    #[must_use]
    pub fn is_bit(&self, slot: u32) -> bool {
        match self.slot(slot) {
            Slot::One => true,
            Slot::Input(_) => false,
            Slot::Aux(k) => self.bits.get(k as usize),
            Slot::Argument(k) => self.argument_bits.get(k as usize),
        }
    }

    /// Terms of matrix `m`.
    #[must_use]
    pub fn matrix(&self, m: Matrix) -> &TermMatrix {
        &self.matrices[m as usize]
    }

    /// Which aux variables allocated inside are bits.
    #[must_use]
    pub fn bits(&self) -> &Bitmap {
        &self.bits
    }

    /// Which arguments are bits.
    #[must_use]
    pub fn argument_bits(&self) -> &Bitmap {
        &self.argument_bits
    }

    /// The rule by which row `row` makes a variable a bit, if it does.
    #[must_use]
    pub fn row_rule(&self, row: usize) -> Option<Rule> {
        Rule::from_id(*self.row_rules.get(row)?)
    }

    /// Terms of all three matrices.
    #[must_use]
    pub fn terms(&self) -> usize {
        self.matrices.iter().map(|m| m.slots.len()).sum()
    }
}

/// One placement of a template. Calls follow one another in rows, inputs and aux alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Index of the template.
    pub template: u32,
    /// First row.
    pub row: u32,
    /// First input allocated inside.
    pub input: u32,
    /// First aux variable allocated inside.
    pub aux: u32,
    /// Bits allocated before: index of the first one inside among all bits.
    pub bit: u32,
    /// Non-bits allocated before: index of the first one inside among all non-bits.
    pub dense: u32,
    /// First of this call's arguments in the circuit's list.
    pub argument: u32,
}

impl Call {
    /// The variable that a slot of this call stands for. `arguments` are this call's, packed.
    #[inline]
    pub(crate) fn variable(&self, template: &Template, arguments: &[u32], slot: u32) -> Variable {
        match template.slot(slot) {
            Slot::One => Variable::ONE,
            Slot::Input(k) => Variable::Input(self.input + k),
            Slot::Aux(k) => Variable::Aux(self.aux + k),
            Slot::Argument(k) => Variable::unpack(arguments[k as usize]),
        }
    }
}
