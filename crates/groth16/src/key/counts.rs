//! How many points a circuit's key holds, and how long its files are.

use blstrs::{G1Affine, G2Affine};
use r1cs::CompiledCircuit;

use super::encoding::KeyPoint;
use super::prepared::PreparedLayout;

/// Bytes of the verifying key before its list of input points: three G1 and three G2 points
/// and the list's count.
pub(crate) const VK_FIXED_BYTES: u64 =
    3 * G1Affine::BYTES as u64 + 3 * G2Affine::BYTES as u64 + COUNT_BYTES;
/// Bytes of a section's count.
pub(crate) const COUNT_BYTES: u64 = 4;

/// The number of points in each vector of a key as published, which follows from the circuit alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyCounts {
    /// Public inputs including the constant one: points of `ic`.
    pub inputs: u64,
    /// Points of `h`: the domain's size less one.
    pub h: u64,
    /// Points of `l`: auxiliary variables.
    pub l: u64,
    /// Points of `a`: inputs, and auxiliary variables that occur in A.
    pub a: u64,
    /// Points of `b` in each group: inputs and auxiliary variables that occur in B.
    pub b: u64,
}

impl KeyCounts {
    /// The counts of a circuit's key.
    pub fn of(circuit: &CompiledCircuit) -> Self {
        let shape = circuit.shape();
        let density = circuit.density();
        KeyCounts {
            inputs: shape.inputs as u64,
            h: shape.domain() as u64 - 1,
            l: shape.aux as u64,
            a: (shape.inputs + density.a_aux.count_ones()) as u64,
            b: (density.b_inputs.count_ones() + density.b_aux.count_ones()) as u64,
        }
    }

    /// Points of a prepared key's `h`: one for each point of the domain.
    pub fn prepared_h(&self) -> u64 {
        self.h + 1
    }

    /// Points of a prepared key's `l`: one for each variable.
    pub fn prepared_l(&self) -> u64 {
        self.inputs + self.l
    }

    /// Length of a prepared key's file in bytes.
    pub fn prepared_bytes(&self) -> u64 {
        PreparedLayout::of(self).file_bytes
    }

    /// Length of the verifying key file in bytes.
    pub fn vk_bytes(&self) -> u64 {
        VK_FIXED_BYTES + self.inputs * G1Affine::BYTES as u64
    }

    /// Length of the parameter file in bytes.
    pub fn params_bytes(&self) -> u64 {
        self.vk_bytes()
            + 5 * COUNT_BYTES
            + (self.h + self.l + self.a + self.b) * G1Affine::BYTES as u64
            + self.b * G2Affine::BYTES as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_size_of_porep_32g_follows_from_its_counts() {
        let counts = KeyCounts {
            inputs: 328,
            h: 134_217_727,
            l: 130_169_893,
            a: 129_753_620,
            b: 33_112_282,
        };
        assert_eq!(counts.params_bytes(), 47_373_928_632);
        assert_eq!(counts.vk_bytes(), 868 + 328 * 96);
    }
}
