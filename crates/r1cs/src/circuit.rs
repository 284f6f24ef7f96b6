//! The compiled circuit and what is derived from its templates and calls.

use std::sync::OnceLock;

use crate::bitmap::Bitmap;
use crate::dictionary::Dictionary;
use crate::evaluate::Plan;
use crate::statistics::Statistics;
use crate::template::{Call, Slot, Template};
use crate::{Error, Matrix, Shape, Variable, format};

/// A circuit as templates and calls; see the crate's documentation.
pub struct CompiledCircuit {
    shape: Shape,
    dictionary: Dictionary,
    templates: Vec<Template>,
    calls: Vec<Call>,
    /// Packed variables, all calls' arguments one after another.
    arguments: Vec<u32>,
    layout: Layout,
    density: Density,
    statistics: Statistics,
    digest: OnceLock<[u8; 32]>,
    pub(crate) plan: OnceLock<Plan>,
}

impl CompiledCircuit {
    /// Derives layout, density and statistics. The parts are consistent: the builder made
    /// them or the decoder has checked them.
    pub(crate) fn from_parts(
        shape: Shape,
        dictionary: Dictionary,
        templates: Vec<Template>,
        calls: Vec<Call>,
        arguments: Vec<u32>,
    ) -> Self {
        let ((layout, statistics), density) = rayon::join(
            || {
                (
                    Layout::new(shape, &templates, &calls),
                    Statistics::of_templates(shape, &dictionary, &templates, &calls),
                )
            },
            || Density::new(shape, &templates, &calls, &arguments),
        );
        let statistics = statistics.with_density(&density);
        Self {
            shape,
            dictionary,
            templates,
            calls,
            arguments,
            layout,
            density,
            statistics,
            digest: OnceLock::new(),
            plan: OnceLock::new(),
        }
    }

    /// Reads the file form (`format.rs` describes it).
    ///
    /// # Errors
    /// Whatever the bytes hold, an error and no panic; memory stays within a few times the
    /// format's size caps.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let (circuit, digest) = format::decode(bytes)?;
        circuit.digest.get_or_init(|| digest);
        Ok(circuit)
    }

    /// The file form: the same circuit always gives the same bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (bytes, digest) = format::encode(self);
        self.digest.get_or_init(|| digest);
        bytes
    }

    /// SHA-256 in the file's header: identifies the circuit and its encoding.
    pub fn digest(&self) -> [u8; 32] {
        *self.digest.get_or_init(|| format::encode(self).1)
    }

    /// Rows, inputs, aux variables.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Counts of everything.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Which variables occur in A and in B.
    #[must_use]
    pub fn density(&self) -> &Density {
        &self.density
    }

    /// Which aux variables are bits.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The coefficients.
    #[must_use]
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// The distinct runs of rows.
    #[must_use]
    pub fn templates(&self) -> &[Template] {
        &self.templates
    }

    /// Their placements, in row order.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The arguments of a call, in the order of the template's argument slots.
    pub fn arguments(&self, call: &Call) -> impl ExactSizeIterator<Item = Variable> + '_ {
        self.packed_arguments(call)
            .iter()
            .map(|&w| Variable::unpack(w))
    }

    pub(crate) fn packed_arguments(&self, call: &Call) -> &[u32] {
        let start = call.argument as usize;
        &self.arguments[start..start + self.template(call).arguments()]
    }

    /// The template that a call places.
    ///
    /// # Panics
    /// Where the call is not of this circuit.
    #[must_use]
    pub fn template(&self, call: &Call) -> &Template {
        &self.templates[call.template as usize]
    }

    /// The row and the rule that make aux variable `aux` a bit.
    pub(crate) fn bit_reason(&self, aux: u32) -> Option<(u64, &'static str)> {
        let index = self
            .calls
            .partition_point(|c| c.aux <= aux)
            .checked_sub(1)?;
        let call = &self.calls[index];
        let template = self.template(call);
        let small = self.dictionary.small_values();
        let (row, rule) = template.reason(aux - call.aux, small)?;
        Some((u64::from(call.row) + row as u64, rule.name()))
    }
}

/// Which variables have a non-zero coefficient somewhere in A, somewhere in B.
///
/// A bellperson parameter file holds A and B points for exactly these (in A for every
/// input as well, because of the rows that Groth16 appends).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Density {
    /// Aux variables in A.
    pub a_aux: Bitmap,
    /// Aux variables in B.
    pub b_aux: Bitmap,
    /// Inputs in B.
    pub b_inputs: Bitmap,
}

