//! A test key's files against the reference's own generator, given the same secrets.

#![allow(clippy::unwrap_used)] // A failed step is a failed test.

use std::path::Path;

use bellpepper_core::num::AllocatedNum;
use bellpepper_core::{Circuit, ConstraintSystem, SynthesisError};
use bellperson::groth16::{
    Parameters, create_proof, generate_parameters, prepare_verifying_key, verify_proof,
};
use blstrs::{Bls12, G1Projective, G2Projective, Scalar};
use ff::Field;
use groth16::setup::{SetupRequest, TestKey, Trapdoor, generate};
use group::Group;
use r1cs::{Builder, CompiledCircuit};
use recorder::Recording;

/// x ↦ x² + x repeated, the start an auxiliary variable, the end an input, with inputs and
/// auxiliary variables allocated between constraints.
#[derive(Clone)]
struct Chain {
    start: Option<Scalar>,
    steps: usize,
}

impl Circuit<Scalar> for Chain {
    fn synthesize<CS: ConstraintSystem<Scalar>>(self, cs: &mut CS) -> Result<(), SynthesisError> {
        let missing = SynthesisError::AssignmentMissing;
        let mut value = self.start;
        let mut last = AllocatedNum::alloc(cs.namespace(|| "start"), || value.ok_or(missing))?;
        for step in 0..self.steps {
            let missing = SynthesisError::AssignmentMissing;
            value = value.map(|x| x.square() + x);
            let next =
                AllocatedNum::alloc(cs.namespace(|| format!("{step}")), || value.ok_or(missing))?;
            cs.enforce(
                || format!("row {step}"),
                |lc| lc + last.get_variable(),
                |lc| lc + last.get_variable() + CS::one(),
                |lc| lc + next.get_variable(),
            );
            if step % 5 == 4 {
                next.inputize(cs.namespace(|| format!("input {step}")))?;
            }
            last = next;
        }
        last.inputize(cs.namespace(|| "end"))
    }
}

fn made(chain: &Chain, folder: &Path) -> (CompiledCircuit, TestKey) {
    let mut recording = Recording::into(Builder::new());
    let blank = Chain {
        start: None,
        ..chain.clone()
    };
    blank.synthesize(&mut recording).unwrap();
    let circuit = recording.finish().finish().unwrap();
    let request = SetupRequest {
        circuit: "chain",
        stem: "v28-chain",
        folder,
        seed: 11,
        cache: None,
    };
    let key = generate(&circuit, &request, &()).unwrap();
    (circuit, key)
}

/// Sizes around the domain's powers of two.
#[test]
fn the_files_are_the_reference_generators_byte_for_byte() {
    for steps in [1, 2, 5, 10, 11, 12, 13, 100] {
        let chain = Chain { start: None, steps };
        let dir = tempfile::tempdir().unwrap();
        let (circuit, key) = made(&chain, dir.path());
        let secrets = Trapdoor::from_seed(11, circuit.shape().domain());
        let reference = generate_parameters::<Bls12, _>(
            chain,
            G1Projective::generator(),
            G2Projective::generator(),
            secrets.alpha,
            secrets.beta,
            secrets.gamma,
            secrets.delta,
            secrets.tau,
        )
        .unwrap();
        let (mut params, mut vk) = (Vec::new(), Vec::new());
        reference.write(&mut params).unwrap();
        reference.vk.write(&mut vk).unwrap();
        assert!(
            std::fs::read(&key.params).unwrap() == params,
            "{steps} steps"
        );
        assert!(std::fs::read(&key.vk).unwrap() == vk, "{steps} steps");
    }
}

#[test]
fn the_reference_reads_proves_and_verifies_with_the_files() {
    let chain = Chain {
        start: Some(Scalar::from(3)),
        steps: 23,
    };
    let dir = tempfile::tempdir().unwrap();
    let (_, key) = made(&chain, dir.path());
    let file = std::fs::File::open(&key.params).unwrap();
    let read = Parameters::<Bls12>::read(std::io::BufReader::new(file), true).unwrap();
    let mapped = Parameters::<Bls12>::build_mapped_parameters(key.params, true).unwrap();

    let mut x = Scalar::from(3);
    let mut inputs = Vec::new();
    for step in 0..chain.steps {
        x = x.square() + x;
        if step % 5 == 4 {
            inputs.push(x);
        }
    }
    inputs.push(x);
    let (r, s) = (Scalar::from(5), Scalar::from(6));
    let prepared = prepare_verifying_key(&read.vk);
    let from_memory = create_proof(chain.clone(), &read, r, s).unwrap();
    let from_map = create_proof(chain, &mapped, r, s).unwrap();
    assert_eq!(from_memory, from_map);
    assert!(verify_proof(&prepared, &from_memory, &inputs).unwrap());
    inputs[0] += Scalar::ONE;
    assert!(!verify_proof(&prepared, &from_memory, &inputs).unwrap());
}
