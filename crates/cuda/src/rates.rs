//! How fast the arithmetic is by itself, with its operands in registers: what every kernel that
//! consists of it is measured against.

use crate::device::{Device, DeviceSlice, Kernel, Ledger, Lifetime, Params, Stream};
use crate::error::Result;
use crate::topic::Topic;

/// `RateParams` in `kernels/rates/rates.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RateParams {
    /// Address of a value a thread, which the chain's end replaces.
    pub values: u64,
    /// Address of the other operand, one a thread.
    pub others: u64,
    /// Threads that have values.
    pub len: u32,
    /// Operations of each thread, one after the other.
    pub iterations: u32,
}

// SAFETY: two pointers and two 32-bit words, as there.
unsafe impl Params for RateParams {}

/// A kernel of `kernels/rates/rates.cu`.
struct Chain {
    name: &'static str,
    kernel: &'static str,
    /// Threads in a block, and blocks that fit on a multiprocessor, as its launch bounds say.
    threads: u32,
    blocks: u32,
    /// Operations that an iteration does.
    operations: u32,
    /// Bytes of a value and of the other operand.
    bytes: (usize, usize),
    /// 32-bit multiplications of an operation by the unit of the pipe's slowest: a full product
    /// (IMAD.WIDE, IMAD.HI) counts 1, a low half (IMAD) 1/2. Counted in sm_90's machine code.
    multiplications: f64,
    /// Iterations of a thread in a measurement, for some tens of milliseconds on an H200.
    iterations: u32,
}

const CHAINS: [Chain; 12] = [
    chain(
        "multiply-add, 32 x 32 + 64 bits",
        "rate_multiply_add",
        (256, 4),
        (64, 64),
        1.0,
        4_000,
    ),
    chain(
        "Fp multiply",
        "rate_fp_multiply",
        (256, 4),
        (48, 48),
        294.0,
        4_000,
    ),
    chain(
        "Fp square",
        "rate_fp_square",
        (256, 4),
        (48, 48),
        228.5,
        4_000,
    ),
    chain(
        "Fp inverse",
        "rate_fp_inverse",
        (256, 2),
        (48, 48),
        0.0,
        200,
    ),
    chain(
        "Fr multiply",
        "rate_fr_multiply",
        (256, 5),
        (32, 32),
        132.0,
        8_000,
    ),
    chain(
        "Fr square",
        "rate_fr_square",
        (256, 5),
        (32, 32),
        104.5,
        8_000,
    ),
    chain(
        "Fr inverse",
        "rate_fr_inverse",
        (256, 3),
        (32, 32),
        0.0,
        200,
    ),
    chain(
        "Fp2 multiply",
        "rate_fp2_multiply",
        (128, 4),
        (96, 96),
        733.5,
        2_000,
    ),
    chain(
        "Fp2 square",
        "rate_fp2_square",
        (128, 4),
        (96, 96),
        588.0,
        2_000,
    ),
    chain(
        "G1 += affine",
        "rate_g1_add_affine",
        (128, 2),
        (192, 96),
        2809.0,
        1_000,
    ),
    chain(
        "G1 += XYZZ",
        "rate_g1_add",
        (128, 2),
        (192, 192),
        3985.0,
        1_000,
    ),
    chain(
        "G2 += affine",
        "rate_g2_add_affine",
        (128, 2),
        (384, 192),
        7044.0,
        300,
    ),
];

const fn chain(
    name: &'static str,
    kernel: &'static str,
    (threads, blocks): (u32, u32),
    bytes: (usize, usize),
    multiplications: f64,
    iterations: u32,
) -> Chain {
    let operations = if bytes.0 == 64 { 128 } else { 1 };
    Chain {
        name,
        kernel,
        threads,
        blocks,
        operations,
        bytes,
        multiplications,
        iterations,
    }
}

