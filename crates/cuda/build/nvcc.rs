//! Fatbins by nvcc.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::sources::Source;

/// Machine code for these compute capabilities, and PTX for the first, from which the driver
/// makes code for any later one.
const DEFAULT_ARCHS: &str = "75+ptx,80,86,89,90,100,120";

const INSTALL: &str = "\
The feature `cuda` needs NVIDIA's compiler nvcc, version 13.0, and a C++ compiler. Install the CUDA
Toolkit 13.0, or, without root and without a GPU, these five packages of exactly these versions:

    python3 -m venv cuda
    cuda/bin/pip install nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \\
        nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85

Then set CUDA_HOME (to cuda/lib/python3.*/site-packages/nvidia/cu13), or put nvcc in PATH. Without
the feature `cuda`, cuzk builds without any of it and proves on the CPU.";

/// Compiles every source that changed, writes the list of images, and links the CUB library.
/// `hollow` images, for what is never run, are empty, need no nvcc and link nothing.
pub fn build(kernels: &Path, sources: &[Source], hollow: bool) -> Result<(), String> {
    for name in ["CUDA_HOME", "CUZK_CUDA_ARCHS", "CUZK_CUDA_LINEINFO", "PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let archs = env::var("CUZK_CUDA_ARCHS").unwrap_or_else(|_| DEFAULT_ARCHS.to_owned());
    println!("cargo:rustc-env=CUZK_CUDA_ARCHS={archs}");
    let targets = targets(&archs)?;
    if hollow {
        for source in sources {
            write_if_changed(&out.join(image_name(source)), &[])?;
        }
    } else {
        compile(&out, kernels, sources, &targets)?;
    }
    write_list(&out, sources)
}

fn image_name(source: &Source) -> String {
    format!("{}-{}.fatbin", source.topic, source.name)
}

fn compile(
    out: &Path,
    kernels: &Path,
    sources: &[Source],
    targets: &[String],
) -> Result<(), String> {
    let nvcc = Nvcc::find()?;
    let mut jobs: Vec<Job> = sources
        .iter()
        .map(|source| Job {
            source: source.path.clone(),
            output: out.join(image_name(source)),
            mode: "-fatbin",
        })
        .collect();
    let library = kernels.join("cub/sort.cu");
    let object = out.join("cub.o");
    if library.exists() {
        jobs.push(Job {
            source: library,
            output: object.clone(),
            mode: "-c",
        });
    }
    nvcc.compile(kernels, targets, &jobs)?;
    if object.exists() {
        nvcc.link(out, &object)?;
    }
    Ok(())
}

/// The list of images, as the crate includes it.
fn write_list(out: &Path, sources: &[Source]) -> Result<(), String> {
    let mut list = String::from("&[\n");
    for source in sources {
        let file = image_name(source);
        writeln!(
            list,
            "    Image {{ topic: {:?}, source: {:?}, bytes: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{file}\")) }},",
            source.topic, source.name
        )
        .map_err(|e| e.to_string())?;
    }
    list.push(']');
    write_if_changed(&out.join("images.rs"), list.as_bytes())
}

/// A source, what it becomes, and nvcc's option that says so.
struct Job {
    source: PathBuf,
    output: PathBuf,
    mode: &'static str,
}

/// nvcc's options for a comma-separated list such as `75+ptx,90`.
fn targets(archs: &str) -> Result<Vec<String>, String> {
    let mut options = Vec::new();
    for arch in archs.split(',').map(str::trim) {
        let (number, ptx) = match arch.strip_suffix("+ptx") {
            Some(number) => (number, true),
            None => (arch, false),
        };
        if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
            return Err(format!(
                "CUZK_CUDA_ARCHS={archs:?} is not a list of compute capabilities such as {DEFAULT_ARCHS} (N+ptx adds PTX)"
            ));
        }
        let mut add = |code: &str| {
            options.push("-gencode".to_owned());
            options.push(format!("arch=compute_{number},code={code}_{number}"));
        };
        add("sm");
        if ptx {
            add("compute");
        }
    }
    Ok(options)
}

struct Nvcc {
    program: PathBuf,
    version: String,
}

