//! Prepared keys against their definition in the group, and their proofs against those of the
//! published form.

use blstrs::{G1Affine, G1Projective, Scalar};
use ff::{Field, PrimeField};
use group::{Curve, Group};
use r1cs::{Builder, CompiledCircuit, Matrix, PackedWitness, Variable};

use super::tests::Plain;
use super::{
    CpuFixedBase, EphemeralRequest, SetupRequest, TestKey, generate, generate_ephemeral,
    generate_prepared,
};
use crate::cpu::tests::random_sample;
use crate::key::{
    KeyCounts, KeyError, KeyForm, KeySpec, KeyStore, KeyTrust, PointEncoding, ProvingKey, Section,
};
use crate::ntt::{Domain, bit_reverse};
use crate::points::Points;
use crate::progress::Progress;
use crate::{BackendError, Blinding, CpuBackend, Error, PreparedVerifyingKey, Proof, prove};

pub(crate) fn key(circuit: &CompiledCircuit, form: KeyForm) -> ProvingKey {
    let request = EphemeralRequest {
        circuit: "sample",
        seed: 5,
        form,
    };
    let multiplier = CpuFixedBase::new(&KeyCounts::of(circuit));
    generate_ephemeral(circuit, &request, &multiplier, &())
        .unwrap()
        .key
}

fn all<P: crate::key::KeyPoint>(section: &Section<P>) -> Vec<P> {
    section.read_vec(0, section.len()).unwrap()
}

/// Σ_j x^(−j)·points_j / n.
fn inverse_at(points: &[G1Affine], x: &Scalar) -> G1Projective {
    let (x, n) = (x.invert().unwrap(), Scalar::from(points.len() as u64));
    let sum = |sum: G1Projective, point: &G1Affine| sum * x + point;
    points.iter().rev().fold(G1Projective::identity(), sum) * n.invert().unwrap()
}

/// A circuit of inputs alone.
fn bare(inputs: usize) -> CompiledCircuit {
    let mut builder = Builder::new();
    for _ in 0..inputs {
        builder.alloc_input();
    }
    builder.finish().unwrap()
}

/// Domains of 1, 2, 4, … points; inputs with and without terms in C; constraints that fill the
/// domain and that do not.
fn circuits() -> Vec<CompiledCircuit> {
    let mut circuits: Vec<_> = [0, 1, 2, 4].map(bare).into();
    circuits.extend([1, 3, 4, 5, 12].map(|steps| Plain::chain(steps).compile()));
    circuits.extend([(1, 0), (3, 1), (20, 2)].map(|(steps, bits)| random_sample(steps, bits, 3).0));
    circuits
}

#[test]
fn every_vector_agrees_with_the_published_one_in_the_group() {
    for circuit in circuits() {
        let shape = circuit.shape();
        let domain = Domain::new(shape.domain()).unwrap();
        let n = domain.size();
        let [published, prepared] =
            [KeyForm::Published, KeyForm::Prepared].map(|form| key(&circuit, form));
        assert_eq!(prepared.form(), KeyForm::Prepared);
        assert_eq!(prepared.vk(), published.vk());
        assert_eq!(all(prepared.a()), all(published.a()));
        assert_eq!(all(prepared.b_g1()), all(published.b_g1()));
        assert_eq!(all(prepared.b_g2()), all(published.b_g2()));

        let mut h = all(published.h());
        h.push(G1Affine::default());
        let points: Vec<Scalar> = (0..n as u64)
            .map(|i| domain.root().pow_vartime([i]))
            .collect();
        let e: Vec<G1Affine> = points
            .iter()
            .map(|x| inverse_at(&h, &(domain.coset_shift() * x)) * -Scalar::TWO_INV)
            .map(|point| point.to_affine())
            .collect();
        let mut reversed = e.clone();
        bit_reverse(&e, &mut reversed);
        assert_eq!(all(prepared.h()), reversed, "n = {n}");

        let mut l = vec![G1Projective::identity(); shape.inputs];
        l.extend(all(published.l()).iter().map(G1Projective::from));
        let c = circuit.to_csr(Matrix::C);
        for (row, bounds) in c.starts.windows(2).enumerate() {
            let d = inverse_at(&h, &points[row]) * Scalar::TWO_INV;
            for term in bounds[0] as usize..bounds[1] as usize {
                let coefficient = circuit.dictionary().value(c.coefficients[term]);
                l[c.columns[term] as usize] += d * coefficient;
            }
        }
        let l: Vec<G1Affine> = l.iter().map(Curve::to_affine).collect();
        assert_eq!(all(prepared.l()), l, "n = {n}");
    }
}

