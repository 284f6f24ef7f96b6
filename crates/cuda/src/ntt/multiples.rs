//! Multiples of r, by which the kernels bring sums back below 2^256.

/// The modulus r, in words from the lowest.
const MODULUS: [u64; 4] = [
    0xffff_ffff_0000_0001,
    0x53bd_a402_fffe_5bfe,
    0x3339_d808_09a1_d805,
    0x73ed_a753_299d_7d48,
];

/// Entries of the table.
pub const MULTIPLES: usize = 128;

/// Entry 64 + k is −⌊k·2^254/r⌋·r modulo 2^256, for −64 ≤ k < 64: `Multiples` of
/// `kernels/ntt/lazy.cuh`.
pub fn table() -> Vec<[u64; 4]> {
    let half = MULTIPLES as u64 / 2;
    // Below zero the floor of a quotient is less its ceiling.
    let negative = (1..=half)
        .rev()
        .map(|k| low_words(times_modulus(ceiling(k))));
    let positive = (0..half).map(|k| negated(low_words(times_modulus(floor(k)))));
    negative.chain(positive).collect()
}

/// j·r.
fn times_modulus(j: u64) -> [u64; 5] {
    let mut product = [0; 5];
    let mut carry = 0;
    for (word, modulus) in product.iter_mut().zip(MODULUS) {
        let sum = u128::from(modulus) * u128::from(j) + carry;
        *word = sum as u64;
        carry = sum >> 64;
    }
    product[4] = carry as u64;
    product
}

/// k·2^254.
fn quarters(k: u64) -> [u64; 5] {
    [0, 0, 0, k << 62, k >> 2]
}

/// ⌊k·2^254/r⌋: r is more than 2^254, so it is at most k.
fn floor(k: u64) -> u64 {
    let fits = |j: &u64| {
        times_modulus(*j)
            .into_iter()
            .rev()
            .le(quarters(k).into_iter().rev())
    };
    (0..=k).rev().find(fits).unwrap_or(0)
}

/// ⌈k·2^254/r⌉ for k > 0: 2^254 and its small multiples are no multiples of r.
fn ceiling(k: u64) -> u64 {
    floor(k) + 1
}

fn low_words(words: [u64; 5]) -> [u64; 4] {
    let [a, b, c, d, _] = words;
    [a, b, c, d]
}

/// Less it, modulo 2^256.
fn negated(words: [u64; 4]) -> [u64; 4] {
    let mut carry = true;
    words.map(|word| {
        let (sum, over) = (!word).overflowing_add(carry.into());
        carry = over;
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (x + y) modulo 2^256.
    fn add(x: [u64; 4], y: [u64; 4]) -> [u64; 4] {
        let mut carry = 0;
        let mut sum = [0; 4];
        for (sum, (x, y)) in sum.iter_mut().zip(x.into_iter().zip(y)) {
            let wide = u128::from(x) + u128::from(y) + carry;
            *sum = wide as u64;
            carry = wide >> 64;
        }
        sum
    }

    /// What is left of k·2^254 and of the number before (k + 1)·2^254 is below 2^254 + r.
    #[test]
    fn sums_settle() {
        let mut bound = MODULUS;
        bound[3] += 1 << 62;
        let table = table();
        assert_eq!(table.len(), MULTIPLES);
        for (i, entry) in table.into_iter().enumerate() {
            let quarter = [0, 0, 0, (i as u64) << 62];
            let last = [u64::MAX, u64::MAX, u64::MAX, quarter[3] | u64::MAX >> 2];
            for sum in [quarter, last] {
                let rest = add(sum, entry);
                assert!(
                    rest.iter().rev().lt(bound.iter().rev()),
                    "entry {i}: {rest:x?}"
                );
            }
        }
    }
}
