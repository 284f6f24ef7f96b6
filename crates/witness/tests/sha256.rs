//! SHA-256 and its word operations, bit for bit against the public gadget.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod support;

use bellperson::ConstraintSystem;
use bellperson::gadgets::boolean::{AllocatedBit, Boolean};
use bellperson::gadgets::multieq::MultiEq;
use bellperson::gadgets::sha256::{sha256, sha256_compression_function};
use bellperson::gadgets::uint32::UInt32;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use sha2::{Digest, Sha256};
use support::Recorder;
use witness::word::{Word, add};
use witness::{Size, Writer, sha256 as native};

/// A boolean of a kind: 0 and 1 constants, 2 variable, 3 negated variable.
fn boolean(cs: &mut Recorder, value: bool, kind: u8) -> Boolean {
    match kind {
        0 => Boolean::constant(value),
        1 => Boolean::from(AllocatedBit::alloc(cs, Some(value)).unwrap()),
        _ => Boolean::from(AllocatedBit::alloc(cs, Some(!value)).unwrap()).not(),
    }
}

/// The same word for the gadget and for us; `kinds` has two bits per boolean.
fn pair(cs: &mut Recorder, value: u32, kinds: u64) -> (UInt32, Word) {
    let kind = |i: u32| match kinds >> (2 * i) & 3 {
        0 => 0,
        1 => 2,
        _ => 1,
    };
    let bits: Vec<Boolean> = (0..32)
        .map(|i| boolean(cs, value >> i & 1 == 1, kind(i)))
        .collect();
    // Negation reaches a word only through an XOR with the constant true.
    let mut constant = 0u32;
    let mut negated = 0u32;
    for i in 0..32 {
        constant |= u32::from(kind(i) == 0) << i;
        negated |= u32::from(kind(i) == 2) << i;
    }
    let mut scratch = Writer::new(&mut []);
    let word = Word::mixed(value ^ negated, constant).xor(Word::constant(negated), &mut scratch);
    assert_eq!(scratch.size(), Size::default());
    (UInt32::from_bits(&bits), word)
}

fn same(gadget: &UInt32, word: Word) {
    let mut value = 0;
    let mut constant = true;
    for (i, bit) in gadget.clone().into_bits().iter().enumerate() {
        value |= u32::from(bit.get_value().unwrap()) << i;
        constant &= bit.is_constant();
    }
    assert_eq!(word.value(), value);
    assert_eq!(word.is_constant(), constant);
}

/// Masks that are all variables, all constants or any mixture.
fn kinds() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0u64),
        Just(!0u64),
        Just(0x5555_5555_5555_5555),
        any::<u64>()
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn word_operations(
        values in any::<[u32; 3]>(),
        kinds in [kinds(), kinds(), kinds()],
        rotation in 0u32..32,
    ) {
        let mut outer = Recorder::default();
        let (ga, a) = pair(&mut outer, values[0], kinds[0]);
        let (gb, b) = pair(&mut outer, values[1], kinds[1]);
        let (gc, c) = pair(&mut outer, values[2], kinds[2]);

        // Results go on as operands, so that their classes are compared as well as their values.
        let mut cs = Recorder::default();
        let (x, ch, maj, again) = {
            let x = ga.xor(cs.namespace(|| "x"), &gb.rotr(rotation as usize)).unwrap();
            let ch = UInt32::sha256_ch(cs.namespace(|| "ch"), &ga, &gb, &gc).unwrap();
            let maj = UInt32::sha256_maj(cs.namespace(|| "maj"), &ga, &gb, &gc).unwrap();
            let x2 = ch.xor(cs.namespace(|| "x2"), &maj.shr(rotation as usize)).unwrap();
            let ch2 = UInt32::sha256_ch(cs.namespace(|| "ch2"), &x, &ch, &maj).unwrap();
            let maj2 = UInt32::sha256_maj(cs.namespace(|| "maj2"), &x2, &ch2, &ga).unwrap();
            let mut multi = MultiEq::new(&mut cs);
            let s = UInt32::addmany(multi.namespace(|| "s"), &[x2, ch2, maj2]).unwrap();
            (x, ch, maj, s)
        };
        cs.check(|writer| {
            let wx = a.xor(b.rotate_right(rotation), writer);
            let wch = Word::choice(a, b, c, writer);
            let wmaj = Word::majority(a, b, c, writer);
            let wx2 = wch.xor(wmaj.shift_right(rotation), writer);
            let wch2 = Word::choice(wx, wch, wmaj, writer);
            let wmaj2 = Word::majority(wx2, wch2, a, writer);
            let sum = add([wx2, wch2, wmaj2], writer);
            same(&x, wx);
            same(&ch, wch);
            same(&maj, wmaj);
            same(&again, sum);
        });
    }

    #[test]
    fn sums_of_two_to_eight_words(values in any::<[u32; 8]>(), constant in any::<bool>()) {
        macro_rules! check {
            ($n:literal) => {{
                let mut outer = Recorder::default();
                let pairs: [(UInt32, Word); $n] = std::array::from_fn(|i| {
                    pair(&mut outer, values[i], if constant { 0 } else { !0 })
                });
                let mut cs = Recorder::default();
                let gadget = {
                    let mut multi = MultiEq::new(&mut cs);
                    let terms: Vec<UInt32> = pairs.iter().map(|p| p.0.clone()).collect();
                    UInt32::addmany(multi.namespace(|| "sum"), &terms).unwrap()
                };
                let sum = cs.check(|writer| add(pairs.map(|p| p.1), writer));
                same(&gadget, sum);
            }};
        }
        check!(2);
        check!(3);
        check!(4);
        check!(5);
        check!(6);
        check!(7);
        check!(8);
    }
}

