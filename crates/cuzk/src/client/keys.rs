//! `cuzk preload` and `cuzk evict`.

use serde_json::json;

use super::args::{EvictArgs, PreloadArgs};
use super::{connect, failure};
use crate::Context;
use crate::cli::Global;
use crate::failure::Failure;

/// Loads a key.
pub fn preload(context: &Context, global: &Global, args: &PreloadArgs) -> Result<(), Failure> {
    let circuit = args.circuit.as_ref().or(args.circuit_id.as_ref());
    let circuit = circuit.map(String::as_str).unwrap_or_default();
    let loaded = connect(global, &args.server)?
        .preload(circuit)
        .map_err(failure)?;
    let text = if loaded.already_loaded {
        format!("{circuit} was loaded already\n")
    } else {
        format!("{circuit} loaded in {} ms\n", loaded.load_time_ms)
    };
    let document = json!({
        "schema": "cuzk.preload/1", "circuit": circuit,
        "already_loaded": loaded.already_loaded, "load_time_ms": loaded.load_time_ms,
    });
    context.output.show(&document, &text)
}

/// Unloads a key.
pub fn evict(context: &Context, global: &Global, args: &EvictArgs) -> Result<(), Failure> {
    let circuit = &args.circuit;
    let evicted = connect(global, &args.server)?
        .evict(circuit)
        .map_err(failure)?;
    let text = match (evicted.was_loaded, evicted.freed_bytes) {
        (false, _) => format!("{circuit} was not loaded\n"),
        (true, 0) => format!("{circuit} is in use and stays\n"),
        (true, bytes) => format!("{circuit} unloaded, {bytes} bytes are free\n"),
    };
    let document = json!({
        "schema": "cuzk.evict/1", "circuit": circuit,
        "was_loaded": evicted.was_loaded, "freed_bytes": evicted.freed_bytes,
    });
    context.output.show(&document, &text)
}
