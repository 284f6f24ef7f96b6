use std::collections::BTreeMap;

use ff::Field;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use super::*;
use crate::test_circuits::{Model, any_assignment, any_witness, circuits, row_limits};

fn product(terms: &BTreeMap<Variable, Fr>, inputs: &[Fr], aux: &[Fr]) -> Fr {
    terms
        .iter()
        .map(|(variable, coefficient)| match variable {
            Variable::Input(i) => inputs[*i as usize] * coefficient,
            Variable::Aux(i) => aux[*i as usize] * coefficient,
        })
        .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn evaluation_is_the_naive_product(ops in circuits(), limit in row_limits(), seed: u64) {
        let (circuit, rows) = Model::of(&ops, limit).finish();
        let (inputs, aux) = any_assignment(&circuit, seed);
        let w = PackedWitness::from_assignment(&circuit, &inputs, &aux).unwrap();
        for m in Matrix::ALL {
            let mut out = vec![Fr::ONE; rows.len()];
            circuit.evaluate(m, &w, &mut out).unwrap();
            let expected: Vec<Fr> = rows.iter().map(|r| product(&r[m as usize], &inputs, &aux)).collect();
            prop_assert_eq!(out, expected);
        }
        let first_wrong = rows.iter().position(|row| {
            let [a, b, c] = row.each_ref().map(|t| product(t, &inputs, &aux));
            a * b != c
        });
        let expected = first_wrong.map_or(Ok(()), |row| Err(Error::Unsatisfied { row: row as u64 }));
        prop_assert_eq!(circuit.check(&w), expected);
    }

    #[test]
    fn columns_are_the_naive_transposed_product(ops in circuits(), limit in row_limits(), seed: u64) {
        let (circuit, rows) = Model::of(&ops, limit).finish();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let values: Vec<Fr> = rows.iter().map(|_| Fr::random(&mut rng)).collect();
        let shape = circuit.shape();
        for m in Matrix::ALL {
            let mut expected = vec![Fr::ZERO; shape.inputs + shape.aux];
            for (row, value) in rows.iter().zip(&values) {
                for (variable, coefficient) in &row[m as usize] {
                    let column = match variable {
                        Variable::Input(i) => *i as usize,
                        Variable::Aux(i) => shape.inputs + *i as usize,
                    };
                    expected[column] += *coefficient * value;
                }
            }
            prop_assert_eq!(circuit.columns_at(m, &values), expected);
        }
    }

    #[test]
    fn rows_are_the_naive_product(ops in circuits(), limit in row_limits(), seed: u64) {
        let (circuit, rows) = Model::of(&ops, limit).finish();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let shape = circuit.shape();
        let values: Vec<Fr> = (0..shape.inputs + shape.aux).map(|_| Fr::random(&mut rng)).collect();
        let (inputs, aux) = values.split_at(shape.inputs);
        for m in Matrix::ALL {
            let expected: Vec<Fr> = rows.iter().map(|r| product(&r[m as usize], inputs, aux)).collect();
            prop_assert_eq!(circuit.rows_at(m, &values), expected);
        }
    }

    #[test]
    fn values_come_back(ops in circuits(), limit in row_limits(), seed: u64) {
        let (circuit, _) = Model::of(&ops, limit).finish();
        let (inputs, aux) = any_assignment(&circuit, seed);
        let w = PackedWitness::from_assignment(&circuit, &inputs, &aux).unwrap();
        for (i, value) in (0u32..).zip(&inputs) {
            prop_assert_eq!(&w.value(&circuit, Variable::Input(i)), value);
        }
        for (i, value) in (0u32..).zip(&aux) {
            prop_assert_eq!(&w.value(&circuit, Variable::Aux(i)), value);
        }
        let parts = PackedWitness::from_parts(
            &circuit,
            w.inputs().to_vec(),
            w.bits().to_vec(),
            w.dense().to_vec(),
        );
        prop_assert_eq!(parts, Ok(w));
    }
}

