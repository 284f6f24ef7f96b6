use ff::Field;
use proptest::prelude::*;

use super::*;
use crate::Matrix;
use crate::test_circuits::{Model, circuits, row_limits};

type Terms = Vec<(Variable, Fr)>;

fn rows_of(circuit: &CompiledCircuit) -> Vec<[Terms; 3]> {
    let mut rows = Vec::new();
    circuit.for_each_row(|row| {
        assert_eq!(row.index, rows.len() as u64);
        rows.push([row.a.to_vec(), row.b.to_vec(), row.c.to_vec()]);
    });
    rows
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rows_come_back(ops in circuits(), limit in row_limits()) {
        let model = Model::of(&ops, limit);
        let (inputs, aux) = (model.inputs as usize, model.aux as usize);
        let (circuit, expected) = model.finish();
        let expected: Vec<[Terms; 3]> = expected
            .into_iter()
            .map(|row| row.map(|terms| terms.into_iter().collect()))
            .collect();
        let shape = circuit.shape();
        prop_assert_eq!((shape.constraints, shape.inputs, shape.aux), (expected.len(), inputs, aux));
        prop_assert_eq!(&rows_of(&circuit), &expected);

        // CSR, statistics and density against the same rows.
        for m in Matrix::ALL {
            let csr = circuit.to_csr(m);
            let mut distinct = std::collections::HashSet::new();
            for (r, row) in expected.iter().enumerate() {
                let terms: Vec<(usize, Fr)> = (csr.starts[r]..csr.starts[r + 1])
                    .map(|t| t as usize)
                    .map(|t| (csr.columns[t] as usize, *circuit.dictionary().value(csr.coefficients[t])))
                    .collect();
                let plain: Vec<(usize, Fr)> = row[m as usize]
                    .iter()
                    .map(|&(v, c)| match v {
                        Variable::Input(i) => (i as usize, c),
                        Variable::Aux(i) => (inputs + i as usize, c),
                    })
                    .collect();
                distinct.extend(plain.iter().map(|t| t.1.to_bytes_le()));
                prop_assert_eq!(terms, plain);
            }
            let statistics = circuit.statistics();
            let nonzeros: usize = expected.iter().map(|row| row[m as usize].len()).sum();
            prop_assert_eq!(statistics.nonzeros[m as usize], nonzeros as u64);
            prop_assert_eq!(statistics.coefficients_by_matrix[m as usize], distinct.len());
        }
        let used = |m: Matrix, v: Variable| {
            expected.iter().any(|row| row[m as usize].iter().any(|t| t.0 == v))
        };
        let density = circuit.density();
        for (i, v) in (0..model_u32(aux)).map(|i| (i as usize, Variable::Aux(i))) {
            prop_assert_eq!(density.a_aux.get(i), used(Matrix::A, v));
            prop_assert_eq!(density.b_aux.get(i), used(Matrix::B, v));
        }
        for i in 0..model_u32(inputs) {
            prop_assert_eq!(density.b_inputs.get(i as usize), used(Matrix::B, Variable::Input(i)));
        }
    }

    #[test]
    fn layout_ranks_count(ops in circuits(), limit in row_limits()) {
        let (circuit, _) = Model::of(&ops, limit).finish();
        let layout = circuit.layout();
        let (mut bits, mut dense) = (0, 0);
        for aux in 0..model_u32(circuit.shape().aux) {
            prop_assert_eq!(layout.rank(aux), bits);
            if layout.is_bit(aux) {
                prop_assert_eq!(layout.place(aux), crate::Place::Bit(bits));
                bits += 1;
            } else {
                prop_assert_eq!(layout.place(aux), crate::Place::Dense(dense));
                dense += 1;
            }
        }
        prop_assert_eq!((layout.bit_count(), layout.dense_count()), (bits as usize, dense as usize));
        prop_assert_eq!(circuit.statistics().bits(), u64::from(bits));
    }
}

fn model_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap()
}

