//! Whole evaluations on the emulated device, and on a real one if there is one.

use blstrs::Scalar;
use ff::PrimeField;
use filecoin::native::NativeWitness;
use filecoin::support::fixtures;
use filecoin::{CircuitId, WitnessGenerator};
use proptest::prelude::*;
use r1cs::test_circuits::{Model, any_witness, circuits, row_limits};
use r1cs::{CompiledCircuit, Matrix, PackedWitness, Variable};

use super::tests::edge_circuit;
use super::*;
use crate::{CudaError, Device, Ledger, Lifetime, Phase};

fn devices() -> Vec<Device> {
    let mut devices = Vec::new();
    #[cfg(feature = "emulation")]
    devices.push(Device::emulated());
    match Device::open(0) {
        Ok(device) => devices.push(device),
        Err(CudaError::NotBuilt | CudaError::NoDriver | CudaError::NoDevice { .. }) => {}
        Err(error) => panic!("the GPU cannot be used: {error}"),
    }
    devices
}

/// What the device makes of a witness.
struct Evaluated {
    a: Vec<Scalar>,
    b: Vec<Scalar>,
    ones: Vec<u64>,
    /// Scalars and point indices of the tails.
    tails: Vec<(Query, Vec<[u32; 8]>, Vec<u32>)>,
}

fn evaluate(device: &Device, circuit: &CompiledCircuit, witness: &PackedWitness) -> Evaluated {
    let n = circuit.shape().domain();
    let mut ledger = Ledger::new("a test");
    let witness_plan = WitnessPlan::new(circuit, &mut ledger);
    let evaluator_plan = EvaluatorPlan::new(Program::new(circuit).unwrap(), &mut ledger);
    let queries = [Query::L, Query::PreparedL, Query::A, Query::B]
        .map(|query| QueryPlan::new(query, circuit, &mut ledger));
    let vectors = ["a", "b"]
        .map(|name| ledger.reserve::<Scalar>(name, n, Phase::Evaluate.to(Phase::Transform)));
    let lists = queries.each_ref().map(|query| {
        let mut reserve = |name, len| ledger.reserve::<u32>(name, len, Lifetime::RESIDENT);
        [
            reserve("scalars", 8 * query.terms()),
            reserve("points", query.terms()),
        ]
    });

    let arena = device.arena(&ledger).unwrap();
    let stream = device.stream().unwrap();
    let buffers = witness_plan.bind(device, &arena).unwrap();
    let evaluator = evaluator_plan.bind(device, &arena).unwrap();
    let [a, b] = vectors.map(|slot| arena.get(slot));
    // Rows that nobody writes must not look right by luck.
    for vector in [a, b] {
        stream.upload(vector, &vec![-Scalar::from(77); n]).unwrap();
    }
    buffers.upload(&stream, witness).unwrap();
    buffers.unpack(&stream).unwrap();
    evaluator.run(&stream, &buffers, a, b).unwrap();
    let download = |slice| {
        let mut values = vec![Scalar::default(); n];
        stream.download(slice, &mut values).unwrap();
        values
    };
    let mut ones = vec![0; buffers.ones().len()];
    stream.download(buffers.ones(), &mut ones).unwrap();
    let tails = queries.iter().zip(lists).map(|(plan, lists)| {
        let tail = plan.bind(device, &arena).unwrap();
        let [scalars, points] = lists.map(|slot| arena.get(slot));
        tail.scalars(&stream, &buffers, scalars).unwrap();
        tail.points(&stream, &buffers, points).unwrap();
        let mut out = (
            plan.query(),
            vec![[0; 8]; tail.terms()],
            vec![0; tail.terms()],
        );
        stream.download(scalars.cast(), &mut out.1).unwrap();
        stream.download(points, &mut out.2).unwrap();
        out
    });
    Evaluated {
        a: download(a),
        b: download(b),
        ones,
        tails: tails.collect(),
    }
}

