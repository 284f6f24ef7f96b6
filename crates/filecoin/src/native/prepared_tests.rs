//! Proofs of real requests with a prepared key, byte for byte those with the published one.

use groth16::key::prepare::{CpuGroupTransform, PrepareRequest, prepare};
use groth16::key::{KeyCounts, KeyDigest, KeyForm, KeyTrust, PointEncoding, ProvingKey, Trusted};
use groth16::points::Points;
use groth16::setup::{CpuFixedBase, EphemeralRequest, generate_ephemeral};
use groth16::{Blinding, CpuBackend, PreparedVerifyingKey, prove};
use r1cs::{CompiledCircuit, Fr};

use super::NativeWitness;
use crate::support::fixtures;
use crate::witness::WitnessGenerator;

const SEED: u64 = 3;

fn key(circuit: &CompiledCircuit, form: KeyForm) -> ProvingKey {
    let request = EphemeralRequest {
        circuit: "test",
        seed: SEED,
        form,
    };
    let multiplier = CpuFixedBase::new(&KeyCounts::of(circuit));
    generate_ephemeral(circuit, &request, &multiplier, &())
        .unwrap()
        .key
}

#[test]
fn both_forms_of_a_key_give_the_same_proofs() {
    for name in ["2KiB/window-post-1-sector", "2KiB/winning-post-a"] {
        let request = &fixtures::fixture(name).requests()[0];
        let circuit = request.circuit_id().compiled().unwrap();
        let witness = NativeWitness.witness(request, 0, &circuit).unwrap();
        let proofs = [KeyForm::Published, KeyForm::Prepared].map(|form| {
            let key = key(&circuit, form);
            assert_eq!(key.form(), form);
            let pvk = PreparedVerifyingKey::from(key.vk());
            let blinding = Blinding::fixed(Fr::from(5), Fr::from(6));
            let backend = CpuBackend::new();
            let made = prove(&backend, &circuit, &key, &pvk, &witness, blinding);
            made.unwrap().0.to_bytes()
        });
        assert_eq!(proofs[0], proofs[1], "{name}");
    }
}

/// The whole of wpost-2k through the transforms in the group.
#[test]
fn a_key_prepared_from_a_published_one_is_the_one_made_from_its_secrets() {
    let request = &fixtures::fixture("2KiB/window-post-1-sector").requests()[0];
    let circuit = request.circuit_id().compiled().unwrap();
    let published = key(&circuit, KeyForm::Published);
    let source = Trusted {
        path: published.path().to_path_buf(),
        key: published,
        trust: KeyTrust::Test {
            seed: SEED,
            digest: KeyDigest::of_bytes(b"a key in memory has none"),
        },
    };
    let memory = PrepareRequest {
        circuit: "wpost-2k",
        folder: None,
        cache: None,
    };
    let made = prepare(&circuit, &source, &memory, &CpuGroupTransform, &()).unwrap();
    let expected = key(&circuit, KeyForm::Prepared);
    let of = |key: &ProvingKey| {
        assert_eq!(key.h().encoding(), PointEncoding::Montgomery);
        let g1 = [key.h(), key.l(), key.a(), key.b_g1()];
        let mut all = g1.map(|s| s.bytes(0, s.len()).unwrap().to_vec()).concat();
        all.extend_from_slice(key.b_g2().bytes(0, key.b_g2().len()).unwrap());
        all
    };
    assert!(of(&made.key) == of(&expected));
    assert_eq!(made.key.vk(), expected.vk());
}
