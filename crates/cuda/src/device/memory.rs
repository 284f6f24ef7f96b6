//! Device memory: typed slices of one arena.

use std::fmt;
use std::marker::PhantomData;
use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;

use blstrs::{G1Affine, G2Affine, Scalar};

use crate::device::driver::Driver;
use crate::device::ledger::{ALIGNMENT, Layout, Ledger, Slot};
use crate::error::{CudaError, Result};

/// A type whose values are plain bytes.
///
/// # Safety
/// Every byte pattern of the type's size is a value of it (for the field and curve types: a value
/// that is safe to hold, though perhaps not a canonical one), and it has no padding.
pub unsafe trait Pod: Copy + Send + Sync + 'static {}

macro_rules! pod {
    ($($(#[$why:meta])* $type:ty),* $(,)?) => {
        $(
            // SAFETY: an integer, or words of a field element (see the list below).
            unsafe impl Pod for $type {}
        )*
    };
}

// The blstrs types are `repr(transparent)` over blst's structs of 64-bit words.
pod!(
    u8, u16, u32, u64, i8, i16, i32, i64, Scalar, G1Affine, G2Affine
);

// SAFETY: an array has the bytes of its elements and nothing between them.
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}

/// Where `len` elements lie in device memory.
///
/// Only an address: it must not be used after its arena is gone, which nothing checks.
#[repr(C)]
pub struct DeviceSlice<T> {
    address: u64,
    len: usize,
    _type: PhantomData<fn() -> T>,
}

impl<T> DeviceSlice<T> {
    /// `len` elements at `address`, which must lie in an arena.
    pub(crate) fn new(address: u64, len: usize) -> Self {
        DeviceSlice {
            address,
            len,
            _type: PhantomData,
        }
    }

    /// No elements.
    pub fn empty() -> Self {
        Self::new(0, 0)
    }

    /// Its address.
    pub fn ptr(&self) -> u64 {
        self.address
    }

    /// Its number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The elements `range`.
    ///
    /// # Panics
    /// If the range reaches past the end.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "elements {range:?} of a device slice of {}",
            self.len
        );
        Self::new(
            self.address + (range.start * size_of::<T>()) as u64,
            range.len(),
        )
    }

    /// The same bytes as elements of another type; what does not fill an element is left out.
    ///
    /// # Panics
    /// If the address is not aligned for `U`.
    #[must_use]
    pub fn cast<U>(&self) -> DeviceSlice<U> {
        assert!(
            self.address.is_multiple_of(align_of::<U>() as u64),
            "a device slice at {:#x} is not aligned for {}",
            self.address,
            std::any::type_name::<U>()
        );
        DeviceSlice::new(self.address, self.bytes() / size_of::<U>())
    }
}

impl<T> Clone for DeviceSlice<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceSlice<T> {}

impl<T> fmt::Debug for DeviceSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}[{}]", self.address, self.len)
    }
}

/// The memory of all buffers of a ledger, in one allocation or in a part of another arena's.
pub struct Arena {
    /// Shared by the arenas within it.
    allocation: Arc<Allocation>,
    base: u64,
    layout: Layout,
}

/// Device memory that is freed when the last arena in it goes.
struct Allocation {
    driver: Arc<dyn Driver>,
    address: u64,
}

impl Arena {
    pub(crate) fn new(
        driver: Arc<dyn Driver>,
        ledger: &Ledger,
        limit: Option<u64>,
    ) -> Result<Self> {
        let layout = ledger.layout();
        let needed = layout.peak_bytes();
        let free = driver.free_bytes()?;
        let available = limit.unwrap_or(u64::MAX).min(free);
        if needed > available {
            return Err(CudaError::DoesNotFit {
                what: ledger.name().to_owned(),
                needed,
                available,
                limited: limit.is_some_and(|limit| limit <= free),
            });
        }
        let address = driver.allocate(needed.max(ALIGNMENT))?;
        debug_assert!(address.is_multiple_of(ALIGNMENT));
        Ok(Arena {
            allocation: Arc::new(Allocation { driver, address }),
            base: address,
            layout,
        })
    }

    /// The buffers of `ledger` in the room that [`Ledger::reserve_ledger`] named for them.
    ///
    /// # Panics
    /// If the slot is of another ledger, or the room is too small.
    #[must_use]
    pub fn within(&self, room: Slot<u8>, ledger: &Ledger) -> Arena {
        let (room, layout) = (self.get(room), ledger.layout());
        assert!(
            layout.peak_bytes() <= room.len() as u64,
            "{} bytes in a room of {}",
            layout.peak_bytes(),
            room.len()
        );
        Arena {
            allocation: Arc::clone(&self.allocation),
            base: room.ptr(),
            layout,
        }
    }

    /// Where the buffer of `slot` lies.
    ///
    /// # Panics
    /// If the slot is of another ledger.
    pub fn get<T>(&self, slot: Slot<T>) -> DeviceSlice<T> {
        let offset = self.layout.offset(slot);
        DeviceSlice::new(self.base + offset, slot.len())
    }

    /// Bytes of memory that it takes.
    pub fn bytes(&self) -> u64 {
        self.layout.peak_bytes()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: the address came from `allocate` and nothing else frees it.
        unsafe { self.driver.free(self.address) };
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arena({:#x}, {} bytes)", self.base, self.bytes())
    }
}
