//! 32 circuit booleans as machine words.
//!
//! The public gadgets work on `Boolean`s that are a variable, a negated variable or a constant, and
//! allocate a new variable only where an operation on them needs one: `x ⊕ false` is `x` itself,
//! `x ⊕ true` is its negation, and only the XOR of two variables is a new one. Witness generation
//! must follow that exactly, including the value: the XOR of a negated variable with another one
//! allocates the XOR of the *underlying* variables and negates the result.
//!
//! [`Word`] keeps 32 such booleans side by side, so that an operation is a few instructions and the
//! set of allocated variables is a mask.

use crate::Writer;

/// 32 booleans; bit `i` of each field belongs to the boolean of weight `2^i`.
///
/// Boolean `i` is the constant `negated[i]` where `constant[i]` is set (then `variable[i]` is 0),
/// and otherwise a variable of value `variable[i]`, negated where `negated[i]` is set. So its
/// logical value is `variable[i] ⊕ negated[i]` in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    variable: u32,
    negated: u32,
    constant: u32,
}

impl Word {
    /// 32 constants.
    pub const fn constant(value: u32) -> Self {
        Self {
            variable: 0,
            negated: value,
            constant: !0,
        }
    }

    /// 32 allocated variables, none negated.
    pub const fn allocated(value: u32) -> Self {
        Self {
            variable: value,
            negated: 0,
            constant: 0,
        }
    }

    /// Allocated variables, but constants where `constant` is set.
    pub const fn mixed(value: u32, constant: u32) -> Self {
        Self {
            variable: value & !constant,
            negated: value & constant,
            constant,
        }
    }

    /// The logical value.
    #[inline]
    pub const fn value(self) -> u32 {
        self.variable ^ self.negated
    }

    /// Whether all 32 are constants.
    #[inline]
    pub const fn is_constant(self) -> bool {
        self.constant == !0
    }

    /// Rotation towards the least significant bit.
    #[inline]
    pub const fn rotate_right(self, by: u32) -> Self {
        Self {
            variable: self.variable.rotate_right(by),
            negated: self.negated.rotate_right(by),
            constant: self.constant.rotate_right(by),
        }
    }

    /// Shift towards the least significant bit; the constant false comes in. `by` is below 32.
    #[inline]
    pub const fn shift_right(self, by: u32) -> Self {
        Self {
            variable: self.variable >> by,
            negated: self.negated >> by,
            constant: (self.constant >> by) | !(!0 >> by),
        }
    }

    #[inline]
    const fn not(self) -> Self {
        Self {
            negated: !self.negated,
            ..self
        }
    }

    /// Each word where its mask is set; the masks are disjoint. Elsewhere plain zero variables.
    #[inline]
    fn merge<const N: usize>(cases: [(u32, Self); N]) -> Self {
        cases
            .iter()
            .fold(Self::allocated(0), |all, (mask, word)| Self {
                variable: all.variable | (word.variable & mask),
                negated: all.negated | (word.negated & mask),
                constant: all.constant | (word.constant & mask),
            })
    }

    /// Bitwise AND and the mask of the booleans it allocates. An allocated AND is a plain variable
    /// holding the logical value, however its operands were negated.
    #[inline]
    fn and(self, other: Self) -> (Self, u32) {
        let allocated = !(self.constant | other.constant);
        // A constant false absorbs, a constant true hands the other operand through.
        let absorbed = (self.constant & !self.negated) | (other.constant & !other.negated);
        let pass_other = self.constant & !absorbed;
        let pass_self = other.constant & !absorbed & !pass_other;
        let word = Self::merge([
            (allocated, Self::allocated(self.value() & other.value())),
            (absorbed, Self::constant(0)),
            (pass_other, other),
            (pass_self, self),
        ]);
        (word, allocated)
    }

    /// Bitwise XOR, as the gadget `UInt32::xor` allocates it.
    #[inline]
    pub fn xor(self, other: Self, writer: &mut Writer<'_>) -> Self {
        let result = Self {
            variable: self.variable ^ other.variable,
            negated: self.negated ^ other.negated,
            constant: self.constant & other.constant,
        };
        write_masked(writer, result.variable, !(self.constant | other.constant));
        result
    }

    /// SHA-256's choice `(a ∧ b) ⊕ (¬a ∧ c)`, as the gadget `UInt32::sha256_ch` allocates it.
    #[inline]
    pub fn choice(a: Self, b: Self, c: Self, writer: &mut Writer<'_>) -> Self {
        let value = (a.value() & b.value()) ^ (!a.value() & c.value());
        if a.constant | b.constant | c.constant == 0 {
            writer.bits(u64::from(value), 32);
            return Self::allocated(value);
        }
        Self::choice_with_constants(a, b, c, writer)
    }

    /// The gadget's special cases, in its order: the first that fits decides.
    fn choice_with_constants(a: Self, b: Self, c: Self, writer: &mut Writer<'_>) -> Self {
        let value = (a.value() & b.value()) ^ (!a.value() & c.value());
        let pass_c = a.constant & !a.negated;
        let mut open = !pass_c;
        let not_a_and_c = open & b.constant & !b.negated;
        open &= !not_a_and_c;
        let a_and_b = open & c.constant & !c.negated;
        open &= !a_and_b;
        let nand_a_not_b = open & c.constant;
        open &= !nand_a_not_b;
        let nand_not_a_not_c = open & b.constant;
        let general = open & !nand_not_a_not_c;

        // All cases but the first and the last are one AND.
        let negated = nand_a_not_b | nand_not_a_not_c;
        let (and, and_allocated) = Self::and(
            Self::merge([
                (a_and_b | nand_a_not_b, a),
                (not_a_and_c | nand_not_a_not_c, a.not()),
            ]),
            Self::merge([
                (not_a_and_c, c),
                (a_and_b, b),
                (nand_a_not_b, b.not()),
                (nand_not_a_not_c, c.not()),
            ]),
        );
        let result = Self::merge([
            (pass_c, c),
            (not_a_and_c | a_and_b, and),
            (negated, and.not()),
            (general, Self::allocated(value)),
        ]);
        let allocated = general | (and_allocated & !pass_c);
        write_masked(writer, result.variable, allocated);
        result
    }

