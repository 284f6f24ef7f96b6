//! Every fabricated request passes the vanilla check, survives its wire encoding, and has a
//! witness that satisfies its circuit.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use filecoin::decode::Hints;
use filecoin::native::NativeWitness;
use filecoin::registered::PostVersion;
use filecoin::{
    CircuitId, ProofKind, Request, SealVersion, SectorSize, WitnessGenerator, check, public_inputs,
};
use instances::{Error, Instance, submit};

fn circuit(name: &str) -> CircuitId {
    CircuitId::parse(name).unwrap()
}

fn verify(instance: Instance) {
    let request = instance.request().unwrap();
    let what = format!("{instance:?}");
    assert_eq!(request.circuit_id(), instance.circuit);
    check(&request, &()).unwrap_or_else(|error| panic!("{what}: {error}"));

    let json = submit(&request, "id").to_json();
    let decoded = Request::decode(&json, Hints::default()).unwrap();
    assert!(decoded.request == request, "{what} changes on the wire");

    let compiled = instance.circuit.compiled().unwrap();
    let inputs = public_inputs(&request).unwrap();
    for partition in [0, request.partitions() - 1] {
        let witness = NativeWitness
            .witness(&request, partition, &compiled)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(witness.inputs()[1..], inputs[partition]);
        compiled.check(&witness).unwrap();
    }
}

#[test]
fn porep_of_every_seal_type() {
    for seal in [
        SealVersion::V1,
        SealVersion::V1_1,
        SealVersion::Synthetic,
        SealVersion::NonInteractive,
    ] {
        let instance = Instance::new(circuit("porep-2k"), 1);
        verify(Instance { seal, ..instance });
    }
    verify(Instance::new(circuit("porep-8m"), 2));
}

#[test]
fn snap() {
    verify(Instance::new(circuit("snap-2k"), 3));
    verify(Instance::new(circuit("snap-8m"), 4));
}

#[test]
fn post() {
    for name in ["wpost-2k", "wpost-8m", "wpost-512m"] {
        let full = Instance::new(circuit(name), 5);
        let sectors = Some(1);
        let window = PostVersion::WindowV1;
        verify(full);
        verify(Instance { sectors, ..full });
        verify(Instance { window, ..full });
    }
    for name in ["winning-2k", "winning-8m", "winning-32g", "winning-64g"] {
        verify(Instance::new(circuit(name), 6));
    }
}

#[test]
fn seeds_make_requests_and_nothing_else_does() {
    for kind in ProofKind::ALL {
        let instance = |seed| {
            let circuit = CircuitId::new(kind, SectorSize::KiB2);
            Instance::new(circuit, seed).request().unwrap()
        };
        assert!(instance(1) == instance(1));
        assert!(instance(1) != instance(2));
    }
}

#[test]
fn what_needs_sealing_is_refused() {
    for name in ["porep-512m", "porep-32g", "porep-64g"] {
        for seal in [SealVersion::Synthetic, SealVersion::NonInteractive] {
            let instance = Instance::new(circuit(name), 1);
            let refused = Instance { seal, ..instance }.request();
            assert!(matches!(refused, Err(Error::NeedsSealing { .. })));
        }
    }
}
