//! Whole proofs over small random circuits, with keys made from a known trapdoor.

use blstrs::{G1Projective, G2Projective, Scalar};
use ff::Field;
use group::{Curve, Group};
use r1cs::{Builder, Variable};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

use super::*;
use crate::key::VerifyingKey;
use crate::prove::assemble;
use crate::{Blinding, PreparedVerifyingKey, verify};

/// A circuit under construction with a satisfying assignment.
struct Sample {
    builder: Builder,
    inputs: Vec<Scalar>,
    aux: Vec<Scalar>,
}

impl Sample {
    fn new() -> Self {
        // A builder begins with the constant one.
        Sample {
            builder: Builder::new(),
            inputs: vec![Scalar::ONE],
            aux: Vec::new(),
        }
    }

    fn input(&mut self, value: Scalar) -> Variable {
        self.inputs.push(value);
        self.builder.alloc_input()
    }

    fn aux(&mut self, value: Scalar) -> Variable {
        self.aux.push(value);
        self.builder.alloc_aux()
    }

    fn value(&self, variable: Variable) -> Scalar {
        match variable {
            Variable::Input(i) => self.inputs[i as usize],
            Variable::Aux(i) => self.aux[i as usize],
        }
    }

    /// (1 − x)·x = 0.
    fn bit(&mut self, value: bool) -> Variable {
        let x = self.aux(Scalar::from(u64::from(value)));
        let one = (Variable::ONE, Scalar::ONE);
        self.builder
            .enforce(&[one, (x, -Scalar::ONE)], &[(x, Scalar::ONE)], &[]);
        x
    }

    /// z = (x + 3y)·y.
    fn product(&mut self, x: Variable, y: Variable) -> Variable {
        let (vx, vy) = (self.value(x), self.value(y));
        let three = Scalar::from(3);
        let z = self.aux((vx + three * vy) * vy);
        self.builder.enforce(
            &[(x, Scalar::ONE), (y, three)],
            &[(y, Scalar::ONE)],
            &[(z, Scalar::ONE)],
        );
        z
    }

    fn finish(self) -> (CompiledCircuit, PackedWitness) {
        let circuit = self.builder.finish().unwrap();
        let witness = PackedWitness::from_assignment(&circuit, &self.inputs, &self.aux).unwrap();
        circuit.check(&witness).unwrap();
        (circuit, witness)
    }
}

/// A circuit of `steps` steps: bits, products of what came before, inputs in between.
pub(crate) fn random_sample(
    steps: usize,
    bits_per_step: usize,
    seed: u64,
) -> (CompiledCircuit, PackedWitness) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sample = Sample::new();
    let mut known = vec![Variable::ONE];
    for step in 0..steps {
        if step % 7 == 3 {
            known.push(sample.input(Scalar::random(&mut rng)));
        }
        for _ in 0..bits_per_step {
            known.push(sample.bit(rng.next_u32() % 2 == 1));
        }
        let mut pick = || known[rng.next_u32() as usize % known.len()];
        let (x, y) = (pick(), pick());
        known.push(sample.product(x, y));
    }
    sample.finish()
}

/// A key made from scalars that nobody may know.
struct ToyKey {
    vk: VerifyingKey,
    h: Vec<G1Affine>,
    l: Vec<G1Affine>,
    a: Vec<G1Affine>,
    b_g1: Vec<G1Affine>,
    b_g2: Vec<G2Affine>,
}

