//! The reference implementation's prover and verifiers, called as their own users call them.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, bail, ensure};
use bellpepper_core::Circuit;
use bellperson::groth16::{
    self, MappedParameters, Parameters, PreparedVerifyingKey, Proof, VerifyingKey,
};
use blstrs::Bls12;
use ff::PrimeField;
use filecoin::Request;
use filecoin_proofs_api::{
    PublicReplicaInfo, RegisteredPoStProof, RegisteredSealProof, RegisteredUpdateProof, SectorId,
    post, seal, update,
};
use oracle::Visitor;
use r1cs::Fr;

use crate::fixtures::{Bytes32, Meta, PorepMeta, PostMeta, UpdateMeta};

/// A parameter file as the reference prover uses it: mapped, with points decoded on demand.
///
/// # Errors
/// The file cannot be read or is not a parameter file.
pub fn map_parameters(path: &Path) -> Result<MappedParameters<Bls12>> {
    Parameters::build_mapped_parameters(path.to_owned(), false)
        .with_context(|| format!("mapping {}", path.display()))
}

/// The reference proof of one partition, synthesis included, and the check that ends a proof on
/// either side.
///
/// # Errors
/// Whatever the reference crates refuse.
pub fn prove(
    request: &Request,
    partition: usize,
    parameters: &MappedParameters<Bls12>,
    blinding: (Fr, Fr),
) -> Result<[u8; 192]> {
    let proof = oracle::with_circuit(
        request,
        partition,
        Prove {
            parameters,
            blinding,
        },
    )??;
    bytes(&proof)
}

struct Prove<'a> {
    parameters: &'a MappedParameters<Bls12>,
    blinding: (Fr, Fr),
}

impl Visitor for Prove<'_> {
    type Output = Result<Proof<Bls12>>;

    fn visit<C: Circuit<Fr> + Send>(self, circuit: C) -> Self::Output {
        let (r, s) = self.blinding;
        Ok(groth16::create_proof::<Bls12, C, _>(
            circuit,
            self.parameters,
            r,
            s,
        )?)
    }
}

/// Makes random parameters with the reference generator and writes them as the reference does.
///
/// # Errors
/// The generator refuses the circuit or the file cannot be written.
pub fn generate_parameters(id: filecoin::CircuitId, path: &Path) -> Result<()> {
    oracle::with_blank_circuit(id, Generate { path })?
}

struct Generate<'a> {
    path: &'a Path,
}

impl Visitor for Generate<'_> {
    type Output = Result<()>;

    fn visit<C: Circuit<Fr> + Send>(self, circuit: C) -> Self::Output {
        let parameters =
            groth16::generate_random_parameters::<Bls12, C, _>(circuit, &mut rand_core::OsRng)?;
        let mut file = std::io::BufWriter::new(fs::File::create(self.path)?);
        parameters.write(&mut file)?;
        std::io::Write::flush(&mut file)?;
        Ok(())
    }
}

/// Whether the reference verifier takes `proof` for one list of public inputs (without the one).
///
/// # Errors
/// The bytes are no proof, or the inputs are not as many as the key's.
pub fn verify_one(
    key: &PreparedVerifyingKey<Bls12>,
    inputs: &[Fr],
    proof: &[u8; 192],
) -> Result<bool> {
    let proof = Proof::<Bls12>::read(&proof[..])?;
    Ok(groth16::verify_proof(key, &proof, inputs)?)
}

/// The reference's own reading of a `.vk` file, prepared.
///
/// # Errors
/// The file cannot be read, or a point in it is not one.
pub fn verifying_key(path: &Path) -> Result<PreparedVerifyingKey<Bls12>> {
    let file = fs::File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let key = VerifyingKey::<Bls12>::read(std::io::BufReader::new(file))?;
    Ok(groth16::prepare_verifying_key(&key))
}

/// Field elements from their canonical little-endian bytes.
///
/// # Errors
/// One is not below the modulus.
pub fn scalars(list: &[Bytes32]) -> Result<Vec<Fr>> {
    list.iter()
        .map(|bytes| Option::from(Fr::from_repr(bytes.0)).context("not a canonical field element"))
        .collect()
}

/// Whether `filecoin-proofs-api`'s own verify function takes the whole proof of a fixture.
///
/// It reads the verifying key from the folder that `FIL_PROOFS_PARAMETER_CACHE` named when it was
/// first asked. A non-interactive PoRep has no such function for unaggregated proofs.
///
/// # Errors
/// Missing keys, or values that the reference refuses.
pub fn verify_whole(meta: &Meta, proof: &[u8]) -> Result<bool> {
    match meta {
        Meta::Porep(meta) => verify_seal(meta, proof),
        Meta::WinningPost(meta) => verify_winning(meta, proof),
        Meta::WindowPost(meta) => verify_window(meta, proof),
        Meta::EmptySectorUpdate(meta) => verify_update(meta, proof),
    }
}

fn verify_seal(meta: &PorepMeta, proof: &[u8]) -> Result<bool> {
    let registered: RegisteredSealProof = by_name(&meta.registered_proof)?;
    ensure!(
        !meta.registered_proof.contains("NonInteractive"),
        "only the aggregate of a non-interactive PoRep has a verify function"
    );
    seal::verify_seal(
        registered,
        meta.comm_r.0,
        meta.comm_d.0,
        meta.prover_id.0,
        SectorId::from(meta.sector_id),
        meta.ticket.0,
        meta.seed.0,
        proof,
    )
}

fn verify_winning(meta: &PostMeta, proof: &[u8]) -> Result<bool> {
    let registered = by_name(&meta.registered_proof)?;
    post::verify_winning_post(
        &meta.randomness.0,
        proof,
        &replicas(registered, meta),
        meta.prover_id.0,
    )
}

fn verify_window(meta: &PostMeta, proof: &[u8]) -> Result<bool> {
    let registered = by_name(&meta.registered_proof)?;
    post::verify_window_post(
        &meta.randomness.0,
        &[(registered, proof)],
        &replicas(registered, meta),
        meta.prover_id.0,
    )
}

fn verify_update(meta: &UpdateMeta, proof: &[u8]) -> Result<bool> {
    let registered: RegisteredUpdateProof = by_name(&meta.registered_proof)?;
    update::verify_empty_sector_update_proof(
        registered,
        proof,
        meta.comm_r_old.0,
        meta.comm_r_new.0,
        meta.comm_d_new.0,
    )
}

fn replicas(
    registered: RegisteredPoStProof,
    meta: &PostMeta,
) -> BTreeMap<SectorId, PublicReplicaInfo> {
    meta.sectors
        .iter()
        .map(|sector| {
            let info = PublicReplicaInfo::new(registered, sector.comm_r.0);
            (SectorId::from(sector.sector_id), info)
        })
        .collect()
}

/// A reference enum's variant from its name.
fn by_name<T: serde::de::DeserializeOwned>(name: &str) -> Result<T> {
    serde_json::from_value(serde_json::Value::String(name.to_owned()))
        .with_context(|| format!("the reference knows no {name}"))
}

fn bytes(proof: &Proof<Bls12>) -> Result<[u8; 192]> {
    let mut out = Vec::with_capacity(192);
    proof.write(&mut out)?;
    match out.try_into() {
        Ok(bytes) => Ok(bytes),
        Err(out) => bail!("a reference proof of {} bytes", out.len()),
    }
}
