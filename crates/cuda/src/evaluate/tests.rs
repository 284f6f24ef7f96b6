use ff::Field;
use filecoin::{CircuitId, SectorSize};
use proptest::prelude::*;
use r1cs::test_circuits::{Model, any_witness, circuits, row_limits};
use r1cs::{CompiledCircuit, Fr, Matrix, PackedWitness, Variable};

use super::Program;
use super::interpreter::Interpreter;

fn check_program(circuit: &CompiledCircuit, witness: &PackedWitness) {
    let program = Program::new(circuit).unwrap();
    let out = Interpreter::run(&program, witness);
    for (matrix, out) in [Matrix::A, Matrix::B].into_iter().zip(out) {
        let mut expected = vec![Fr::ZERO; circuit.shape().constraints];
        circuit.evaluate(matrix, witness, &mut expected).unwrap();
        let wrong = out.iter().zip(&expected).position(|(x, y)| x != y);
        assert_eq!(wrong, None, "first wrong row of {matrix:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn programs_of_random_circuits(ops in circuits(), limit in row_limits(), seed: u64) {
        let (circuit, _) = Model::of(&ops, limit).finish();
        check_program(&circuit, &any_witness(&circuit, seed));
    }
}

/// Rows of every kind at the edges of the kinds, in blocks which are called twice.
pub(super) fn edge_circuit() -> CompiledCircuit {
    let mut model = Model::new(1500);
    let outer: Vec<Variable> = (0..40).map(|_| model.bit()).collect();
    let outer_values: Vec<Variable> = (0..40).map(|_| model.alloc_aux()).collect();
    model.builder.alloc_input();
    model.inputs += 1;
    for _ in 0..2 {
        model.builder.begin_block();
        model.builder.alloc_input();
        model.inputs += 1;
        let input = Variable::Input(model.inputs - 1);
        let mut bits = outer.clone();
        bits.extend((0..600).map(|_| model.bit()));
        let mut values = outer_values.clone();
        values.extend((0..300).map(|_| model.alloc_aux()));
        values.push(input);
        edge_rows(&mut model, &bits, &values);
        model.builder.end_block();
    }
    let (circuit, _) = model.finish();
    let calls = circuit.calls();
    assert!(
        calls
            .iter()
            .any(|call| calls.iter().filter(|c| c.template == call.template).count() > 1)
    );
    circuit
}

fn edge_rows(model: &mut Model, bits: &[Variable], values: &[Variable]) {
    let power = |k: usize| Fr::from(2).pow_vartime([k as u64]);
    let one = |c: i64| (Variable::ONE, r1cs::test_circuits::integer(c));
    let mut rows: Vec<Vec<(Variable, Fr)>> = Vec::new();
    // Short ones at the table's ends and beyond.
    for constant in [-32, -31, -28, 0, 1, 28, 31, 32] {
        rows.push(vec![one(constant)]);
        for coefficients in [&[3][..], &[-3], &[1, -2], &[1, 1, 1], &[1, 1, 1, 1]] {
            let mut row = vec![one(constant)];
            let terms = bits.iter().zip(coefficients);
            row.extend(terms.map(|(&bit, &c)| (bit, r1cs::test_circuits::integer(c))));
            rows.push(row);
        }
    }
    // Packed ones: sums of words shifted up to the field's size, with signs, with a
    // variable that occurs twice, with any constant; and those that pass 2^256.
    for (count, step, top) in [
        (4, 1, 3),
        (33, 1, 64),
        (600, 1, 253),
        (640, 7, 255),
        (640, 0, 1),
    ] {
        for signs in 0..3 {
            let terms = bits.iter().take(count).enumerate().map(|(k, &bit)| {
                let exponent = if step == 0 { 254 } else { k * step % top };
                let term = if k % 5 == 1 {
                    power(exponent) + power(k % 100)
                } else {
                    power(exponent)
                };
                let negative = signs == 1 || signs == 2 && k % 3 == 0;
                (bit, if negative { -term } else { term })
            });
            let mut row: Vec<_> = terms.collect();
            rows.push(row.clone());
            row.push((Variable::ONE, -power(200) + power(17) + Fr::from(12345)));
            rows.push(row);
        }
    }
    // Field elements: copies, single ones with other coefficients, every length around a
    // slice's and a long row's.
    for (k, &value) in values.iter().enumerate() {
        rows.push(vec![(value, Fr::ONE)]);
        rows.push(vec![(value, -Fr::ONE), one(k as i64)]);
    }
    let mixed: Vec<Variable> = values
        .iter()
        .flat_map(|v| [*v, bits[0]])
        .chain(bits.iter().copied())
        .collect();
    for length in [2, 3, 31, 32, 33, 255, 256, 257, 300, 341] {
        let terms = values.iter().chain(bits).take(length).enumerate();
        rows.push(
            terms
                .map(|(k, &v)| (v, Fr::from(3).pow_vartime([k as u64 * 31 % 200])))
                .collect(),
        );
        rows.push(
            mixed
                .iter()
                .take(length)
                .map(|&v| (v, -Fr::from(7)))
                .collect(),
        );
    }
    for pair in rows.chunks(2) {
        model.enforce_field(&[pair[0].clone(), pair.last().unwrap().clone(), vec![]]);
    }
}

#[test]
fn programs_of_every_kind_of_row() {
    let circuit = edge_circuit();
    let program = Program::new(&circuit).unwrap();
    assert!(!program.packed_units.is_empty());
    assert!(!program.long_units.is_empty());
    assert!(program.field_units.iter().any(|unit| unit.slices > 1));
    for seed in 0..3 {
        check_program(&circuit, &any_witness(&circuit, seed));
    }
    let layout = circuit.layout();
    let aux = |bit: Fr| -> Vec<Fr> {
        let bits = (0..circuit.shape().aux).map(|aux| layout.is_bit(aux as u32));
        bits.map(|is_bit| if is_bit { bit } else { -Fr::ONE })
            .collect()
    };
    let inputs = [vec![Fr::ONE], vec![-Fr::ONE; circuit.shape().inputs - 1]].concat();
    for bit in [Fr::ZERO, Fr::ONE] {
        let witness = PackedWitness::from_assignment(&circuit, &inputs, &aux(bit)).unwrap();
        check_program(&circuit, &witness);
    }
}

#[test]
fn programs_of_small_filecoin_circuits() {
    for id in CircuitId::all() {
        if matches!(id.size, SectorSize::KiB2 | SectorSize::MiB8) {
            let circuit = id.compiled().unwrap();
            check_program(&circuit, &any_witness(&circuit, 7));
        }
    }
}
