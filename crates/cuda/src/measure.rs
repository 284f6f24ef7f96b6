//! Times of kernels beside what the device can do at most.

use std::sync::Arc;

use r1cs::CompiledCircuit;

use crate::device::{Device, Ledger, Lifetime, Stream};
use crate::error::{CudaError, Result};
use crate::rates;

/// What bounds a kernel's time from below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Work {
    /// 32-bit multiplications, in the unit of [`rates`]: a full product counts 1, a low half 1/2.
    Multiplications(f64),
    /// Bytes that it writes to the device's memory.
    BytesWritten(f64),
}

/// What a device can do at most, as measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peaks {
    /// 32-bit multiplications a second.
    pub multiplications_per_second: f64,
    /// Bytes a second that it fills memory with.
    pub bytes_written_per_second: f64,
}

/// How long something took at one size.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// What ran.
    pub name: String,
    /// log₂ of the number of elements.
    pub log_size: u32,
    /// The median of the runs.
    pub median_ms: f64,
    /// The fastest.
    pub least_ms: f64,
    /// What it did.
    pub work: Work,
}

impl Measurement {
    /// The part of the work that could have been done in the median time.
    pub fn share(&self, peaks: &Peaks) -> f64 {
        let (work, peak) = match self.work {
            Work::Multiplications(count) => (count, peaks.multiplications_per_second),
            Work::BytesWritten(bytes) => (bytes, peaks.bytes_written_per_second),
        };
        work / (self.median_ms * 1e-3 * peak)
    }
}

/// What to measure.
#[derive(Clone)]
pub struct Measuring<'c> {
    /// log₂ of the sizes; those that do not fit the device are left out.
    pub log_sizes: Vec<u32>,
    /// Runs of each that count.
    pub runs: usize,
    /// Circuits that are evaluated, with their names.
    pub circuits: &'c [(String, Arc<CompiledCircuit>)],
}

impl Default for Measuring<'_> {
    fn default() -> Self {
        Measuring {
            log_sizes: vec![20, 22, 24, 26, 27],
            runs: 15,
            circuits: &[],
        }
    }
}

/// A topic's measurements.
pub type Measure = fn(&Device, &Measuring<'_>) -> Result<Vec<Measurement>>;

/// What has measurements.
const TOPICS: &[Measure] = &[
    crate::ntt::measure,
    crate::msm::measure,
    crate::evaluate::measure,
];

/// Everything, topic by topic.
///
/// # Errors
/// A device that fails, or whose result is wrong.
pub fn measure(device: &Device, measuring: &Measuring<'_>) -> Result<Vec<Measurement>> {
    let mut all = Vec::new();
    for topic in TOPICS {
        all.extend(topic(device, measuring)?);
    }
    Ok(all)
}

/// What the device can do at most, measured now.
///
/// # Errors
/// A device that fails.
pub fn peaks(device: &Device) -> Result<Peaks> {
    const RUNS: usize = 5;
    /// Many times the level-2 cache of any device.
    const FILLED_BYTES: usize = 1 << 30;
    let mut ledger = Ledger::new("the measurement of the memory");
    let bytes = if device.info().emulated {
        1 << 20
    } else {
        FILLED_BYTES
    };
    let filled = ledger.reserve::<u8>("filled", bytes, Lifetime::RESIDENT);
    let arena = device.arena(&ledger)?;
    let stream = device.stream()?;
    let (median_ms, _) = times(&stream, RUNS, || stream.zero(arena.get(filled)))?;
    Ok(Peaks {
        multiplications_per_second: rates::multiplications_per_second(device, RUNS)?,
        bytes_written_per_second: bytes as f64 / (median_ms * 1e-3),
    })
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

#[cfg(all(test, feature = "emulation"))]
mod tests {
    use super::*;
    use filecoin::CircuitId;

    #[test]
    fn every_topic_has_its_rows() {
        let device = Device::emulated();
        let circuit = CircuitId::parse("winning-2k").unwrap();
        let circuits = [("winning-2k".to_owned(), circuit.compiled().unwrap())];
        let measuring = Measuring {
            log_sizes: vec![5, 8],
            runs: 1,
            circuits: &circuits,
        };
        let rows = measure(&device, &measuring).unwrap();
        let count = |start: &str| {
            rows.iter()
                .filter(|row| row.name.starts_with(start))
                .count()
        };
        assert_eq!(count("NTT"), 8);
        assert_eq!(count("quotient"), 4);
        assert_eq!(count("sum in G1, full-size scalars"), 2);
        assert_eq!(count("sum in G2, full-size scalars"), 2);
        assert_eq!(count("sum in G1, half of the points"), 2);
        assert_eq!(count("sum in G2, half of the points"), 2);
        assert_eq!(count("A w and B w of winning-2k"), 1);
        assert_eq!(rows.len(), 21);
        let peaks = Peaks {
            multiplications_per_second: 1e12,
            bytes_written_per_second: 1e12,
        };
        for row in rows {
            assert!(
                row.least_ms > 0.0 && row.least_ms <= row.median_ms,
                "{row:?}"
            );
            assert!(row.share(&peaks) > 0.0, "{row:?}");
        }
    }

    #[test]
    fn shares_are_of_the_peak_that_bounds() {
        let row = |work| Measurement {
            name: String::new(),
            log_size: 0,
            median_ms: 2.0,
            least_ms: 1.0,
            work,
        };
        let peaks = Peaks {
            multiplications_per_second: 1e9,
            bytes_written_per_second: 4e9,
        };
        assert_eq!(row(Work::Multiplications(1e6)).share(&peaks), 0.5);
        assert_eq!(row(Work::BytesWritten(1e6)).share(&peaks), 0.125);
    }
}
