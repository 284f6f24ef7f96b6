//! Generated keys against a naive set-up, a naive prover, and their own seed.

use std::collections::BTreeSet;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective, Scalar};
use ff::{Field, PrimeField};
use group::Curve;
use group::prime::PrimeCurveAffine;
use r1cs::{Builder, Variable};

use super::multiplier::CHUNK;
use super::*;
use crate::key::{KeySpec, KeyStore, KeyTrust, ProvingKey, Section};
use crate::points::Points;
use crate::{PreparedVerifyingKey, Proof, verify};

type Combination = Vec<(Variable, Scalar)>;

/// A circuit as plain rows, with a satisfying assignment (inputs, then auxiliary variables).
pub(super) struct Plain {
    inputs: usize,
    rows: Vec<[Combination; 3]>,
    witness: Vec<Scalar>,
}

impl Plain {
    /// `steps` rows of the chain v ← v·(3·v + one) + offset, with variables of every density:
    /// in A and B, in A alone, in C alone, and inputs in B.
    pub(super) fn chain(steps: usize) -> Self {
        let one = Scalar::ONE;
        let (offset, start) = (Scalar::from(7), Scalar::from(11));
        // Inputs: one, offset, the chain's start. Auxiliary: the chain's values.
        let mut rows: Vec<[Combination; 3]> = Vec::new();
        let mut values = Vec::new();
        let mut last = (Variable::Input(2), start);
        for step in 0..steps {
            let next = Variable::Aux(step as u32);
            let value = last.1 * (Scalar::from(3) * last.1 + one) + offset;
            rows.push([
                vec![(last.0, one)],
                vec![(last.0, Scalar::from(3)), (Variable::Input(0), one)],
                vec![(next, one), (Variable::Input(1), -one)],
            ]);
            values.push(value);
            last = (next, value);
        }
        // One more variable that occurs in A alone: 2·(x + 1) = 2·(last + 1).
        let extra = Variable::Aux(steps as u32);
        rows.push([
            vec![(extra, one), (Variable::Input(0), one)],
            vec![(Variable::Input(0), Scalar::from(2))],
            vec![
                (last.0, Scalar::from(2)),
                (Variable::Input(0), Scalar::from(2)),
            ],
        ]);
        values.push(last.1);
        let mut witness = vec![one, offset, start];
        witness.extend(values);
        Plain {
            inputs: 3,
            rows,
            witness,
        }
    }

    pub(super) fn compile(&self) -> CompiledCircuit {
        let mut builder = Builder::new();
        for _ in 1..self.inputs {
            builder.alloc_input();
        }
        for _ in self.inputs..self.witness.len() {
            builder.alloc_aux();
        }
        for [a, b, c] in &self.rows {
            builder.enforce(a, b, c);
        }
        builder.finish().unwrap()
    }

    fn column(&self, variable: Variable) -> usize {
        match variable {
            Variable::Input(i) => i as usize,
            Variable::Aux(i) => self.inputs + i as usize,
        }
    }

    /// The rows with those that the proof system appends.
    fn all_rows(&self) -> Vec<[Combination; 3]> {
        let mut rows = self.rows.clone();
        rows.extend((0..self.inputs as u32).map(|i| {
            [
                vec![(Variable::Input(i), Scalar::ONE)],
                Vec::new(),
                Vec::new(),
            ]
        }));
        rows
    }

    fn domain(&self) -> Vec<Scalar> {
        let n = self.all_rows().len().next_power_of_two();
        let mut omega = Scalar::ROOT_OF_UNITY;
        for _ in n.trailing_zeros()..Scalar::S {
            omega = omega.square();
        }
        (0..n).map(|i| omega.pow_vartime([i as u64])).collect()
    }

    /// u_j(τ), v_j(τ), w_j(τ) for every variable, from the definition.
    fn polynomials_at(&self, tau: &Scalar) -> Vec<[Scalar; 3]> {
        let domain = self.domain();
        let mut values = vec![[Scalar::ZERO; 3]; self.witness.len()];
        for (i, row) in self.all_rows().iter().enumerate() {
            // Π over the other points of (τ − x)/(x_i − x).
            let (mut numerator, mut denominator) = (Scalar::ONE, Scalar::ONE);
            for (j, x) in domain.iter().enumerate() {
                if j != i {
                    numerator *= tau - x;
                    denominator *= domain[i] - x;
                }
            }
            let lagrange = numerator * denominator.invert().unwrap();
            for (matrix, combination) in row.iter().enumerate() {
                for (variable, coefficient) in combination {
                    values[self.column(*variable)][matrix] += lagrange * coefficient;
                }
            }
        }
        values
    }

