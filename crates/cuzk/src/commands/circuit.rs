//! `cuzk circuit list` and `cuzk circuit show NAME`: what is compiled into the program.

use filecoin::CircuitId;
use groth16::key::KeyCounts;
use r1cs::{CompiledCircuit, Matrix, Rule, Statistics};
use rayon::prelude::*;
use serde::Serialize;

use super::plan;
use crate::Context;
use crate::cli::CircuitCommand;
use crate::failure::{Exit, Failure};
use crate::table::{self, Align, Table, grouped};

/// Runs the command.
pub fn run(context: &Context, command: &CircuitCommand) -> Result<(), Failure> {
    match command {
        CircuitCommand::List => list(context),
        CircuitCommand::Show { name } => show(context, name),
        CircuitCommand::Plan {
            name,
            form,
            vram,
            multiprocessors,
            proofs,
        } => plan::run(
            context,
            parse(name)?,
            (*form).into(),
            *vram,
            *multiprocessors,
            *proofs,
        ),
    }
}

/// The circuit of this name.
///
/// # Errors
/// `UNKNOWN_CIRCUIT`, a usage error.
pub fn parse(name: &str) -> Result<CircuitId, Failure> {
    CircuitId::parse(name).map_err(|error| {
        Failure::new(
            Exit::Usage,
            "UNKNOWN_CIRCUIT",
            error.to_string(),
            "see `cuzk circuit list` for the names",
        )
    })
}

fn list(context: &Context) -> Result<(), Failure> {
    let all: Vec<CircuitId> = CircuitId::all().collect();
    let circuits = all
        .par_iter()
        .map(|&id| Ok(CircuitDocument::new(id, &*id.compiled()?)))
        .collect::<Result<Vec<_>, Failure>>()?;
    let mut table = Table::new(&[
        ("circuit", Align::Left),
        ("constraints", Align::Right),
        ("inputs", Align::Right),
        ("aux", Align::Right),
        ("bits", Align::Right),
        ("domain", Align::Right),
        ("proofs", Align::Right),
        (".params", Align::Right),
    ]);
    for c in &circuits {
        table.row([
            c.circuit.into(),
            grouped(c.constraints),
            grouped(c.inputs),
            grouped(c.aux),
            percent(c.bits.all, c.aux),
            format!("2^{}", c.domain.ilog2()),
            c.partitions.to_string(),
            table::bytes(c.files.params_bytes),
        ]);
    }
    let document = ListDocument {
        schema: "cuzk.circuit-list/1",
        circuits,
    };
    context.output.show(&document, &table.render())
}

fn show(context: &Context, name: &str) -> Result<(), Failure> {
    let id = parse(name)?;
    let circuit = id.compiled()?;
    let document = CircuitDocument::new(id, &circuit);
    let text = document.text(circuit.statistics());
    context.output.show(
        &ShowDocument {
            schema: "cuzk.circuit/1",
            circuit: document,
        },
        &text,
    )
}

#[derive(Serialize)]
struct ListDocument {
    schema: &'static str,
    circuits: Vec<CircuitDocument>,
}

#[derive(Serialize)]
struct ShowDocument {
    schema: &'static str,
    circuit: CircuitDocument,
}

/// One circuit in `--json`.
#[derive(Serialize)]
struct CircuitDocument {
    circuit: &'static str,
    kind: &'static str,
    sector_size_bytes: u64,
    partitions: usize,
    digest: String,
    constraints: u64,
    inputs: u64,
    aux: u64,
    domain: u64,
    nonzeros: PerMatrix,
    distinct_coefficients: Coefficients,
    density: DensityDocument,
    bits: BitsDocument,
    templates: TemplatesDocument,
    files: FilesDocument,
}

#[derive(Serialize)]
struct PerMatrix {
    a: u64,
    b: u64,
    c: u64,
}

#[derive(Serialize)]
struct Coefficients {
    all: u64,
    a: u64,
    b: u64,
    c: u64,
}

#[derive(Serialize)]
struct DensityDocument {
    aux_in_a: u64,
    aux_in_b: u64,
    inputs_in_b: u64,
}

#[derive(Serialize)]
struct BitsDocument {
    all: u64,
    explicit: u64,
    implied: u64,
    by_rule: serde_json::Map<String, serde_json::Value>,
    not_bits: u64,
}

#[derive(Serialize)]
struct TemplatesDocument {
    templates: u64,
    rows: u64,
    terms: u64,
    calls: u64,
    arguments: u64,
    embedded_bytes: u64,
}

#[derive(Serialize)]
struct FilesDocument {
    stem: String,
    params_bytes: u64,
    params_digest: &'static str,
    vk_bytes: u64,
    vk_digest: &'static str,
}

