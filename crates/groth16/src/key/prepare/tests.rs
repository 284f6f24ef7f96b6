//! Keys prepared from files against keys made from their secrets, and what a run leaves behind.

use std::sync::atomic::{AtomicUsize, Ordering};

use r1cs::{CompiledCircuit, Matrix};

use super::*;
use crate::backend::BackendError;
use crate::cpu::tests::random_sample;
use crate::key::{KeyCounts, KeySpec, KeyStore};
use crate::setup::{
    CpuFixedBase, EphemeralRequest, SetupRequest, TestKey, generate, generate_ephemeral,
};

const SEED: u64 = 11;

/// A circuit with its published test key in a folder.
struct Scene {
    dir: tempfile::TempDir,
    circuit: CompiledCircuit,
    source: Trusted<ProvingKey>,
    files: TestKey,
}

impl Scene {
    fn new(circuit: CompiledCircuit) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("published");
        let request = SetupRequest {
            circuit: "sample",
            stem: "v28-sample",
            folder: &folder,
            seed: SEED,
            cache: None,
        };
        let files = generate(&circuit, &request, &()).unwrap();
        let key = ProvingKey::open(&files.params, &KeyCounts::of(&circuit)).unwrap();
        let source = Trusted {
            key,
            path: files.params.clone(),
            trust: KeyTrust::Test {
                seed: SEED,
                digest: files.params_digest,
            },
        };
        Scene {
            dir,
            circuit,
            source,
            files,
        }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("prepared")
    }

    fn prepare(&self, on_disk: bool, transform: &dyn GroupTransform) -> Result<Prepared, KeyError> {
        let folder = self.folder();
        let request = PrepareRequest {
            circuit: "sample",
            folder: on_disk.then_some(&folder),
            cache: None,
        };
        prepare(&self.circuit, &self.source, &request, transform, &())
    }

    /// The content that the key has when it is made from its secrets.
    fn expected(&self) -> Vec<u8> {
        let request = EphemeralRequest {
            circuit: "sample",
            seed: SEED,
            form: KeyForm::Prepared,
        };
        let multiplier = CpuFixedBase::new(&KeyCounts::of(&self.circuit));
        let made = generate_ephemeral(&self.circuit, &request, &multiplier, &()).unwrap();
        content(&made.key)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder()).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

fn content(key: &ProvingKey) -> Vec<u8> {
    let file = key.file();
    file.slice(4096, file.len() - 4096).unwrap().to_vec()
}

/// The CPU's transforms, counted; those from number `wrong` on shift their points by one place,
/// those from number `fails` on fail.
struct Counted {
    runs: AtomicUsize,
    wrong: usize,
    fails: usize,
}

impl Counted {
    fn new(wrong: usize, fails: usize) -> Self {
        Counted {
            runs: AtomicUsize::new(0),
            wrong,
            fails,
        }
    }
}

impl GroupTransform for Counted {
    fn inverse(
        &self,
        points: &mut [G1Affine],
        set: EvaluationSet,
        scale: Scalar,
    ) -> Result<(), BackendError> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        if run >= self.fails {
            return Err(BackendError::DomainSize { size: 3 });
        }
        CpuGroupTransform.inverse(points, set, scale)?;
        if run >= self.wrong {
            points.rotate_left(1);
        }
        Ok(())
    }
}

#[test]
fn a_key_prepared_from_a_file_is_the_one_made_from_its_secrets() {
    for (steps, bits) in [(1, 0), (3, 1), (20, 0), (40, 9), (5, 60), (300, 3)] {
        let scene = Scene::new(random_sample(steps, bits, 4).0);
        let expected = scene.expected();
        for on_disk in [false, true] {
            let made = scene.prepare(on_disk, &CpuGroupTransform).unwrap();
            assert!(content(&made.key) == expected, "{steps} steps");
            let header = made.key.prepared().unwrap();
            assert_eq!(header.source, Some(scene.files.params_digest));
            assert_eq!(header.content, Some(made.digest));
            assert_eq!(header.circuit, scene.circuit.digest());
            assert!(made.resumed.is_empty());
        }
        assert_eq!(scene.names().len(), 1);
        let again = scene.prepare(true, &CpuGroupTransform).unwrap_err();
        assert!(matches!(again, KeyError::Exists { .. }));
    }
}

#[test]
fn the_store_takes_what_was_prepared() {
    let scene = Scene::new(random_sample(20, 3, 4).0);
    let made = scene.prepare(true, &CpuGroupTransform).unwrap();
    let spec = KeySpec {
        circuit: "sample".to_owned(),
        stem: "v28-sample".to_owned(),
        sector: "2KiB".to_owned(),
        counts: KeyCounts::of(&scene.circuit),
        production: None,
    };
    let store = KeyStore {
        folders: vec![scene.dir.path().join("published"), scene.folder()],
        cache: None,
        allow_test_keys: true,
    };
    let found = store.proving_key(&spec, &()).unwrap();
    assert_eq!(found.path, made.key.path());
    assert_eq!(found.trust, scene.source.trust);
    // What is prepared is not prepared once more.
    let request = PrepareRequest {
        circuit: "sample",
        folder: None,
        cache: None,
    };
    let error = prepare(&scene.circuit, &found, &request, &CpuGroupTransform, &());
    assert!(error.unwrap_err().to_string().contains("already"));
}

