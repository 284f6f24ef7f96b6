//! A keyed permutation of 0..n: three Feistel rounds over BLAKE2b, walked until back in range.

use blake2b_simd::blake2b;

const ROUNDS: usize = 3;

/// The permutation.
pub struct Feistel {
    keys: [u64; ROUNDS],
    /// n.
    elements: u64,
    /// Bits of each half; the cipher permutes 0..4^half_bits.
    half_bits: u32,
}

impl Feistel {
    /// Keys are the seed's first 64-bit little-endian words. 4 ≤ `elements` ≤ 2^62.
    pub fn new(seed: &[u8; 32], elements: u64) -> Feistel {
        let key = |i: usize| {
            let bytes = seed[8 * i..8 * i + 8].try_into();
            u64::from_le_bytes(bytes.expect("invariant: 8 bytes"))
        };
        Feistel {
            keys: std::array::from_fn(key),
            elements,
            half_bits: (elements - 1).ilog2() / 2 + 1,
        }
    }

    /// The image of `index` < n. The cipher's domain is less than four times n, so the walk is short.
    pub fn permute(&self, index: u64) -> u64 {
        let mut image = self.encrypt(index);
        while image >= self.elements {
            image = self.encrypt(image);
        }
        image
    }

    fn encrypt(&self, block: u64) -> u64 {
        let mask = (1 << self.half_bits) - 1;
        let mut left = block >> self.half_bits & mask;
        let mut right = block & mask;
        for key in self.keys {
            (left, right) = (right, left ^ (round_function(right, key) & mask));
        }
        left << self.half_bits | right
    }
}

/// The first 64 bits, big-endian, of BLAKE2b(half || key), both big-endian.
fn round_function(half: u64, key: u64) -> u64 {
    let mut input = [0; 16];
    input[..8].copy_from_slice(&half.to_be_bytes());
    input[8..].copy_from_slice(&key.to_be_bytes());
    let digest = blake2b(&input);
    let head = digest.as_bytes()[..8].try_into();
    u64::from_be_bytes(head.expect("invariant: a digest has 64 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_a_permutation() {
        for elements in [4, 5, 6, 8, 12, 16, 17, 512, 1000] {
            let feistel = Feistel::new(&[7; 32], elements);
            let mut images: Vec<u64> = (0..elements).map(|i| feistel.permute(i)).collect();
            images.sort_unstable();
            assert_eq!(images, (0..elements).collect::<Vec<_>>(), "n = {elements}");
        }
    }

    #[test]
    fn halves_are_the_least_that_hold_n() {
        for (elements, half_bits) in [
            (4, 1),
            (5, 2),
            (16, 2),
            (17, 3),
            (512, 5),
            (1 << 33, 17),
            (1 << 34, 17),
        ] {
            assert_eq!(
                Feistel::new(&[0; 32], elements).half_bits,
                half_bits,
                "n = {elements}"
            );
        }
    }
}
