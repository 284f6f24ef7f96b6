//! `cuzk bench …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{DeviceArgs, Form, KeyArgs, RequestArgs};
use crate::size::Size;

/// `cuzk bench …`.
#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Make up a request that passes every check, without a sealed sector, and
    /// write it as the JSON of a SubmitProofRequest
    MakeInstance {
        /// Circuit, such as porep-32g
        name: String,
        /// Everything random follows from it
        #[arg(long, default_value_t = 1, value_name = "N")]
        seed: u64,
        /// Write the request here, replacing the file; `-` for stdout
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Time decoding and the witness of the first partition of a made-up request
    Witness {
        /// Circuit, such as porep-32g
        name: String,
        /// Everything random follows from it
        #[arg(long, default_value_t = 1, value_name = "N")]
        seed: u64,
    },
    /// Time proofs of the first partition of a made-up request: from the packed
    /// witness to the verified proof
    Prove(BenchProveArgs),
    /// Compute every stage of a request's proofs on the CPU and on a GPU, and
    /// compare them
    Compare(BenchCompareArgs),
    /// Prove made-up requests from their bytes to verified proofs, several units
    /// at a time, and say what each stage, the GPU and the CPU did
    E2e(BenchE2eArgs),
    /// Prove one witness with the published and the prepared form of a key made on the spot, with
    /// equal blinding, and compare the proofs' bytes
    Identity(BenchIdentityArgs),
    /// Time the GPU's kernels by themselves, beside the most that its multipliers and its memory can do
    Kernels(BenchKernelsArgs),
    /// The measuring process of `witness`
    #[command(hide = true)]
    MeasureWitness {
        /// Request file
        file: PathBuf,
    },
}

/// Arguments of `cuzk bench prove`.
#[derive(Debug, Args)]
pub struct BenchProveArgs {
    /// Circuit, such as winning-32g
    pub name: String,
    /// Everything random about the request follows from it
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Proofs after the first one
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub repeat: usize,
    /// Proofs after the first one that are made at a time, by as many threads
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub at_a_time: u32,
    /// What proves.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The keys.
    #[command(flatten)]
    pub keys: KeyArgs,
}

/// Arguments of `cuzk bench e2e`.
#[derive(Debug, Args)]
pub struct BenchE2eArgs {
    /// Circuit, such as porep-32g
    pub name: String,
    /// Everything random about the requests follows from it
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Requests (of a PoRep: sectors)
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub count: u32,
    /// Only the first N partitions of each request
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub partitions: Option<u32>,
    /// A second circuit, whose requests alternate with those of the first
    #[arg(long, value_name = "NAME")]
    pub alternate: Option<String>,
    /// Requests that are proven one after the other, each alone, after the others
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub alone: u32,
    /// Make the keys now, from --seed, and keep them in memory: test keys that end with the process
    #[arg(long)]
    pub ephemeral: bool,
    /// What the vectors of such a key hold
    #[arg(long, value_enum, default_value_t = Form::Published, requires = "ephemeral")]
    pub form: Form,
    /// Write all spans here, for ui.perfetto.dev or chrome://tracing
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Write the JSON document here too, whatever goes to stdout
    #[arg(long = "json-out", value_name = "FILE")]
    pub json_out: Option<PathBuf>,
    /// What proves.
    #[command(flatten)]
    pub device: DeviceArgs,
    /// The keys.
    #[command(flatten)]
    pub keys: KeyArgs,
}

/// Arguments of `cuzk bench identity`.
#[derive(Debug, Args)]
pub struct BenchIdentityArgs {
    /// Circuit, such as porep-2k
    pub name: String,
    /// Request, keys and blinding follow from it: the same proof on every machine
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
    /// Write the JSON document here too, whatever goes to stdout
    #[arg(long = "json-out", value_name = "FILE")]
    pub json_out: Option<PathBuf>,
    /// What proves.
    #[command(flatten)]
    pub device: DeviceArgs,
}

/// Arguments of `cuzk bench compare`.
#[derive(Debug, Args)]
pub struct BenchCompareArgs {
    /// The request.
    #[command(flatten)]
    pub request: RequestArgs,
    /// The keys.
    #[command(flatten)]
    pub keys: KeyArgs,
    /// Compare the first N partitions (default: all)
    #[arg(long, value_name = "N")]
    pub partitions: Option<usize>,
    /// Which GPU, as the driver counts them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub gpu: usize,
    /// The most GPU memory to use, such as 16GiB (default: what is free)
    #[arg(long, value_name = "SIZE")]
    pub vram: Option<Size>,
}

/// Arguments of `cuzk bench kernels`.
#[derive(Debug, Args)]
pub struct BenchKernelsArgs {
    /// Sizes, as powers of two
    #[arg(long, value_name = "LOG2", value_delimiter = ',', default_value = "20,22,24,26,27",
          value_parser = clap::value_parser!(u32).range(0..=28))]
    pub sizes: Vec<u32>,
    /// Circuits whose A w and B w are evaluated
    #[arg(
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "winning-32g,porep-32g"
    )]
    pub circuits: Vec<String>,
    /// Runs that count, after two that do not
    #[arg(long, default_value_t = 15, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub runs: u16,
    /// Which GPU, as the driver counts them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub gpu: usize,
}
