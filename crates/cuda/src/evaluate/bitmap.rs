//! Bitmaps over the aux variables on the device.

use crate::{Arena, DeviceSlice, Ledger, Lifetime, Result, Slot, Stream};

/// A bitmap and the number of its ones before each word.
#[derive(Clone, Copy, Debug)]
pub struct DeviceBitmap {
    /// Bit i is bit i mod 64 of word i / 64; bits beyond the last variable are 0.
    pub words: DeviceSlice<u64>,
    /// Ones before each word.
    pub ranks: DeviceSlice<u32>,
}

/// Where a constant bitmap will be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BitmapSlots {
    words: Slot<u64>,
    ranks: Slot<u32>,
}

impl BitmapSlots {
    pub fn reserve(ledger: &mut Ledger, name: &str, words: usize) -> Self {
        Self {
            words: ledger.reserve(format!("{name} bitmap"), words, Lifetime::RESIDENT),
            ranks: ledger.reserve(format!("{name} ranks"), words, Lifetime::RESIDENT),
        }
    }

    pub fn upload(&self, arena: &Arena, stream: &Stream, words: &[u64]) -> Result<DeviceBitmap> {
        let bitmap = DeviceBitmap {
            words: arena.get(self.words),
            ranks: arena.get(self.ranks),
        };
        stream.upload(bitmap.words, words)?;
        stream.upload(bitmap.ranks, &ranks(words.iter().copied()))?;
        Ok(bitmap)
    }
}

/// The number of ones before each word. There are at most 2^28.
pub(crate) fn ranks(words: impl Iterator<Item = u64>) -> Vec<u32> {
    words
        .scan(0, |total, word| {
            let before = *total;
            *total += word.count_ones();
            Some(before)
        })
        .collect()
}
