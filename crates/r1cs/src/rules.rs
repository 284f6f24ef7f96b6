//! Which variables are bits, and why.
//!
//! A rule looks at one row of a template and says: if these operands are 0 or 1, this row
//! forces that variable into {0, 1}. Operands must be known beforehand: bits made by an
//! earlier row of the template, or arguments that are bits. So the argument is well-founded,
//! and every conclusion holds for every satisfying assignment. The variable must be
//! allocated inside the template, which keeps its layout independent of the call.
//!
//! Patterns are exact in coefficients and number of terms. A *literal* is `v` or `1 − v`
//! for a known bit v. The tests enumerate all operand values for each rule.

use crate::bitmap::Bitmap;
use crate::template::Template;

/// A reason for a variable x to be a bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Rule {
    /// (1 − x)·x = 0: the variable's own boolean row.
    Boolean = 1,
    /// 2a·b = a + b − x, for bits a ≠ b.
    Xor = 2,
    /// a·b = x.
    And = 3,
    /// a·(1 − b) = x or (1 − a)·b = x.
    AndNot = 4,
    /// (1 − a)·(1 − b) = x.
    Nor = 5,
    /// (b − c)·a = x − c for literals a, b, c: x is b or c.
    Ch = 6,
    /// (2y − b − c)·a = y − x for literals a, b, c, where the last and-like row (and,
    /// and-not, nor) made y = b·c: x is the majority of a, b, c.
    Maj = 7,
    /// a·1 = x or 1·a = x for a literal a: a packed sum of a single bit.
    Copy = 8,
    /// 0·b = x or a·0 = x: x is 0. A packed sum of no bits.
    Zero = 9,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 9] = [
        Self::Boolean,
        Self::Xor,
        Self::And,
        Self::AndNot,
        Self::Nor,
        Self::Ch,
        Self::Maj,
        Self::Copy,
        Self::Zero,
    ];

    /// Name in files, statistics and errors.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Boolean => "boolean",
            Self::Xor => "xor",
            Self::And => "and",
            Self::AndNot => "and-not",
            Self::Nor => "nor",
            Self::Ch => "ch",
            Self::Maj => "maj",
            Self::Copy => "copy",
            Self::Zero => "zero",
        }
    }

    /// Number in files: 1 to 9.
    #[must_use]
    pub fn id(self) -> u8 {
        self as u8
    }

    /// The rule with this number.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.id() == id)
    }
}

/// Slot of the constant one.
const ONE: u32 = 0;
/// Most terms of a linear combination in any rule: one, y, b, c.
const MOST: usize = 4;

/// A linear combination of few slots with coefficients of a few units: no zeros, no slot
/// twice.
#[derive(Clone, Copy, Default)]
struct Small {
    terms: [(u32, i32); MOST + 1],
    len: usize,
}

impl Small {
    /// `None` for a row that no rule can want.
    #[inline]
    fn from_row((slots, ids): (&[u32], &[u16]), small: &[Option<i64>]) -> Option<Self> {
        if slots.len() > MOST {
            return None;
        }
        let mut sum = Self::default();
        for (&slot, &id) in slots.iter().zip(ids) {
            let coefficient = small[usize::from(id)].filter(|c| (-2..=2).contains(c))?;
            if sum.terms().iter().any(|t| t.0 == slot) {
                return None; // Only a hostile file names a variable twice.
            }
            sum.terms[sum.len] = (slot, coefficient as i32);
            sum.len += 1;
        }
        Some(sum)
    }

    /// `None` where it would have more than `MOST + 1` terms.
    #[inline]
    fn plus(mut self, slot: u32, coefficient: i32) -> Option<Self> {
        if let Some(k) = self.terms().iter().position(|t| t.0 == slot) {
            self.terms[k].1 += coefficient;
            if self.terms[k].1 == 0 {
                self.len -= 1;
                self.terms[k] = self.terms[self.len];
            }
        } else {
            *self.terms.get_mut(self.len)? = (slot, coefficient);
            self.len += 1;
        }
        Some(self)
    }

