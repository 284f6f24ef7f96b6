//! The distinct coefficients of a circuit; a term holds a 16-bit id into them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use blst::blst_fr;
use ff::{Field, PrimeField};

use crate::{Error, Fr};

/// Coefficients of at most this absolute value count as small: sums of up to 2^28 bits
/// times such coefficients stay below 2^60, so an `i64` accumulates a row.
pub const SMALL_LIMIT: u64 = 1 << 32;

/// Distinct non-zero coefficients in order of first use. At most 65 536.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Dictionary {
    values: Vec<Fr>,
    small: Vec<Option<i64>>,
    half_of: Vec<Option<u16>>,
}

impl Dictionary {
    /// The caller has checked that there are at most 2^16 values, distinct and non-zero.
    pub(crate) fn new(values: Vec<Fr>) -> Self {
        let small = values.iter().map(small_value).collect();
        let ids: HashMap<_, _> = values
            .iter()
            .zip(0u16..)
            .map(|(v, i)| (limbs(v), i))
            .collect();
        let half = Fr::from(2).invert().expect("2 is not 0 in the field");
        let half_of = values
            .iter()
            .map(|v| ids.get(&limbs(&(*v * half))).copied())
            .collect();
        Self {
            values,
            small,
            half_of,
        }
    }

    /// All values; the id of one is its index.
    #[must_use]
    pub fn values(&self) -> &[Fr] {
        &self.values
    }

    /// Value of the coefficient `id`.
    ///
    /// # Panics
    /// Where the id is not of this circuit.
    #[must_use]
    #[inline]
    pub fn value(&self, id: u16) -> &Fr {
        &self.values[usize::from(id)]
    }

    /// The value as a signed integer when it is within ±2^32.
    ///
    /// # Panics
    /// Where the id is not of this circuit.
    #[must_use]
    #[inline]
    pub fn small(&self, id: u16) -> Option<i64> {
        self.small[usize::from(id)]
    }

    /// [`Dictionary::small`] of every id.
    pub(crate) fn small_values(&self) -> &[Option<i64>] {
        &self.small
    }

    /// Id of half this coefficient, where the circuit uses that value too: packed sums
    /// count through powers of two, and doubling the last product is far cheaper than a
    /// multiplication.
    #[inline]
    pub(crate) fn half_of(&self, id: u16) -> Option<u16> {
        self.half_of[usize::from(id)]
    }
}

/// x or −x as an integer, where that is at most [`SMALL_LIMIT`].
fn small_value(x: &Fr) -> Option<i64> {
    let positive = |x: &Fr| {
        let bytes = x.to_repr();
        let (low, high) = bytes.split_at(8);
        let value = u64::from_le_bytes(low.try_into().expect("split at 8"));
        (high.iter().all(|&b| b == 0) && value <= SMALL_LIMIT)
            .then(|| i64::try_from(value).expect("at most 2^32"))
    };
    positive(x).or_else(|| positive(&-x).map(|v| -v))
}

/// Montgomery limbs: unique per value, hence usable as a key.
fn limbs(x: &Fr) -> [u64; 4] {
    blst_fr::from(*x).l
}

/// Hashes the four limbs of a coefficient by multiply-and-fold: the keys are ours, not an
/// adversary's, and there is one look-up per term recorded.
#[derive(Default)]
pub(crate) struct LimbHasher(u64);

impl Hasher for LimbHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, x: u32) {
        self.write_u64(u64::from(x));
    }

    fn write_u64(&mut self, x: u64) {
        let product = u128::from(self.0.rotate_left(5) ^ x) * u128::from(0x9e37_79b9_7f4a_7c15_u64);
        self.0 = ((product >> 64) ^ product) as u64;
    }
}

/// Map with [`LimbHasher`].
pub(crate) type LimbMap<K, V> = HashMap<K, V, BuildHasherDefault<LimbHasher>>;

/// Gives coefficients their ids while a circuit is built.
#[derive(Default)]
pub(crate) struct Interner {
    values: Vec<Fr>,
    small: Vec<Option<i64>>,
    ids: LimbMap<[u64; 4], u16>,
}

impl Interner {
    pub(crate) fn id(&mut self, value: &Fr) -> Result<u16, Error> {
        let key = limbs(value);
        if let Some(&id) = self.ids.get(&key) {
            return Ok(id);
        }
        let id = u16::try_from(self.values.len()).map_err(|_| Error::TooLarge {
            what: "number of distinct coefficients",
            value: self.values.len() as u64 + 1,
            limit: 1 << 16,
        })?;
        self.values.push(*value);
        self.small.push(small_value(value));
        self.ids.insert(key, id);
        Ok(id)
    }

    /// [`Dictionary::small`] of every id so far.
    pub(crate) fn small_values(&self) -> &[Option<i64>] {
        &self.small
    }

    pub(crate) fn finish(self) -> Dictionary {
        Dictionary::new(self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_end_at_the_limit() {
        let values: Vec<Fr> = [1, 2, SMALL_LIMIT, SMALL_LIMIT + 1, u64::MAX]
            .into_iter()
            .map(Fr::from)
            .flat_map(|v| [v, -v])
            .collect();
        let dictionary = Dictionary::new(values);
        let small: Vec<Option<i64>> = (0..10).map(|i| dictionary.small(i)).collect();
        let limit = i64::try_from(SMALL_LIMIT).unwrap();
        assert_eq!(
            small,
            [
                Some(1),
                Some(-1),
                Some(2),
                Some(-2),
                Some(limit),
                Some(-limit),
                None,
                None,
                None,
                None
            ]
        );
        assert_eq!(dictionary.half_of(2), Some(0));
        assert_eq!(dictionary.half_of(3), Some(1));
        assert_eq!(dictionary.half_of(0), None);
    }

    #[test]
    fn ids_run_out_with_an_error() {
        let mut interner = Interner::default();
        for i in 0..1 << 16 {
            assert_eq!(interner.id(&Fr::from(i + 1)).map(u64::from), Ok(i));
        }
        assert!(interner.id(&Fr::from(5)).is_ok());
        assert!(matches!(
            interner.id(&Fr::ZERO),
            Err(Error::TooLarge { .. })
        ));
    }
}
