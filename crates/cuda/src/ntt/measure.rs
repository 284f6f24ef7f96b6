//! Times of the transforms and of the quotient.

use blstrs::Scalar;
use groth16::ntt::EvaluationSet::{Coset, Subgroup};

use crate::device::{Device, DeviceSlice, Ledger, Phase, Stream};
use crate::error::Result;
use crate::measure::{Measurement, Measuring, Work, if_it_fits, times};
use crate::ntt::factor::inverse_of_size;
use crate::ntt::{Ntt, NttPlan, QuotientForm, QuotientPlan, Scale, Transform};

/// 32-bit multiplications of an element by a factor: 92 full ones and 4 of which the low half is
/// taken (`kernels/ntt/lazy.cuh`).
const FACTOR_PRODUCT: f64 = 94.0;
/// Of two elements (`kernels/field/mont.cuh`).
const ELEMENT_PRODUCT: f64 = 132.0;

/// Every transform and both forms of the quotient.
///
/// # Errors
/// A device that fails.
pub fn measure(device: &Device, measuring: &Measuring<'_>) -> Result<Vec<Measurement>> {
    let stream = device.stream()?;
    let mut all = Vec::new();
    for log_size in &measuring.log_sizes {
        all.extend(transforms(device, &stream, *log_size, measuring.runs)?);
        for form in [QuotientForm::Monomial, QuotientForm::Prepared] {
            all.extend(quotient(device, &stream, *log_size, form, measuring.runs)?);
        }
    }
    Ok(all)
}

fn transforms(
    device: &Device,
    stream: &Stream,
    log_size: u32,
    runs: usize,
) -> Result<Vec<Measurement>> {
    let mut ledger = Ledger::new("the measurement of transforms");
    let plan = NttPlan::new(log_size, &[inverse_of_size(log_size)], &mut ledger);
    let values = ledger.reserve("values", 1 << log_size, Phase::Transform);
    let Some(arena) = if_it_fits(device.arena(&ledger))? else {
        return Ok(Vec::new());
    };
    let ntt = plan.bind(device, &arena)?;
    let values = arena.get(values);
    fill(stream, &ntt, values)?;
    let kinds = [
        ("NTT, coefficients to values", Transform::evaluate(Subgroup)),
        (
            "NTT, values to coefficients",
            Transform::interpolate(Subgroup, Scale(1)),
        ),
        (
            "NTT, coefficients to values on the coset",
            Transform::evaluate(Coset),
        ),
        (
            "NTT, values on the coset to coefficients",
            Transform::interpolate(Coset, Scale(1)),
        ),
    ];
    let mut all = Vec::new();
    for (name, transform) in kinds {
        let (median_ms, least_ms) = times(stream, runs, || ntt.run(stream, values, transform))?;
        all.push(Measurement {
            name: name.to_owned(),
            log_size,
            median_ms,
            least_ms,
            work: Work::Multiplications(ntt.factor_products(transform) * FACTOR_PRODUCT),
        });
    }
    Ok(all)
}

fn quotient(
    device: &Device,
    stream: &Stream,
    log_size: u32,
    form: QuotientForm,
    runs: usize,
) -> Result<Option<Measurement>> {
    let mut ledger = Ledger::new("the measurement of quotients");
    let plan = QuotientPlan::new(log_size, form, &mut ledger);
    let a = ledger.reserve("a", 1 << log_size, Phase::Transform);
    let b = ledger.reserve("b", 1 << log_size, Phase::Transform);
    let Some(arena) = if_it_fits(device.arena(&ledger))? else {
        return Ok(None);
    };
    let quotient = plan.bind(device, &arena)?;
    let (a, b) = (arena.get(a), arena.get(b));
    fill(stream, quotient.ntt(), a)?;
    fill(stream, quotient.ntt(), b)?;
    // The results are the next run's values: as good as any.
    let (median_ms, least_ms) = times(stream, runs, || quotient.run(stream, a, b).map(|_| ()))?;
    let products = if form == QuotientForm::Monomial {
        2.0
    } else {
        1.0
    } * a.len() as f64;
    let name = match form {
        QuotientForm::Monomial => "quotient, six transforms",
        QuotientForm::Prepared => "quotient, four transforms",
    };
    Ok(Some(Measurement {
        name: name.to_owned(),
        log_size,
        median_ms,
        least_ms,
        work: Work::Multiplications(
            quotient.factor_products() * FACTOR_PRODUCT + products * ELEMENT_PRODUCT,
        ),
    }))
}

/// Values that are all different: the transform of a few that are.
fn fill(stream: &Stream, ntt: &Ntt, values: DeviceSlice<Scalar>) -> Result<()> {
    stream.zero(values)?;
    let seeds: Vec<Scalar> = (1..=values.len().min(1 << 10) as u64)
        .map(|i| Scalar::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        .collect();
    stream.upload(values.slice(0..seeds.len()), &seeds)?;
    ntt.run(stream, values, Transform::interpolate(Coset, Scale(0)))
}
