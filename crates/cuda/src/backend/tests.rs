//! The whole backend against the CPU's, with keys of small circuits.

#![allow(clippy::unwrap_used, reason = "test helpers may unwrap")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use groth16::key::{KeyCounts, KeyForm, ProvingKey};
use groth16::points::Points;
use groth16::progress::Progress;
use groth16::setup::{self, CpuFixedBase, EphemeralRequest};
use groth16::{Backend, BackendError, CpuBackend, GroupSums};
use r1cs::{CompiledCircuit, PackedWitness};

use super::dual::dual_run;
use super::loaded::Identity;
use super::plan::DRIVER_BYTES;
use super::sample::{sample, sample_with};
use super::self_test::self_test;
use super::{GpuBackend, PlanTarget, ProofPlan};
use crate::ntt::QuotientForm;
use crate::{CudaError, Device};

struct Case {
    circuit: CompiledCircuit,
    witness: PackedWitness,
    key: ProvingKey,
}

impl Case {
    fn new(steps: usize, bits: usize, seed: u64) -> Self {
        Self::of_form(steps, bits, seed, KeyForm::Published)
    }

    fn of_form(steps: usize, bits: usize, seed: u64, form: KeyForm) -> Self {
        let (circuit, witness) = sample(steps, bits, seed).unwrap();
        circuit.check(&witness).unwrap();
        let request = EphemeralRequest {
            circuit: "sample",
            seed,
            form,
        };
        let multiplier = CpuFixedBase::new(&KeyCounts::of(&circuit));
        let made = setup::generate_ephemeral(&circuit, &request, &multiplier, &()).unwrap();
        Case {
            key: made.key,
            circuit,
            witness,
        }
    }

    fn sums(&self, backend: &dyn Backend) -> Result<GroupSums, BackendError> {
        let (sums, times) = backend.sums(&self.circuit, &self.key, &self.witness)?;
        assert!(times.iter().len() > 5);
        Ok(sums)
    }

    fn plan(&self, vram_bytes: u64) -> Result<ProofPlan, super::PlanError> {
        self.plan_for(vram_bytes, 1)
    }

    fn plan_for(&self, vram_bytes: u64, callers: usize) -> Result<ProofPlan, super::PlanError> {
        let target = PlanTarget {
            vram_bytes,
            limited: true,
            multiprocessors: 2,
            callers,
        };
        ProofPlan::new("the circuit", &self.circuit, target)
    }

    /// The least memory that does.
    fn least(&self) -> u64 {
        let Err(super::PlanError::Device(CudaError::DoesNotFit { needed, .. })) = self.plan(0)
        else {
            panic!("a plan without memory");
        };
        needed
    }

