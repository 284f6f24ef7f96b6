//! The whole backend against the CPU's, with keys of small circuits.

#![allow(clippy::unwrap_used, reason = "test helpers may unwrap")]

use std::sync::Arc;
use std::thread;

use groth16::key::{KeyCounts, ProvingKey};
use groth16::setup::{self, SetupRequest};
use groth16::{Backend, BackendError, CpuBackend, GroupSums};
use r1cs::{CompiledCircuit, PackedWitness};

use super::dual::dual_run;
use super::sample::sample;
use super::self_test::self_test;
use super::{GpuBackend, PlanTarget, ProofPlan};
use crate::{CudaError, Device};

struct Case {
    circuit: CompiledCircuit,
    witness: PackedWitness,
    key: ProvingKey,
    _folder: tempfile::TempDir,
}

impl Case {
    fn new(steps: usize, bits: usize, seed: u64) -> Self {
        let (circuit, witness) = sample(steps, bits, seed).unwrap();
        circuit.check(&witness).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let request = SetupRequest {
            circuit: "sample",
            stem: "sample",
            folder: folder.path(),
            seed,
            cache: None,
        };
        let files = setup::generate(&circuit, &request, &()).unwrap();
        Case {
            key: ProvingKey::open(&files.params, &KeyCounts::of(&circuit)).unwrap(),
            circuit,
            witness,
            _folder: folder,
        }
    }

    fn sums(&self, backend: &dyn Backend) -> Result<GroupSums, BackendError> {
        let (sums, times) = backend.sums(&self.circuit, &self.key, &self.witness)?;
        assert!(times.iter().len() > 5);
        Ok(sums)
    }

    fn plan(&self, vram_bytes: u64) -> Result<ProofPlan, super::PlanError> {
        let target = PlanTarget {
            vram_bytes,
            limited: true,
            multiprocessors: 2,
        };
        ProofPlan::new("the circuit", &self.circuit, target)
    }
}

/// The emulated device, if it is built in, and a real one if there is one.
fn devices() -> Vec<Device> {
    let mut devices = Vec::new();
    #[cfg(feature = "emulation")]
    devices.push(Device::emulated());
    match Device::open(0) {
        Ok(device) => devices.push(device),
        Err(reason) => println!("not tested on a GPU: {reason}"),
    }
    devices
}

#[test]
fn every_sum_is_the_cpus() {
    let cpu = CpuBackend::new();
    // Steps, bits a step: no bits at all, few, mostly bits; domains of 2^1 to 2^9.
    for (steps, bits) in [(1, 0), (3, 2), (50, 0), (9, 30)] {
        let case = Case::new(steps, bits, 3 + steps as u64);
        let expected = case.sums(&cpu).unwrap();
        for device in devices() {
            let backend = GpuBackend::on(device);
            // Twice: the second proof finds leftovers of the first.
            for _ in 0..2 {
                let found = case.sums(&backend).unwrap();
                assert_eq!(found, expected, "{steps} steps of {bits} bits");
            }
        }
    }
}

#[test]
fn every_stage_is_the_cpus_also_between_proofs() {
    let case = Case::new(30, 4, 5);
    let expected = case.sums(&CpuBackend::new()).unwrap();
    for device in devices() {
        let backend = GpuBackend::on(device);
        for _ in 0..2 {
            dual_run(&backend, &case.circuit, &case.key, &case.witness).unwrap();
            assert_eq!(case.sums(&backend).unwrap(), expected);
        }
    }
}

#[test]
fn the_least_memory_that_is_named_is_enough() {
    let case = Case::new(40, 3, 1);
    let expected = case.sums(&CpuBackend::new()).unwrap();
    let Err(super::PlanError::Device(CudaError::DoesNotFit { needed, .. })) = case.plan(0) else {
        panic!("a plan without memory");
    };
    assert!(case.plan(needed - 1).is_err());
    let ample = case.plan(1 << 32).unwrap();
    let tight = case.plan(needed).unwrap();
    assert!(tight.bytes() <= needed && tight.units() == 1 && ample.units() == 2);
    assert!(ample.bytes() <= 1 << 32);
    for device in devices() {
        let least = if device.info().emulated {
            needed
        } else {
            1 << 30
        };
        let backend = GpuBackend::on(device.clone()).with_vram_limit(least);
        assert_eq!(case.sums(&backend).unwrap(), expected);
        let error = case
            .sums(&GpuBackend::on(device).with_vram_limit(1 << 16))
            .unwrap_err();
        let BackendError::Device { source, fatal } = error else {
            panic!("{error}");
        };
        assert!(
            !fatal && source.to_string().contains("Raise --vram"),
            "{source}"
        );
    }
}

#[test]
fn proofs_of_several_threads_and_circuits_do_not_meet() {
    let cases = [Case::new(20, 2, 1), Case::new(31, 0, 2)].map(Arc::new);
    let expected = cases
        .each_ref()
        .map(|case| case.sums(&CpuBackend::new()).unwrap());
    for device in devices() {
        let backend = GpuBackend::on(device);
        thread::scope(|scope| {
            for i in [0, 0, 0, 1, 0, 1] {
                let (backend, case, expected) = (&backend, &cases[i], &expected[i]);
                scope.spawn(move || assert_eq!(case.sums(backend).unwrap(), *expected));
            }
        });
    }
}

#[test]
fn another_circuits_key_is_refused() {
    let (case, other) = (Case::new(20, 2, 1), Case::new(21, 2, 1));
    for device in devices() {
        let backend = GpuBackend::on(device);
        let refused = backend.sums(&case.circuit, &other.key, &case.witness);
        let error = refused.unwrap_err();
        assert!(
            matches!(error, BackendError::OtherCircuit { .. }),
            "{error}"
        );
        assert!(case.sums(&backend).is_ok());
    }
}

#[test]
fn the_self_test_passes() {
    for device in devices() {
        let test = self_test(&GpuBackend::on(device)).unwrap();
        assert_eq!(test.constraints, 60 * 9);
    }
}
