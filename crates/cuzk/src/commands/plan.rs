//! `cuzk circuit plan NAME`: what proving a circuit on a GPU takes, buffer by buffer.

use cuda::{ChunkSummary, LedgerEntry, PlanError, PlanTarget, ProofPlan, Streaming, SumChoice};
use filecoin::CircuitId;
use groth16::key::KeyForm;
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
    form: KeyForm,
    vram: Option<Size>,
    multiprocessors: u32,
    proofs: u32,
) -> Result<(), Failure> {
    let circuit = id.compiled()?;
    let target = PlanTarget {
        vram_bytes: vram.map_or(u64::MAX >> 1, Size::bytes),
        limited: true,
        multiprocessors,
        callers: proofs as usize,
    };
    let plan = ProofPlan::of_form(id.name(), &circuit, form.into(), target)?;
    let document = Document {
        schema: "cuzk.circuit-plan/1",
        circuit: id.name(),
        vram_bytes: vram.map(Size::bytes),
        multiprocessors,
        proofs,
        form: match form {
            KeyForm::Published => "published",
            KeyForm::Prepared => "prepared",
        },
        key: if plan.streaming().is_some() {
            "streamed"
        } else {
            "resident"
        },
        reason: plan.reason().to_owned(),
        bytes: plan.bytes(),
        driver_bytes: plan.driver_bytes(),
        resident_bytes: plan.resident_bytes(),
        unit_bytes: plan.unit_bytes(),
        work_bytes: plan.work_bytes(),
        units: plan.units(),
        pieces: plan.pieces(),
        model_ms: plan.model_ms(),
        streaming: plan
            .streaming()
            .map(|streaming| StreamingDocument::new(&streaming, plan.units())),
        resident: documents(plan.resident_entries()),
        unit: documents(plan.unit_entries()),
        work: documents(plan.work_entries()),
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
    proofs: u32,
    /// Of the key: `published` or `prepared`.
    form: &'static str,
    /// `resident` or `streamed`.
    key: &'static str,
    reason: String,
    bytes: u64,
    driver_bytes: u64,
    resident_bytes: u64,
    unit_bytes: u64,
    work_bytes: u64,
    units: usize,
    pieces: usize,
    model_ms: f64,
    streaming: Option<StreamingDocument>,
    resident: Vec<BufferDocument>,
    unit: Vec<BufferDocument>,
    work: Vec<BufferDocument>,
    phases: Vec<PhaseDocument>,
    sums: Vec<SumDocument>,
}

/// How the key passes through the device.
#[derive(Serialize)]
struct StreamingDocument {
    buffers: usize,
    chunk_bytes: u64,
    pass_bytes: u64,
    bytes_per_proof: u64,
    sections: Vec<SectionDocument>,
}

#[derive(Serialize)]
struct SectionDocument {
    name: &'static str,
    chunks: usize,
    chunk_points: usize,
    bytes: u64,
}

impl StreamingDocument {
    fn new(streaming: &Streaming, proofs: usize) -> Self {
        let section = |section: &ChunkSummary| SectionDocument {
            name: section.name,
            chunks: section.chunks,
            chunk_points: section.chunk_points,
            bytes: section.bytes,
        };
        Self {
            buffers: streaming.buffers,
            chunk_bytes: streaming.chunk_bytes,
            pass_bytes: streaming.pass_bytes,
            bytes_per_proof: streaming.pass_bytes / proofs.max(1) as u64,
            sections: streaming.sections.iter().map(section).collect(),
        }
    }

    fn text(&self) -> String {
        let mut table = Table::new(&[
            ("section of the key", Align::Left),
            ("chunks", Align::Right),
            ("points of the largest", Align::Right),
            ("bytes", Align::Right),
        ]);
        for section in &self.sections {
            table.row([
                section.name.to_owned(),
                section.chunks.to_string(),
                grouped(section.chunk_points as u64),
                grouped(section.bytes),
            ]);
        }
        table.render()
    }
}

fn documents(entries: &[LedgerEntry]) -> Vec<BufferDocument> {
    entries.iter().map(BufferDocument::from).collect()
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
        let mut head = vec![
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
            ("form", self.form.to_owned()),
            ("key", format!("{}: {}", self.key, self.reason)),
        ];
        head.extend(self.streaming.as_ref().map(|streaming| {
            let text = format!(
                "{} for a pass, {} for a proof, in chunks of up to {} through {} buffers",
                table::bytes(streaming.pass_bytes),
                table::bytes(streaming.bytes_per_proof),
                table::bytes(streaming.chunk_bytes),
                streaming.buffers
            );
            ("over the bus", text)
        }));
        head.extend([
            ("stays", table::bytes(self.resident_bytes)),
            ("driver", table::bytes(self.driver_bytes)),
            (
                "sums",
                match (self.pieces, &self.streaming) {
                    (_, Some(_)) => "chunk by chunk".to_owned(),
                    (1, None) => "all terms at once".to_owned(),
                    (pieces, None) => format!("terms in up to {pieces} pieces, to spare memory"),
                },
            ),
            ("a proof", self.a_proof()),
        ]);
        let head = table::pairs(&head);
        let mut phases = Table::new(&[("phase of a proof", Align::Left), ("in use", Align::Right)]);
        for phase in &self.phases {
            phases.row([phase.phase.to_owned(), table::bytes(phase.bytes)]);
        }
        let mut tables = Vec::new();
        tables.extend(self.streaming.as_ref().map(StreamingDocument::text));
        tables.push(buffers("what stays", &self.resident));
        tables.push(buffers("of a proof", &self.unit));
        if !self.work.is_empty() {
            tables.push(buffers("of a pass", &self.work));
        }
        tables.push(phases.render());
        format!("{head}\n{}", tables.join("\n"))
    }

    fn a_proof(&self) -> String {
        let (bytes, units) = (table::bytes(self.unit_bytes), self.units);
        match self.streaming {
            None => format!("{bytes}, {units} at a time"),
            Some(_) => format!(
                "{bytes}, {units} in a pass, which takes {}",
                table::bytes(self.work_bytes)
            ),
        }
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
