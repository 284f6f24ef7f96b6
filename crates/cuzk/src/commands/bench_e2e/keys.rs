//! The keys that a benchmark proves with: files, or made for the occasion.

use filecoin::CircuitId;
use pipeline::CircuitKey;
use serde::Serialize;

use crate::Context;
use crate::cli::BenchE2eArgs;
use crate::device::Chosen;
use crate::failure::{Exit, Failure};
use crate::keys;

/// What is told of a key.
#[derive(Debug, Clone, Serialize)]
pub struct KeyFacts {
    /// Bytes of its file, or of the memory that it lies in.
    pub bytes: u64,
    /// Whether it was made for this run and lives in memory.
    pub ephemeral: bool,
    /// In words.
    pub words: String,
}

/// Finds and checks the circuit's key, or makes one.
pub fn open(
    context: &Context,
    args: &BenchE2eArgs,
    id: CircuitId,
    _device: &Chosen,
) -> Result<(CircuitKey, KeyFacts), Failure> {
    let circuit = id.compiled()?;
    let spec = id.key_spec(&circuit);
    let bytes = spec.counts.params_bytes();
    if args.ephemeral {
        return Err(Failure::new(
            Exit::Usage,
            "USAGE",
            "this build makes no ephemeral keys",
            "make test keys with `cuzk params generate NAME --test`",
        ));
    }
    let store = keys::store(context, &args.keys);
    let key = keys::proving_key(context, &store, &spec)?;
    let words = format!("{} ({})", key.path.display(), key.trust);
    let facts = KeyFacts {
        bytes,
        ephemeral: false,
        words,
    };
    Ok((CircuitKey::new(circuit, key.key), facts))
}
