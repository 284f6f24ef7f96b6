//! Every buffer by name, size and lifetime, before anything is allocated.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::device::placement::{self, Piece};

/// Buffers begin at multiples of this: what the driver's own allocations promise.
pub const ALIGNMENT: u64 = 256;

/// The steps of a proof, in the order in which they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Phase {
    /// The packed witness comes over.
    Upload,
    /// Its bits go to the order of the aux variables.
    Unpack,
    /// A·w and B·w.
    Evaluate,
    /// From them to the quotient.
    Transform,
    /// The sum over the H query.
    SumH,
    /// The sum over the L query.
    SumL,
    /// The sum over the A query.
    SumA,
    /// The sum over the B query in G1.
    SumBG1,
    /// The sum over the B query in G2.
    SumBG2,
    /// The results go back.
    Download,
}

impl Phase {
    /// All phases.
    pub const ALL: [Phase; 10] = [
        Phase::Upload,
        Phase::Unpack,
        Phase::Evaluate,
        Phase::Transform,
        Phase::SumH,
        Phase::SumL,
        Phase::SumA,
        Phase::SumBG1,
        Phase::SumBG2,
        Phase::Download,
    ];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Upload => "upload",
            Phase::Unpack => "unpack",
            Phase::Evaluate => "evaluate",
            Phase::Transform => "ntt",
            Phase::SumH => "h",
            Phase::SumL => "l",
            Phase::SumA => "a",
            Phase::SumBG1 => "b_g1",
            Phase::SumBG2 => "b_g2",
            Phase::Download => "download",
        }
    }

    /// From this phase to the end of `last`.
    pub fn to(self, last: Phase) -> Lifetime {
        Lifetime { first: self, last }
    }
}

/// The phases during which a buffer holds something; outside, others may have its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetime {
    first: Phase,
    last: Phase,
}

impl Lifetime {
    /// From one proof to the next.
    pub const RESIDENT: Lifetime = Lifetime {
        first: Phase::Upload,
        last: Phase::Download,
    };

    /// Whether a buffer holds something during `phase`.
    pub fn contains(self, phase: Phase) -> bool {
        (self.first..=self.last).contains(&phase)
    }
}

impl From<Phase> for Lifetime {
    fn from(phase: Phase) -> Self {
        phase.to(phase)
    }
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Lifetime::RESIDENT {
            f.pad("resident")
        } else if self.first == self.last {
            f.pad(self.first.name())
        } else {
            f.pad(&format!("{} – {}", self.first.name(), self.last.name()))
        }
    }
}

/// The list of all buffers of a plan.
///
/// A clone may be added to separately; slots reserved before are of both.
#[derive(Debug, Clone)]
pub struct Ledger {
    id: u64,
    name: Cow<'static, str>,
    entries: Vec<LedgerEntry>,
}

/// A buffer in a ledger.
#[derive(Debug, Clone)]
pub struct LedgerEntry {
    /// What it is for, `topic: buffer`.
    pub name: Cow<'static, str>,
    /// Its size, rounded up to the alignment.
    pub bytes: u64,
    /// When it holds something.
    pub lifetime: Lifetime,
}

/// A buffer of `len` elements of a ledger.
pub struct Slot<T> {
    ledger: u64,
    index: usize,
    len: usize,
    _type: PhantomData<fn() -> T>,
}

impl<T> Slot<T> {
    /// Its number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slot<T> {}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({}, {} elements)", self.index, self.len)
    }
}