/// Three bits and all gadgets, as one run: a witness that satisfies it, then every
/// change of one value is found, by its bit rule or by the check.
#[test]
fn every_wrong_value_is_found() {
    let mut model = Model::new(1000);
    let [a, b, c] = [(); 3].map(|()| model.bit());
    let x = model.alloc_aux();
    model.enforce([&[(a, 2)], &[(b, 1)], &[(a, 1), (b, 1), (x, -1)]]);
    let y = model.alloc_aux();
    model.enforce([&[(b, 1)], &[(c, 1)], &[(y, 1)]]);
    let z = model.alloc_aux();
    model.enforce([&[(y, 2), (b, -1), (c, -1)], &[(a, 1)], &[(y, 1), (z, -1)]]);
    let packed = model.alloc_aux();
    model.enforce([
        &[(a, 1), (b, 2), (c, 4), (packed, -1)],
        &[(Variable::ONE, 1)],
        &[],
    ]);
    let (circuit, _) = model.finish();
    // a, b, c, a⊕b, b·c, maj, a + 2b + 4c.
    let aux = [1, 0, 1, 1, 0, 1, 5].map(Fr::from);
    let w = PackedWitness::from_assignment(&circuit, &[Fr::ONE], &aux).unwrap();
    assert_eq!(circuit.check(&w), Ok(()));
    let rows = [0, 1, 2, 3, 4, 5];
    let rules = ["boolean", "boolean", "boolean", "xor", "and", "maj"];
    for k in 0..7usize {
        for value in [Fr::ZERO, Fr::ONE, Fr::from(2), -Fr::ONE, Fr::from(1 << 40)] {
            let mut wrong = aux;
            if wrong[k] == value {
                continue;
            }
            wrong[k] = value;
            let packed = PackedWitness::from_assignment(&circuit, &[Fr::ONE], &wrong);
            if k < 6 && value != Fr::ZERO && value != Fr::ONE {
                let error = Error::NotABit {
                    variable: Variable::Aux(u32::try_from(k).unwrap()),
                    row: rows[k],
                    rule: rules[k],
                };
                assert_eq!(packed, Err(error));
            } else {
                assert!(matches!(
                    circuit.check(&packed.unwrap()),
                    Err(Error::Unsatisfied { .. })
                ));
            }
        }
    }
}

#[test]
fn wrong_lengths_are_errors() {
    let mut model = Model::new(10);
    model.bit();
    model.alloc_aux();
    model.bit();
    let (circuit, _) = model.finish();
    let w = any_witness(&circuit, 1);
    assert!(matches!(
        circuit.evaluate(Matrix::A, &w, &mut [Fr::ZERO]),
        Err(Error::Length { .. })
    ));
    let one = [Fr::ONE];
    let from = |inputs: &[Fr], aux: &[Fr]| PackedWitness::from_assignment(&circuit, inputs, aux);
    assert!(from(&one, &[Fr::ZERO; 3]).is_ok());
    assert!(matches!(
        from(&one, &[Fr::ZERO; 2]),
        Err(Error::Length { .. })
    ));
    assert!(matches!(
        from(&one, &[Fr::ZERO; 4]),
        Err(Error::Length { .. })
    ));
    assert!(matches!(
        from(&[], &[Fr::ZERO; 3]),
        Err(Error::Length { .. })
    ));
    assert_eq!(
        from(&[Fr::ZERO], &[Fr::ZERO; 3]),
        Err(Error::FirstInputNotOne)
    );
    let parts = |bits: &[u64], dense: usize| {
        PackedWitness::from_parts(&circuit, vec![Fr::ONE], bits.to_vec(), vec![Fr::ONE; dense])
    };
    assert!(parts(&[0b11], 1).is_ok());
    assert!(parts(&[0b111], 1).is_err());
    assert!(parts(&[], 1).is_err());
    assert!(parts(&[0], 2).is_err());

    // A witness of another circuit.
    let other = Model::new(10).finish().0;
    assert!(matches!(other.check(&w), Err(Error::Length { .. })));
}

/// Packed sums reach the integer accumulator's range and the table's ends.
#[test]
fn integer_rows_agree_with_field_rows() {
    let mut model = Model::new(1000);
    let bits: Vec<Variable> = (0..70).map(|_| model.bit()).collect();
    for step in 1..=33i64 {
        let sum: Vec<(Variable, i64)> = bits.iter().map(|&b| (b, step - 17)).collect();
        let powers: Vec<(Variable, i64)> = (0..33).map(|k| (bits[k], 1i64 << k)).collect();
        let negative: Vec<(Variable, i64)> = powers.iter().map(|&(v, c)| (v, -c)).collect();
        model.enforce([&sum, &powers, &negative]);
    }
    let (circuit, rows) = model.finish();
    for seed in 0..4 {
        let (inputs, mut aux) = any_assignment(&circuit, seed);
        if seed == 0 {
            aux.fill(Fr::ONE);
        }
        let w = PackedWitness::from_assignment(&circuit, &inputs, &aux).unwrap();
        for m in Matrix::ALL {
            let mut out = vec![Fr::ZERO; rows.len()];
            circuit.evaluate(m, &w, &mut out).unwrap();
            for (value, row) in out.iter().zip(&rows) {
                assert_eq!(*value, product(&row[m as usize], &inputs, &aux));
            }
        }
    }
}