fn check(device: &Device, circuit: &CompiledCircuit, witness: &PackedWitness) {
    let found = evaluate(device, circuit, witness);
    let (rows, n) = (circuit.shape().constraints, circuit.shape().domain());
    for (matrix, found) in [(Matrix::A, &found.a), (Matrix::B, &found.b)] {
        let mut expected = vec![Scalar::default(); n];
        circuit
            .evaluate(matrix, witness, &mut expected[..rows])
            .unwrap();
        if matrix == Matrix::A {
            expected[rows..rows + witness.inputs().len()].copy_from_slice(witness.inputs());
        }
        let wrong = found.iter().zip(&expected).position(|(x, y)| x != y);
        assert_eq!(wrong, None, "first wrong row of {matrix:?}");
    }
    check_ones(circuit, witness, &found.ones);
    for (query, scalars, points) in &found.tails {
        check_tail(circuit, witness, *query, scalars, points);
    }
}

fn check_ones(circuit: &CompiledCircuit, witness: &PackedWitness, ones: &[u64]) {
    let layout = circuit.layout();
    for aux in 0..ones.len() * 64 {
        let one = aux < circuit.shape().aux && layout.is_bit(aux as u32) && {
            let rank = layout.rank(aux as u32) as usize;
            witness.bits()[rank / 64] >> (rank % 64) & 1 == 1
        };
        assert_eq!(ones[aux / 64] >> (aux % 64) & 1 == 1, one, "aux {aux}");
    }
}

/// The tail by its definition.
fn check_tail(
    circuit: &CompiledCircuit,
    witness: &PackedWitness,
    query: Query,
    scalars: &[[u32; 8]],
    points: &[u32],
) {
    let (shape, density) = (circuit.shape(), circuit.density());
    let inputs = (0..shape.inputs).filter(|&i| match query {
        Query::L => false,
        Query::PreparedL | Query::A => true,
        Query::B => density.b_inputs.get(i),
    });
    let aux = (0..shape.aux).filter(|&j| match query {
        Query::L | Query::PreparedL => true,
        Query::A => density.a_aux.get(j),
        Query::B => density.b_aux.get(j),
    });
    let variables = inputs
        .map(|i| Variable::Input(i as u32))
        .chain(aux.map(|j| Variable::Aux(j as u32)));
    let (mut dense, mut inputs) = (witness.dense().iter(), 0);
    let (mut term, mut next_aux) = (0, 0);
    for (point, variable) in variables.enumerate() {
        let value = match variable {
            Variable::Input(i) => {
                inputs += 1;
                witness.inputs()[i as usize]
            }
            Variable::Aux(j) if circuit.layout().is_bit(j) => continue,
            Variable::Aux(j) => {
                // Dense values of variables without a point are passed over.
                let skipped = (next_aux..j)
                    .filter(|&k| !circuit.layout().is_bit(k))
                    .count();
                next_aux = j + 1;
                *dense.nth(skipped).unwrap()
            }
        };
        let bytes: Vec<u8> = scalars[term]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        assert_eq!(
            bytes,
            value.to_repr(),
            "{query:?}: scalar {term}, {variable}"
        );
        assert_eq!(
            points[term], point as u32,
            "{query:?}: point {term}, {variable}"
        );
        term += 1;
    }
    assert_eq!(term, scalars.len());
    assert!(inputs <= term);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn random_circuits(ops in circuits(), limit in row_limits(), seed: u64) {
        let (circuit, _) = Model::of(&ops, limit).finish();
        for device in devices() {
            check(&device, &circuit, &any_witness(&circuit, seed));
        }
    }
}

#[test]
fn every_kind_of_row() {
    let circuit = edge_circuit();
    for device in devices() {
        for seed in 0..2 {
            check(&device, &circuit, &any_witness(&circuit, seed));
        }
    }
}

#[test]
fn native_witnesses_of_every_kind_of_proof() {
    for device in devices() {
        for fixture in fixtures::all() {
            let requests = fixture.requests();
            let request = &requests[0];
            let id = request.circuit_id();
            if id.size != filecoin::SectorSize::KiB2 {
                continue;
            }
            let circuit = id.compiled().unwrap();
            let witness = NativeWitness.witness(request, 0, &circuit).unwrap();
            check(&device, &circuit, &witness);
        }
    }
}

#[test]
fn winning_post_of_32_gib() {
    let circuit = CircuitId::parse("winning-32g").unwrap().compiled().unwrap();
    for device in devices() {
        check(&device, &circuit, &any_witness(&circuit, 3));
    }
}