    fn plus_literal(self, literal: Literal, times: i32) -> Option<Self> {
        if literal.negated {
            self.plus(ONE, times)?.plus(literal.slot, -times)
        } else {
            self.plus(literal.slot, times)
        }
    }

    fn terms(&self) -> &[(u32, i32)] {
        &self.terms[..self.len]
    }

    fn coefficient(&self, slot: u32) -> i32 {
        self.terms().iter().find(|t| t.0 == slot).map_or(0, |t| t.1)
    }

    /// Whether it is exactly the sum of the given terms (distinct slots, no zeros).
    fn is(&self, terms: &[(u32, i32)]) -> bool {
        self.len == terms.len() && terms.iter().all(|t| self.coefficient(t.0) == t.1)
    }

    fn literal(&self) -> Option<Literal> {
        match *self.terms() {
            [(slot, 1)] if slot != ONE => Some((slot, false)),
            [(ONE, 1), (slot, -1)] | [(slot, -1), (ONE, 1)] => Some((slot, true)),
            _ => None,
        }
        .map(|(slot, negated)| Literal { slot, negated })
    }
}

/// v, or 1 − v.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Literal {
    slot: u32,
    negated: bool,
}

/// What is known before a row: the bits, and the last row of the form y = b·c.
struct Knowledge {
    first_aux: u32,
    first_argument: u32,
    bits: Bitmap,
    argument_bits: Bitmap,
    last_product: Option<(u32, Literal, Literal)>,
}

impl Knowledge {
    fn new(template: &Template) -> Self {
        Self {
            first_aux: 1 + template.inputs,
            first_argument: 1 + template.inputs + template.aux,
            bits: Bitmap::new(template.aux()),
            argument_bits: template.argument_bits.clone(),
            last_product: None,
        }
    }

    #[inline]
    fn is_bit(&self, slot: u32) -> bool {
        if slot >= self.first_argument {
            self.argument_bits
                .get((slot - self.first_argument) as usize)
        } else {
            slot >= self.first_aux && self.bits.get((slot - self.first_aux) as usize)
        }
    }

    /// A variable allocated inside that is not known to be a bit.
    #[inline]
    fn is_candidate(&self, slot: u32) -> bool {
        (self.first_aux..self.first_argument).contains(&slot) && !self.is_bit(slot)
    }

    /// Applies the first rule that fits row `row`; gives the rule and the variable's index
    /// among the template's aux variables.
    fn learn(
        &mut self,
        template: &Template,
        row: usize,
        small: &[Option<i64>],
    ) -> Option<(Rule, u32)> {
        let [a, b, c] = [0, 1, 2].map(|m| template.matrices[m].row(row));
        // Cheap refusals first: no rule has longer rows, and a rule other than the boolean
        // one defines a variable in C.
        if a.0.len() > MOST || b.0.len() > 2 || c.0.len() > 3 {
            return None;
        }
        if !c.0.is_empty() && !c.0.iter().any(|&slot| self.is_candidate(slot)) {
            return None;
        }
        let a = Small::from_row(a, small)?;
        let b = Small::from_row(b, small)?;
        let c = Small::from_row(c, small)?;
        let (rule, slot) = if c.len == 0 {
            (Rule::Boolean, self.boolean(&a, &b)?)
        } else {
            let (x, rest) = self.defined(&c)?;
            (self.implied(&a, &b, &rest, x)?, x.0)
        };
        let aux = slot - self.first_aux;
        self.bits.set(aux as usize);
        Some((rule, aux))
    }

    fn boolean(&self, a: &Small, b: &Small) -> Option<u32> {
        let &[(x, 1)] = b.terms() else { return None };
        (self.is_candidate(x) && a.is(&[(ONE, 1), (x, -1)])).then_some(x)
    }