impl ToyKey {
    /// The definitions, without any shared work.
    fn new(circuit: &CompiledCircuit, seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let [alpha, beta, gamma, delta, tau] = [(); 5].map(|()| Scalar::random(&mut rng));
        let shape = circuit.shape();
        let (rows, inputs) = (shape.constraints, shape.inputs);
        let domain = Domain::new(shape.domain()).unwrap();
        let n = domain.size();
        let vanishing = tau.pow_vartime([n as u64]) - Scalar::ONE;
        let lagrange: Vec<Scalar> = (0..n)
            .map(|i| domain.root().pow_vartime([i as u64]))
            .map(|x| vanishing * domain.size_inverse() * x * (tau - x).invert().unwrap())
            .collect();
        let [mut u, v, w] = Matrix::ALL.map(|m| circuit.columns_at(m, &lagrange[..rows]));
        for (u, lagrange) in u[..inputs].iter_mut().zip(&lagrange[rows..]) {
            *u += lagrange;
        }

        let g1 = |k: Scalar| (G1Projective::generator() * k).to_affine();
        let g2 = |k: Scalar| (G2Projective::generator() * k).to_affine();
        let (per_gamma, per_delta) = (gamma.invert().unwrap(), delta.invert().unwrap());
        let combined: Vec<Scalar> = (0..inputs + shape.aux)
            .map(|j| beta * u[j] + alpha * v[j] + w[j])
            .collect();
        let present = |columns: &[Scalar]| -> Vec<Scalar> {
            columns
                .iter()
                .filter(|x| !bool::from(x.is_zero()))
                .copied()
                .collect()
        };
        ToyKey {
            vk: VerifyingKey {
                alpha_g1: g1(alpha),
                beta_g1: g1(beta),
                beta_g2: g2(beta),
                gamma_g2: g2(gamma),
                delta_g1: g1(delta),
                delta_g2: g2(delta),
                ic: combined[..inputs]
                    .iter()
                    .map(|x| g1(x * per_gamma))
                    .collect(),
            },
            h: (0..n as u64 - 1)
                .map(|i| g1(tau.pow_vartime([i]) * vanishing * per_delta))
                .collect(),
            l: combined[inputs..]
                .iter()
                .map(|x| g1(x * per_delta))
                .collect(),
            a: present(&u).into_iter().map(g1).collect(),
            b_g1: present(&v).into_iter().map(g1).collect(),
            b_g2: present(&v).into_iter().map(g2).collect(),
        }
    }

    fn queries(&self) -> Queries<'_> {
        Queries {
            form: KeyForm::Published,
            h: &self.h,
            l: &self.l,
            a: &self.a,
            b_g1: &self.b_g1,
            b_g2: &self.b_g2,
        }
    }
}

#[test]
fn proofs_of_random_circuits_verify() {
    // From nearly all field elements to nearly all bits; aux counts around the words' borders.
    for (steps, bits) in [(1, 0), (3, 1), (20, 0), (63, 0), (64, 0), (40, 9), (5, 60)] {
        let (circuit, witness) = random_sample(steps, bits, steps as u64);
        let key = ToyKey::new(&circuit, 1);
        let pvk = PreparedVerifyingKey::from(&key.vk);
        let inputs = &witness.inputs()[1..];
        for threads in [1, 3] {
            let backend = CpuBackend::with_threads(threads).unwrap();
            let (sums, _) = backend.run(&circuit, &key.queries(), &witness).unwrap();
            let proof = assemble(&key.vk, &sums, Blinding::random().unwrap());
            assert!(
                verify(&pvk, inputs, &proof).unwrap(),
                "{steps} steps, {bits} bits"
            );
            let plain = assemble(&key.vk, &sums, Blinding::fixed(Scalar::ZERO, Scalar::ZERO));
            assert!(verify(&pvk, inputs, &plain).unwrap());
            assert_ne!(plain.a, proof.a);
        }
    }
}

