//! Times of kernels beside what the device can do at most.

use crate::device::{Device, Stream};
use crate::error::{CudaError, Result};
use crate::rates;

/// How long something took at one size.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// What ran.
    pub name: &'static str,
    /// log₂ of the number of elements.
    pub log_size: u32,
    /// The median of the runs.
    pub median_ms: f64,
    /// The fastest.
    pub least_ms: f64,
    /// 32-bit multiplications that it did, in the unit of [`rates`]: a full product counts 1, a
    /// low half 1/2.
    pub multiplications: f64,
}

impl Measurement {
    /// The part of the multiplications that could have been done in the median time.
    ///
    /// `peak` is the device's multiplications a second.
    pub fn share(&self, peak: f64) -> f64 {
        self.multiplications / (self.median_ms * 1e-3 * peak)
    }
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct Measuring {
    /// log₂ of the sizes; those that do not fit the device are left out.
    pub log_sizes: Vec<u32>,
    /// Runs of each that count.
    pub runs: usize,
}

impl Default for Measuring {
    fn default() -> Self {
        Measuring {
            log_sizes: vec![20, 22, 24, 26, 27],
            runs: 15,
        }
    }
}

/// A topic's measurements.
pub type Measure = fn(&Device, &Measuring) -> Result<Vec<Measurement>>;

/// What has measurements.
const TOPICS: &[Measure] = &[crate::ntt::measure];

/// Everything, topic by topic.
///
/// # Errors
/// A device that fails.
pub fn measure(device: &Device, measuring: &Measuring) -> Result<Vec<Measurement>> {
    let mut all = Vec::new();
    for topic in TOPICS {
        all.extend(topic(device, measuring)?);
    }
    Ok(all)
}

/// Multiplications a second, measured.
///
/// # Errors
/// A device that fails.
pub fn peak(device: &Device) -> Result<f64> {
    rates::multiplications_per_second(device, 5)
}

/// Times of `work` on `stream`, by events, after two runs that do not count: median and least, in
/// milliseconds.
///
/// # Errors
/// What `work` gives; a device that fails.
pub fn times(
    stream: &Stream,
    runs: usize,
    mut work: impl FnMut() -> Result<()>,
) -> Result<(f64, f64)> {
    const UNCOUNTED: usize = 2;
    let mut times = Vec::with_capacity(runs);
    for run in 0..UNCOUNTED + runs.max(1) {
        let start = stream.record()?;
        work()?;
        let ms = stream.record()?.elapsed_ms(&start)?;
        if run >= UNCOUNTED {
            times.push(f64::from(ms));
        }
    }
    times.sort_by(f64::total_cmp);
    Ok((times[times.len() / 2], times[0]))
}

/// Nothing instead of an error where there is too little memory.
///
/// # Errors
/// Any other error.
pub fn if_it_fits<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(CudaError::DoesNotFit { .. } | CudaError::OutOfMemory { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
