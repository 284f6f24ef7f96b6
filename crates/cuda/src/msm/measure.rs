//! Times of the sums, each compared with its value known in advance.

use blstrs::Scalar;
use group::Group;
use group::prime::PrimeCurveAffine;

use super::sample::{ScalarKind, selected_sum, word};
use super::{
    BitSelection, BitSumPlan, Choice, FullSumLimits, FullSumPlan, FullSumTerms, G1, G2,
    MultiplesPlan, ProgressionPlan, SumCurve,
};
use crate::device::{Device, DeviceSlice, Ledger, Phase, Stream};
use crate::error::{CudaError, Result};
use crate::measure::{Measurement, Measuring, Work, if_it_fits, times};

const PHASE: Phase = Phase::SumH;

/// Sums with full-size scalars and of selected points, in both groups. The times are the device's: adding
/// up the partial sums on the host is not in them.
///
/// # Errors
/// A device that fails, or whose sums are wrong.
pub fn measure(device: &Device, measuring: &Measuring<'_>) -> Result<Vec<Measurement>> {
    let stream = device.stream()?;
    let mut all = Vec::new();
    for &log_size in &measuring.log_sizes {
        let runs = measuring.runs;
        all.extend(full::<G1>(device, &stream, log_size, runs)?);
        all.extend(full::<G2>(device, &stream, log_size, runs)?);
        all.extend(bits::<G1>(device, &stream, log_size, runs)?);
        all.extend(bits::<G2>(device, &stream, log_size, runs)?);
    }
    Ok(all)
}

/// What the bases and the results need of the host's types.
trait Measured:
    SumCurve<Affine: PrimeCurveAffine<Curve = Self::Projective>, Projective: Group<Scalar = Scalar>>
{
}
impl Measured for G1 {}
impl Measured for G2 {}

fn full<C: Measured>(
    device: &Device,
    stream: &Stream,
    log_size: u32,
    runs: usize,
) -> Result<Option<Measurement>> {
    let terms = 1usize << log_size;
    let multiprocessors = device.info().multiprocessors;
    let memory = device.free_bytes()?;
    // Copies of the bases in up to an eighth of the memory, as a key's plan might have.
    let of_bases = (terms * size_of::<C::Affine>()) as u64;
    let limits = FullSumLimits {
        base_bytes: of_bases.max(memory / 8),
        work_bytes: memory / 2,
    };
    let shape = Choice::new::<C>(terms, terms, limits, multiprocessors)
        .chosen
        .shape;
    let windows = shape.windows.clone();
    let mut ledger = Ledger::new("the measurement of sums");
    let bases = ledger.reserve("bases", terms * windows.copies() as usize, PHASE);
    let scalars = ledger.reserve::<[u64; 4]>("scalars", terms, PHASE);
    let plan = FullSumPlan::<C>::new("sum", shape, multiprocessors, &mut ledger, PHASE);
    let Some(arena) = if_it_fits(device.arena(&ledger))? else {
        return Ok(None);
    };
    let (bases, scalars) = (arena.get(bases), arena.get(scalars));
    let made = fill::<C>(device, stream, bases.slice(0..terms))
        .and_then(|()| copy::<C>(device, stream, bases, terms, &windows));
    if if_it_fits(made)?.is_none() {
        return Ok(None);
    }
    let logarithm = ScalarKind::Uniform.upload(stream, scalars)?;
    let sum = plan.bind(device, &arena)?;
    let terms = FullSumTerms {
        bases,
        scalars: scalars.cast(),
        indices: None,
    };
    let (median_ms, least_ms) = times(stream, runs, || sum.run(stream, &terms))?;
    let name = match windows.copies() {
        1 => format!("sum in {}, full-size scalars", C::NAME),
        copies => format!("sum in {}, full-size scalars, {copies} copies", C::NAME),
    };
    check::<C>(&name, log_size, sum.finish(stream)?, logarithm)?;
    Ok(Some(Measurement {
        name,
        log_size,
        median_ms,
        least_ms,
        work: Work::Multiplications(plan.expected_additions() * C::ADDITION_MULTIPLICATIONS),
    }))
}

fn bits<C: Measured>(
    device: &Device,
    stream: &Stream,
    log_size: u32,
    runs: usize,
) -> Result<Option<Measurement>> {
    let variables = 1usize << log_size;
    let words = variables.div_ceil(64);
    let mut ledger = Ledger::new("the measurement of sums");
    let bases = ledger.reserve("bases", variables, PHASE);
    let ones_slot = ledger.reserve::<u64>("ones", words, PHASE);
    let plan = BitSumPlan::<C>::new(
        "bits",
        variables,
        variables,
        device.info().multiprocessors,
        &mut ledger,
        PHASE,
    );
    let Some(arena) = if_it_fits(device.arena(&ledger))? else {
        return Ok(None);
    };
    let bases = arena.get(bases);
    if if_it_fits(fill::<C>(device, stream, bases))?.is_none() {
        return Ok(None);
    }
    let mut ones: Vec<u64> = (0..words as u64).map(|i| word(i, 0)).collect();
    if let (Some(last), tail @ 1..) = (ones.last_mut(), variables % 64) {
        *last &= (1 << tail) - 1;
    }
    stream.upload(arena.get(ones_slot), &ones)?;
    let selection = BitSelection {
        ones: arena.get(ones_slot),
        mask: None,
        first_point: 0,
    };
    let sum = plan.bind(device, &arena)?;
    let (median_ms, least_ms) = times(stream, runs, || sum.run(stream, &selection, bases))?;
    let name = format!("sum in {}, half of the points", C::NAME);
    check::<C>(
        &name,
        log_size,
        sum.finish(stream)?,
        selected_sum(&ones, None),
    )?;
    let selected: u64 = ones.iter().map(|word| u64::from(word.count_ones())).sum();
    Ok(Some(Measurement {
        name,
        log_size,
        median_ms,
        least_ms,
        work: Work::Multiplications(selected as f64 * C::ADDITION_MULTIPLICATIONS),
    }))
}

/// (i + 1)·G for all of `bases`.
fn fill<C: Measured>(
    device: &Device,
    stream: &Stream,
    bases: DeviceSlice<C::Affine>,
) -> Result<()> {
    let mut ledger = Ledger::new("the bases of a measurement");
    let multiprocessors = device.info().multiprocessors;
    let plan = ProgressionPlan::<C>::new("bases", bases.len(), multiprocessors, &mut ledger, PHASE);
    let arena = device.arena(&ledger)?;
    plan.bind(device, &arena)?
        .run(stream, bases, C::Affine::generator())
}

/// The copies that `windows` needs, after the bases.
fn copy<C: Measured>(
    device: &Device,
    stream: &Stream,
    bases: DeviceSlice<C::Affine>,
    points: usize,
    windows: &super::Windows,
) -> Result<()> {
    let mut ledger = Ledger::new("the copies of a measurement's bases");
    let plan = MultiplesPlan::<C>::new(
        "copies",
        points,
        windows.copies(),
        device.info().multiprocessors,
        &mut ledger,
        PHASE,
    );
    let arena = device.arena(&ledger)?;
    plan.bind(device, &arena)?
        .run(stream, bases, points, windows)?;
    // The arena ends here.
    stream.synchronize()
}

fn check<C: Measured>(
    name: &str,
    log_size: u32,
    found: C::Projective,
    logarithm: Scalar,
) -> Result<()> {
    if found == C::Projective::generator() * logarithm {
        Ok(())
    } else {
        Err(CudaError::WrongResult {
            what: format!("{name}, 2^{log_size}"),
        })
    }
}
