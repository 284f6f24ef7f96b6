//! SHA-256 as the public gadget allocates it (`bellpepper::gadgets::sha256`).
//!
//! One compression allocates about 26 000 variables, all of them bits: 48 message schedule words
//! (two XORs, two XORs, one sum each), 64 rounds (per round the sums `e` and `a`, two XORs for each
//! of Σ₁ and Σ₀, a choice and a majority), and eight final sums. The sums that enter the next round
//! are allocated there, at their first use; hence the pairs of term lists below.

use crate::Writer;
use crate::word::{Word, add};

/// Round constants and initial state: FIPS 180-4, §4.2.2 and §5.3.3.
const ROUND: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];
const INITIAL: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// The state before the first block: constants.
pub fn initial_state() -> [Word; 8] {
    INITIAL.map(Word::constant)
}

/// The 32 bytes of a state, big-endian words.
pub fn digest(state: &[Word; 8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (chunk, word) in bytes.chunks_exact_mut(4).zip(state) {
        chunk.copy_from_slice(&word.value().to_be_bytes());
    }
    bytes
}

/// Hashes a message of whole 32-bit words, padding appended as constants.
pub fn message(words: &[Word], writer: &mut Writer<'_>) -> [u8; 32] {
    let mut state = initial_state();
    let (full, rest) = words.as_chunks::<16>();
    for block in full {
        state = compress(&state, block, writer);
    }
    // FIPS 180-4, §5.1.1: a one bit, zeros, and the length in bits as a 64-bit number.
    let mut last = [Word::constant(0); 16];
    last[..rest.len()].copy_from_slice(rest);
    last[rest.len()] = Word::constant(1 << 31);
    if rest.len() >= 14 {
        state = compress(&state, &last, writer);
        last = [Word::constant(0); 16];
    }
    let length = words.len() as u64 * 32;
    last[14] = Word::constant((length >> 32) as u32);
    last[15] = Word::constant(length as u32);
    state = compress(&state, &last, writer);
    digest(&state)
}

/// One application of the compression function.
pub fn compress(state: &[Word; 8], block: &[Word; 16], writer: &mut Writer<'_>) -> [Word; 8] {
    let schedule = schedule(block, writer);

    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = *state;
    // What the next round's `e` and `a` are sums of, once a round has been done.
    let mut deferred: Option<([Word; 6], [Word; 7])> = None;
    for (&w, k) in schedule.iter().zip(ROUND) {
        if let Some((e_terms, _)) = deferred {
            e = add(e_terms, writer);
        }
        let s1 = e
            .rotate_right(6)
            .xor(e.rotate_right(11), writer)
            .xor(e.rotate_right(25), writer);
        let choice = Word::choice(e, f, g, writer);
        let k = Word::constant(k);

        if let Some((_, a_terms)) = deferred {
            a = add(a_terms, writer);
        }
        let s0 = a
            .rotate_right(2)
            .xor(a.rotate_right(13), writer)
            .xor(a.rotate_right(22), writer);
        let majority = Word::majority(a, b, c, writer);

        deferred = Some((
            [h, s1, choice, k, w, d],
            [h, s1, choice, k, w, s0, majority],
        ));
        (h, g, f, d, c, b) = (g, f, e, c, b, a);
    }

    let (e_terms, a_terms) = deferred.expect("there are 64 rounds");
    let [h1, s1, choice, k, w, d1] = e_terms;
    let [.., s0, majority] = a_terms;
    [
        add([h1, s1, choice, k, w, s0, majority, state[0]], writer),
        add([state[1], b], writer),
        add([state[2], c], writer),
        add([state[3], d], writer),
        add([h1, s1, choice, k, w, d1, state[4]], writer),
        add([state[5], f], writer),
        add([state[6], g], writer),
        add([state[7], h], writer),
    ]
}

fn schedule(block: &[Word; 16], writer: &mut Writer<'_>) -> [Word; 64] {
    let mut w = [Word::constant(0); 64];
    w[..16].copy_from_slice(block);
    for i in 16..64 {
        let early = w[i - 15];
        let s0 = early
            .rotate_right(7)
            .xor(early.rotate_right(18), writer)
            .xor(early.shift_right(3), writer);
        let late = w[i - 2];
        let s1 = late
            .rotate_right(17)
            .xor(late.rotate_right(19), writer)
            .xor(late.shift_right(10), writer);
        w[i] = add([w[i - 16], s0, w[i - 7], s1], writer);
    }
    w
}