impl Ledger {
    /// An empty one; errors say that it is `name` that does not fit.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Ledger {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            name: name.into(),
            entries: Vec::new(),
        }
    }

    /// Whose buffers these are.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A buffer of `len` elements that holds something during `lifetime` (a [`Phase`] or more).
    ///
    /// Its first bytes are undefined at the start of its lifetime, also of resident ones at the
    /// start of the process.
    pub fn reserve<T>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        len: usize,
        lifetime: impl Into<Lifetime>,
    ) -> Slot<T> {
        let bytes = (len as u64 * size_of::<T>() as u64).next_multiple_of(ALIGNMENT);
        self.entries.push(LedgerEntry {
            name: name.into(),
            bytes,
            lifetime: lifetime.into(),
        });
        Slot {
            ledger: self.id,
            index: self.entries.len() - 1,
            len,
            _type: PhantomData,
        }
    }

    /// Room for all buffers of another ledger, as `Arena::within` places them.
    pub fn reserve_ledger(&mut self, inner: &Ledger, lifetime: impl Into<Lifetime>) -> Slot<u8> {
        self.reserve(inner.name.clone(), inner.peak_bytes() as usize, lifetime)
    }

    /// All buffers, in the order in which they were reserved.
    pub fn entries(&self) -> &[LedgerEntry] {
        &self.entries
    }

    /// Where everything goes.
    pub fn layout(&self) -> Layout {
        let pieces = self.pieces();
        let offsets = placement::place(&pieces);
        let ends = pieces.iter().zip(&offsets).map(|(p, at)| at + p.bytes);
        Layout {
            ledger: self.id,
            peak_bytes: ends.max().unwrap_or(0),
            offsets,
        }
    }

    /// Bytes of memory that the plan takes.
    pub fn peak_bytes(&self) -> u64 {
        self.layout().peak_bytes()
    }

    /// The most bytes that hold something at one time: no layout takes less.
    pub fn least_bytes(&self) -> u64 {
        placement::lower_bound(&self.pieces())
    }

    fn pieces(&self) -> Vec<Piece> {
        let piece = |entry: &LedgerEntry| Piece {
            bytes: entry.bytes,
            alive: entry.lifetime.first as u8..=entry.lifetime.last as u8,
        };
        self.entries.iter().map(piece).collect()
    }
}

/// Offsets of a ledger's buffers in their arena.
#[derive(Debug, Clone)]
pub struct Layout {
    ledger: u64,
    offsets: Vec<u64>,
    peak_bytes: u64,
}

impl Layout {
    /// Where a buffer begins.
    ///
    /// # Panics
    /// If the slot is of another ledger, or was reserved after the layout was made.
    pub fn offset<T>(&self, slot: Slot<T>) -> u64 {
        assert_eq!(self.ledger, slot.ledger, "a slot of another ledger");
        self.offsets[slot.index]
    }

    /// Where each buffer begins, in the order in which they were reserved.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// The end of the last buffer.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_share_bytes_between_phases() {
        let mut ledger = Ledger::new("a test");
        let key = ledger.reserve::<[u64; 12]>("key: h", 100, Lifetime::RESIDENT);
        let a = ledger.reserve::<u32>("a", 1000, Phase::Evaluate.to(Phase::Transform));
        let b = ledger.reserve::<u32>("b", 1000, Phase::SumH.to(Phase::SumBG2));
        let none = ledger.reserve::<u32>("nothing", 0, Phase::SumH);
        let layout = ledger.layout();
        assert_eq!(layout.offset(key), 0);
        assert_eq!(layout.offset(a), 9728);
        assert_eq!(layout.offset(b), 9728);
        assert!(none.is_empty());
        assert_eq!(layout.peak_bytes(), 9728 + 4096);
        assert_eq!(ledger.least_bytes(), ledger.peak_bytes());
    }

    #[test]
    #[should_panic(expected = "another ledger")]
    fn slots_are_known_to_their_own_ledger_only() {
        let mut ledger = Ledger::new("a test");
        let slot = ledger.reserve::<u8>("x", 1, Phase::Upload);
        let _ = Ledger::new("another").layout().offset(slot);
    }

    #[test]
    fn phases_are_listed_in_order() {
        assert!(Phase::ALL.is_sorted());
        assert_eq!(Phase::ALL.len(), Phase::Download as usize + 1);
        assert_eq!(Lifetime::RESIDENT.to_string(), "resident");
        assert_eq!(Lifetime::from(Phase::SumH).to_string(), "h");
        assert_eq!(
            Phase::Evaluate.to(Phase::Transform).to_string(),
            "evaluate – ntt"
        );
    }
}
