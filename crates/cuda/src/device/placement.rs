//! Where buffers with known sizes and lifetimes go, so that those alive at the same time are
//! apart and the rest share bytes.

use std::cmp::Reverse;
use std::ops::RangeInclusive;

/// A buffer to be placed.
#[derive(Debug, Clone)]
pub struct Piece {
    /// A multiple of the alignment.
    pub bytes: u64,
    /// The steps of time at which it holds something.
    pub alive: RangeInclusive<u8>,
}

impl Piece {
    fn meets(&self, other: &Piece) -> bool {
        self.alive.start() <= other.alive.end() && other.alive.start() <= self.alive.end()
    }
}

/// An offset for each piece.
///
/// The largest first, each into the lowest gap between those already placed that are alive with
/// it. This is not always the least possible, but the buffers of a plan are few and the large
/// ones decide: [`lower_bound`] says how far off it can be.
pub fn place(pieces: &[Piece]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by_key(|&i| Reverse(pieces[i].bytes));
    let mut offsets = vec![0; pieces.len()];
    let mut placed: Vec<usize> = Vec::new();
    for &i in &order {
        let mut taken: Vec<(u64, u64)> = placed
            .iter()
            .filter(|&&j| pieces[j].meets(&pieces[i]))
            .map(|&j| (offsets[j], offsets[j] + pieces[j].bytes))
            .collect();
        taken.sort_unstable();
        let mut offset = 0;
        for (start, end) in taken {
            if start >= offset + pieces[i].bytes {
                break;
            }
            offset = offset.max(end);
        }
        offsets[i] = offset;
        placed.push(i);
    }
    offsets
}

/// The most bytes alive at one time: no placement takes less.
pub fn lower_bound(pieces: &[Piece]) -> u64 {
    let alive = |time: u8| -> u64 {
        let here = pieces.iter().filter(|piece| piece.alive.contains(&time));
        here.map(|piece| piece.bytes).sum()
    };
    pieces
        .iter()
        .map(|piece| alive(*piece.alive.start()))
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_alive_together_are_apart(
            pieces in prop::collection::vec((0u64..100, 0u8..10, 0u8..10), 0..40)
        ) {
            let pieces: Vec<Piece> = pieces
                .into_iter()
                .map(|(bytes, x, y)| Piece { bytes, alive: x.min(y)..=x.max(y) })
                .collect();
            let offsets = place(&pieces);
            for (i, x) in pieces.iter().enumerate() {
                for (j, y) in pieces.iter().enumerate().skip(i + 1) {
                    let together = x.alive.clone().any(|time| y.alive.contains(&time));
                    let apart = offsets[i] + x.bytes <= offsets[j] || offsets[j] + y.bytes <= offsets[i];
                    prop_assert!(!together || apart || x.bytes == 0 || y.bytes == 0, "{x:?} {y:?}");
                }
            }
            let peak = pieces.iter().zip(&offsets).map(|(piece, at)| at + piece.bytes).max();
            prop_assert!(peak.unwrap_or(0) >= lower_bound(&pieces));
            prop_assert!(peak.unwrap_or(0) <= pieces.iter().map(|piece| piece.bytes).sum());
        }
    }

    #[test]
    fn lifetimes_that_follow_each_other_share_bytes() {
        let piece = |bytes, alive| Piece { bytes, alive };
        let pieces = [
            piece(10, 0..=2),
            piece(4, 0..=0),
            piece(6, 1..=1),
            piece(3, 2..=9),
        ];
        assert_eq!(place(&pieces), [0, 10, 10, 10]);
        assert_eq!(lower_bound(&pieces), 16);
        assert_eq!(place(&[]), [0; 0]);
        assert_eq!(lower_bound(&[]), 0);
    }

    #[test]
    fn a_gap_that_is_large_enough_is_used() {
        let piece = |bytes, alive| Piece { bytes, alive };
        // 10 lies below 8, which lives alone at time 1; 5 fits under it there.
        let pieces = [piece(10, 0..=0), piece(8, 0..=1), piece(5, 1..=1)];
        assert_eq!(place(&pieces), [0, 10, 0]);
    }
}
