//! `cuzk bench kernels`: times of the GPU's kernels by themselves.

use cuda::Device;
use cuda::measure::{self, Measurement, Measuring, Peaks, Work};
use filecoin::CircuitId;
use serde::Serialize;

use crate::Context;
use crate::cli::BenchKernelsArgs;
use crate::failure::Failure;
use crate::table::{self, Align, Table};

/// Runs the command.
///
/// # Errors
/// A GPU that is not there or fails, or whose results are wrong; a circuit that there is not.
pub fn run(context: &Context, args: &BenchKernelsArgs) -> Result<(), Failure> {
    let device = Device::open(args.gpu)?;
    let mut circuits = Vec::new();
    for name in &args.circuits {
        circuits.push((name.clone(), CircuitId::parse(name)?.compiled()?));
    }
    let measuring = Measuring {
        log_sizes: args.sizes.clone(),
        runs: args.runs.into(),
        circuits: &circuits,
    };
    let line = context.progress.stage("kernels", 0);
    let peaks = measure::peaks(&device)?;
    let measured = measure::measure(&device, &measuring)?;
    drop(line);
    let document = Document {
        schema: "cuzk.bench-kernels/1",
        device: device.info().name.clone(),
        uuid: device.info().uuid.clone(),
        runs: measuring.runs,
        multiplications_per_second: peaks.multiplications_per_second,
        bytes_written_per_second: peaks.bytes_written_per_second,
        kernels: measured.iter().map(|row| Row::new(row, &peaks)).collect(),
    };
    context.output.show(&document, &document.text())
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    device: String,
    uuid: String,
    runs: usize,
    multiplications_per_second: f64,
    bytes_written_per_second: f64,
    kernels: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    log_size: u32,
    median_ms: f64,
    least_ms: f64,
    /// Which peak: `multiplications` or `memory`.
    bound: &'static str,
    share_of_peak: f64,
}

impl Row {
    fn new(measured: &Measurement, peaks: &Peaks) -> Self {
        Self {
            name: measured.name.clone(),
            log_size: measured.log_size,
            median_ms: measured.median_ms,
            least_ms: measured.least_ms,
            bound: match measured.work {
                Work::Multiplications(_) => "multiplications",
                Work::BytesWritten(_) => "memory",
            },
            share_of_peak: measured.share(peaks),
        }
    }
}

impl Document {
    fn text(&self) -> String {
        let mut table = Table::new(&[
            ("kernel", Align::Left),
            ("size", Align::Left),
            ("median ms", Align::Right),
            ("least ms", Align::Right),
            ("of peak", Align::Right),
            ("peak", Align::Left),
        ]);
        for row in &self.kernels {
            table.row([
                row.name.clone(),
                format!("2^{}", row.log_size),
                format!("{:.3}", row.median_ms),
                format!("{:.3}", row.least_ms),
                format!("{:.1} %", 100.0 * row.share_of_peak),
                row.bound.to_owned(),
            ]);
        }
        let head = table::pairs(&[
            ("device", format!("{} {}", self.device, self.uuid)),
            ("runs", self.runs.to_string()),
            (
                "peaks",
                format!(
                    "{:.3e} 32-bit multiplications and {:.3e} bytes written a second, measured",
                    self.multiplications_per_second, self.bytes_written_per_second
                ),
            ),
        ]);
        format!("{head}\n{}", table.render())
    }
}
