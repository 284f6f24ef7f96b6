//! Sorting and prefix sums, on the emulated device and on a real one if there is one.

#![allow(clippy::unwrap_used, reason = "test helpers may unwrap")]

mod common;

use cuda::{
    Arena, Device, DeviceSlice, Ledger, Lifetime, PairBuffers, scan_temp_bytes, sort_temp_bytes,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};

struct Pairs {
    _arena: Arena,
    temp: DeviceSlice<u8>,
    buffers: PairBuffers,
}

fn pairs(device: &Device, len: usize) -> Pairs {
    let mut ledger = Ledger::new("a test");
    let temp = ledger.reserve("temp", sort_temp_bytes(len), Lifetime::RESIDENT);
    let slots: [_; 4] = std::array::from_fn(|_| ledger.reserve("x", len, Lifetime::RESIDENT));
    let arena = device.arena(&ledger).unwrap();
    let [k0, k1, v0, v1] = slots.map(|slot| arena.get(slot));
    Pairs {
        temp: arena.get(temp),
        buffers: PairBuffers {
            keys: [k0, k1],
            values: [v0, v1],
        },
        _arena: arena,
    }
}

#[test]
fn pairs_are_sorted_by_the_bits_asked_for_and_stable() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for device in common::devices() {
        let large: &[usize] = if device.info().emulated {
            &[]
        } else {
            &[1 << 20, (1 << 24) + 3]
        };
        let stream = device.stream().unwrap();
        for &len in [0, 1, 2, 1000, 4096, 4097, 100_000].iter().chain(large) {
            let mut keys: Vec<u32> = (0..len).map(|_| rng.next_u32()).collect();
            // A skewed half.
            keys[..len / 2]
                .iter_mut()
                .for_each(|key| *key &= 0x0100_0001);
            let values: Vec<u32> = (0..len as u32).collect();
            let p = pairs(&device, len);
            for bits in [0..32u32, 0..24, 0..16, 3..9, 5..5, 31..32] {
                stream.upload(p.buffers.keys[0], &keys).unwrap();
                stream.upload(p.buffers.values[0], &values).unwrap();
                let sorted = stream.sort_pairs(p.temp, &p.buffers, bits.clone()).unwrap();
                let (mut found_keys, mut found_values) = (vec![0; len], vec![0; len]);
                stream.download(sorted.keys, &mut found_keys).unwrap();
                stream.download(sorted.values, &mut found_values).unwrap();
                let mut expected: Vec<u32> = values.clone();
                let digit = |i: u32| {
                    let key = u64::from(keys[i as usize]);
                    (key & ((1 << bits.end) - 1)) >> bits.start
                };
                expected.sort_by_key(|i| digit(*i));
                assert!(found_values == expected, "{len} pairs, bits {bits:?}");
                let expected: Vec<u32> = expected.iter().map(|i| keys[*i as usize]).collect();
                assert!(found_keys == expected, "{len} pairs, bits {bits:?}");
            }
        }
    }
}

#[test]
fn prefix_sums_wrap_and_may_be_in_place() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for device in common::devices() {
        let large: &[usize] = if device.info().emulated {
            &[]
        } else {
            &[1 << 20, (1 << 24) + 3]
        };
        let stream = device.stream().unwrap();
        for &len in [0usize, 1, 31, 511, 512, 513, 99_999].iter().chain(large) {
            let mut ledger = Ledger::new("a test");
            let temp = ledger.reserve::<u8>("temp", scan_temp_bytes(len), Lifetime::RESIDENT);
            let input = ledger.reserve::<u64>("input", len, Lifetime::RESIDENT);
            let output = ledger.reserve::<u64>("output", len, Lifetime::RESIDENT);
            let arena = device.arena(&ledger).unwrap();
            let (temp, input, output) = (arena.get(temp), arena.get(input), arena.get(output));

            let values: Vec<u64> = (0..len).map(|_| rng.next_u64()).collect();
            let mut sum = 0u64;
            let mut expected = vec![0; len];
            for (value, out) in values.iter().zip(&mut expected) {
                *out = sum;
                sum = sum.wrapping_add(*value);
            }
            let mut found = vec![0; len];
            stream.upload(input, &values).unwrap();
            stream.exclusive_sum_u64(temp, input, output).unwrap();
            stream.download(output, &mut found).unwrap();
            assert!(found == expected, "{len} sums");
            stream.exclusive_sum_u64(temp, input, input).unwrap();
            stream.download(input, &mut found).unwrap();
            assert!(found == expected, "{len} sums in place");

            let values: Vec<u32> = values.iter().map(|v| *v as u32).collect();
            let expected: Vec<u32> = expected.iter().map(|v| *v as u32).collect();
            let short = input.cast::<u32>().slice(0..len);
            let mut found = vec![0; len];
            stream.upload(short, &values).unwrap();
            stream.exclusive_sum_u32(temp, short, short).unwrap();
            stream.download(short, &mut found).unwrap();
            assert!(found == expected, "{len} sums of 32 bits");
        }
    }
}

#[test]
fn too_little_temporary_memory_is_an_error() {
    for device in common::devices() {
        if device.info().emulated {
            continue;
        }
        let stream = device.stream().unwrap();
        let p = pairs(&device, 100_000);
        let temp = p.temp.slice(0..16);
        let error = stream.sort_pairs(temp, &p.buffers, 0..32).unwrap_err();
        assert!(error.to_string().contains("temporary memory"), "{error}");
        // And the device goes on.
        stream.sort_pairs(p.temp, &p.buffers, 0..32).unwrap();
        stream.synchronize().unwrap();
    }
}