impl Density {
    fn new(shape: Shape, templates: &[Template], calls: &[Call], arguments: &[u32]) -> Self {
        let occurring = |m| Self::occurring(m, shape, templates, calls, arguments);
        let ((_, a_aux), (b_inputs, b_aux)) =
            rayon::join(|| occurring(Matrix::A), || occurring(Matrix::B));
        Self {
            a_aux,
            b_aux,
            b_inputs,
        }
    }

    /// The inputs and the aux variables that occur in one matrix.
    fn occurring(
        m: Matrix,
        shape: Shape,
        templates: &[Template],
        calls: &[Call],
        arguments: &[u32],
    ) -> (Bitmap, Bitmap) {
        let mut inputs = Bitmap::new(shape.inputs);
        let mut aux = Bitmap::new(shape.aux);
        let used: Vec<_> = templates.iter().map(|t| UsedSlots::new(t, m)).collect();
        for call in calls {
            let template = &templates[call.template as usize];
            let used = &used[call.template as usize];
            let arguments = &arguments[call.argument as usize..];
            aux.or_at(call.aux as usize, &used.aux);
            for &slot in &used.others {
                match call.variable(template, arguments, slot) {
                    Variable::Input(i) => inputs.set(i as usize),
                    Variable::Aux(i) => aux.set(i as usize),
                }
            }
        }
        (inputs, aux)
    }
}

/// Slots with a term in one matrix of a template: the aux variables allocated inside, and
/// the rest.
struct UsedSlots {
    aux: Bitmap,
    others: Vec<u32>,
}

impl UsedSlots {
    fn new(template: &Template, m: Matrix) -> Self {
        let mut aux = Bitmap::new(template.aux());
        let mut others = Bitmap::new(template.slots());
        for &slot in template.matrix(m).slots() {
            match template.slot(slot) {
                Slot::Aux(k) => aux.set(k as usize),
                _ => others.set(slot as usize),
            }
        }
        let others = others
            .ones()
            .map(|slot| u32::try_from(slot).expect("slots are u32"))
            .collect();
        Self { aux, others }
    }
}

/// Where a packed witness holds an aux variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Bit of the compact bitmap.
    Bit(u32),
    /// Element of the dense part.
    Dense(u32),
}

/// Which aux variables are bits, with ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    bits: Bitmap,
    /// Ones before each group of 8 words (512 variables).
    ranks: Vec<u32>,
    bit_count: usize,
}

impl Layout {
    fn new(shape: Shape, templates: &[Template], calls: &[Call]) -> Self {
        let mut bits = Bitmap::new(shape.aux);
        for call in calls {
            bits.or_at(call.aux as usize, &templates[call.template as usize].bits);
        }
        let mut total = 0;
        let ranks = bits
            .words()
            .chunks(8)
            .map(|group| {
                let before = total;
                total += group.iter().map(|w| w.count_ones()).sum::<u32>();
                before
            })
            .collect();
        Self {
            bits,
            ranks,
            bit_count: total as usize,
        }
    }

    /// One bit per aux variable: set where the circuit forces it to be 0 or 1.
    #[must_use]
    pub fn bitmap(&self) -> &Bitmap {
        &self.bits
    }

    /// Whether aux variable `aux` is a bit.
    ///
    /// # Panics
    /// Where the circuit has no such variable.
    #[must_use]
    #[inline]
    pub fn is_bit(&self, aux: u32) -> bool {
        self.bits.get(aux as usize)
    }

    /// Number of bits: length of the compact bitmap.
    #[must_use]
    pub fn bit_count(&self) -> usize {
        self.bit_count
    }

    /// Number of the other aux variables: length of the dense part.
    #[must_use]
    pub fn dense_count(&self) -> usize {
        self.bits.len() - self.bit_count
    }

    /// Number of bits before aux variable `aux`.
    ///
    /// # Panics
    /// Where the circuit has no such variable.
    #[must_use]
    #[inline]
    pub fn rank(&self, aux: u32) -> u32 {
        let word = aux as usize / 64;
        let group = word / 8;
        let words = self.bits.words();
        let before: u32 = words[group * 8..word].iter().map(|w| w.count_ones()).sum();
        let below = words[word] & ((1 << (aux % 64)) - 1);
        self.ranks[group] + before + below.count_ones()
    }

    /// Where a packed witness holds aux variable `aux`.
    ///
    /// # Panics
    /// Where the circuit has no such variable.
    #[must_use]
    #[inline]
    pub fn place(&self, aux: u32) -> Place {
        let rank = self.rank(aux);
        if self.is_bit(aux) {
            Place::Bit(rank)
        } else {
            Place::Dense(aux - rank)
        }
    }
}
