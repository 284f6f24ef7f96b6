use super::parameters::{Parameters, round_numbers};
use super::*;
use ff::{Field, PrimeField};
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use serde_json::Value;

/// R_P of the reference script's table, by width; R_F is 8 in every row.
const KNOWN_PARTIAL_ROUNDS: [(usize, usize); 19] = [
    (2, 55),
    (3, 55),
    (4, 56),
    (5, 56),
    (6, 56),
    (7, 56),
    (8, 57),
    (9, 57),
    (10, 57),
    (11, 57),
    (12, 57),
    (13, 57),
    (14, 57),
    (15, 57),
    (16, 59),
    (17, 59),
    (25, 59),
    (37, 60),
    (65, 61),
];

#[test]
fn round_numbers_of_the_specification() {
    for (width, partial) in KNOWN_PARTIAL_ROUNDS {
        assert_eq!(round_numbers(width), (8, partial), "width {width}");
    }
}

/// The permutation as the paper defines it: keys, S-boxes, matrix.
fn plain_permutation(parameters: &Parameters, state: &mut Vec<Fr>) {
    let half = parameters.full_rounds / 2;
    for (round, keys) in parameters.round_keys.iter().enumerate() {
        for (element, key) in state.iter_mut().zip(keys) {
            *element += key;
        }
        let full = round < half || round >= half + parameters.partial_rounds;
        let boxes = if full { state.len() } else { 1 };
        for element in &mut state[..boxes] {
            *element = element.pow_vartime([5]);
        }
        *state = matrix::apply(&parameters.mds, state);
    }
}

fn compare_with_plain<const T: usize>() {
    let parameters = Parameters::new(T);
    let permutation = Permutation::<T>::derive();
    let mut rng = ChaCha8Rng::seed_from_u64(T as u64);
    let mut states = vec![vec![Fr::ZERO; T], vec![-Fr::ONE; T]];
    states.extend((0..5).map(|_| (0..T).map(|_| Fr::random(&mut rng)).collect()));
    for mut expected in states {
        let mut state: [Element; T] = std::array::from_fn(|i| expected[i].into());
        permutation.permute(&mut state, &mut ());
        plain_permutation(&parameters, &mut expected);
        assert_eq!(state.map(Fr::from).to_vec(), expected);
    }
}

#[test]
fn schedule_agrees_with_the_plain_permutation() {
    compare_with_plain::<2>();
    compare_with_plain::<3>();
    compare_with_plain::<5>();
    compare_with_plain::<9>();
    compare_with_plain::<12>();
}

struct Recorder(Vec<(usize, [Fr; 4])>);

impl Observer for Recorder {
    fn s_box(
        &mut self,
        position: usize,
        input: Element,
        square: Element,
        fourth: Element,
        output: Element,
    ) {
        self.0
            .push((position, [input, square, fourth, output].map(Fr::from)));
    }
}

#[test]
fn observer_sees_every_s_box() {
    let mut state: [Element; 9] = std::array::from_fn(|i| Fr::from(i as u64).into());
    let mut unseen = state;
    let mut recorder = Recorder(Vec::new());
    permutation_9().permute(&mut state, &mut recorder);
    permutation_9().permute(&mut unseen, &mut ());
    assert_eq!(state, unseen);
    assert_eq!(recorder.0.len(), 8 * 9 + 57);
    for (_, [input, square, fourth, _]) in &recorder.0 {
        assert_eq!(input.square(), *square);
        assert_eq!(square.square(), *fourth);
    }
    let positions: Vec<usize> = recorder.0[4 * 9..4 * 9 + 57]
        .iter()
        .map(|(p, _)| *p)
        .collect();
    assert_eq!(positions, vec![0; 57]);
}

fn field_element(value: &Value) -> Fr {
    let bytes = hex::decode(value.as_str().unwrap()).unwrap();
    Fr::from_repr(bytes.try_into().unwrap()).unwrap()
}

/// `testdata/poseidon.json`: hashes by the reference implementation of random, zero and largest inputs.
#[test]
fn golden_vectors() {
    let golden: Value = serde_json::from_str(include_str!("../../testdata/poseidon.json")).unwrap();
    let cases = golden.as_array().unwrap();
    assert!(cases.len() >= 40);
    for case in cases {
        let inputs: Vec<Fr> = case["inputs"]
            .as_array()
            .unwrap()
            .iter()
            .map(field_element)
            .collect();
        let digest = match (case["tag"].as_str().unwrap(), inputs.len()) {
            ("tree", 2) => hash_2(inputs[0], inputs[1]),
            ("tree", 8) => hash_8(inputs[..].try_into().unwrap()),
            ("tree", 11) => hash_11(inputs[..].try_into().unwrap()),
            ("randomness", 2) => hash_randomness(inputs[0], inputs[1]),
            other => panic!("unknown case {other:?}"),
        };
        assert_eq!(digest, field_element(&case["digest"]));
    }
}