/// Each sum by itself against its definition.
#[test]
fn sums_equal_their_definitions() {
    let (circuit, witness) = random_sample(150, 5, 8);
    let key = ToyKey::new(&circuit, 2);
    let (sums, _) = CpuBackend::new()
        .run(&circuit, &key.queries(), &witness)
        .unwrap();
    let shape = circuit.shape();
    let density = circuit.density();
    let value = |variable| witness.value(&circuit, variable);
    let aux = |keep: &dyn Fn(usize) -> bool| -> Vec<Scalar> {
        (0..shape.aux)
            .filter(|j| keep(*j))
            .map(|j| value(Variable::Aux(j as u32)))
            .collect()
    };
    let inputs = |keep: &dyn Fn(usize) -> bool| -> Vec<Scalar> {
        (0..shape.inputs)
            .filter(|i| keep(*i))
            .map(|i| value(Variable::Input(i as u32)))
            .collect()
    };
    let a = [inputs(&|_| true), aux(&|j| density.a_aux.get(j))].concat();
    let b = [
        inputs(&|i| density.b_inputs.get(i)),
        aux(&|j| density.b_aux.get(j)),
    ]
    .concat();
    assert_eq!(a.len(), key.a.len());
    assert_eq!(b.len(), key.b_g1.len());
    fn naive<P: AffinePoint>(points: &[P], scalars: &[Scalar]) -> P::Curve {
        let terms = points.iter().zip(scalars);
        terms.fold(P::Curve::identity(), |sum, (p, k)| sum + *p * *k)
    }
    assert_eq!(sums.a, naive(&key.a, &a));
    assert_eq!(sums.b_g1, naive(&key.b_g1, &b));
    assert_eq!(sums.b_g2, naive(&key.b_g2, &b));
    assert_eq!(sums.l, naive(&key.l, &aux(&|_| true)));
}

#[test]
fn a_key_of_another_circuit_is_refused_by_section() {
    let (circuit, witness) = random_sample(30, 2, 9);
    let key = ToyKey::new(&circuit, 3);
    let short = |section: &str| -> ToyKey {
        let mut key = ToyKey::new(&circuit, 3);
        match section {
            "h" => drop(key.h.pop()),
            "l" => drop(key.l.pop()),
            "a" => drop(key.a.pop()),
            "b_g1" => drop(key.b_g1.pop()),
            _ => drop(key.b_g2.pop()),
        }
        key
    };
    let backend = CpuBackend::new();
    assert!(backend.run(&circuit, &key.queries(), &witness).is_ok());
    for section in ["h", "l", "a", "b_g1", "b_g2"] {
        let error = backend
            .run(&circuit, &short(section).queries(), &witness)
            .unwrap_err();
        assert!(
            matches!(error, BackendError::OtherCircuit { section: named, .. } if named == section)
        );
    }
    // A witness of another circuit.
    let (_, other) = random_sample(31, 2, 9);
    let error = backend.run(&circuit, &key.queries(), &other).unwrap_err();
    assert!(matches!(error, BackendError::Circuit(_)));
}

#[test]
fn phases_are_timed_and_reported_in_order() {
    #[derive(Default)]
    struct Stages(std::sync::Mutex<Vec<&'static str>>);
    impl Progress for Stages {
        fn begin(&self, stage: &'static str, _total: u64) {
            self.0.lock().unwrap().push(stage);
        }
        fn advance(&self, _amount: u64) {}
    }
    let (circuit, witness) = random_sample(10, 2, 10);
    let key = ToyKey::new(&circuit, 4);
    let stages = Arc::new(Stages::default());
    let backend = CpuBackend::new().with_progress(stages.clone());
    let (_, times) = backend.run(&circuit, &key.queries(), &witness).unwrap();
    let expected = ["evaluate", "ntt", "h", "l", "a", "b_g1", "b_g2"];
    assert!(times.iter().map(|(name, _)| name).eq(expected));
    assert_eq!(*stages.0.lock().unwrap(), expected);
    assert_eq!(times.total(), times.iter().map(|(_, time)| time).sum());
}

#[test]
fn the_device_says_what_it_is() {
    let device = CpuBackend::with_threads(3).unwrap().device();
    assert_eq!(device.kind, DeviceKind::Cpu);
    assert!(device.to_string().starts_with("CPU: 3 threads, "));
}