/// The rate of one operation.
#[derive(Debug, Clone)]
pub struct Rate {
    /// What it is.
    pub name: &'static str,
    /// Operations a second of the whole device; the median of the runs.
    pub per_second: f64,
    /// Its part of the multiplications that the device can do at most, as measured beside it;
    /// `None` where they were not counted.
    pub share: Option<f64>,
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes that a thread keeps in local memory.
    pub local_bytes: u32,
    /// Threads on a multiprocessor.
    pub threads: u32,
}

/// Measures all of them, `runs` times each; takes about half a second for 5 runs on an H200.
///
/// # Errors
/// Of the device.
pub fn measure(device: &Device, runs: usize) -> Result<Vec<Rate>> {
    let stream = device.stream()?;
    let mut rates: Vec<Rate> = Vec::new();
    for chain in &CHAINS {
        let kernel = device.kernel(Topic::Rates, chain.kernel)?;
        let seconds = seconds(device, &stream, chain, &kernel, runs)?;
        let threads = threads_of(device, chain);
        let operations =
            f64::from(threads) * f64::from(chain.iterations) * f64::from(chain.operations);
        let per_second = operations / seconds;
        let peak = rates.first().map_or(per_second, |rate| rate.per_second);
        let share =
            (chain.multiplications > 0.0).then_some(per_second * chain.multiplications / peak);
        rates.push(Rate {
            name: chain.name,
            per_second,
            share,
            registers: kernel.registers(),
            local_bytes: kernel.local_bytes(),
            threads: chain.threads * chain.blocks,
        });
    }
    Ok(rates)
}

/// 32-bit multiplications a second of the whole device: what shares are counted by.
///
/// # Errors
/// Of the device.
pub fn multiplications_per_second(device: &Device, runs: usize) -> Result<f64> {
    let stream = device.stream()?;
    let chain = &CHAINS[0];
    let kernel = device.kernel(Topic::Rates, chain.kernel)?;
    let seconds = seconds(device, &stream, chain, &kernel, runs)?;
    let operations = f64::from(chain.iterations) * f64::from(chain.operations);
    Ok(f64::from(threads_of(device, chain)) * operations * chain.multiplications / seconds)
}

fn threads_of(device: &Device, chain: &Chain) -> u32 {
    device.info().multiprocessors * chain.blocks * chain.threads
}

/// The median of `runs` runs after one that is not counted.
fn seconds(
    device: &Device,
    stream: &Stream,
    chain: &Chain,
    kernel: &Kernel,
    runs: usize,
) -> Result<f64> {
    let len = threads_of(device, chain) as usize;
    let mut ledger = Ledger::new("the measurement of rates");
    let values = ledger.reserve::<u8>("values", len * chain.bytes.0, Lifetime::RESIDENT);
    let others = ledger.reserve::<u8>("others", len * chain.bytes.1, Lifetime::RESIDENT);
    let arena = device.arena(&ledger)?;
    fill(stream, arena.get(values))?;
    fill(stream, arena.get(others))?;
    let params = RateParams {
        values: arena.get(values).ptr(),
        others: arena.get(others).ptr(),
        len: len as u32,
        iterations: chain.iterations,
    };
    let blocks = device.info().multiprocessors * chain.blocks;
    let mut times = Vec::with_capacity(runs);
    for run in 0..=runs {
        let start = stream.record()?;
        stream.launch(kernel, blocks, chain.threads, 0, &params)?;
        let end = stream.record()?;
        let ms = end.elapsed_ms(&start)?;
        if run > 0 {
            times.push(f64::from(ms) * 1e-3);
        }
    }
    stream.synchronize()?;
    times.sort_by(f64::total_cmp);
    Ok(times.get(times.len() / 2).copied().unwrap_or(f64::NAN))
}

/// Words that are reduced in every field and differ: the coordinates need not be of the curve.
fn fill(stream: &Stream, slice: DeviceSlice<u8>) -> Result<()> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64 ^ slice.ptr();
    let words: Vec<u64> = (0..slice.len() / 8)
        .map(|i| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            // The top word of a value of four words or of six: below both moduli's.
            let top = i % 4 == 3 || i % 6 == 5;
            if top { state >> 5 } else { state }
        })
        .collect();
    stream.upload(slice.cast(), &words)
}
