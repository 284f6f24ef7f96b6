//! Builds the kernels: for the device with nvcc (feature `cuda`), for the host with the C++
//! compiler (feature `emulation`).
//!
//! Every source `kernels/<topic>/<name>.cu` becomes one fatbin `<topic>-<name>.fatbin`. The list
//! of them is written to `$OUT_DIR/images.rs`.

#[path = "build/nvcc.rs"]
#[cfg(feature = "cuda")]
mod nvcc;
#[path = "build/sources.rs"]
mod sources;

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=kernels");
    let kernels = Path::new("kernels");
    let sources = match sources::list(kernels) {
        Ok(sources) => sources,
        Err(error) => fail(&format!("cannot list {}: {error}", kernels.display())),
    };
    #[cfg(feature = "cuda")]
    if let Err(error) = nvcc::build(kernels, &sources, only_linted()) {
        fail(&error);
    }
    #[cfg(feature = "emulation")]
    if !only_linted() {
        emulate(kernels, &sources);
    }
    let _ = sources;
}

/// Whether this is for clippy, which runs build scripts of its own and never links: minutes of
/// compiling kernels would be for nothing.
#[cfg(any(feature = "cuda", feature = "emulation"))]
fn only_linted() -> bool {
    std::env::var_os("RUSTC_WORKSPACE_WRAPPER")
        .is_some_and(|program| Path::new(&program).file_stem() == Some("clippy-driver".as_ref()))
}

#[cfg(feature = "emulation")]
fn emulate(kernels: &Path, sources: &[sources::Source]) {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .flag("-x")
        .flag("c++")
        .opt_level(2)
        .include(kernels)
        .define("CUZK_EMULATION", None)
        .flag("-Wno-unknown-pragmas")
        .warnings(true)
        // Kernels are found by name in a table that their own initialisers fill, so the linker
        // must keep objects that nothing refers to.
        .link_lib_modifier("+whole-archive")
        .file(kernels.join("common/emulation.cpp"));
    for source in sources {
        build.file(&source.path);
    }
    build.compile("cuzk_kernels_emulated");
}

fn fail(message: &str) -> ! {
    // Cargo shows what a build script prints to stderr when it fails.
    eprintln!("\nerror: {message}\n");
    std::process::exit(1);
}
