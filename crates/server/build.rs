//! Compiles the messages of `proto/`, without a protoc.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

use prost::Message as _;

const FILES: [&str; 2] = ["cuzk/v1/proving.proto", "cuzk/v2/proving.proto"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new("../../proto");
    println!("cargo::rerun-if-changed={}", root.display());
    let descriptors = protox::compile(FILES, [root])?;
    let out = env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    // For reflection.
    fs::write(
        Path::new(&out).join("descriptors.bin"),
        descriptors.encode_to_vec(),
    )?;
    // The pieces of an upload go to disk as they came in.
    let builder = tonic_prost_build::configure().bytes(".cuzk.v2.SubmitRequest");
    builder.compile_fds(descriptors)?;
    Ok(())
}
