//! Runs a [`Program`] on the host, unit by unit as the kernels do. Tests only.

use ff::Field;
use r1cs::{Fr, PackedWitness};

use super::program::{
    CallBase, FieldUnit, NONE, PackedRow, Program, RowUnit, SLICE, ShortUnit, Slice,
};
use super::rows::{COPY, ELSEWHERE, Piece, SHORT_TERMS};
use super::source::{Kind, Source};

/// The rows of A·w and B·w, each written exactly once.
pub struct Interpreter<'p> {
    program: &'p Program,
    bits: &'p [u64],
    values: Vec<Fr>,
    out: [Vec<Option<Fr>>; 2],
}

impl<'p> Interpreter<'p> {
    pub fn run(program: &'p Program, witness: &'p PackedWitness) -> [Vec<Fr>; 2] {
        let rows = program.shape.constraints;
        let mut interpreter = Self {
            program,
            bits: witness.bits(),
            values: [witness.inputs(), witness.dense()].concat(),
            out: [vec![None; rows], vec![None; rows]],
        };
        assert_eq!(interpreter.values.len(), program.value_count);
        program
            .short_units
            .iter()
            .for_each(|unit| interpreter.short(unit));
        program
            .packed_units
            .iter()
            .for_each(|unit| interpreter.packed(unit));
        program
            .field_units
            .iter()
            .for_each(|unit| interpreter.field(unit));
        program
            .long_units
            .iter()
            .for_each(|unit| interpreter.long(unit));
        interpreter.out.map(|rows| {
            let rows = rows.into_iter().enumerate();
            rows.map(|(row, value)| value.unwrap_or_else(|| panic!("row {row} is not written")))
                .collect()
        })
    }

    fn write(&mut self, matrix: u32, call: &CallBase, row: u32, value: Fr) {
        let place = &mut self.out[matrix as usize][(call.row + row) as usize];
        assert!(place.replace(value).is_none(), "row {row} is written twice");
    }

    fn bit(&self, index: u32) -> bool {
        assert!((index as usize) < self.program.bit_count);
        self.bits[index as usize / 64] >> (index % 64) & 1 == 1
    }

    fn value(&self, call: &CallBase, source: Source) -> Fr {
        let index = source.index();
        let argument = || self.program.arguments[(call.argument + index) as usize];
        let bit = |index| Fr::from(u64::from(self.bit(index)));
        match source.kind() {
            Kind::One => Fr::ONE,
            Kind::OwnBit => bit(call.bit + index),
            Kind::ArgumentBit => bit(argument()),
            Kind::OwnValue => self.values[(call.value + index) as usize],
            Kind::OwnInput => self.values[(call.input + index) as usize],
            Kind::ArgumentValue => self.values[argument() as usize],
            Kind::Nothing => Fr::ZERO,
        }
    }

    fn short(&mut self, unit: &ShortUnit) {
        let [rows, matrix, calls] = [
            (unit.shape & 0xff) + 1,
            unit.shape >> 8 & 1,
            unit.shape >> 16,
        ];
        for call in unit.first_call..unit.first_call + calls {
            let call = self.program.calls[call as usize];
            for row in 0..rows {
                let code = self.program.short_rows[(unit.code + row) as usize];
                let value = match code.constant {
                    ELSEWHERE => continue,
                    COPY => self.value(&call, code.terms[0].into()),
                    constant => {
                        let sum = (0..SHORT_TERMS).fold(i64::from(constant), |sum, k| {
                            let source = Source::from(code.terms[k]);
                            let one = source.kind() != Kind::Nothing
                                && self.value(&call, source) == Fr::ONE;
                            sum + i64::from(code.coefficients[k]) * i64::from(one)
                        });
                        assert!(sum.abs() <= super::rows::SHORT_LIMIT);
                        r1cs::test_circuits::integer(sum)
                    }
                };
                self.write(matrix, &call, unit.row + row, value);
            }
        }
    }

    fn packed(&mut self, unit: &RowUnit) {
        let row = self.program.packed_rows[unit.row as usize];
        for call in unit.first_call..unit.first_call + unit.calls {
            let call = self.program.calls[call as usize];
            let mut value = self.packed_sum(&row, &call);
            if row.constant != NONE {
                value += self.program.coefficients[row.constant as usize];
            }
            self.write(row.place >> 31, &call, row.place << 1 >> 1, value);
        }
    }

    fn packed_sum(&self, row: &PackedRow, call: &CallBase) -> Fr {
        let mut limbs = [0i64; 8];
        for k in 0..row.steps * 32 {
            let piece = self.program.pieces[(row.pieces + k) as usize];
            if piece == Piece::NOTHING.word() {
                continue;
            }
            let kind = [Kind::OwnBit, Kind::ArgumentBit][(piece >> 31) as usize];
            let source = Source::new(kind, (piece & 0x1ff_ffff) as usize).unwrap();
            if self.value(call, source) == Fr::ONE {
                let term = 1i64 << (piece >> 25 & 31);
                let negative = piece >> 30 & 1 == 1;
                limbs[k as usize % 32 / 4] += if negative { -term } else { term };
            }
        }
        let base = Fr::from(1 << 32);
        limbs.iter().rev().fold(Fr::ZERO, |sum, &limb| {
            sum * base + r1cs::test_circuits::integer(limb)
        })
    }

    fn product(&self, call: &CallBase, term: usize) -> Fr {
        let source = Source::from(self.program.sources[term]);
        let id = self.program.ids[term];
        self.value(call, source) * self.program.coefficients[usize::from(id)]
    }

    fn field(&mut self, unit: &FieldUnit) {
        let call = self.program.calls[unit.call as usize];
        for slice in unit.slice..unit.slice + unit.slices {
            let Slice {
                terms,
                steps,
                lanes,
                rows,
            } = self.program.slices[slice as usize];
            let (matrix, lanes) = (lanes >> 31, lanes << 1 >> 1);
            assert!(lanes as usize <= SLICE);
            for lane in 0..lanes {
                let lane_terms = (0..steps).map(|step| terms + step * lanes + lane);
                let value = lane_terms
                    .map(|term| self.product(&call, term as usize))
                    .sum();
                let row = self.program.slice_rows[(rows + lane) as usize];
                self.write(matrix, &call, row, value);
            }
        }
    }

    fn long(&mut self, unit: &RowUnit) {
        let row = self.program.long_rows[unit.row as usize];
        for call in unit.first_call..unit.first_call + unit.calls {
            let call = self.program.calls[call as usize];
            let terms = row.terms..row.terms + row.count;
            let value = terms.map(|term| self.product(&call, term as usize)).sum();
            self.write(row.place >> 31, &call, row.place << 1 >> 1, value);
        }
    }
}
