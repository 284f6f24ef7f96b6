//! How a scalar is cut into windows.

/// Bits of a scalar after halving its range by sign: see [`super::digits`].
pub const SCALAR_BITS: u32 = 255;

/// Narrowest window: below 4 bits the shifted scalar would not fit, see [`super::digits`].
const MIN_WIDTH: u32 = 4;

/// Widest window. Its 2^20 buckets are 100 MB in G1.
const MAX_WIDTH: u32 = 21;

/// Consecutive windows of nearly equal widths that cover [`SCALAR_BITS`] bits exactly.
///
/// Uneven widths beat equal ones: the number of windows is what costs, and there is no short
/// window left over at the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    windows: Vec<Window>,
}

/// Bits `offset .. offset + width` of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Lowest bit.
    pub offset: u32,
    /// Number of bits.
    pub width: u32,
}

impl Window {
    /// Signed digits lie in −2^(width−1) … 2^(width−1) − 1; one bucket for every absolute value
    /// but 0.
    pub fn buckets(&self) -> usize {
        1 << (self.width - 1)
    }
}

impl Windows {
    /// The number of windows that needs the fewest additions for `terms` scalars spread over
    /// `threads` threads.
    pub fn for_terms(terms: usize, threads: usize) -> Self {
        let least = SCALAR_BITS.div_ceil(MAX_WIDTH);
        let most = SCALAR_BITS / MIN_WIDTH;
        (least..=most)
            .map(Self::with_count)
            .min_by(|a, b| {
                let cost = |windows: &Windows| windows.additions(terms, threads);
                cost(a).total_cmp(&cost(b))
            })
            .expect("invariant: the range of window counts is not empty")
    }

    /// `count` windows; those with one bit more come first.
    pub fn with_count(count: u32) -> Self {
        debug_assert!(count * MIN_WIDTH <= SCALAR_BITS);
        let (width, wider) = (SCALAR_BITS / count, SCALAR_BITS % count);
        let mut offset = 0;
        let windows = (0..count)
            .map(|i| {
                let window = Window {
                    offset,
                    width: width + u32::from(i < wider),
                };
                offset += window.width;
                window
            })
            .collect();
        Windows { windows }
    }

    /// Lowest first.
    pub fn iter(&self) -> std::slice::Iter<'_, Window> {
        self.windows.iter()
    }

    /// Number of windows.
    pub fn len(&self) -> usize {
        self.windows.len()
    }

    /// The model: point additions on the thread that finishes last.
    fn additions(&self, terms: usize, threads: usize) -> f64 {
        let buckets: usize = self.windows.iter().map(Window::buckets).sum();
        let buckets = buckets as f64;
        let threads = threads as f64;
        let filling = terms as f64 * self.len() as f64 / threads;
        // Every thread but one gives all its buckets to the merge, which all threads share.
        let merging = (threads - 1.0) * buckets / threads;
        // Two additions a bucket, shared by at most as many threads as there are windows.
        let reducing = 2.0 * buckets / threads.min(self.len() as f64);
        filling + merging + reducing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_cover_every_bit_once() {
        for count in 12..=63 {
            let windows = Windows::with_count(count);
            assert_eq!(windows.len(), count as usize);
            let mut offset = 0;
            for window in windows.iter() {
                assert_eq!(window.offset, offset);
                assert!(window.width >= MIN_WIDTH && window.width <= 22);
                offset += window.width;
            }
            assert_eq!(offset, SCALAR_BITS);
        }
    }

    #[test]
    fn more_terms_want_wider_windows() {
        let mut last = usize::MAX;
        for log in 0..30 {
            let windows = Windows::for_terms(1 << log, 2).len();
            assert!(windows <= last);
            last = windows;
        }
    }
}
