//! Counts of a circuit, derived from its templates and calls.

use crate::circuit::Density;
use crate::dictionary::Dictionary;
use crate::rules::Rule;
use crate::template::{Call, Template};
use crate::{Matrix, Shape};

/// What a circuit consists of.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Rows, inputs, aux variables.
    pub shape: Shape,
    /// Terms with a non-zero coefficient in A, B, C.
    pub nonzeros: [u64; 3],
    /// Distinct aux variables with a term in A.
    pub aux_in_a: usize,
    /// Distinct aux variables with a term in B.
    pub aux_in_b: usize,
    /// Distinct inputs with a term in B.
    pub inputs_in_b: usize,
    /// Distinct coefficients in all matrices.
    pub coefficients: usize,
    /// Distinct coefficients in A, B, C.
    pub coefficients_by_matrix: [usize; 3],
    /// Bits by the rule that makes them, in the order of [`Rule::ALL`].
    pub bits_by_rule: [u64; 9],
    /// Templates.
    pub templates: usize,
    /// Rows in the templates, each template once.
    pub template_rows: usize,
    /// Terms in the templates, each template once.
    pub template_terms: usize,
    /// Calls.
    pub calls: usize,
    /// Arguments of all calls.
    pub arguments: usize,
}

impl Statistics {
    /// All but the variables in A and in B.
    pub(crate) fn of_templates(
        shape: Shape,
        dictionary: &Dictionary,
        templates: &[Template],
        calls: &[Call],
    ) -> Self {
        let mut uses = vec![0u64; templates.len()];
        for call in calls {
            uses[call.template as usize] += 1;
        }
        let mut statistics = Self {
            shape,
            coefficients: dictionary.values().len(),
            templates: templates.len(),
            template_rows: templates.iter().map(Template::rows).sum(),
            template_terms: templates.iter().map(Template::terms).sum(),
            calls: calls.len(),
            arguments: templates
                .iter()
                .zip(&uses)
                .map(|(t, &uses)| t.arguments() * uses as usize)
                .sum(),
            ..Self::default()
        };
        for m in Matrix::ALL {
            let mut seen = vec![false; dictionary.values().len()];
            for (template, uses) in templates.iter().zip(&uses) {
                let ids = template.matrix(m).coefficients();
                statistics.nonzeros[m as usize] += ids.len() as u64 * uses;
                ids.iter().for_each(|&id| seen[usize::from(id)] = true);
            }
            statistics.coefficients_by_matrix[m as usize] = seen.iter().filter(|&&s| s).count();
        }
        for (template, uses) in templates.iter().zip(&uses) {
            let mut rows = [0; 256];
            template
                .row_rules
                .iter()
                .for_each(|&id| rows[usize::from(id)] += uses);
            for (count, rows) in statistics.bits_by_rule.iter_mut().zip(&rows[1..]) {
                *count += rows;
            }
        }
        statistics
    }

    /// Counts the variables in A and in B.
    pub(crate) fn with_density(mut self, density: &Density) -> Self {
        (self.aux_in_a, self.aux_in_b) =
            rayon::join(|| density.a_aux.count_ones(), || density.b_aux.count_ones());
        self.inputs_in_b = density.b_inputs.count_ones();
        self
    }

    /// Smallest power of two that holds the rows and one row per input.
    #[must_use]
    pub fn domain(&self) -> usize {
        self.shape.domain()
    }

    /// Bits made by this rule.
    #[must_use]
    pub fn bits_by(&self, rule: Rule) -> u64 {
        self.bits_by_rule[usize::from(rule.id()) - 1]
    }

    /// Bits with a boolean row of their own.
    #[must_use]
    pub fn explicit_bits(&self) -> u64 {
        self.bits_by(Rule::Boolean)
    }

    /// Bits that follow from other bits.
    #[must_use]
    pub fn implied_bits(&self) -> u64 {
        self.bits() - self.explicit_bits()
    }

    /// All bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bits_by_rule.iter().sum()
    }

    /// Aux variables that are not bits.
    #[must_use]
    pub fn non_bits(&self) -> u64 {
        self.shape.aux as u64 - self.bits()
    }

    /// The counts as one list, in a fixed order: what the file holds to cross-check.
    pub(crate) fn to_list(&self) -> Vec<u64> {
        let mut list = self.nonzeros.to_vec();
        list.extend(
            [
                self.aux_in_a,
                self.aux_in_b,
                self.inputs_in_b,
                self.coefficients,
            ]
            .iter()
            .chain(&self.coefficients_by_matrix)
            .map(|&n| n as u64),
        );
        list.extend(self.bits_by_rule);
        list
    }
}