    /// C's one term that is not known, with coefficient ±1, and the other terms.
    fn defined(&self, c: &Small) -> Option<((u32, i32), Small)> {
        let mut unknown = c.terms().iter().filter(|t| self.is_candidate(t.0));
        let (&x, None) = (unknown.next()?, unknown.next()) else {
            return None;
        };
        (x.1.abs() == 1).then_some((x, c.plus(x.0, -x.1)?))
    }

    /// A literal over a known bit.
    fn known(&self, sum: &Small) -> Option<Literal> {
        sum.literal().filter(|l| self.is_bit(l.slot))
    }

    fn implied(&mut self, a: &Small, b: &Small, rest: &Small, x: (u32, i32)) -> Option<Rule> {
        if x.1 == 1 {
            if rest.len == 0 {
                return self.product(a, b, x.0);
            }
            return self.ch(a, b, rest);
        }
        self.xor(a, b, rest).or_else(|| self.maj(a, b, rest))
    }

    fn product(&mut self, a: &Small, b: &Small, x: u32) -> Option<Rule> {
        if a.len == 0 || b.len == 0 {
            return Some(Rule::Zero);
        }
        for (factor, other) in [(a, b), (b, a)] {
            if factor.is(&[(ONE, 1)]) {
                return self.known(other).map(|_| Rule::Copy);
            }
        }
        let (a, b) = (self.known(a)?, self.known(b)?);
        self.last_product = Some((x, a, b));
        Some(match (a.negated, b.negated) {
            (false, false) => Rule::And,
            (true, true) => Rule::Nor,
            _ => Rule::AndNot,
        })
    }

    fn xor(&self, a: &Small, b: &Small, rest: &Small) -> Option<Rule> {
        let (&[(p, 2)], &[(q, 1)]) = (a.terms(), b.terms()) else {
            return None;
        };
        let holds = p != q && self.is_bit(p) && self.is_bit(q) && rest.is(&[(p, 1), (q, 1)]);
        holds.then_some(Rule::Xor)
    }

    /// `rest` is −c.
    fn ch(&self, a: &Small, b: &Small, rest: &Small) -> Option<Rule> {
        let c = match *rest.terms() {
            [(slot, -1)] if slot != ONE => (slot, false),
            [(ONE, -1), (slot, 1)] | [(slot, 1), (ONE, -1)] => (slot, true),
            _ => return None,
        };
        let c = Literal {
            slot: c.0,
            negated: c.1,
        };
        let b_literal = a.plus_literal(c, 1)?;
        let known =
            self.is_bit(c.slot) && self.known(&b_literal).is_some() && self.known(b).is_some();
        known.then_some(Rule::Ch)
    }

    /// `rest` is y.
    fn maj(&self, a: &Small, b: &Small, rest: &Small) -> Option<Rule> {
        let (y, p, q) = self.last_product?;
        let expected = Small::default()
            .plus(y, 2)?
            .plus_literal(p, -1)?
            .plus_literal(q, -1)?;
        let holds = rest.is(&[(y, 1)]) && a.is(expected.terms()) && self.known(b).is_some();
        holds.then_some(Rule::Maj)
    }
}

impl Template {
    /// Fills in `bits` and `row_rules`.
    pub(crate) fn infer(&mut self, small: &[Option<i64>]) {
        let mut known = Knowledge::new(self);
        let rules = (0..self.rows())
            .map(|row| {
                known
                    .learn(self, row, small)
                    .map_or(0, |(rule, _)| rule.id())
            })
            .collect();
        self.bits = known.bits;
        self.row_rules = rules;
    }

    /// The row and the rule that make the `aux`-th variable allocated inside a bit.
    pub(crate) fn reason(&self, aux: u32, small: &[Option<i64>]) -> Option<(usize, Rule)> {
        let mut known = Knowledge::new(self);
        (0..self.rows()).find_map(|row| match known.learn(self, row, small) {
            Some((rule, learnt)) if learnt == aux => Some((row, rule)),
            _ => None,
        })
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