    /// On `device`, with the key streamed in chunks of at most `slot_bytes`, `proofs` proofs in a pass.
    fn streaming(&self, device: &Device, slot_bytes: u64, proofs: usize) -> GpuBackend {
        let target = PlanTarget {
            vram_bytes: 4 << 30,
            limited: true,
            multiprocessors: device.info().multiprocessors,
            callers: proofs,
        };
        let form = QuotientForm::from(self.key.form());
        let plan = ProofPlan::streamed_as("the circuit", &self.circuit, form, target, |search| {
            search.run_with(slot_bytes, proofs)
        });
        let plan = plan.unwrap().unwrap();
        assert_eq!(plan.units(), proofs);
        let sections = plan.streaming().unwrap().sections;
        let chunks = sections.map(|section| section.chunks);
        println!("{slot_bytes} bytes, {proofs} proofs: {chunks:?} chunks");
        let backend = GpuBackend::on(device.clone());
        let identity = Identity {
            circuit: self.circuit.digest(),
            key: self.key.stamp(),
        };
        let loaded = backend.load_as(identity, &self.key, plan);
        loaded.map_err(BackendError::from).unwrap();
        backend
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

/// The sums of l and h are shared out differently; what a proof holds of them is the same.
#[test]
fn prepared_keys_give_the_same_proofs() {
    for (steps, bits) in [(1, 0), (40, 0), (7, 12)] {
        let [published, prepared] =
            [KeyForm::Published, KeyForm::Prepared].map(|form| Case::of_form(steps, bits, 9, form));
        let expected = published.sums(&CpuBackend::new()).unwrap();
        for device in devices() {
            let resident = GpuBackend::on(device.clone());
            let streamed = prepared.streaming(&device, 12_288, 1);
            for backend in [&resident, &streamed] {
                dual_run(backend, &prepared.circuit, &prepared.key, &prepared.witness).unwrap();
                let found = prepared.sums(backend).unwrap();
                assert_eq!(found.l + found.h, expected.l + expected.h);
                assert_ne!(found.h, expected.h);
                let others = |sums: &GroupSums| (sums.a, sums.b_g1, sums.b_g2);
                assert_eq!(others(&found), others(&expected));
            }
            // A key of each form, side by side.
            assert_eq!(published.sums(&resident).unwrap(), expected);
            assert_eq!(resident.resident().len(), 2);
        }
    }
}

#[test]
fn the_least_memory_that_is_named_is_enough() {
    let case = Case::new(40, 3, 1);
    let expected = case.sums(&CpuBackend::new()).unwrap();
    let needed = case.least();
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
fn few_terms_have_their_points_apart() {
    let case = Case::new(9, 60, 4);
    let expected = case.sums(&CpuBackend::new()).unwrap();
    let bytes = |plan: &ProofPlan, name: &str| -> u64 {
        let entries = plan.resident_entries().iter();
        entries.filter(|e| e.name == name).map(|e| e.bytes).sum()
    };
    let ample = case.plan(1 << 32).unwrap();
    // All points once; those of the terms in as many copies as pay.
    let points = Points::len(case.key.l()) as u64;
    assert_eq!(bytes(&ample, "key: l"), (96 * points).next_multiple_of(256));
    assert!(bytes(&ample, "key: tail of l") > 0);
    let least = case.least();
    let mut pieces = Vec::new();
    for device in devices().into_iter().filter(|d| d.info().emulated) {
        for percent in [100, 102, 105, 110, 130, 400] {
            let backend = GpuBackend::on(device.clone()).with_vram_limit(least * percent / 100);
            assert_eq!(case.sums(&backend).unwrap(), expected, "{percent} %");
            let plan = case.plan(least * percent / 100).unwrap();
            pieces.push((plan.streaming().is_none(), plan.pieces()));
        }
    }
    println!("resident, pieces: {pieces:?}");
}

/// With a byte less than it needs there are two, whose sums are done in the same way.
#[test]
fn a_third_proof_takes_nothing_from_the_sums() {
    let case = Case::new(700, 0, 1);
    let plan = |vram_bytes, multiprocessors| {
        let target = PlanTarget {
            vram_bytes,
            limited: true,
            multiprocessors,
            callers: 1,
        };
        ProofPlan::new("the circuit", &case.circuit, target).unwrap()
    };
    let (mut few, mut enough) = (case.least(), 1 << 32);
    while few + 1 < enough {
        let middle = u64::midpoint(few, enough);
        match plan(middle, 132).units() {
            3 => enough = middle,
            _ => few = middle,
        }
    }
    let (two, three) = (plan(few, 132), plan(enough, 132));
    assert_eq!((two.units(), three.units()), (2, 3));
    assert_eq!(two.resident_bytes(), three.resident_bytes());
    assert_eq!(two.unit_bytes(), three.unit_bytes());
    // Nor does it make another circuit leave.
    let (most, least) = (three.bytes(), two.bytes());
    let mut plan_of_three = three;
    assert!(plan_of_three.fit(most) && plan_of_three.units() == 3);
    assert!(!plan_of_three.fit(least - 1) && plan_of_three.units() == 3);
    assert!(plan_of_three.fit(least) && plan_of_three.units() == 2);
    assert_eq!(plan_of_three.bytes(), least);
    assert!(!plan_of_three.fit(least - 1));
    // By the model a device with so few multiprocessors takes long.
    assert_eq!(plan(1 << 32, 1).units(), 2);
}

/// Measured: 8 bytes of the device for each page of 4 KiB that witnesses are staged in.
#[test]
fn plans_count_the_page_tables_of_staged_witnesses() {
    let case = Case::new(700, 0, 1);
    let witness = &case.witness;
    let values = witness.inputs().len() + witness.dense().len();
    let staged = (32 * values + 8 * witness.bits().len()) as u64;
    assert!(staged > 4096);
    let form = QuotientForm::Monomial;
    let target = PlanTarget {
        vram_bytes: 1 << 32,
        limited: true,
        multiprocessors: 2,
        callers: 1,
    };
    let resident = case.plan(1 << 32).unwrap();
    assert_eq!(resident.units(), 2);
    let tables = resident.driver_bytes() - DRIVER_BYTES;
    assert_eq!(tables, 2 * staged.div_ceil(512));
    let streamed = ProofPlan::streamed_as("the circuit", &case.circuit, form, target, |search| {
        search.run()
    });
    let streamed = streamed.unwrap().unwrap();
    let passes = streamed.streaming().unwrap().pass_bytes.div_ceil(512);
    let tables = streamed.driver_bytes() - DRIVER_BYTES - passes;
    assert_eq!(tables, streamed.units() as u64 * staged.div_ceil(512));
}

#[test]
fn a_key_may_come_in_chunks_of_any_size() {
    // Mostly bits; no bits at all. 12 288 bytes are the smallest chunk that holds the points of a bitmap's
    // word in G2.
    for (steps, bits, slot_bytes) in [(9, 20, 16_500), (70, 0, 12_288)] {
        let case = Case::new(steps, bits, 7);
        for device in devices() {
            let backend = case.streaming(&device, slot_bytes, 1);
            // Twice: the second proof finds leftovers of the first in the ring.
            for _ in 0..2 {
                dual_run(&backend, &case.circuit, &case.key, &case.witness).unwrap();
            }
            let memory = backend.memory().unwrap().unwrap();
            assert!(memory.streamed && memory.proofs == 1);
            assert!(memory.taken_bytes <= memory.planned_bytes, "{memory:?}");
        }
    }
}

#[test]
fn a_pass_serves_several_proofs_and_each_gets_its_own() {
    let case = Case::new(5, 30, 8);
    let cpu = CpuBackend::new();
    let proofs: Vec<_> = (0..4)
        .map(|values| {
            let (circuit, witness) = sample_with(5, 30, 8, values).unwrap();
            assert_eq!(circuit.digest(), case.circuit.digest());
            let expected = cpu.sums(&circuit, &case.key, &witness).unwrap().0;
            (witness, expected)
        })
        .collect();
    assert_ne!(proofs[0].1, proofs[1].1);
    for device in devices() {
        // A pass of three, and one of what is left.
        let backend = case.streaming(&device, 16_500, 3);
        thread::scope(|scope| {
            for (witness, expected) in &proofs {
                let (backend, case) = (&backend, &case);
                scope.spawn(move || {
                    let found = backend.sums(&case.circuit, &case.key, witness);
                    assert_eq!(found.unwrap().0, *expected);
                });
            }
        });
    }
}

#[test]
fn with_too_little_memory_for_it_a_key_is_streamed() {
    let case = Case::new(60, 20, 7);
    let least = case.least();
    let plan = case.plan(least).unwrap();
    let streaming = plan.streaming().unwrap();
    assert!(
        plan.reason().starts_with("to stay it would need"),
        "{}",
        plan.reason()
    );
    assert!(streaming.sections.iter().any(|section| section.chunks > 1));
    // With all the memory there is, the key stays.
    assert!(case.plan(1 << 32).unwrap().streaming().is_none());
    assert_eq!(case.plan_for(least, 4).unwrap().units(), 1);
    // On a host that has no memory for it, it is refused before any is taken.
    for device in devices()
        .into_iter()
        .filter(|device| device.info().emulated)
    {
        let backend = GpuBackend::on(device).with_vram_limit(least);
        let error = case
            .sums(&backend.with_host_memory(|| Some(1)))
            .unwrap_err();
        assert!(error.to_string().contains("the host's memory"), "{error}");
    }
}

#[test]
fn a_proof_does_not_wait_for_memory_for_ever() {
    let case = Case::new(3, 2, 1);
    for device in devices() {
        let backend = GpuBackend::on(device).with_wait_limit(std::time::Duration::ZERO);
        // One that finds memory does not need the time.
        case.sums(&backend).unwrap();
        let threads = 4;
        let results: Vec<_> = thread::scope(|scope| {
            let proofs = (0..threads).map(|_| scope.spawn(|| case.sums(&backend)));
            let proofs: Vec<_> = proofs.collect();
            proofs
                .into_iter()
                .map(|proof| proof.join().unwrap())
                .collect()
        });
        for error in results.into_iter().filter_map(Result::err) {
            let text = error.to_string();
            assert!(text.contains("Ask for fewer proofs at a time"), "{text}");
        }
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

/// Counts the keys that are loaded.
#[derive(Default)]
struct Loads(AtomicUsize);

impl Progress for Loads {
    fn begin(&self, stage: &'static str, _: u64) {
        if stage == "load key" {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn advance(&self, _: u64) {}
}

#[test]
fn circuits_that_fit_alternate_and_others_leave() {
    let cases = [Case::new(20, 2, 1), Case::new(31, 0, 2), Case::new(5, 9, 3)];
    let expected = cases
        .each_ref()
        .map(|case| case.sums(&CpuBackend::new()).unwrap());
    let digests = cases.each_ref().map(|case| case.circuit.digest());
    let resident = |backend: &GpuBackend| -> Vec<[u8; 32]> {
        let circuits = backend.resident();
        assert!(circuits.iter().all(|circuit| !circuit.in_use));
        circuits.iter().map(|circuit| circuit.circuit).collect()
    };
    for device in devices().into_iter().filter(|d| d.info().emulated) {
        let loads = Arc::new(Loads::default());
        let backend = GpuBackend::on(device.clone()).with_progress(loads.clone());
        for i in [0, 1, 0, 1, 2, 0] {
            assert_eq!(cases[i].sums(&backend).unwrap(), expected[i]);
        }
        assert_eq!(loads.0.load(Ordering::Relaxed), 3);
        assert_eq!(resident(&backend), [digests[1], digests[2], digests[0]]);
        let memory = backend.memory().unwrap().unwrap();
        let planned: u64 = backend.resident().iter().map(|c| c.planned_bytes).sum();
        assert_eq!(memory.planned_bytes, planned);
        assert!(memory.taken_bytes <= planned, "{memory:?}");

        assert!(backend.unload(&digests[1]) > 0);
        assert_eq!(backend.unload(&digests[1]), 0);
        assert_eq!(resident(&backend), [digests[2], digests[0]]);
        assert_eq!(cases[1].sums(&backend).unwrap(), expected[1]);
        assert_eq!(loads.0.load(Ordering::Relaxed), 4);

        // No two fit into what the largest needs.
        let least = cases.iter().map(Case::least).max().unwrap();
        let backend = GpuBackend::on(device).with_vram_limit(least);
        for i in [0, 1, 1, 2, 0] {
            assert_eq!(cases[i].sums(&backend).unwrap(), expected[i]);
            assert_eq!(resident(&backend), [digests[i]]);
        }
    }
}

#[test]
fn the_devices_spans_are_on_one_clock() {
    let case = Case::new(20, 2, 1);
    for device in devices() {
        let backend = GpuBackend::on(device);
        let mut end = 0;
        let before = backend.epoch().unwrap();
        for _ in 0..3 {
            let (_, times) = backend
                .sums(&case.circuit, &case.key, &case.witness)
                .unwrap();
            let spans = times.spans();
            let names: Vec<_> = spans.iter().map(|span| span.name).collect();
            let phases = ["upload", "evaluate", "ntt", "h", "l", "a", "b_g1", "b_g2"];
            assert_eq!(names, phases);
            assert!(spans[0].start_ns >= end, "one proof after the other");
            for pair in spans.windows(2) {
                assert_eq!(pair[0].end_ns, pair[1].start_ns);
            }
            assert!(spans.iter().all(|span| span.start_ns <= span.end_ns));
            end = spans[7].end_ns;
            // A millisecond for what the epoch is off by.
            let now = before.elapsed().as_nanos() as u64;
            assert!(end <= now + 1_000_000, "{end} ns, now {now}");
        }
        assert!(end > 0);
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
