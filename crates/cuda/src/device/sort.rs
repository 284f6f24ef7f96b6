//! Device-wide sorting and prefix sums.

use std::ops::Range;

use crate::device::memory::DeviceSlice;
use crate::device::stream::Stream;
use crate::error::Result;

/// Pairs to be sorted: each of two buffers has room for all keys and values. Pair i is
/// (keys\[0\]\[i\], values\[0\]\[i\]).
#[derive(Debug, Clone, Copy)]
pub struct PairBuffers {
    /// Two buffers of equal length for the keys.
    pub keys: [DeviceSlice<u32>; 2],
    /// Two of the same length for the values.
    pub values: [DeviceSlice<u32>; 2],
}

/// Where sorted pairs are: one buffer of each kind of the [`PairBuffers`]. The other ones hold
/// leftovers.
#[derive(Debug, Clone, Copy)]
pub struct SortedPairs {
    /// Ascending in the bits that were sorted by.
    pub keys: DeviceSlice<u32>,
    /// Each at the place of its key.
    pub values: DeviceSlice<u32>,
}

/// What a sum is taken over.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sums {
    U32,
    U64,
}

/// Pairs that one block of CUB's radix sort takes at least, on any device we build for: the
/// smallest of its tilings for 4-byte keys and values has 8832.
const PAIRS_PER_BLOCK: usize = 8192;

/// Bytes of temporary memory that are enough to sort `len` pairs: a look-back entry for each of
/// the 256 values of a digit and each block, and the histograms. The call compares it with what
/// CUB asks for.
pub fn sort_temp_bytes(len: usize) -> usize {
    (len.div_ceil(PAIRS_PER_BLOCK) << 10) + (64 << 10)
}

/// Bytes of temporary memory that are enough for a prefix sum over `len` elements: up to 20 bytes
/// of look-back for each block of at least 512. The call compares it with what CUB asks for.
pub fn scan_temp_bytes(len: usize) -> usize {
    len.div_ceil(512) * 20 + (4 << 10)
}

impl Stream {
    /// Sorts pairs by the bits `bits` of their keys, ascending; pairs with equal bits keep their
    /// order. `temp` has at least [`sort_temp_bytes`].
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If the buffers' lengths differ or exceed 2^32 − 1, or the bits reach past 32.
    pub fn sort_pairs(
        &self,
        temp: DeviceSlice<u8>,
        pairs: &PairBuffers,
        bits: Range<u32>,
    ) -> Result<SortedPairs> {
        let PairBuffers { keys, values } = pairs;
        let len = keys[0].len();
        assert!(
            [keys[1], values[0], values[1]]
                .iter()
                .all(|buffer| buffer.len() == len),
            "buffers of equal length are sorted"
        );
        assert!(
            len <= u32::MAX as usize,
            "at most 2^32 - 1 pairs are sorted"
        );
        assert!(
            bits.start <= bits.end && bits.end <= 32,
            "bits {bits:?} of 32"
        );
        if len == 0 {
            return Ok(SortedPairs {
                keys: keys[0],
                values: values[0],
            });
        }
        // SAFETY: four buffers of `len` elements, and the temporary one with its length.
        let place = unsafe { self.driver.sort_pairs(self.handle, temp, pairs, bits)? };
        Ok(SortedPairs {
            keys: keys[place],
            values: values[place],
        })
    }

    /// output\[i\] = input\[0\] + … + input\[i−1\] mod 2^32. `output` may be `input`; `temp` has at
    /// least [`scan_temp_bytes`].
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If the lengths differ or exceed 2^32 − 1.
    pub fn exclusive_sum_u32(
        &self,
        temp: DeviceSlice<u8>,
        input: DeviceSlice<u32>,
        output: DeviceSlice<u32>,
    ) -> Result<()> {
        self.exclusive_sum(
            Sums::U32,
            temp,
            input.ptr(),
            output.ptr(),
            [input.len(), output.len()],
        )
    }

    /// As [`Self::exclusive_sum_u32`], mod 2^64.
    ///
    /// # Errors
    /// A driver that fails.
    ///
    /// # Panics
    /// If the lengths differ or exceed 2^32 − 1.
    pub fn exclusive_sum_u64(
        &self,
        temp: DeviceSlice<u8>,
        input: DeviceSlice<u64>,
        output: DeviceSlice<u64>,
    ) -> Result<()> {
        self.exclusive_sum(
            Sums::U64,
            temp,
            input.ptr(),
            output.ptr(),
            [input.len(), output.len()],
        )
    }

    fn exclusive_sum(
        &self,
        sums: Sums,
        temp: DeviceSlice<u8>,
        input: u64,
        output: u64,
        [len, output_len]: [usize; 2],
    ) -> Result<()> {
        assert_eq!(len, output_len, "as many sums as summands");
        assert!(len <= u32::MAX as usize, "at most 2^32 - 1 summands");
        if len == 0 {
            return Ok(());
        }
        // SAFETY: two buffers of `len` elements, and the temporary one with its length.
        unsafe {
            self.driver
                .exclusive_sum(self.handle, sums, temp, input, output, len as u32)
        }
    }
}
