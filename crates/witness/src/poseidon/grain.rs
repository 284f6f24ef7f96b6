//! Round constants: the Grain LFSR in self-shrinking mode (Poseidon paper, appendix E).

use blstrs::Scalar as Fr;
use ff::PrimeField;

/// Bits of a field element, which is also the size n the generator is seeded with.
const FIELD_BITS: u32 = Fr::NUM_BITS;

/// The generator's 80 bits of state. Bit i of the integer is bᵢ, the oldest bit is b₀.
struct Grain(u128);

impl Grain {
    /// Seeds the state with the instance: prime field, S-box x^5, n, t, R_F, R_P, then ones;
    /// every number most significant bit first. The first 160 bits are thrown away.
    fn new(width: usize, full_rounds: usize, partial_rounds: usize) -> Grain {
        let fields: [(u128, u32); 7] = [
            (1, 2),
            (1, 4),
            (u128::from(FIELD_BITS), 12),
            (width as u128, 12),
            (full_rounds as u128, 10),
            (partial_rounds as u128, 10),
            ((1 << 30) - 1, 30),
        ];
        let mut state = 0u128;
        let mut position = 0;
        for (value, bits) in fields {
            for bit in (0..bits).rev() {
                state |= ((value >> bit) & 1) << position;
                position += 1;
            }
        }
        debug_assert_eq!(position, 80);
        let mut grain = Grain(state);
        for _ in 0..160 {
            grain.shift();
        }
        grain
    }

    /// Shifts in b₈₀ = b₆₂ ⊕ b₅₁ ⊕ b₃₈ ⊕ b₂₃ ⊕ b₁₃ ⊕ b₀ and returns it.
    fn shift(&mut self) -> bool {
        let taps = [62, 51, 38, 23, 13, 0];
        let bit = taps.iter().fold(0, |acc, tap| acc ^ (self.0 >> tap)) & 1;
        self.0 = (self.0 >> 1) | (bit << 79);
        bit == 1
    }

    /// The next output bit: of each pair of bits the second, if the first is one.
    fn output(&mut self) -> bool {
        loop {
            let keep = self.shift();
            let bit = self.shift();
            if keep {
                return bit;
            }
        }
    }

    /// The next field element: `FIELD_BITS` output bits, most significant first, drawn again while not below r.
    fn element(&mut self) -> Fr {
        loop {
            let mut bytes = [0u8; 32];
            for position in (0..FIELD_BITS as usize).rev() {
                bytes[position / 8] |= u8::from(self.output()) << (position % 8);
            }
            if let Some(element) = Option::from(Fr::from_repr(bytes)) {
                return element;
            }
        }
    }
}

/// The (R_F + R_P) · t round constants in order of use, round by round.
pub fn round_constants(width: usize, full_rounds: usize, partial_rounds: usize) -> Vec<Fr> {
    let mut grain = Grain::new(width, full_rounds, partial_rounds);
    (0..(full_rounds + partial_rounds) * width)
        .map(|_| grain.element())
        .collect()
}