    /// Columns that occur in matrix `m`, ascending.
    fn columns_in(&self, m: usize) -> Vec<usize> {
        let columns: BTreeSet<usize> = self
            .all_rows()
            .iter()
            .flat_map(|row| row[m].iter().map(|(variable, _)| self.column(*variable)))
            .collect();
        columns.into_iter().collect()
    }

    /// The coefficients of H = (A·B − C)/Z by schoolbook transforms and products.
    fn quotient(&self) -> Vec<Scalar> {
        let domain = self.domain();
        let n = domain.len();
        let scale = Scalar::from(n as u64).invert().unwrap();
        let [a, b, c] = [0, 1, 2].map(|m| {
            let mut values: Vec<Scalar> = self
                .all_rows()
                .iter()
                .map(|row| {
                    row[m]
                        .iter()
                        .map(|(variable, k)| self.witness[self.column(*variable)] * k)
                        .sum()
                })
                .collect();
            values.resize(n, Scalar::ZERO);
            // coefficient_k = 1/n · Σ value_i · ω^(−ik)
            (0..n)
                .map(|k| {
                    let terms = values.iter().enumerate();
                    scale
                        * terms
                            .map(|(i, v)| *v * domain[(n - i * k % n) % n])
                            .sum::<Scalar>()
                })
                .collect::<Vec<_>>()
        });
        let mut product = vec![Scalar::ZERO; 2 * n];
        for (i, a) in a.iter().enumerate() {
            for (j, b) in b.iter().enumerate() {
                product[i + j] += *a * b;
            }
        }
        for (product, c) in product.iter_mut().zip(&c) {
            *product -= c;
        }
        // P = H·x^n − H.
        let (low, high) = product.split_at(n);
        assert!(low.iter().zip(high).all(|(low, high)| *low == -high));
        assert_eq!(high[n - 1], Scalar::ZERO);
        high[..n - 1].to_vec()
    }
}

struct Generated {
    dir: tempfile::TempDir,
    circuit: CompiledCircuit,
    files: TestKey,
    key: ProvingKey,
}

fn request<'a>(folder: &'a Path, seed: u64) -> SetupRequest<'a> {
    SetupRequest {
        circuit: "chain",
        stem: "v28-chain",
        folder,
        seed,
        cache: None,
    }
}

fn generated(plain: &Plain, seed: u64) -> Generated {
    let dir = tempfile::tempdir().unwrap();
    let circuit = plain.compile();
    let files = generate(&circuit, &request(dir.path(), seed), &()).unwrap();
    let key = ProvingKey::open(&files.params, &KeyCounts::of(&circuit)).unwrap();
    Generated {
        dir,
        circuit,
        files,
        key,
    }
}

/// Sizes that fill a domain exactly, miss it by one, overflow it by one, and longer ones.
const STEPS: [usize; 7] = [1, 3, 4, 5, 11, 12, 40];

#[test]
fn every_point_is_the_generator_times_its_scalar() {
    for steps in STEPS {
        let plain = Plain::chain(steps);
        let made = generated(&plain, 42);
        let n = plain.domain().len();
        assert_eq!(made.circuit.shape().domain(), n);
        let secrets = Trapdoor::from_seed(42, n);
        let values = plain.polynomials_at(&secrets.tau);
        let combined: Vec<Scalar> = values
            .iter()
            .map(|[u, v, w]| secrets.beta * u + secrets.alpha * v + w)
            .collect();
        let g1 = |scalar: Scalar| (G1Affine::generator() * scalar).to_affine();
        let g2 = |scalar: Scalar| (G2Affine::generator() * scalar).to_affine();
        let divide = |value: Scalar, by: Scalar| value * by.invert().unwrap();

        let key = &made.key;
        let read = |section: &Section<G1Affine>| section.read_vec(0, section.len()).unwrap();
        let z = secrets.tau.pow_vartime([n as u64]) - Scalar::ONE;
        let h: Vec<G1Affine> = (0..n - 1)
            .map(|i| {
                g1(divide(
                    secrets.tau.pow_vartime([i as u64]) * z,
                    secrets.delta,
                ))
            })
            .collect();
        assert_eq!(read(key.h()), h);
        let l: Vec<G1Affine> = combined[plain.inputs..]
            .iter()
            .map(|value| g1(divide(*value, secrets.delta)))
            .collect();
        assert_eq!(read(key.l()), l);
        let ic: Vec<G1Affine> = combined[..plain.inputs]
            .iter()
            .map(|value| g1(divide(*value, secrets.gamma)))
            .collect();
        assert_eq!(key.vk().ic, ic);
        let a: Vec<G1Affine> = plain
            .columns_in(0)
            .iter()
            .map(|&j| g1(values[j][0]))
            .collect();
        assert_eq!(read(key.a()), a);
        let in_b = plain.columns_in(1);
        let b1: Vec<G1Affine> = in_b.iter().map(|&j| g1(values[j][1])).collect();
        assert_eq!(read(key.b_g1()), b1);
        let b2: Vec<G2Affine> = in_b.iter().map(|&j| g2(values[j][1])).collect();
        assert_eq!(key.b_g2().read_vec(0, in_b.len()).unwrap(), b2);
        assert!(a.len() < values.len() && b1.len() < a.len());

        let vk = key.vk();
        assert_eq!(vk.alpha_g1, g1(secrets.alpha));
        assert_eq!(
            (vk.beta_g1, vk.beta_g2),
            (g1(secrets.beta), g2(secrets.beta))
        );
        assert_eq!(
            (vk.delta_g1, vk.delta_g2),
            (g1(secrets.delta), g2(secrets.delta))
        );
        assert_eq!(vk.gamma_g2, g2(secrets.gamma));
    }
}

