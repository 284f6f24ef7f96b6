//! `recorder`: records Filecoin's circuits and checks the recorded files.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use filecoin::CircuitId;
use r1cs::CompiledCircuit;

/// Records bellpepper circuits into their compiled form.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a circuit once, check that its compiled form expands to the same rows, and write
    /// it to <DIR>/<NAME>.r1cs.
    Record {
        /// A circuit such as `porep-32g`, several separated by commas, or `all`.
        name: String,
        /// Folder to write to.
        #[arg(long, default_value = "crates/filecoin/circuits")]
        out: PathBuf,
    },
    /// Record anew, compare with the file byte for byte, and compare the file's expanded rows
    /// with the rows as they were enforced.
    Check {
        /// A circuit such as `porep-32g`, several separated by commas, or `all`.
        name: String,
        /// Folder of the files.
        #[arg(long, default_value = "crates/filecoin/circuits")]
        dir: PathBuf,
    },
}

fn main() -> Result<()> {
    match Arguments::parse().command {
        Command::Record { name, out } => {
            fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
            circuits(&name)?
                .into_iter()
                .try_for_each(|id| record(id, &out))
        }
        Command::Check { name, dir } => {
            let results: Vec<Result<()>> = circuits(&name)?
                .into_iter()
                .map(|id| check(id, &dir))
                .collect();
            let failed = results.iter().filter(|r| r.is_err()).count();
            for error in results.iter().filter_map(|r| r.as_ref().err()) {
                eprintln!("error: {error:#}");
            }
            ensure!(failed == 0, "{failed} of {} circuits differ", results.len());
            Ok(())
        }
    }
}

fn circuits(names: &str) -> Result<Vec<CircuitId>> {
    if names == "all" {
        return Ok(CircuitId::all().collect());
    }
    Ok(names
        .split(',')
        .map(CircuitId::parse)
        .collect::<Result<_, _>>()?)
}

fn path(dir: &Path, id: CircuitId) -> PathBuf {
    dir.join(format!("{id}.r1cs"))
}

fn record(id: CircuitId, out: &Path) -> Result<()> {
    let start = Instant::now();
    let (circuit, rows) = recorder::record(id)?;
    let bytes = circuit.to_bytes();
    // Check what a reader will get before it is written.
    let stored = CompiledCircuit::from_bytes(&bytes)?;
    ensure!(
        recorder::digest_of(&stored) == rows,
        "{id}: the compiled form's rows are not those of the circuit: a defect of this program"
    );
    let path = path(out, id);
    // Whole or not at all.
    let temporary = path.with_extension("r1cs.part");
    fs::write(&temporary, &bytes).with_context(|| format!("writing {}", temporary.display()))?;
    fs::rename(&temporary, &path).with_context(|| format!("writing {}", path.display()))?;
    println!("{}", line(id, &circuit, bytes.len(), start));
    Ok(())
}

fn check(id: CircuitId, dir: &Path) -> Result<()> {
    let start = Instant::now();
    let path = path(dir, id);
    let file = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let stored = CompiledCircuit::from_bytes(&file).with_context(|| format!("{id}"))?;
    let (recorded, rows) = recorder::record(id)?;
    if recorder::digest_of(&stored) != rows {
        bail!("{id}: the file's rows are not those of the circuit; record it again");
    }
    if recorded.to_bytes() != file {
        bail!("{id}: the rows agree but the bytes differ; record it again");
    }
    println!(
        "{}: same bytes, same rows",
        line(id, &stored, file.len(), start)
    );
    Ok(())
}

fn line(id: CircuitId, circuit: &CompiledCircuit, bytes: usize, start: Instant) -> String {
    let s = circuit.statistics();
    format!(
        "{id}: {} rows, {} inputs, {} aux, {} bits; {} templates with {} rows and {} terms, {} calls, {} arguments; {bytes} bytes; {:.1} s",
        s.shape.constraints,
        s.shape.inputs,
        s.shape.aux,
        s.bits(),
        s.templates,
        s.template_rows,
        s.template_terms,
        s.calls,
        s.arguments,
        start.elapsed().as_secs_f64(),
    )
}