#[test]
fn a_run_that_was_ended_goes_on_where_it_was() {
    let scene = Scene::new(random_sample(20, 3, 4).0);
    let expected = scene.expected();
    // Fails in the second transform: a, b and h are finished then.
    let error = scene.prepare(true, &Counted::new(9, 1)).unwrap_err();
    assert!(matches!(error, KeyError::Device { .. }), "{error}");
    assert_eq!(scene.names().len(), 2);
    let rest = Counted::new(9, 9);
    let made = scene.prepare(true, &rest).unwrap();
    assert_eq!(made.resumed, ["a", "b_g1", "b_g2", "h"]);
    assert_eq!(rest.runs.into_inner(), 1);
    assert!(content(&made.key) == expected);
    assert_eq!(scene.names().len(), 1);

    // A draft of something else, or a state that says nothing, is begun anew.
    let target = made.key.path().to_path_buf();
    std::fs::remove_file(&target).unwrap();
    scene.prepare(true, &Counted::new(9, 1)).unwrap_err();
    let state = format!("{}.draft.state", target.display());
    let known = std::fs::read_to_string(&state).unwrap();
    for spoiled in ["", "x\n", &known[1..], &known[..known.len() - 1]] {
        std::fs::write(&state, spoiled).unwrap();
        let all = Counted::new(9, 0);
        scene.prepare(true, &all).unwrap_err();
        let left = std::fs::read_to_string(&state).unwrap();
        // The last one lost the line of h alone.
        assert_eq!(left.lines().count(), 4, "{spoiled:?} became {left:?}");
    }
}

#[test]
fn a_wrong_result_is_noticed_and_deleted() {
    let scene = Scene::new(random_sample(20, 3, 4).0);
    for wrong in [0, 1] {
        let error = scene.prepare(true, &Counted::new(wrong, 9)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("section h or l does not agree"), "{text}");
        assert!(scene.names().is_empty());
        assert!(scene.prepare(false, &Counted::new(wrong, 9)).is_err());
    }
}

/// One point off in any vector, wherever it is.
#[test]
fn one_wrong_point_is_noticed() {
    let scene = Scene::new(random_sample(9, 2, 4).0);
    let made = scene.prepare(false, &CpuGroupTransform).unwrap();
    let counts = KeyCounts::of(&scene.circuit);
    let layout = PreparedLayout::of(&counts);
    let file = made.key.file();
    let sound = file.slice(0, file.len()).unwrap().to_vec();
    let path = scene.dir.path().join("spoiled.key");
    let check = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let key = ProvingKey::open(&path, &counts).unwrap();
        check::check_against(&scene.circuit, &key, &scene.source.key, &())
    };
    check(&sound).unwrap();
    for section in 1..6 {
        let offset = layout.offsets[section] as usize;
        let size = if section == 5 { 192 } else { 96 };
        let count = layout.lengths[section] as usize / size;
        for index in [0, count / 2, count - 1] {
            let mut spoiled = sound.clone();
            // Another point of the group: the neighbour's.
            let other = offset + (index + 1) % count * size;
            let place = offset + index * size;
            if sound[place..place + size] == sound[other..other + size] {
                continue;
            }
            spoiled.copy_within(other..other + size, place);
            let error = check(&spoiled).unwrap_err().to_string();
            assert!(
                error.contains("does not agree"),
                "{section} {index}: {error}"
            );
        }
    }
}

/// C's columns in the group against the circuit's plain rows.
#[test]
fn folded_columns_are_the_naive_product() {
    use group::{Curve, Group, prime::PrimeCurveAffine};
    for (steps, bits) in [(3, 1), (60, 4), (5, 60)] {
        let (circuit, _) = random_sample(steps, bits, 9);
        let shape = circuit.shape();
        let points = |count: usize, first: u64| -> Vec<G1Affine> {
            (first..first + count as u64)
                .map(|k| (G1Affine::generator() * Scalar::from(k)).to_affine())
                .collect()
        };
        let rows = points(shape.constraints, 5);
        let mut columns = points(shape.inputs + shape.aux, 90_000);
        let mut expected: Vec<_> = columns.iter().map(PrimeCurveAffine::to_curve).collect();
        let c = circuit.to_csr(Matrix::C);
        for (row, bounds) in c.starts.windows(2).enumerate() {
            for term in bounds[0] as usize..bounds[1] as usize {
                let coefficient = circuit.dictionary().value(c.coefficients[term]);
                expected[c.columns[term] as usize] += rows[row] * coefficient;
            }
        }
        let expected: Vec<G1Affine> = expected.iter().map(Curve::to_affine).collect();
        fold::add_columns(&circuit, &rows, &mut columns, &());
        assert_eq!(columns, expected, "{steps} steps");
        assert!(!bool::from(expected[0].to_curve().is_identity()));
    }
}