#[test]
fn a_proof_put_together_by_hand_verifies() {
    for steps in STEPS {
        let plain = Plain::chain(steps);
        let made = generated(&plain, 7);
        let (key, vk) = (&made.key, made.key.vk());
        let sum = |points: Vec<G1Affine>, scalars: Vec<Scalar>| -> G1Projective {
            points.iter().zip(&scalars).map(|(p, s)| *p * s).sum()
        };
        let of = |columns: Vec<usize>| -> Vec<Scalar> {
            columns.into_iter().map(|j| plain.witness[j]).collect()
        };
        let counts = key.counts();
        let in_b = of(plain.columns_in(1));
        let b: G2Projective = key
            .b_g2()
            .read_vec(0, in_b.len())
            .unwrap()
            .iter()
            .zip(&in_b)
            .map(|(p, s)| *p * s)
            .sum();
        let a = sum(
            key.a().read_vec(0, counts.a as usize).unwrap(),
            of(plain.columns_in(0)),
        );
        let l = key.l().read_vec(0, counts.l as usize).unwrap();
        let h = key.h().read_vec(0, counts.h as usize).unwrap();
        // r = s = 0: the blinding terms vanish.
        let proof = Proof {
            a: (a + vk.alpha_g1).to_affine(),
            b: (b + vk.beta_g2).to_affine(),
            c: (sum(l, plain.witness[plain.inputs..].to_vec()) + sum(h, plain.quotient()))
                .to_affine(),
        };
        let prepared = PreparedVerifyingKey::from(vk);
        let inputs = &plain.witness[1..plain.inputs];
        assert!(verify(&prepared, inputs, &proof).unwrap());
        let wrong = [inputs[0], inputs[1] + Scalar::ONE];
        assert!(!verify(&prepared, &wrong, &proof).unwrap());
    }
}

#[test]
fn a_seed_gives_the_same_bytes_and_another_seed_others() {
    let plain = Plain::chain(20);
    let bytes = |seed, threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let made = pool.build().unwrap().install(|| generated(&plain, seed));
        let read = |path: &Path| std::fs::read(path).unwrap();
        let files = &made.files;
        assert_eq!(
            KeyDigest::of_bytes(&read(&files.params)),
            files.params_digest
        );
        assert_eq!(KeyDigest::of_bytes(&read(&files.vk)), files.vk_digest);
        [&files.params, &files.vk, &files.side_file].map(|path| read(path))
    };
    let first = bytes(3, 1);
    assert_eq!(first, bytes(3, 5));
    assert_ne!(first[0], bytes(4, 1)[0]);
    // Whatever changes the bytes of a seed changes every test key out there.
    assert_eq!(
        KeyDigest::of_bytes(&first[0]).to_string(),
        "15cff4fc935515e49a13db7cb80798e4"
    );
}

#[test]
fn longer_vectors_than_a_wave_are_written_whole() {
    let made = generated(
        &Plain::chain(2 * CHUNK * CpuFixedBase::CHUNKS_PER_THREAD + 77),
        1,
    );
    let counts = *made.key.counts();
    let secrets = Trapdoor::from_seed(1, counts.h as usize + 1);
    let queries = Queries::new(&made.circuit, &secrets, KeyForm::Published, &()).unwrap();
    let mut h = vec![Scalar::ZERO; counts.h as usize];
    queries.h(0, &mut h);
    // h by its law, from a start that is not 0 too.
    let mut part = vec![Scalar::ZERO; 9];
    queries.h(4091, &mut part);
    assert_eq!(part, h[4091..4100]);
    // A random weighting of each vector: Σ k_i·point_i = (Σ k_i·scalar_i)·G.
    let weights = |n: usize| (0..n).map(|i| Scalar::from(i as u64 * i as u64 + 1));
    let scalars = [h, queries.l().to_vec(), queries.a, queries.b];
    let sections = [made.key.h(), made.key.l(), made.key.a(), made.key.b_g1()];
    for (scalars, section) in scalars.iter().zip(sections) {
        let points = section.read_vec(0, scalars.len()).unwrap();
        let points: Vec<G1Projective> = points.iter().map(G1Projective::from).collect();
        let weights: Vec<Scalar> = weights(scalars.len()).collect();
        let expected: Scalar = scalars.iter().zip(&weights).map(|(s, k)| *s * k).sum();
        assert_eq!(
            G1Projective::multi_exp(&points, &weights),
            G1Affine::generator() * expected,
            "{}",
            section.name()
        );
    }
}

