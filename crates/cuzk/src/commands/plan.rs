//! `cuzk circuit plan NAME`: what proving a circuit on a GPU takes, buffer by buffer.

use cuda::{LedgerEntry, PlanError, PlanTarget, ProofPlan, SumChoice};
use filecoin::CircuitId;
use serde::Serialize;

use crate::Context;
use crate::failure::{Exit, Failure};
use crate::size::Size;
use crate::table::{self, Align, Table, grouped};

/// Runs the command.
///
/// # Errors
/// `VRAM` if there is no plan for so little memory; it names the least that would do.
pub fn run(
    context: &Context,
    id: CircuitId,
    vram: Option<Size>,
    multiprocessors: u32,
) -> Result<(), Failure> {
    let circuit = id.compiled()?;
    let target = PlanTarget {
        vram_bytes: vram.map_or(u64::MAX >> 1, Size::bytes),
        limited: true,
        multiprocessors,
    };
    let plan = ProofPlan::new(id.name(), &circuit, target)?;
    let document = Document {
        schema: "cuzk.circuit-plan/1",
        circuit: id.name(),
        vram_bytes: vram.map(Size::bytes),
        multiprocessors,
        bytes: plan.bytes(),
        resident_bytes: plan.resident_bytes(),
        unit_bytes: plan.unit_bytes(),
        units: plan.units(),
        pieces: plan.pieces(),
        resident: plan
            .resident_entries()
            .iter()
            .map(BufferDocument::from)
            .collect(),
        unit: plan
            .unit_entries()
            .iter()
            .map(BufferDocument::from)
            .collect(),
        phases: plan
            .phase_bytes()
            .into_iter()
            .map(|(phase, bytes)| PhaseDocument {
                phase: phase.name(),
                bytes,
            })
            .collect(),
        sums: plan.sums().map(SumDocument::from).collect(),
    };
    let tables: Vec<String> = plan.sums().map(sum_text).collect();
    let text = format!("{}\n{}", document.text(), tables.join("\n"));
    context.output.show(&document, &text)
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Device(error) => error.into(),
            PlanError::Program(error) => Failure::new(
                Exit::Internal,
                "CIRCUIT",
                error.to_string(),
                "use --device cpu",
            ),
        }
    }
}

/// The ways considered for a sum, and why one was chosen.
fn sum_text(sum: SumChoice<'_>) -> String {
    let selected = match sum.selected {
        0 => String::new(),
        n => format!(", and up to {} points as they are", grouped(n as u64)),
    };
    format!(
        "sum {} in {}: {} terms of {} points{selected}\n{}",
        sum.name,
        sum.group,
        grouped(sum.terms as u64),
        grouped(sum.points as u64),
        sum.choice
    )
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    circuit: &'static str,
    vram_bytes: Option<u64>,
    multiprocessors: u32,
    bytes: u64,
    resident_bytes: u64,
    unit_bytes: u64,
    units: usize,
    pieces: usize,
    resident: Vec<BufferDocument>,
    unit: Vec<BufferDocument>,
    phases: Vec<PhaseDocument>,
    sums: Vec<SumDocument>,
}

#[derive(Serialize)]
struct BufferDocument {
    name: String,
    bytes: u64,
    lifetime: String,
}

impl From<&LedgerEntry> for BufferDocument {
    fn from(entry: &LedgerEntry) -> Self {
        Self {
            name: entry.name.to_string(),
            bytes: entry.bytes,
            lifetime: entry.lifetime.to_string(),
        }
    }
}

#[derive(Serialize)]
struct PhaseDocument {
    phase: &'static str,
    bytes: u64,
}

#[derive(Serialize)]
struct SumDocument {
    name: &'static str,
    group: &'static str,
    points: usize,
    terms: usize,
    selected: usize,
    copies: u32,
    digits: u32,
    window_bits: u32,
    model_ms: f64,
}

impl From<SumChoice<'_>> for SumDocument {
    fn from(sum: SumChoice<'_>) -> Self {
        let chosen = &sum.choice.chosen;
        let windows = &chosen.shape.windows;
        Self {
            name: sum.name,
            group: sum.group,
            points: sum.points,
            terms: sum.terms,
            selected: sum.selected,
            copies: windows.copies(),
            digits: windows.digits(),
            window_bits: windows.widths()[0],
            model_ms: chosen.ms,
        }
    }
}

impl Document {
    fn text(&self) -> String {
        let head = table::pairs(&[
            ("circuit", self.circuit.to_owned()),
            (
                "GPU memory",
                match self.vram_bytes {
                    Some(bytes) => {
                        format!("{} of {}", table::bytes(self.bytes), table::bytes(bytes))
                    }
                    None => table::bytes(self.bytes),
                },
            ),
            ("stays", table::bytes(self.resident_bytes)),
            (
                "sums",
                match self.pieces {
                    1 => "all terms at once".to_owned(),
                    pieces => format!("terms in up to {pieces} pieces, to spare memory"),
                },
            ),
            (
                "a proof",
                format!(
                    "{}, {} at a time",
                    table::bytes(self.unit_bytes),
                    self.units
                ),
            ),
        ]);
        let mut phases = Table::new(&[("phase of a proof", Align::Left), ("in use", Align::Right)]);
        for phase in &self.phases {
            phases.row([phase.phase.to_owned(), table::bytes(phase.bytes)]);
        }
        format!(
            "{head}\n{}\n{}\n{}",
            buffers("what stays", &self.resident),
            buffers("of a proof", &self.unit),
            phases.render()
        )
    }
}

fn buffers(title: &str, list: &[BufferDocument]) -> String {
    let mut table = Table::new(&[
        (title, Align::Left),
        ("bytes", Align::Right),
        ("holds something", Align::Left),
    ]);
    for buffer in list.iter().filter(|buffer| buffer.bytes > 0) {
        table.row([
            buffer.name.clone(),
            grouped(buffer.bytes),
            buffer.lifetime.clone(),
        ]);
    }
    table.render()
}
