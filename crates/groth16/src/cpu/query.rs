//! The sum of a witness over one of the key's queries.

use blstrs::Scalar;
use r1cs::{Bitmap, CompiledCircuit, PackedWitness};

use crate::curve::AffinePoint;
use crate::key::KeyError;
use crate::msm::{Chunk, Terms, chunk_len};
use crate::points::Points;

/// Which variables a query has points for; its points are in this order: inputs, then aux.
pub struct Present<'a> {
    inputs: Inputs<'a>,
    /// `None`: all of them.
    aux: Option<&'a Bitmap>,
}

enum Inputs<'a> {
    None,
    All,
    Some(&'a Bitmap),
}

impl<'a> Present<'a> {
    /// The L query: every aux variable.
    pub fn l(_: &'a CompiledCircuit) -> Self {
        Present {
            inputs: Inputs::None,
            aux: None,
        }
    }

    /// The L query of a prepared key: every variable.
    pub fn all(_: &'a CompiledCircuit) -> Self {
        Present {
            inputs: Inputs::All,
            aux: None,
        }
    }

    /// The A query: every input, because of the appended rows, and the aux variables in A.
    pub fn a(circuit: &'a CompiledCircuit) -> Self {
        Present {
            inputs: Inputs::All,
            aux: Some(&circuit.density().a_aux),
        }
    }

    /// The B queries: inputs and aux variables in B.
    pub fn b(circuit: &'a CompiledCircuit) -> Self {
        Present {
            inputs: Inputs::Some(&circuit.density().b_inputs),
            aux: Some(&circuit.density().b_aux),
        }
    }

    /// Which of the 64 aux variables of word `word` have a point.
    fn aux_word(&self, word: usize, aux: usize) -> u64 {
        match self.aux {
            Some(bitmap) => bitmap.words()[word],
            None => match aux - word * 64 {
                0..64 => (1 << (aux - word * 64)) - 1,
                _ => u64::MAX,
            },
        }
    }

    fn has_input(&self, input: usize) -> bool {
        match self.inputs {
            Inputs::None => false,
            Inputs::All => true,
            Inputs::Some(bitmap) => bitmap.get(input),
        }
    }
}

/// The terms w_j·point_j of a query, in chunks of consecutive variables.
///
/// The inputs are the first chunk. An aux variable that is a bit gives its point as it is or
/// nothing; only the points that count are read.
pub struct QueryTerms<'a, P> {
    points: &'a dyn Points<P>,
    circuit: &'a CompiledCircuit,
    witness: &'a PackedWitness,
    present: &'a Present<'a>,
    input_ranks: Vec<u32>,
    input_values: Vec<Scalar>,
    pieces: Vec<Piece>,
    /// Terms whose value is a field element.
    scalars: usize,
    /// Points that the query must have.
    total: usize,
}

/// Where a chunk of aux variables begins.
#[derive(Clone, Copy)]
struct Piece {
    /// Words of the aux bitmaps.
    start: usize,
    end: usize,
    /// Points before it.
    points: usize,
    /// Bit variables before it.
    bits: usize,
}

impl<'a, P> QueryTerms<'a, P> {
    pub fn new(
        points: &'a dyn Points<P>,
        present: &'a Present<'a>,
        circuit: &'a CompiledCircuit,
        witness: &'a PackedWitness,
    ) -> Self {
        let values = witness.inputs().iter().enumerate();
        let input_values: Vec<Scalar> = values
            .filter(|(i, _)| present.has_input(*i))
            .map(|(_, value)| *value)
            .collect();
        let mut terms = QueryTerms {
            points,
            circuit,
            witness,
            present,
            input_ranks: (0..input_values.len() as u32).collect(),
            scalars: input_values.len(),
            total: input_values.len(),
            input_values,
            pieces: Vec::new(),
        };
        terms.cut_aux();
        terms
    }

    /// Number of points that the query must have.
    pub fn points(&self) -> usize {
        self.total
    }

    /// Cuts the aux variables into pieces and counts what lies before each.
    fn cut_aux(&mut self) {
        let aux = self.circuit.shape().aux;
        let is_bit = self.circuit.layout().bitmap().words();
        let words_per_piece = chunk_len(aux).div_ceil(64);
        let mut bits = 0;
        for start in (0..is_bit.len()).step_by(words_per_piece) {
            let end = (start + words_per_piece).min(is_bit.len());
            self.pieces.push(Piece {
                start,
                end,
                points: self.total,
                bits,
            });
            for (word, &is_bit) in (start..end).zip(&is_bit[start..end]) {
                let present = self.present.aux_word(word, aux);
                self.total += present.count_ones() as usize;
                self.scalars += (present & !is_bit).count_ones() as usize;
                bits += is_bit.count_ones() as usize;
            }
        }
    }

    /// The piece's points by index: those to be added as they are, and those with a scalar.
    fn select(&self, piece: &Piece, scalars: &mut Vec<Scalar>) -> (Vec<u32>, Vec<u32>) {
        let aux = self.circuit.shape().aux;
        let is_bit = self.circuit.layout().bitmap().words();
        let (bits, dense) = (self.witness.bits(), self.witness.dense());
        let (mut ones, mut others) = (Vec::new(), Vec::new());
        let mut point = piece.points as u32;
        let mut bits_before = piece.bits;
        for word in piece.start..piece.end {
            let mut present = self.present.aux_word(word, aux);
            while present != 0 {
                let place = present.trailing_zeros();
                let below = (1 << place) - 1;
                let rank = bits_before + (is_bit[word] & below).count_ones() as usize;
                if is_bit[word] >> place & 1 == 0 {
                    others.push(point);
                    scalars.push(dense[word * 64 + place as usize - rank]);
                } else if bits[rank / 64] >> (rank % 64) & 1 == 1 {
                    ones.push(point);
                }
                point += 1;
                present &= present - 1;
            }
            bits_before += is_bit[word].count_ones() as usize;
        }
        (ones, others)
    }
}

impl<P: AffinePoint> Terms<P> for QueryTerms<'_, P> {
    fn chunks(&self) -> usize {
        1 + self.pieces.len()
    }

    fn scalars(&self) -> usize {
        self.scalars
    }

    fn load(&self, index: usize, chunk: &mut Chunk<P>) -> Result<(), KeyError> {
        let Some(piece) = index.checked_sub(1) else {
            chunk.scalars.extend_from_slice(&self.input_values);
            return gather(self.points, &self.input_ranks, &mut chunk.points);
        };
        let (ones, others) = self.select(&self.pieces[piece], &mut chunk.scalars);
        gather(self.points, &ones, &mut chunk.ones)?;
        gather(self.points, &others, &mut chunk.points)
    }
}

fn gather<P: AffinePoint>(
    points: &dyn Points<P>,
    indices: &[u32],
    out: &mut Vec<P>,
) -> Result<(), KeyError> {
    out.resize(indices.len(), P::identity());
    points.gather(indices, out)
}
