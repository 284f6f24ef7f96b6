//! The programming model, on the emulated device and on a real one if there is one.

#![allow(clippy::unwrap_used, reason = "test helpers may unwrap")]

mod common;

use cuda::{Device, DeviceSlice, Ledger, Lifetime, Params, Phase, Topic};

#[repr(C)]
#[derive(Clone, Copy)]
struct SmokeParams {
    x: u64,
    y: u64,
    sums: u64,
    ballots: u64,
    factor: u32,
    len: u32,
}

// SAFETY: the layout of SmokeParams in kernels/smoke/smoke.cu.
unsafe impl Params for SmokeParams {}

#[test]
fn every_element_sum_and_ballot_is_right() {
    for device in common::devices() {
        for len in [1usize, 31, 32, 255, 256, 257, 5000] {
            smoke(&device, len.next_multiple_of(2));
        }
    }
}

fn smoke(device: &Device, len: usize) {
    let blocks = len.div_ceil(256);
    let mut ledger = Ledger::new("a test");
    let x_slot = ledger.reserve::<u32>("x", len, Phase::Upload);
    let y_slot = ledger.reserve::<u32>("y", len, Lifetime::RESIDENT);
    let sums_slot = ledger.reserve::<u64>("sums", blocks, Lifetime::RESIDENT);
    let ballots_slot = ledger.reserve::<u32>("ballots", blocks * 8, Lifetime::RESIDENT);
    let arena = device.arena(&ledger).unwrap();
    let stream = device.stream().unwrap();
    let (x, y) = (arena.get(x_slot), arena.get(y_slot));
    let (sums, ballots): (DeviceSlice<u64>, _) = (arena.get(sums_slot), arena.get(ballots_slot));

    let xs: Vec<u32> = (0..len as u32)
        .map(|i| i.wrapping_mul(0x9e37_79b9))
        .collect();
    let ys: Vec<u32> = xs.iter().map(|x| x.rotate_left(7)).collect();
    stream.upload(x, &xs).unwrap();
    stream.upload(y, &ys).unwrap();
    stream.zero(sums).unwrap();
    let kernel = device.kernel(Topic::Smoke, "smoke_kernel").unwrap();
    let params = SmokeParams {
        x: x.ptr(),
        y: y.ptr(),
        sums: sums.ptr(),
        ballots: ballots.ptr(),
        factor: 77,
        len: len as u32,
    };
    let before = stream.record().unwrap();
    // Twice: the emulated device runs the threads in the other order the second time.
    for _ in 0..2 {
        stream
            .launch(&kernel, blocks as u32, 256, 1024, &params)
            .unwrap();
    }
    let after = stream.record().unwrap();
    assert!(after.elapsed_ms(&before).unwrap() >= 0.0);

    let once: Vec<u32> = xs
        .iter()
        .zip(&ys)
        .map(|(x, y)| x.wrapping_mul(77).wrapping_add(*y))
        .collect();
    let twice: Vec<u32> = xs
        .iter()
        .zip(&once)
        .map(|(x, y)| x.wrapping_mul(77).wrapping_add(*y))
        .collect();
    let mut found = vec![0; len];
    stream.download(y, &mut found).unwrap();
    assert_eq!(found, twice);

    let mut found = vec![0; blocks];
    stream.download(sums, &mut found).unwrap();
    let sum = |values: &[u32]| values.iter().map(|v| u64::from(*v)).sum::<u64>();
    let expected: Vec<u64> = once
        .chunks(256)
        .zip(twice.chunks(256))
        .map(|(x, y)| sum(x) + sum(y))
        .collect();
    assert_eq!(found, expected);

    let mut found = vec![0; blocks * 8];
    stream.download(ballots, &mut found).unwrap();
    for (i, ballot) in found.iter().enumerate() {
        for lane in 0..32 {
            let value = twice.get(i * 32 + (lane ^ 1)).copied().unwrap_or(0);
            assert_eq!(ballot >> lane & 1, value & 1, "warp {i}, lane {lane}");
        }
    }
}

