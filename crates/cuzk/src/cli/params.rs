//! `cuzk params …`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use groth16::key::KeyForm;

use super::{Device, KeyArgs};

/// `cuzk params …`.
#[derive(Debug, Subcommand)]
pub enum ParamsCommand {
    /// What parameter files there are, and where they are looked for
    List {
        /// Folder to look in, the only one (default: see docs/cli.md)
        #[arg(long, value_name = "DIR")]
        params: Option<PathBuf>,
    },
    /// Read parameter files through, and check digest, layout and points
    Check {
        /// Circuit names (default: every one of which a file is found)
        names: Vec<String>,
        /// Folder of the files, the only one searched
        #[arg(long, value_name = "DIR")]
        params: Option<PathBuf>,
    },
    /// Make keys for tests: anyone could forge a proof for them
    Generate(GenerateArgs),
    /// Make the prepared key of a parameter file: proofs are faster with it
    Prepare(PrepareArgs),
}

/// Arguments of `cuzk params prepare`.
#[derive(Debug, Args)]
pub struct PrepareArgs {
    /// Circuit name, such as porep-32g
    pub name: String,
    /// The parameter files.
    #[command(flatten)]
    pub keys: KeyArgs,
    /// Folder to write to (default: prepared in the cache folder)
    #[arg(long, value_name = "DIR", conflicts_with = "verify_only")]
    pub out: Option<PathBuf>,
    /// Make and check the key in memory, and write nothing
    #[arg(long)]
    pub verify_only: bool,
    /// What transforms the points.
    #[command(flatten)]
    pub maker: MakerArgs,
}

/// Arguments of `cuzk params generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Circuit name, such as porep-2k
    pub name: String,
    /// Say that these are test keys (there are no others to be made here)
    #[arg(long, required = true)]
    pub test: bool,
    /// Seed: the same one gives the same files
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// What the proving key holds
    #[arg(long, value_enum, default_value_t = Form::Published)]
    pub form: Form,
    /// What makes the points.
    #[command(flatten)]
    pub maker: MakerArgs,
    /// Folder to write to (default: test-keys in the cache folder)
    #[arg(long, value_name = "DIR")]
    pub params: Option<PathBuf>,
}

/// What makes a key's points.
#[derive(Debug, Args)]
pub struct MakerArgs {
    /// What makes the points; the key is the same
    #[arg(long, value_enum, default_value_t = Device::Auto)]
    pub device: Device,
    /// Which GPU, as the driver counts them
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub gpu: usize,
}

/// Forms of a proving key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// As the network publishes keys: a .params file
    Published,
    /// As cuzk proves fastest: a prepared key
    Prepared,
}

impl From<Form> for KeyForm {
    fn from(form: Form) -> Self {
        match form {
            Form::Published => KeyForm::Published,
            Form::Prepared => KeyForm::Prepared,
        }
    }
}