    /// SHA-256's majority, as the gadget `UInt32::sha256_maj` allocates it: per bit of three
    /// variables the majority and then `b ∧ c`; with a constant at most one AND.
    #[inline]
    pub fn majority(a: Self, b: Self, c: Self, writer: &mut Writer<'_>) -> Self {
        let (va, vb, vc) = (a.value(), b.value(), c.value());
        let value = (va & vb) ^ (va & vc) ^ (vb & vc);
        if a.constant | b.constant | c.constant == 0 {
            writer.bits(spread(value) | spread(vb & vc) << 1, 64);
            return Self::allocated(value);
        }
        Self::majority_with_constants(a, b, c, writer)
    }

    /// The gadget's special cases, in its order: the first that fits decides.
    fn majority_with_constants(a: Self, b: Self, c: Self, writer: &mut Writer<'_>) -> Self {
        let (va, vb, vc) = (a.value(), b.value(), c.value());
        let value = (va & vb) ^ (va & vc) ^ (vb & vc);
        let b_and_c = a.constant & !a.negated;
        let mut open = !b_and_c;
        let a_and_c = open & b.constant & !b.negated;
        open &= !a_and_c;
        let a_and_b = open & c.constant & !c.negated;
        open &= !a_and_b;
        let nand_ab = open & c.constant;
        open &= !nand_ab;
        let nand_ac = open & b.constant;
        open &= !nand_ac;
        let nand_bc = open & a.constant;
        let general = open & !nand_bc;

        let positive = b_and_c | a_and_c | a_and_b;
        let negated = nand_ab | nand_ac | nand_bc;
        let (and, and_allocated) = Self::and(
            Self::merge([
                (b_and_c, b),
                (a_and_c | a_and_b, a),
                (nand_ab | nand_ac, a.not()),
                (nand_bc, b.not()),
            ]),
            Self::merge([
                (b_and_c | a_and_c, c),
                (a_and_b, b),
                (nand_ab, b.not()),
                (nand_ac | nand_bc, c.not()),
            ]),
        );
        let result = Self::merge([
            (positive, and),
            (negated, and.not()),
            (general, Self::allocated(value)),
        ]);
        // First and second variable of each boolean, interleaved.
        let values = spread(result.variable) | spread(vb & vc) << 1;
        let mask = spread(general | and_allocated) | spread(general) << 1;
        write_masked(writer, values as u32, mask as u32);
        write_masked(writer, (values >> 32) as u32, (mask >> 32) as u32);
        result
    }
}

/// The sum of `terms` modulo 2³², as the gadget `UInt32::addmany` allocates it: a constant if all
/// terms are, else one variable for every bit that the sum of so many words can have.
#[inline]
pub fn add<const N: usize>(terms: [Word; N], writer: &mut Writer<'_>) -> Word {
    let sum: u64 = terms.iter().map(|term| u64::from(term.value())).sum();
    if terms.iter().all(|term| term.is_constant()) {
        return Word::constant(sum as u32);
    }
    let width = u64::BITS - (N as u64 * u64::from(u32::MAX)).leading_zeros();
    writer.bits(sum, width);
    Word::allocated(sum as u32)
}

/// Appends the bits of `values` that `mask` selects, least significant first.
#[inline]
fn write_masked(writer: &mut Writer<'_>, values: u32, mask: u32) {
    match mask {
        0 => {}
        u32::MAX => writer.bits(u64::from(values), 32),
        _ => writer.bits(u64::from(extract(values, mask)), mask.count_ones()),
    }
}

/// The bits of `values` at the positions set in `mask`, moved together at the low end.
#[inline]
fn extract(values: u32, mut mask: u32) -> u32 {
    // One step per run of set bits; masks here have one or two.
    let (mut result, mut filled) = (0, 0);
    while mask != 0 {
        let start = mask.trailing_zeros();
        let run = (mask >> start).trailing_ones();
        let ones = if run == 32 { !0 } else { (1 << run) - 1 };
        result |= (values >> start & ones) << filled;
        filled += run;
        mask &= !(ones << start);
    }
    result
}

/// Bit `i` of `word` at position `2i`.
#[inline]
const fn spread(word: u32) -> u64 {
    let mut x = word as u64;
    x = (x | x << 16) & 0x0000_ffff_0000_ffff;
    x = (x | x << 8) & 0x00ff_00ff_00ff_00ff;
    x = (x | x << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    x = (x | x << 2) & 0x3333_3333_3333_3333;
    (x | x << 1) & 0x5555_5555_5555_5555
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_and_extract_are_inverse() {
        for word in [0, 1, 0x8000_0000, !0, 0x1234_5678, 0xdead_beef] {
            let wide = spread(word);
            let low = extract(wide as u32, 0x5555_5555);
            let high = extract((wide >> 32) as u32, 0x5555_5555);
            assert_eq!(low | high << 16, word);
        }
        assert_eq!(extract(0xdead_beef, !0), 0xdead_beef);
        assert_eq!(extract(0xdead_beef, 0), 0);
        assert_eq!(extract(0b1011_0000, 0b1010_0000), 0b11);
    }
}
