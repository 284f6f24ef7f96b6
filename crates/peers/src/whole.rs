//! Whole proofs of the fixtures, made here and judged by the reference implementation.

use std::{collections::BTreeMap, path::Path, time::Instant};

use anyhow::{Context, Result, ensure};
use ff::Field;
use filecoin::{CircuitId, Request};
use groth16::Blinding;
use r1cs::Fr;
use serde::Serialize;

use crate::{
    fixtures::{Fixture, Meta},
    keys::TestKeys,
    ours::Prover,
    reference,
};

/// What happened to one fixture.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// Folder names.
    pub fixture: String,
    /// The circuit.
    pub circuit: &'static str,
    /// How many proofs it took.
    pub partitions: usize,
    /// Seconds from decoded requests to all proof bytes, synthesis and our own check included.
    pub prove_s: f64,
    /// The reference function that took the proof.
    pub verified_by: &'static str,
}

/// Provers by circuit, so that a key is mapped once.
pub struct Provers {
    keys: TestKeys,
    open: BTreeMap<CircuitId, Prover>,
}

impl Provers {
    /// None open yet; keys come from `keys`.
    #[must_use]
    pub fn new(keys: TestKeys) -> Self {
        Self {
            keys,
            open: BTreeMap::new(),
        }
    }

    /// The prover of `id`; its key is made if need be.
    ///
    /// # Errors
    /// The key cannot be made or read.
    pub fn get(&mut self, id: CircuitId) -> Result<&Prover> {
        if !self.open.contains_key(&id) {
            let prover = Prover::open(id, &self.keys.ensure(id)?)?;
            self.open.insert(id, prover);
        }
        self.open.get(&id).context("inserted above")
    }
}

/// Proves all partitions of a fixture and has the reference verify them.
///
/// A non-interactive PoRep's proofs are verified one by one against the public inputs that its
/// meta file lists; all others go whole through `filecoin-proofs-api`, which must have been
/// pointed at the keys' folder.
///
/// # Errors
/// The proof cannot be made, or the reference does not take it, or takes a damaged copy of it.
pub fn prove_and_verify(fixture: &Fixture, provers: &mut Provers) -> Result<Outcome> {
    let requests = fixture.requests()?;
    let id = requests
        .first()
        .context("a fixture without requests")?
        .circuit_id();
    let key = provers.keys.ensure(id)?.with_extension("vk");
    let prover = provers.get(id)?;
    let start = Instant::now();
    let proofs = prover.prove_all(&requests)?;
    let prove_s = start.elapsed().as_secs_f64();
    let verified_by = judge(fixture, &requests[0], &key, &proofs)?;
    Ok(Outcome {
        fixture: fixture.name.clone(),
        circuit: id.name(),
        partitions: proofs.len(),
        prove_s,
        verified_by,
    })
}

/// Has the reference verify proofs of a fixture that were made elsewhere: `path` is a file of 192 bytes a
/// proof, or the folder that `cuzk prove --partitions-only` writes. Returns the number of proofs and
/// the function that took them.
///
/// # Errors
/// The proofs cannot be read, or the reference does not take them, or takes a damaged copy.
pub fn verify_file(
    fixture: &Fixture,
    path: &Path,
    keys: &TestKeys,
) -> Result<(usize, &'static str)> {
    let requests = fixture.requests()?;
    let request = requests.first().context("a fixture without requests")?;
    let key = keys.ensure(request.circuit_id())?.with_extension("vk");
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        files = std::fs::read_dir(path)?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<_>>()?;
        files.sort();
    }
    let mut proofs = Vec::new();
    for file in &files {
        let bytes = std::fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        let (whole, rest) = bytes.as_chunks::<192>();
        ensure!(rest.is_empty(), "{} has odd bytes", file.display());
        proofs.extend_from_slice(whole);
    }
    Ok((proofs.len(), judge(fixture, request, &key, &proofs)?))
}

/// Has the reference verify the proofs of a fixture in the way of their kind.
fn judge(
    fixture: &Fixture,
    request: &Request,
    key: &Path,
    proofs: &[[u8; 192]],
) -> Result<&'static str> {
    match &fixture.meta {
        Meta::Porep(meta) if request.is_non_interactive() => {
            verify_each(key, proofs, &meta.public_inputs)
        }
        meta => verify_concatenation(meta, proofs),
    }
}

fn verify_concatenation(meta: &Meta, proofs: &[[u8; 192]]) -> Result<&'static str> {
    let mut bytes = proofs.concat();
    ensure!(
        reference::verify_whole(meta, &bytes)?,
        "the reference refuses the proof"
    );
    // The same proof with A negated: still three points of the right groups, but no proof. A
    // verifier that takes this takes anything.
    bytes[0] ^= SIGN_FLAG;
    ensure!(
        !reference::verify_whole(meta, &bytes)?,
        "the reference takes a damaged proof"
    );
    Ok(match meta {
        Meta::Porep(_) => "seal::verify_seal",
        Meta::WinningPost(_) => "post::verify_winning_post",
        Meta::WindowPost(_) => "post::verify_window_post",
        Meta::EmptySectorUpdate(_) => "update::verify_empty_sector_update_proof",
    })
}

/// The flag of a compressed point that tells y from −y.
const SIGN_FLAG: u8 = 0x20;

fn verify_each(
    key: &Path,
    proofs: &[[u8; 192]],
    inputs: &[Vec<crate::fixtures::Bytes32>],
) -> Result<&'static str> {
    ensure!(
        proofs.len() == inputs.len(),
        "{} proofs for {} lists of public inputs",
        proofs.len(),
        inputs.len()
    );
    let key = reference::verifying_key(key)?;
    let inputs: Vec<Vec<Fr>> = inputs
        .iter()
        .map(|list| reference::scalars(list))
        .collect::<Result<_>>()?;
    for (partition, proof) in proofs.iter().enumerate() {
        let accepted = reference::verify_one(&key, &inputs[partition], proof)?;
        ensure!(accepted, "the reference refuses partition {partition}");
        let other = &inputs[(partition + 1) % inputs.len()];
        ensure!(
            !reference::verify_one(&key, other, proof)?,
            "the reference takes partition {partition} for its neighbour"
        );
    }
    Ok("groth16::verify_proof, one by one")
}

/// Proves the first partition of a fixture twice with the same blinding scalars, once here and
/// once with the reference prover reading the same parameter file, and compares the bytes.
///
/// # Errors
/// Either prover fails, or the bytes differ.
pub fn compare_bytes(fixture: &Fixture, provers: &mut Provers) -> Result<()> {
    let requests = fixture.requests()?;
    let request = requests.first().context("a fixture without requests")?;
    let id = request.circuit_id();
    let params = provers.keys.ensure(id)?;
    let prover = provers.get(id)?;
    let (r, s) = (Fr::random(rand_core::OsRng), Fr::random(rand_core::OsRng));
    let ours = prover.prove(request, 0, Blinding::fixed(r, s))?.bytes;
    let theirs = reference::prove(request, 0, &reference::map_parameters(&params)?, (r, s))?;
    ensure!(
        ours == theirs,
        "{}: for r = {r} and s = {s} our proof is\n{}\nand the reference's\n{}",
        fixture.name,
        hex::encode(ours),
        hex::encode(theirs)
    );
    Ok(())
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            circuit,
            partitions,
            prove_s,
            verified_by,
            ..
        } = self;
        let plural = if *partitions == 1 { "proof" } else { "proofs" };
        write!(
            f,
            "{circuit:<12} {partitions:>2} {plural} in {prove_s:.1} s, {verified_by}"
        )
    }
}
