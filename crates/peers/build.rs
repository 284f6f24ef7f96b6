//! With the feature `gpu`: compiles the functions in `sppark/` against the headers of the crate
//! sppark, by the nvcc that is in PATH (or named by NVCC), for the targets in CUZK_CUDA_ARCHS.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=sppark");
    #[cfg(feature = "gpu")]
    sppark();
}

#[cfg(feature = "gpu")]
fn sppark() {
    use std::{env, path::PathBuf};

    println!("cargo:rerun-if-env-changed=CUZK_CUDA_ARCHS");
    println!("cargo:rerun-if-env-changed=CUDA_HOME");
    let include = |variable: &str| {
        env::var_os(variable).unwrap_or_else(|| {
            panic!("{variable} is not set: a dependency did not say where its sources are")
        })
    };
    let archs = env::var("CUZK_CUDA_ARCHS").unwrap_or_else(|_| "80,90,100,120".to_owned());
    let mut build = cc::Build::new();
    build
        .cuda(true)
        .cudart("static")
        .std("c++17")
        .opt_level(3)
        .debug(false)
        .warnings(false)
        .include(include("DEP_SPPARK_ROOT"))
        .include(include("DEP_BLST_C_SRC"))
        .define("FEATURE_BLS12_381", None)
        .define("TAKE_RESPONSIBILITY_FOR_ERROR_MESSAGE", None)
        .file("sppark/kernels.cu");
    for arch in archs
        .split(',')
        .map(|arch| arch.trim().trim_end_matches("+ptx"))
    {
        build
            .flag("-gencode")
            .flag(format!("arch=compute_{arch},code=sm_{arch}"));
    }
    build.compile("peers_sppark");
    // The run-time library is where the toolkit is, which the linker does not know.
    if let Some(home) = env::var_os("CUDA_HOME") {
        for folder in ["lib64", "lib"].map(|name| PathBuf::from(&home).join(name)) {
            println!("cargo:rustc-link-search=native={}", folder.display());
        }
    }
}
