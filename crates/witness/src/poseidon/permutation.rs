//! The round function on limbs, over the rewritten schedule.

use super::field::Element;
use super::parameters::{Parameters, Schedule};
use blstrs::Scalar as Fr;

/// Sees every S-box of a permutation, in order. A circuit's Poseidon gadget allocates exactly
/// these values, so a witness generator is an observer that writes them down.
pub trait Observer {
    /// One S-box: `input` = x, then x², x⁴ and `output` = x⁵ + key. `position` is the element's
    /// place in the state.
    fn s_box(
        &mut self,
        position: usize,
        input: Element,
        square: Element,
        fourth: Element,
        output: Element,
    );
}

/// Looks at nothing; compiles to nothing.
impl Observer for () {
    #[inline(always)]
    fn s_box(&mut self, _: usize, _: Element, _: Element, _: Element, _: Element) {}
}

/// One partial round's constants.
struct PartialRound<const T: usize> {
    key: Element,
    /// First column of the sparse matrix.
    column: [Element; T],
    /// First row of the sparse matrix; its corner is `column[0]` and the entry here is unused.
    row: [Element; T],
}

/// The Poseidon permutation of T elements with all its constants: 8 KiB of them for T = 3, 40 KiB for T = 12.
pub struct Permutation<const T: usize> {
    first_key: [Element; T],
    full_keys: Vec<[Element; T]>,
    partial: Vec<PartialRound<T>>,
    /// Columns of the MDS matrix.
    mds: [[Element; T]; T],
    /// Columns of the matrix in front of the partial rounds.
    pre_sparse: [[Element; T]; T],
}

fn elements<const T: usize>(values: &[Fr]) -> [Element; T] {
    std::array::from_fn(|i| values[i].into())
}

impl<const T: usize> Permutation<T> {
    /// Derives the constants.
    pub fn derive() -> Permutation<T> {
        let parameters = Parameters::new(T);
        let schedule = Schedule::new(&parameters);
        let columns =
            |m: &[Vec<Fr>]| std::array::from_fn(|j| std::array::from_fn(|i| m[i][j].into()));
        let rounds = schedule.partial_keys.iter().zip(&schedule.sparse);
        Permutation {
            first_key: elements(&schedule.first_key),
            full_keys: schedule.full_keys.iter().map(|key| elements(key)).collect(),
            partial: rounds
                .map(|(key, sparse)| PartialRound {
                    key: (*key).into(),
                    column: elements(&sparse.column),
                    row: std::array::from_fn(|j| match j {
                        0 => Element::default(),
                        _ => sparse.row[j - 1].into(),
                    }),
                })
                .collect(),
            mds: columns(&parameters.mds),
            pre_sparse: columns(&schedule.pre_sparse),
        }
    }

    /// Permutes the state in place and shows every S-box to `observer`.
    pub fn permute(&self, state: &mut [Element; T], observer: &mut impl Observer) {
        for (element, key) in state.iter_mut().zip(&self.first_key) {
            *element = *element + *key;
        }
        let half = self.full_keys.len().div_ceil(2);
        let (before, after) = self.full_keys.split_at(half);
        for (round, key) in before.iter().enumerate() {
            full_s_boxes(state, key, observer);
            let last = round + 1 == half;
            mix(state, if last { &self.pre_sparse } else { &self.mds });
        }
        for round in &self.partial {
            state[0] = s_box(0, state[0], round.key, observer);
            mix_sparse(state, round);
        }
        for key in after {
            full_s_boxes(state, key, observer);
            mix(state, &self.mds);
        }
        full_s_boxes(state, &[Element::default(); T], observer);
        mix(state, &self.mds);
    }
}

/// x⁵ + key.
#[inline(always)]
fn s_box(position: usize, x: Element, key: Element, observer: &mut impl Observer) -> Element {
    let square = x.square();
    let fourth = square.square();
    let output = fourth * x + key;
    observer.s_box(position, x, square, fourth, output);
    output
}

#[inline(always)]
fn full_s_boxes<const T: usize>(
    state: &mut [Element; T],
    keys: &[Element; T],
    observer: &mut impl Observer,
) {
    for (position, (element, key)) in state.iter_mut().zip(keys).enumerate() {
        *element = s_box(position, *element, *key, observer);
    }
}

/// s ← s · M, M given by its columns.
fn mix<const T: usize>(state: &mut [Element; T], columns: &[[Element; T]; T]) {
    *state = std::array::from_fn(|j| Element::dot(state, &columns[j]));
}

/// s ← s · M'', M'' the identity but for its first column and row.
fn mix_sparse<const T: usize>(state: &mut [Element; T], round: &PartialRound<T>) {
    let old = state[0];
    state[0] = Element::dot(state, &round.column);
    for (element, entry) in state.iter_mut().zip(&round.row).skip(1) {
        *element = *element + old * *entry;
    }
}
