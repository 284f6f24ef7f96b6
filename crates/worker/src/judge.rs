//! Checks in the daemon what workers hand over: the second look at every proof, in another process, by the
//! pairing and by public inputs derived from the request, not from the witness.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use engine::service::{JobInfo, Joined, Judge};
use filecoin::{CircuitId, Request, public_inputs};
use groth16::key::{KeyStore, KeyTrust};
use groth16::{PreparedVerifyingKey, Proof};
use r1cs::Fr;
use store::Digest;

/// So many jobs' public inputs are kept. Those of a 32 GiB WindowPoSt, the largest, take 0.8 MB.
const KEPT: usize = 64;

/// Verifies proofs against the verifying keys of a [`KeyStore`].
pub struct ProofJudge {
    keys: KeyStore,
    opened: Mutex<BTreeMap<CircuitId, Arc<Key>>>,
    inputs: Mutex<Kept>,
}

struct Key {
    prepared: PreparedVerifyingKey,
    is_test: bool,
}

/// Public inputs of each unit.
type Inputs = Arc<Vec<Vec<Fr>>>;
/// Those of one job, once they are known.
type Slot = Arc<Mutex<Option<Inputs>>>;

#[derive(Default)]
struct Kept {
    jobs: BTreeMap<Digest, (u64, Slot)>,
    clock: u64,
}

impl ProofJudge {
    /// With verifying keys from this store, each opened when it is first needed.
    pub fn new(keys: KeyStore) -> Self {
        Self {
            keys,
            opened: Mutex::default(),
            inputs: Mutex::default(),
        }
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<CircuitId, Arc<Key>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, id: CircuitId) -> Result<Arc<Key>, String> {
        if let Some(key) = self.opened().get(&id) {
            return Ok(Arc::clone(key));
        }
        let circuit = id.compiled().map_err(|e| e.to_string())?;
        let key = self.keys.verifying_key(&id.key_spec(&circuit));
        let key = key.map_err(|e| e.to_string())?;
        let key = Arc::new(Key {
            prepared: PreparedVerifyingKey::from(&key.key),
            is_test: matches!(key.trust, KeyTrust::Test { .. }),
        });
        self.opened().insert(id, Arc::clone(&key));
        Ok(key)
    }

    fn inputs(
        &self,
        job: &JobInfo,
        payload: &dyn Fn() -> Result<Vec<u8>, String>,
    ) -> Result<Inputs, String> {
        let slot = self.kept().slot(job.digest);
        // Held while the job is decoded, which takes a 32 GiB PoRep half a second: who has another
        // proof of the same job waits for that rather than do it too.
        let mut known = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(inputs) = &*known {
            return Ok(Arc::clone(inputs));
        }
        let request = Request::from_payload(&payload()?).map_err(|e| e.to_string())?;
        if request.circuit_id() != job.circuit {
            let found = request.circuit_id();
            return Err(format!(
                "the stored request is of {found}, its job of {}",
                job.circuit
            ));
        }
        let inputs = Arc::new(public_inputs(&request).map_err(|e| e.to_string())?);
        *known = Some(Arc::clone(&inputs));
        Ok(inputs)
    }
}

impl Kept {
    /// A job's slot, empty if it is a new one; the one not asked for longest goes.
    fn slot(&mut self, digest: Digest) -> Slot {
        self.clock += 1;
        let clock = self.clock;
        let (used, slot) = self.jobs.entry(digest).or_default();
        *used = clock;
        let slot = Arc::clone(slot);
        while self.jobs.len() > KEPT {
            let oldest = self.jobs.iter().min_by_key(|(_, (used, _))| *used);
            let Some(oldest) = oldest.map(|(digest, _)| *digest) else {
                break;
            };
            self.jobs.remove(&oldest);
        }
        slot
    }
}

impl Judge for ProofJudge {
    fn verify(
        &self,
        job: &JobInfo,
        payload: &dyn Fn() -> Result<Vec<u8>, String>,
        index: u32,
        proof: &[u8],
    ) -> Result<bool, String> {
        let inputs = self.inputs(job, payload)?;
        let inputs = inputs.get(index as usize).ok_or_else(|| {
            let units = inputs.len();
            format!("the request has {units} units, and this is the proof of number {index}")
        })?;
        let key = self.key(job.circuit)?;
        // Bytes that are no proof are a wrong proof.
        let Ok(proof) = Proof::from_bytes(proof) else {
            return Ok(false);
        };
        groth16::verify(&key.prepared, inputs, &proof).map_err(|e| e.to_string())
    }

    fn join(&self, job: &JobInfo, proofs: Vec<Vec<u8>>) -> Result<Joined, String> {
        let partitions = job.circuit.partitions();
        if proofs.len() != partitions {
            let units = proofs.len();
            return Err(format!(
                "{units} proofs of {}, which has {partitions} partitions; proofs of a \
                 non-interactive PoRep are aggregated, which this version cannot do",
                job.circuit
            ));
        }
        let proof = proofs.concat();
        if proof.len() != job.circuit.result_bytes() {
            let (found, expected) = (proof.len(), job.circuit.result_bytes());
            return Err(format!(
                "the proofs have {found} bytes, expected {expected}"
            ));
        }
        let test_key = self.key(job.circuit)?.is_test;
        Ok(Joined { proof, test_key })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use filecoin::support::fixtures::fixture;
    use store::JobId;

    use super::*;

    fn job(digest: Digest) -> JobInfo {
        JobInfo {
            id: JobId::from_bytes([1; 16]),
            name: "a job".to_owned(),
            circuit: CircuitId::parse("wpost-2k").unwrap(),
            digest,
            units: 1,
        }
    }

    #[test]
    fn a_job_is_decoded_once_however_many_threads_ask() {
        let judge = ProofJudge::new(KeyStore::default());
        let payload = fixture("2KiB/window-post-1-sector").submits()[0].to_payload();
        let reads = AtomicUsize::new(0);
        let read = || {
            reads.fetch_add(1, Ordering::Relaxed);
            Ok(payload.clone())
        };
        let job = job(Digest::of(&payload));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(judge.inputs(&job, &read).unwrap().len(), 1));
            }
        });
        assert_eq!(reads.into_inner(), 1);
    }

    #[test]
    fn what_could_not_be_read_is_read_again_and_few_jobs_are_kept() {
        let judge = ProofJudge::new(KeyStore::default());
        let payload = fixture("2KiB/window-post-1-sector").submits()[0].to_payload();
        let first = job(Digest::of(&payload));
        let fails = || Err("no disk".to_owned());
        assert_eq!(judge.inputs(&first, &fails).unwrap_err(), "no disk");
        assert!(judge.inputs(&first, &|| Ok(payload.clone())).is_ok());
        assert!(judge.inputs(&first, &fails).is_ok());
        for number in 0..KEPT as u64 {
            let other = job(Digest::of(&number.to_le_bytes()));
            assert!(judge.inputs(&other, &|| Ok(payload.clone())).is_ok());
        }
        assert!(judge.inputs(&first, &fails).is_err());
        assert_eq!(judge.kept().jobs.len(), KEPT);
    }
}