#[test]
fn points_stand_in_the_file_as_in_memory() {
    let circuit = Plain::chain(5).compile();
    let key = key(&circuit, KeyForm::Prepared);
    assert_eq!(key.h().encoding(), PointEncoding::Montgomery);
    let points = all(key.b_g2());
    let bytes = key.b_g2().bytes(0, points.len()).unwrap();
    for (point, bytes) in points.iter().zip(bytes.chunks_exact(192)) {
        let raw: &blst::blst_p2_affine = point.as_ref();
        let limbs = [raw.x.fp[0], raw.x.fp[1], raw.y.fp[0], raw.y.fp[1]];
        let expected: Vec<u8> = limbs
            .iter()
            .flat_map(|fp| fp.l)
            .flat_map(u64::to_le_bytes)
            .collect();
        assert_eq!(bytes, expected);
    }
}

fn proof(circuit: &CompiledCircuit, key: &ProvingKey, witness: &PackedWitness) -> Proof {
    let pvk = PreparedVerifyingKey::from(key.vk());
    let blinding = Blinding::fixed(Scalar::from(77), Scalar::from(99));
    let backend = CpuBackend::with_threads(2).unwrap();
    prove(&backend, circuit, key, &pvk, witness, blinding)
        .unwrap()
        .0
}

#[test]
fn both_forms_give_the_same_proof() {
    for (steps, bits) in [
        (1, 0),
        (3, 1),
        (20, 0),
        (63, 0),
        (64, 0),
        (40, 9),
        (5, 60),
        (700, 3),
    ] {
        let (circuit, witness) = random_sample(steps, bits, steps as u64);
        let [published, prepared] = [KeyForm::Published, KeyForm::Prepared]
            .map(|form| proof(&circuit, &key(&circuit, form), &witness));
        assert_eq!(published.to_bytes(), prepared.to_bytes(), "{steps} steps");
    }
}

/// Equal seeds give equal bytes in both forms; another seed of the blinding or of the key gives others.
#[test]
fn repeatable_proofs_follow_from_their_seeds() {
    let (circuit, witness) = random_sample(20, 3, 20);
    let multiplier = CpuFixedBase::new(&KeyCounts::of(&circuit));
    let proof = |form, key_seed, blinding_seed| {
        let request = EphemeralRequest {
            circuit: "sample",
            seed: key_seed,
            form,
        };
        let key = generate_ephemeral(&circuit, &request, &multiplier, &()).unwrap();
        let backend = CpuBackend::with_threads(2).unwrap();
        let made = key.prove_repeatably(&backend, &circuit, &witness, blinding_seed);
        made.unwrap().0.to_bytes()
    };
    let first = proof(KeyForm::Published, 1, 1);
    assert_eq!(first, proof(KeyForm::Published, 1, 1));
    assert_eq!(first, proof(KeyForm::Prepared, 1, 1));
    assert_ne!(first, proof(KeyForm::Prepared, 1, 2));
    assert_ne!(first, proof(KeyForm::Prepared, 2, 1));
}

/// x·x = k·x: its shape does not depend on k.
fn scaled(k: u64) -> (CompiledCircuit, PackedWitness) {
    let mut builder = Builder::new();
    let x = builder.alloc_aux();
    let one = [(x, Scalar::ONE)];
    builder.enforce(&one, &one, &[(x, Scalar::from(k))]);
    let circuit = builder.finish().unwrap();
    let witness =
        PackedWitness::from_assignment(&circuit, &[Scalar::ONE], &[Scalar::from(k)]).unwrap();
    assert_eq!(x, Variable::Aux(0));
    (circuit, witness)
}

#[test]
fn a_prepared_key_serves_its_circuit_alone() {
    let ((one, _), (other, witness)) = (scaled(3), scaled(5));
    assert_eq!(KeyCounts::of(&one), KeyCounts::of(&other));
    let key = key(&one, KeyForm::Prepared);
    let pvk = PreparedVerifyingKey::from(key.vk());
    let blinding = Blinding::random().unwrap();
    let result = prove(&CpuBackend::new(), &other, &key, &pvk, &witness, blinding);
    assert!(matches!(
        result.unwrap_err(),
        Error::Backend(BackendError::Key(KeyError::Prepared { .. }))
    ));
}

/// A folder with a test key in both forms, each in a folder of its own.
struct Scene {
    dir: tempfile::TempDir,
    circuit: CompiledCircuit,
}

impl Scene {
    fn new() -> Self {
        Scene {
            dir: tempfile::tempdir().unwrap(),
            circuit: Plain::chain(20).compile(),
        }
    }

    fn request<'a>(&self, folder: &'a std::path::Path, seed: u64) -> SetupRequest<'a> {
        SetupRequest {
            circuit: "chain",
            stem: "v28-chain",
            folder,
            seed,
            cache: None,
        }
    }

    fn prepared(&self, seed: u64) -> Result<TestKey, KeyError> {
        let folder = self.dir.path().join("prepared");
        let multiplier = CpuFixedBase::new(&KeyCounts::of(&self.circuit));
        generate_prepared(
            &self.circuit,
            &self.request(&folder, seed),
            &multiplier,
            &(),
        )
    }

    fn published(&self, seed: u64) -> TestKey {
        let folder = self.dir.path().join("published");
        generate(&self.circuit, &self.request(&folder, seed), &()).unwrap()
    }

    fn spec(&self) -> KeySpec {
        KeySpec {
            circuit: "chain".to_owned(),
            stem: "v28-chain".to_owned(),
            sector: "2KiB".to_owned(),
            counts: KeyCounts::of(&self.circuit),
            production: None,
        }
    }

    fn store(&self) -> KeyStore {
        KeyStore {
            folders: ["published", "prepared"]
                .map(|f| self.dir.path().join(f))
                .into(),
            cache: None,
            allow_test_keys: true,
        }
    }

    fn open(&self) -> Result<(ProvingKey, KeyTrust), KeyError> {
        let found = self.store().proving_key(&self.spec(), &())?;
        Ok((found.key, found.trust))
    }
}

