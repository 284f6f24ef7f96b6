//! Keys prepared from files against keys made from their secrets, and what a run leaves behind.

use std::sync::atomic::{AtomicUsize, Ordering};

use blstrs::{G1Affine, Scalar};
use r1cs::{CompiledCircuit, Matrix};

use super::check::Check;
use super::*;
use crate::backend::{BackendError, PhaseTimes};
use crate::cpu::tests::random_sample;
use crate::key::{KeyCounts, KeySpec, KeyStore};
use crate::ntt::EvaluationSet;
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
    ) -> Result<PhaseTimes, BackendError> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        if run >= self.fails {
            return Err(BackendError::DomainSize { size: 3 });
        }
        let times = CpuGroupTransform.inverse(points, set, scale)?;
        if run >= self.wrong {
            points.rotate_left(1);
        }
        Ok(times)
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
    // Fails in the second transform: a, b and l are finished then.
    let error = scene.prepare(true, &Counted::new(9, 1)).unwrap_err();
    assert!(matches!(error, KeyError::Device { .. }), "{error}");
    assert_eq!(scene.names().len(), 2);
    let rest = Counted::new(9, 9);
    let made = scene.prepare(true, &rest).unwrap();
    assert_eq!(made.resumed, ["a", "b_g1", "b_g2", "l"]);
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
        // The last one lost the line of l alone.
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

/// A transform with one point that is not what it should be: its double, which is a sound point.
struct OneWrong {
    set: EvaluationSet,
    index: usize,
}

impl GroupTransform for OneWrong {
    fn inverse(
        &self,
        points: &mut [G1Affine],
        set: EvaluationSet,
        scale: Scalar,
    ) -> Result<PhaseTimes, BackendError> {
        use group::{Curve, Group, prime::PrimeCurveAffine};
        let times = CpuGroupTransform.inverse(points, set, scale)?;
        if set == self.set {
            let point = &mut points[self.index];
            assert!(!bool::from(point.is_identity()));
            *point = point.to_curve().double().to_affine();
        }
        Ok(times)
    }
}

/// Rows with terms in C: the only ones whose points of D go into l'.
fn rows_in_c(circuit: &CompiledCircuit) -> Vec<usize> {
    let starts = circuit.to_csr(Matrix::C).starts;
    (0..starts.len() - 1)
        .filter(|&row| starts[row] < starts[row + 1])
        .collect()
}

/// A device's fault in one point of e, or in one of the points that l' is made of.
#[test]
fn one_wrong_point_of_a_transform_is_noticed() {
    let scene = Scene::new(random_sample(20, 3, 4).0);
    let n = scene.circuit.shape().domain();
    let used = rows_in_c(&scene.circuit);
    let rows = [used[0], used[used.len() / 2], used[used.len() - 1]];
    let e = [0, n / 2, n - 1].map(|index| (EvaluationSet::Coset, index));
    let d = rows.map(|index| (EvaluationSet::Subgroup, index));
    for (set, index) in e.into_iter().chain(d) {
        let error = scene.prepare(true, &OneWrong { set, index });
        let text = error.unwrap_err().to_string();
        let wanted = "section h or l does not agree";
        assert!(text.contains(wanted), "{set:?} {index}: {text}");
        assert!(scene.names().is_empty());
    }
}

/// What a device makes may be no point of the group at all.
#[test]
fn a_point_that_is_none_is_noticed() {
    struct Off(EvaluationSet, usize);
    impl GroupTransform for Off {
        fn inverse(
            &self,
            points: &mut [G1Affine],
            set: EvaluationSet,
            scale: Scalar,
        ) -> Result<PhaseTimes, BackendError> {
            let times = CpuGroupTransform.inverse(points, set, scale)?;
            if set == self.0 {
                let raw = points[self.1].as_mut();
                raw.x.l[0] ^= 1;
            }
            Ok(times)
        }
    }
    let scene = Scene::new(random_sample(20, 3, 4).0);
    let off = |set, index| scene.prepare(true, &Off(set, index)).unwrap_err();
    let error = off(EvaluationSet::Coset, 0);
    assert!(matches!(error, KeyError::Point { .. }), "{error}");
    assert!(scene.names().is_empty());
    // In D it makes sums of l' that are none.
    off(EvaluationSet::Subgroup, rows_in_c(&scene.circuit)[0]);
    assert!(scene.names().is_empty());
}

/// The lanes run beside each other, steps of one after each other.
#[test]
fn steps_tell_what_was_done() {
    let scene = Scene::new(random_sample(20, 3, 4).0);
    let made = scene.prepare(false, &CpuGroupTransform).unwrap();
    for lane in [Lane::Transform, Lane::Cpu] {
        let steps: Vec<_> = made.steps.iter().filter(|step| step.lane == lane).collect();
        assert!(steps.iter().all(|step| step.start <= step.end));
        let in_order = |two: &[&Step]| two[0].end <= two[1].start;
        assert!(steps.windows(2).all(in_order), "{steps:?}");
        let names: Vec<_> = steps.iter().map(|step| step.name).collect();
        match lane {
            Lane::Transform => assert_eq!(names, ["read h", "transform"].repeat(2)),
            Lane::Cpu => assert!(names.contains(&"check h") && names.contains(&"digest")),
        }
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
        let check = Check::new(&scene.circuit, &scene.source.key)?;
        check.compare_kept(&key, &())?;
        let found = check.sum_h(&key, &())? + check.sum_l(&key, &())?;
        check.compare(&key, found, check.expected(&())?)
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