#[test]
fn what_does_not_fit_a_kernel_is_refused() {
    for device in common::devices() {
        let stream = device.stream().unwrap();
        let kernel = device.kernel(Topic::Smoke, "smoke_kernel").unwrap();
        let params = SmokeParams {
            x: 0,
            y: 0,
            sums: 0,
            ballots: 0,
            factor: 0,
            len: 0,
        };
        for (threads, shared) in [(0, 0), (257, 0), (256, 1 << 20)] {
            let error = stream
                .launch(&kernel, 1, threads, shared, &params)
                .unwrap_err();
            assert!(
                matches!(error, cuda::CudaError::BadLaunch { .. }),
                "{error}"
            );
        }
        #[derive(Clone, Copy)]
        #[repr(C)]
        struct Other(u64);
        // SAFETY: never read.
        unsafe impl Params for Other {}
        let error = stream.launch(&kernel, 1, 1, 0, &Other(0)).unwrap_err();
        assert!(
            error.to_string().contains("40 bytes of parameters"),
            "{error}"
        );
        let error = device.kernel(Topic::Smoke, "no_kernel").unwrap_err();
        assert!(
            matches!(error, cuda::CudaError::MissingKernel { .. }),
            "{error}"
        );
    }
}

#[test]
fn a_plan_that_does_not_fit_is_refused_with_the_bytes_it_needs() {
    for device in common::devices() {
        let mut ledger = Ledger::new("the proof");
        ledger.reserve::<u8>("all", 1 << 20, Phase::SumH);
        let device = device.with_vram_limit((1 << 20) - 1);
        let error = device.arena(&ledger).unwrap_err();
        assert_eq!(
            error,
            cuda::CudaError::DoesNotFit {
                what: "the proof".into(),
                needed: 1 << 20,
                available: (1 << 20) - 1,
                limited: true
            }
        );
        device.with_vram_limit(1 << 20).arena(&ledger).unwrap();
    }
}

#[cfg(feature = "emulation")]
#[test]
fn the_emulated_device_reports_threads_at_two_barriers() {
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct DivergeParams(u64);
    // SAFETY: the layout of DivergeParams in kernels/smoke/smoke.cu.
    unsafe impl Params for DivergeParams {}
    let device = Device::emulated();
    let stream = device.stream().unwrap();
    let kernel = device.kernel(Topic::Smoke, "diverge_kernel").unwrap();
    let error = stream
        .launch(&kernel, 1, 64, 0, &DivergeParams(0))
        .unwrap_err();
    assert!(error.is_fatal());
    assert!(error.to_string().contains("two barriers"), "{error}");
}

#[test]
fn copies_through_pinned_memory_keep_their_order() {
    for device in common::devices() {
        let (len, half) = (3 << 20, 3 << 19);
        let mut inner = Ledger::new("within");
        let slot = inner.reserve::<u8>("bytes", len, Phase::Upload);
        let mut ledger = Ledger::new("a test");
        ledger.reserve::<u8>("before", 1000, Lifetime::RESIDENT);
        let room = ledger.reserve_ledger(&inner, Lifetime::RESIDENT);
        let arena = device.arena(&ledger).unwrap().within(room, &inner);
        let bytes = arena.get(slot);
        assert_eq!(bytes.len(), len);

        let stream = device.stream().unwrap();
        let (mut up, mut down) = (device.pinned(len).unwrap(), device.pinned(half).unwrap());
        for round in 0..3u8 {
            let value = |i: usize| (i % 251) as u8 ^ round;
            for (i, byte) in up.bytes_mut().unwrap().iter_mut().enumerate() {
                *byte = value(i);
            }
            stream
                .upload_pinned(bytes.slice(half..len), &up, half)
                .unwrap();
            stream.upload_pinned(bytes.slice(0..half), &up, 0).unwrap();
            stream
                .download_pinned(bytes.slice(half - 1000..len - 1000), &mut down, 0)
                .unwrap();
            let found = down.bytes_mut().unwrap();
            let right = found
                .iter()
                .enumerate()
                .all(|(i, byte)| *byte == value(i + half - 1000));
            assert!(right, "round {round}");
        }
    }
}