impl Nvcc {
    fn find() -> Result<Self, String> {
        let home = env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("bin/nvcc"));
        let program = home.unwrap_or_else(|| PathBuf::from("nvcc"));
        let output = Command::new(&program)
            .arg("--version")
            .output()
            .map_err(|e| format!("cannot run {}: {e}\n\n{INSTALL}", program.display()))?;
        let version = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() || !version.contains("release 13.") {
            return Err(format!(
                "{} is not nvcc 13; it says:\n{version}\n{INSTALL}",
                program.display()
            ));
        }
        Ok(Nvcc { program, version })
    }

    /// Runs the jobs whose inputs changed, as many at a time as cargo allows.
    fn compile(&self, kernels: &Path, targets: &[String], jobs: &[Job]) -> Result<(), String> {
        let workers = env::var("NUM_JOBS")
            .ok()
            .and_then(|n| n.parse().ok())
            .unwrap_or(1);
        let next = AtomicUsize::new(0);
        let failures = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..jobs.len().min(workers) {
                scope.spawn(|| {
                    while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(error) = self.run(kernels, targets, job)
                            && let Ok(mut failures) = failures.lock()
                        {
                            failures.push(error);
                        }
                    }
                });
            }
        });
        let failures = failures.into_inner().map_err(|e| e.to_string())?;
        if failures.is_empty() {
            Ok(())
        } else {
            Err(failures.join("\n"))
        }
    }

    fn run(&self, kernels: &Path, targets: &[String], job: &Job) -> Result<(), String> {
        let mut command = Command::new(&self.program);
        command
            .args([
                job.mode,
                "-std=c++17",
                "-O3",
                "-Werror",
                "all-warnings",
                "-I",
            ])
            .arg(kernels)
            .args(targets);
        if env::var_os("CUZK_CUDA_LINEINFO").is_some() {
            command.arg("-lineinfo");
        }
        command.arg("-o").arg(&job.output).arg(&job.source);
        let stamp_path = job.output.with_extension("stamp");
        let stamp = self.stamp(kernels, &command, &job.source)?;
        if job.output.exists() && fs::read_to_string(&stamp_path).is_ok_and(|old| old == stamp) {
            return Ok(());
        }
        let output = command
            .output()
            .map_err(|e| format!("cannot run nvcc: {e}"))?;
        if !output.status.success() {
            return Err(format!(
                "nvcc failed on {}:\n{}{}",
                job.source.display(),
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        write_if_changed(&stamp_path, stamp.as_bytes())
    }

    /// Changes when the command line, the compiler, the source or a header of ours does.
    fn stamp(&self, kernels: &Path, command: &Command, source: &Path) -> Result<String, String> {
        let mut hasher = DefaultHasher::new();
        format!("{command:?}{}", self.version).hash(&mut hasher);
        let mut seen = BTreeSet::new();
        let mut open = vec![source.to_owned()];
        while let Some(path) = open.pop() {
            if !seen.insert(path.clone()) {
                continue;
            }
            let text = fs::read_to_string(&path)
                .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
            text.hash(&mut hasher);
            for name in text.lines().filter_map(included) {
                let beside = path.with_file_name(name);
                let below = kernels.join(name);
                open.extend([beside, below].into_iter().find(|path| path.exists()));
            }
        }
        Ok(format!("{:016x}", hasher.finish()))
    }

    /// Makes a static library of `object` and has it linked with the CUDA run-time library, which
    /// opens the driver when it is first used.
    fn link(&self, out: &Path, object: &Path) -> Result<(), String> {
        let library = out.join("libcuzk_cub.a");
        let _ = fs::remove_file(&library);
        let status = Command::new("ar")
            .arg("crs")
            .arg(&library)
            .arg(object)
            .status();
        if !status.is_ok_and(|status| status.success()) {
            return Err("ar failed to make libcuzk_cub.a; is binutils installed?".to_owned());
        }
        let root = self.root()?;
        let folder = ["lib64", "lib", "targets/x86_64-linux/lib"]
            .map(|name| root.join(name))
            .into_iter()
            .find(|folder| folder.join("libcudart_static.a").exists())
            .ok_or_else(|| {
                format!(
                    "no libcudart_static.a under {}\n\n{INSTALL}",
                    root.display()
                )
            })?;
        println!("cargo:rustc-link-search=native={}", out.display());
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static=cuzk_cub");
        println!("cargo:rustc-link-lib=static=cudart_static");
        for name in ["stdc++", "dl", "rt", "pthread"] {
            println!("cargo:rustc-link-lib=dylib={name}");
        }
        Ok(())
    }

    /// The toolkit's folder.
    fn root(&self) -> Result<PathBuf, String> {
        if let Some(home) = env::var_os("CUDA_HOME") {
            return Ok(PathBuf::from(home));
        }
        env::split_paths(&env::var_os("PATH").unwrap_or_default())
            .map(|folder| folder.join("nvcc"))
            .find_map(|path| path.canonicalize().ok())
            .and_then(|path| Some(path.parent()?.parent()?.to_owned()))
            .ok_or_else(|| format!("nvcc is not in PATH\n\n{INSTALL}"))
    }
}

/// The file that a line `#include "file"` names.
fn included(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("#include")?.trim_start();
    rest.strip_prefix('"')?.split('"').next()
}

fn write_if_changed(path: &Path, contents: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|old| old == contents) {
        return Ok(());
    }
    fs::write(path, contents).map_err(|e| format!("cannot write {}: {e}", path.display()))
}