#[test]
fn a_generated_key_is_used_as_a_test_key_and_needs_no_check_again() {
    struct NoStage;
    impl Progress for NoStage {
        fn begin(&self, stage: &'static str, _total: u64) {
            panic!("{stage} was done again");
        }
        fn advance(&self, _amount: u64) {}
    }
    let plain = Plain::chain(9);
    let circuit = plain.compile();
    let dir = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let folder = dir.path().join("test-keys");
    let request = SetupRequest {
        cache: Some(cache.path()),
        ..request(&folder, u64::MAX)
    };
    generate(&circuit, &request, &()).unwrap();
    let spec = KeySpec {
        circuit: "chain".to_owned(),
        stem: "v28-chain".to_owned(),
        sector: "2KiB".to_owned(),
        counts: KeyCounts::of(&circuit),
        production: None,
    };
    let mut store = KeyStore {
        folders: vec![folder],
        cache: Some(cache.path().to_owned()),
        allow_test_keys: true,
    };
    let key = store.proving_key(&spec, &NoStage).unwrap();
    assert!(matches!(key.trust, KeyTrust::Test { seed: u64::MAX, .. }));
    // Without what was remembered, the full check agrees.
    store.cache = None;
    store.proving_key(&spec, &()).unwrap();
    store.verifying_key(&spec).unwrap();
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn nothing_is_overwritten_or_mixed_with_other_keys() {
    let plain = Plain::chain(3);
    let made = generated(&plain, 1);
    let before = names(made.dir.path());
    assert_eq!(before.len(), 3);
    let again = generate(&made.circuit, &request(made.dir.path(), 2), &());
    assert!(matches!(again, Err(KeyError::Exists { .. })));
    for file in [&made.files.params, &made.files.vk] {
        let kept = std::fs::read(file).unwrap();
        std::fs::remove_file(file).unwrap();
        let again = generate(&made.circuit, &request(made.dir.path(), 2), &());
        assert!(matches!(again, Err(KeyError::Exists { .. })));
        std::fs::write(file, kept).unwrap();
    }
    assert_eq!(names(made.dir.path()), before);

    // Another test key may join; not where an official key lives.
    let other = SetupRequest {
        stem: "v28-other",
        ..request(made.dir.path(), 2)
    };
    generate(&made.circuit, &other, &()).unwrap();
    std::fs::write(made.dir.path().join("v28-official.vk"), "key").unwrap();
    let third = SetupRequest {
        stem: "v28-third",
        ..other
    };
    let error = generate(&made.circuit, &third, &()).unwrap_err();
    assert!(matches!(error, KeyError::MixedFolder { .. }), "{error}");
    assert_eq!(names(made.dir.path()).len(), 7);
}

#[test]
fn a_failure_leaves_nothing_behind() {
    // A variable that occurs nowhere cannot have a point.
    let mut builder = Builder::new();
    let unused = builder.alloc_aux();
    let used = builder.alloc_aux();
    let one = [(Variable::Input(0), Scalar::ONE)];
    builder.enforce(&one, &one, &[(used, Scalar::ONE)]);
    let circuit = builder.finish().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("new/folder");
    match generate(&circuit, &request(&folder, 1), &()).unwrap_err() {
        KeyError::Unconstrained { variable } => assert_eq!(variable, unused),
        other => panic!("{other}"),
    }
    assert!(!folder.exists());

    // A folder that cannot be one.
    std::fs::write(dir.path().join("file"), "").unwrap();
    let blocked = dir.path().join("file/keys");
    assert!(generate(&circuit, &request(&blocked, 1), &()).is_err());
}

#[test]
fn circuits_without_rows_or_auxiliary_variables_have_keys() {
    for inputs in [0, 1, 4] {
        let mut builder = Builder::new();
        for _ in 0..inputs {
            builder.alloc_input();
        }
        let circuit = builder.finish().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let files = generate(&circuit, &request(dir.path(), 1), &()).unwrap();
        let key = ProvingKey::open(&files.params, &KeyCounts::of(&circuit)).unwrap();
        assert_eq!(key.vk().ic.len(), inputs + 1);
        assert_eq!(key.counts().b, 0);
    }
}