/// One compression with the given classes of state and message.
fn compression(state: [u32; 8], state_kinds: [u64; 8], block: [u32; 16], block_kinds: [u64; 16]) {
    let mut outer = Recorder::default();
    let state: Vec<(UInt32, Word)> = (0..8)
        .map(|i| pair(&mut outer, state[i], state_kinds[i]))
        .collect();
    let block: Vec<(UInt32, Word)> = (0..16)
        .map(|i| pair(&mut outer, block[i], block_kinds[i]))
        .collect();
    let bits: Vec<Boolean> = block
        .iter()
        .flat_map(|(gadget, _)| gadget.clone().into_bits_be())
        .collect();
    let gadgets: Vec<UInt32> = state.iter().map(|(gadget, _)| gadget.clone()).collect();

    let mut cs = Recorder::default();
    let result = sha256_compression_function(&mut cs, &bits, &gadgets).unwrap();
    let state = std::array::from_fn(|i| state[i].1);
    let block = std::array::from_fn(|i| block[i].1);
    let native = cs.check(|writer| native::compress(&state, &block, writer));
    for (gadget, word) in result.iter().zip(native) {
        same(gadget, word);
    }
}

const VARIABLE: u64 = !0;
const CONSTANT: u64 = 0;

#[test]
fn compression_of_variables() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..4 {
        let state = std::array::from_fn(|_| rng.next_u32());
        let block = std::array::from_fn(|_| rng.next_u32());
        compression(state, [VARIABLE; 8], block, [VARIABLE; 16]);
        compression(state, [CONSTANT; 8], block, [VARIABLE; 16]);
        compression(state, [VARIABLE; 8], block, [CONSTANT; 16]);
        compression(state, [CONSTANT; 8], block, [CONSTANT; 16]);
    }
    for value in [0, !0] {
        compression([value; 8], [VARIABLE; 8], [value; 16], [VARIABLE; 16]);
        compression([value; 8], [CONSTANT; 8], [value; 16], [VARIABLE; 16]);
    }
}

#[test]
fn compression_of_mixtures() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for _ in 0..16 {
        let sparse = rng.next_u64();
        let mut kinds = || match rng.next_u32() % 4 {
            0 => VARIABLE,
            1 => CONSTANT,
            2 => rng.next_u64(),
            _ => sparse,
        };
        let state_kinds = std::array::from_fn(|_| kinds());
        let block_kinds = std::array::from_fn(|_| kinds());
        let state = std::array::from_fn(|_| rng.next_u32());
        let block = std::array::from_fn(|_| rng.next_u32());
        compression(state, state_kinds, block, block_kinds);
    }
}

/// Messages of every length around the padding's boundaries, with constant bits like those of
/// packed field elements.
#[test]
fn messages() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for words in [0, 1, 8, 13, 14, 15, 16, 17, 29, 30, 31, 32, 33, 312] {
        for constant in [0, 0x80, !0] {
            let mut outer = Recorder::default();
            let values: Vec<u32> = (0..words).map(|_| rng.next_u32()).collect();
            let native_words: Vec<Word> = values
                .iter()
                .map(|&value| Word::mixed(value, constant))
                .collect();
            let bits: Vec<Boolean> = values
                .iter()
                .flat_map(|&value| {
                    (0..32)
                        .rev()
                        .map(|i| {
                            let kind = u8::from(constant >> i & 1 == 0);
                            boolean(&mut outer, value >> i & 1 == 1, kind)
                        })
                        .collect::<Vec<_>>()
                })
                .collect();
            let mut cs = Recorder::default();
            sha256(&mut cs, &bits).unwrap();
            let digest = cs.check(|writer| native::message(&native_words, writer));
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
            assert_eq!(digest, <[u8; 32]>::from(Sha256::digest(&bytes)));
        }
    }
}