/// Blocks of one bit and one xor with an outer bit: one template, one shared argument.
#[test]
fn equal_blocks_share_a_template() {
    let mut model = Model::new(8);
    let outer = model.bit();
    for _ in 0..7 {
        model.builder.begin_block();
        let x = model.bit();
        let y = model.alloc_aux();
        model.enforce([&[(x, 2)], &[(outer, 1)], &[(outer, 1), (x, 1), (y, -1)]]);
        model.builder.end_block();
    }
    let (circuit, _) = model.finish();
    let statistics = circuit.statistics();
    assert_eq!(statistics.templates, 2);
    assert_eq!((statistics.calls, statistics.arguments), (8, 7));
    assert_eq!(
        (statistics.explicit_bits(), statistics.implied_bits()),
        (8, 7)
    );
    assert_eq!(statistics.non_bits(), 0);
    assert!(
        circuit
            .arguments(&circuit.calls()[3])
            .eq([Variable::Aux(0)])
    );
}

/// The same rows over an argument that is a bit and over one that is not: two templates,
/// because what follows differs.
#[test]
fn templates_are_typed_by_their_arguments() {
    let mut model = Model::new(3);
    let bit = model.bit();
    let number = model.alloc_aux();
    model.enforce([&[], &[], &[]]);
    model.enforce([&[], &[], &[]]);
    for outer in [bit, number] {
        model.builder.begin_block();
        let x = model.bit();
        let y = model.alloc_aux();
        model.enforce([&[(x, 1)], &[(outer, 1)], &[(y, 1)]]);
        model.builder.end_block();
    }
    let (circuit, _) = model.finish();
    assert_eq!(circuit.statistics().templates, 3);
    let bits: Vec<bool> = (0..6).map(|i| circuit.layout().is_bit(i)).collect();
    assert_eq!(bits, [true, false, true, true, true, false]);
}

/// A variable whose boolean row stands in another run than its allocation is no bit of
/// the layout: a template's layout must not depend on what follows its calls.
#[test]
fn a_boolean_row_elsewhere_makes_no_bit() {
    let mut model = Model::new(2);
    let x = model.alloc_aux();
    for _ in 0..3 {
        model.enforce([&[], &[], &[]]);
    }
    model.enforce([&[(Variable::ONE, 1), (x, -1)], &[(x, 1)], &[]]);
    let (circuit, _) = model.finish();
    assert!(circuit.calls().len() > 1);
    assert!(!circuit.layout().is_bit(0));
}

#[test]
fn an_empty_circuit_has_the_one() {
    let circuit = Builder::new().finish().unwrap();
    let shape = circuit.shape();
    assert_eq!((shape.constraints, shape.inputs, shape.aux), (0, 1, 0));
    assert_eq!(shape.domain(), 1);
    assert_eq!(circuit.calls().len(), 0);
}

#[test]
fn mistakes_are_errors() {
    let mut builder = Builder::new();
    builder.enforce(&[(Variable::Aux(0), Fr::ONE)], &[], &[]);
    let error = builder.finish().err();
    let variable = Variable::Aux(0);
    assert_eq!(error, Some(Error::UnknownVariable { row: 0, variable }));

    let mut builder = Builder::new();
    builder.enforce(&[], &[(Variable::Input(1), Fr::ONE)], &[]);
    let error = builder.finish().err();
    let variable = Variable::Input(1);
    assert_eq!(error, Some(Error::UnknownVariable { row: 0, variable }));

    let mut builder = Builder::new();
    builder.begin_block();
    assert_eq!(
        builder.finish().err(),
        Some(Error::UnbalancedBlocks { open: 1 })
    );

    let mut builder = Builder::new();
    builder.end_block();
    assert_eq!(
        builder.finish().err(),
        Some(Error::UnbalancedBlocks { open: 0 })
    );

    let mut builder = Builder::new();
    for i in 0..=1 << 16 {
        builder.enforce(&[(Variable::ONE, Fr::from(i + 1))], &[], &[]);
    }
    assert!(matches!(builder.finish(), Err(Error::TooLarge { .. })));
}

/// Loose rows beyond the limit are cut; memory for undecided rows stays bounded.
#[test]
fn long_loose_stretches_are_cut() {
    let mut builder = Builder::with_row_limits(1, 10);
    for _ in 0..1005 {
        let x = builder.alloc_aux();
        builder.enforce(&[(x, Fr::ONE)], &[(x, Fr::ONE)], &[(x, Fr::ONE)]);
        assert!(builder.pending.rows() <= 22, "{}", builder.pending.rows());
    }
    let circuit = builder.finish().unwrap();
    assert_eq!(circuit.shape().constraints, 1005);
    assert!(circuit.templates().iter().all(|t| t.rows() <= 11));
}