impl CircuitDocument {
    fn new(id: CircuitId, circuit: &CompiledCircuit) -> Self {
        let s = circuit.statistics();
        let counts = KeyCounts::of(circuit);
        Self {
            circuit: id.name(),
            kind: id.kind.label(),
            sector_size_bytes: id.size.bytes(),
            partitions: id.partitions(),
            digest: hex::encode(circuit.digest()),
            constraints: s.shape.constraints as u64,
            inputs: s.shape.inputs as u64,
            aux: s.shape.aux as u64,
            domain: s.domain() as u64,
            nonzeros: per_matrix(s.nonzeros),
            distinct_coefficients: coefficients(s),
            density: DensityDocument {
                aux_in_a: s.aux_in_a as u64,
                aux_in_b: s.aux_in_b as u64,
                inputs_in_b: s.inputs_in_b as u64,
            },
            bits: bits(s),
            templates: TemplatesDocument {
                templates: s.templates as u64,
                rows: s.template_rows as u64,
                terms: s.template_terms as u64,
                calls: s.calls as u64,
                arguments: s.arguments as u64,
                embedded_bytes: id.compiled_bytes().len() as u64,
            },
            files: FilesDocument {
                stem: id.params_stem(),
                params_bytes: counts.params_bytes(),
                params_digest: id.params_digest(),
                vk_bytes: counts.vk_bytes(),
                vk_digest: id.vk_digest(),
            },
        }
    }

    fn text(&self, s: &Statistics) -> String {
        let rules = Rule::ALL.iter().filter(|r| s.bits_by(**r) > 0);
        let rules: Vec<String> = rules
            .map(|r| format!("{} {}", r.name(), grouped(s.bits_by(*r))))
            .collect();
        let t = &self.templates;
        let proofs = if self.partitions == 1 {
            "one proof".into()
        } else {
            format!("{} proofs", self.partitions)
        };
        table::pairs(&[
            (
                "circuit",
                format!(
                    "{}: {} of a {} B sector, {proofs}",
                    self.circuit,
                    self.kind,
                    grouped(self.sector_size_bytes)
                ),
            ),
            ("constraints", grouped(self.constraints)),
            (
                "inputs",
                format!("{}, the constant one included", grouped(self.inputs)),
            ),
            ("aux variables", grouped(self.aux)),
            (
                "domain",
                format!("2^{} = {}", self.domain.ilog2(), grouped(self.domain)),
            ),
            ("nonzero terms", per_matrix_text(&self.nonzeros)),
            ("coefficients", self.coefficients_text()),
            ("aux in A", share(self.density.aux_in_a, self.aux)),
            ("aux in B", share(self.density.aux_in_b, self.aux)),
            ("inputs in B", grouped(self.density.inputs_in_b)),
            ("bits", share(self.bits.all, self.aux)),
            ("  explicit", share(self.bits.explicit, self.aux)),
            ("  implied", share(self.bits.implied, self.aux)),
            ("  by rule", rules.join(", ")),
            ("not bits", share(self.bits.not_bits, self.aux)),
            (
                "templates",
                format!(
                    "{} with {} rows, {} terms",
                    grouped(t.templates),
                    grouped(t.rows),
                    grouped(t.terms)
                ),
            ),
            (
                "calls",
                format!(
                    "{} with {} arguments",
                    grouped(t.calls),
                    grouped(t.arguments)
                ),
            ),
            ("compiled size", table::bytes(t.embedded_bytes)),
            ("digest", self.digest.clone()),
            ("key files", self.files.stem.clone()),
            (
                ".params",
                file_text(self.files.params_bytes, self.files.params_digest),
            ),
            (".vk", file_text(self.files.vk_bytes, self.files.vk_digest)),
        ])
    }

    fn coefficients_text(&self) -> String {
        let c = &self.distinct_coefficients;
        format!(
            "{} distinct; A {}, B {}, C {}",
            grouped(c.all),
            grouped(c.a),
            grouped(c.b),
            grouped(c.c)
        )
    }
}

fn per_matrix(n: [u64; 3]) -> PerMatrix {
    let at = |m: Matrix| n[m as usize];
    PerMatrix {
        a: at(Matrix::A),
        b: at(Matrix::B),
        c: at(Matrix::C),
    }
}

fn coefficients(s: &Statistics) -> Coefficients {
    let of = per_matrix(s.coefficients_by_matrix.map(|n| n as u64));
    Coefficients {
        all: s.coefficients as u64,
        a: of.a,
        b: of.b,
        c: of.c,
    }
}

fn bits(s: &Statistics) -> BitsDocument {
    BitsDocument {
        all: s.bits(),
        explicit: s.explicit_bits(),
        implied: s.implied_bits(),
        by_rule: Rule::ALL
            .iter()
            .map(|r| (r.name().to_owned(), s.bits_by(*r).into()))
            .collect(),
        not_bits: s.non_bits(),
    }
}

fn per_matrix_text(n: &PerMatrix) -> String {
    format!("A {}, B {}, C {}", grouped(n.a), grouped(n.b), grouped(n.c))
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.2} %", 100.0 * part as f64 / whole.max(1) as f64)
}

fn share(part: u64, whole: u64) -> String {
    format!("{} ({})", grouped(part), percent(part, whole))
}

fn file_text(bytes: u64, digest: &str) -> String {
    format!(
        "{} B ({}), digest of the official file {digest}",
        grouped(bytes),
        table::bytes(bytes)
    )
}
