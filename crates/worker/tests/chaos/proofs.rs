//! Real proofs: made here by the real prover, replayed by workers, judged by the real judge.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::scheduler::{DeviceStatus, Submission};
use filecoin::support::fixtures::fixture;
use filecoin::{CircuitId, ProofKind, SectorSize, SubmitProofRequest};
use groth16::CpuBackend;
use groth16::key::KeyStore;
use groth16::setup::{self, SetupRequest};
use pipeline::Spans;
use store::{Digest, JobId, Priority};
use worker::message::Unit;
use worker::{CircuitProver, KeyLimits, KeyRing, ProofJudge, Prover, Pulse};

use crate::world::{World, actor, settings};

const WINDOW: CircuitId = CircuitId::new(ProofKind::Window, SectorSize::KiB2);

/// Test keys of the smallest circuit in `folder`.
fn keys(folder: &Path) -> KeyStore {
    let request = SetupRequest {
        circuit: WINDOW.name(),
        stem: &WINDOW.params_stem(),
        folder,
        seed: 0,
        cache: None,
    };
    setup::generate(&WINDOW.compiled().unwrap(), &request, &()).unwrap();
    KeyStore {
        folders: vec![folder.to_owned()],
        cache: None,
        allow_test_keys: true,
    }
}

fn unit(submit: &SubmitProofRequest) -> Unit {
    Unit {
        lease: engine::scheduler::LeaseId(1),
        job: JobId::random(),
        name: submit.request_id.clone(),
        circuit: WINDOW,
        digest: Digest::of(&submit.to_payload()),
        index: 0,
        units: 1,
    }
}

/// Proves as a worker does, and stores the proof where the replaying workers look.
fn prove(prover: &CircuitProver, submit: &SubmitProofRequest, folder: &Path) {
    let (unit, mut spans) = (unit(submit), Spans::default());
    let request = prover.decode(&unit, submit.to_payload()).unwrap();
    let witness = prover.prepare(&unit, &request, &mut spans).unwrap();
    let sums = prover.sums(&unit, &witness, &mut spans).unwrap();
    let proof = prover.finish(&unit, witness, sums, &mut spans).unwrap();
    fs::write(folder.join(format!("{}-0", unit.digest)), proof).unwrap();
}

pub fn judged() {
    let folder = tempfile::tempdir().unwrap();
    let (key_folder, proofs) = (folder.path().join("keys"), folder.path().join("proofs"));
    fs::create_dir(&key_folder).unwrap();
    fs::create_dir(&proofs).unwrap();
    let keys = keys(&key_folder);
    let limits = KeyLimits {
        bytes: 1 << 30,
        count: 4,
    };
    let prover = CircuitProver::new(
        Arc::new(CpuBackend::new()),
        KeyRing::new(keys.clone(), limits),
        Arc::new(Pulse::default()),
        vec![WINDOW],
    );
    let submits: Vec<_> = ["2KiB/window-post-1-sector", "2KiB/window-post-2-partitions"]
        .iter()
        .flat_map(|name| fixture(name).submits())
        .collect();
    submits
        .iter()
        .for_each(|submit| prove(&prover, submit, &proofs));
    assert_eq!(prover.keys().len(), 1);
    assert!(prover.evict(WINDOW).1 > 0 && prover.keys().is_empty());

    // A request that is wrong fails on any device, and says where.
    let mut wrong = submits[0].clone();
    let at = wrong.vanilla_proofs[0].len() - 40;
    wrong.vanilla_proofs[0][at] ^= 1;
    let decoded = prover.decode(&unit(&wrong), wrong.to_payload());
    let error = decoded
        .and_then(|request| prover.prepare(&unit(&wrong), &request, &mut Spans::default()))
        .err()
        .unwrap();
    assert_eq!(
        error.fault,
        engine::scheduler::Fault::Request,
        "{}",
        error.cause
    );

    let replay = format!("proofs={}", proofs.display());
    let bad = actor("bad", &[&replay, "corrupt=3"]);
    let good = actor("good", &[&replay, "prove-ms=20"]);
    let judge = Arc::new(ProofJudge::new(keys));
    let world = World::with_judge(settings(), vec![bad, good], judge);
    let jobs: Vec<_> = (0..20)
        .map(|i| {
            let payload = submits[i % submits.len()].to_payload();
            let (digest, payload_bytes) = world.service().put_payload(&mut &payload[..]).unwrap();
            let submission = Submission {
                id: JobId::random(),
                request_id: format!("job {i}"),
                digest,
                client: "test".to_owned(),
                circuit: WINDOW,
                priority: Priority::High,
                deadline_ms: None,
                units: 1,
                unit_bytes: 1 << 20,
                payload_bytes,
            };
            world.service().submit(submission).unwrap()
        })
        .collect();
    for job in jobs {
        let finished = world.finished(job.job);
        let expected = fs::read(proofs.join(format!("{}-0", finished.record.digest))).unwrap();
        let failure = &finished.record.failure;
        assert_eq!(finished.proof.as_ref(), Some(&expected), "{failure:?}");
        assert!(finished.record.test_key, "it says what it was made with");
    }
    let cause = world.quarantine(0);
    assert!(cause.contains("did not verify"), "{cause}");
    assert_eq!(world.device_status(1), DeviceStatus::Ready);
    assert!(world.devices[0].wait_gone(Duration::from_secs(20)));
}