#[test]
fn a_key_made_in_prepared_form_alone_is_a_test_key() {
    let scene = Scene::new();
    let made = scene.prepared(3).unwrap();
    let folder = scene.dir.path().join("prepared");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 3);
    let (key, trust) = scene.open().unwrap();
    assert_eq!(key.form(), KeyForm::Prepared);
    assert_eq!(key.prepared().unwrap().content, Some(made.params_digest));
    assert!(matches!(trust, KeyTrust::Test { seed: 3, digest } if digest == made.params_digest));
    let verifying = scene.store().verifying_key(&scene.spec()).unwrap();
    assert_eq!(&verifying.key, key.vk());
    let mut store = scene.store();
    store.allow_test_keys = false;
    let error = store.proving_key(&scene.spec(), &()).unwrap_err();
    assert!(
        matches!(error, KeyError::TestKeyNotAllowed { .. }),
        "{error}"
    );
    // The same content as in memory.
    let request = EphemeralRequest {
        circuit: "chain",
        seed: 3,
        form: KeyForm::Prepared,
    };
    let multiplier = CpuFixedBase::new(&KeyCounts::of(&scene.circuit));
    let ephemeral = generate_ephemeral(&scene.circuit, &request, &multiplier, &()).unwrap();
    let bytes = std::fs::read(&made.params).unwrap();
    let content = ephemeral
        .key
        .file()
        .slice(4096, bytes.len() - 4096)
        .unwrap();
    assert!(content == &bytes[4096..]);
    // Nothing is overwritten.
    assert!(matches!(scene.prepared(3), Err(KeyError::Exists { .. })));
}

#[test]
fn a_prepared_key_goes_before_the_parameter_file_that_it_belongs_to() {
    let scene = Scene::new();
    scene.published(3);
    assert_eq!(scene.open().unwrap().0.form(), KeyForm::Published);
    let prepared = scene.prepared(3).unwrap();
    assert_eq!(scene.open().unwrap().0.form(), KeyForm::Prepared);
    std::fs::remove_file(prepared.params).unwrap();
    assert_eq!(scene.open().unwrap().0.form(), KeyForm::Published);
    // Another seed's is another key's.
    std::fs::remove_dir_all(scene.dir.path().join("prepared")).unwrap();
    scene.prepared(4).unwrap();
    let (key, trust) = scene.open().unwrap();
    assert_eq!(key.form(), KeyForm::Published);
    assert!(matches!(trust, KeyTrust::Test { seed: 3, .. }));
}

#[test]
fn a_prepared_key_is_checked_once_and_never_passed_over() {
    #[derive(Default)]
    struct Stages(std::sync::Mutex<Vec<&'static str>>);
    impl Progress for Stages {
        fn begin(&self, stage: &'static str, _total: u64) {
            self.0.lock().unwrap().push(stage);
        }
        fn advance(&self, _amount: u64) {}
    }
    let scene = Scene::new();
    scene.published(3);
    let made = scene.prepared(3).unwrap();
    let cache = tempfile::tempdir().unwrap();
    let mut store = scene.store();
    store.cache = Some(cache.path().to_owned());
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    let file = std::fs::File::options()
        .write(true)
        .open(&made.params)
        .unwrap();
    file.set_modified(old).unwrap();
    for expected in [&["digest", "points"][..], &[]] {
        let stages = Stages::default();
        store.proving_key(&scene.spec(), &stages).unwrap();
        assert_eq!(*stages.0.lock().unwrap(), expected);
    }
    let sound = std::fs::read(&made.params).unwrap();
    for (index, words) in [
        (sound.len() - 1, "its content does not have the digest"),
        (sound.len() / 2, "its content does not have the digest"),
        (100, "header is damaged"),
    ] {
        let mut spoiled = sound.clone();
        spoiled[index] ^= 1;
        std::fs::write(&made.params, spoiled).unwrap();
        let error = store
            .proving_key(&scene.spec(), &())
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{error}");
    }
    // A key under another's name.
    std::fs::write(&made.params, &sound).unwrap();
    store.proving_key(&scene.spec(), &()).unwrap();
    let elsewhere = Scene::new();
    let other = elsewhere.prepared(4).unwrap();
    std::fs::copy(other.params, &made.params).unwrap();
    let error = store
        .proving_key(&scene.spec(), &())
        .unwrap_err()
        .to_string();
    assert!(error.contains("is not the one in its name"), "{error}");
}
