//! The blank circuits of every kind and size, made as `filecoin-proofs` makes them for its
//! own parameter generation.

use anyhow::{Context, Result};
use bellpepper_core::{Circuit, ConstraintSystem};
use filecoin::{CircuitId, ProofKind};
use filecoin_proofs::constants::{
    DefaultPieceHasher, WINDOW_POST_CHALLENGE_COUNT, WINDOW_POST_SECTOR_COUNT,
    WINNING_POST_CHALLENGE_COUNT, WINNING_POST_SECTOR_COUNT,
};
use filecoin_proofs::parameters::{
    public_params, window_post_public_params, winning_post_public_params,
};
use filecoin_proofs::types::{MerkleTreeTrait, PoRepConfig, PoStConfig, PoStType, TreeRHasher};
use filecoin_proofs::with_shape;
use r1cs::Fr;
use storage_proofs_core::api_version::ApiVersion;
use storage_proofs_core::compound_proof::CompoundProof;
use storage_proofs_porep::stacked::StackedCompound;
use storage_proofs_post::fallback::FallbackPoStCompound;
use storage_proofs_update::{EmptySectorUpdateCompound, PublicParams};

use crate::recording::{Recording, Sink};

/// All versions have the same circuits; they differ in how challenges and the graph are
/// derived, which is outside the circuit.
const API_VERSION: ApiVersion = ApiVersion::V1_2_0;

/// Runs the blank circuit into `sink` and gives the sink back.
///
/// # Errors
/// Whatever the reference crates' set-up or synthesis report.
pub fn synthesize<S: Sink>(id: CircuitId, sink: S) -> Result<S> {
    let mut cs = Recording::into(sink);
    synthesize_into(id, &mut cs)?;
    Ok(cs.finish())
}

/// Runs the blank circuit into any constraint system. The system must have allocated
/// input 0.
///
/// # Errors
/// Whatever the reference crates' set-up or synthesis report.
pub fn synthesize_into<CS: ConstraintSystem<Fr>>(id: CircuitId, cs: &mut CS) -> Result<()> {
    let bytes = id.size.bytes();
    match id.kind {
        ProofKind::Porep => with_shape!(bytes, porep, cs, bytes),
        ProofKind::Snap => with_shape!(bytes, snap, cs, bytes),
        ProofKind::Window => with_shape!(bytes, window, cs, bytes),
        ProofKind::Winning => with_shape!(bytes, winning, cs, bytes),
    }
    .with_context(|| format!("synthesis of {id}"))
}

fn porep<Tree: 'static + MerkleTreeTrait>(
    cs: &mut impl ConstraintSystem<Fr>,
    bytes: u64,
) -> Result<()> {
    // The PoRep id seeds the graph, and the graph is not in the circuit.
    let config = PoRepConfig::new_groth16(bytes, [0; 32], API_VERSION);
    let params = public_params::<Tree>(&config)?;
    let circuit = StackedCompound::<Tree, DefaultPieceHasher>::blank_circuit(&params);
    Ok(circuit.synthesize(cs)?)
}

fn snap<Tree: 'static + MerkleTreeTrait<Hasher = TreeRHasher>>(
    cs: &mut impl ConstraintSystem<Fr>,
    bytes: u64,
) -> Result<()> {
    let params = PublicParams::from_sector_size(bytes);
    let circuit = EmptySectorUpdateCompound::<Tree>::blank_circuit(&params);
    Ok(circuit.synthesize(cs)?)
}

fn window<Tree: 'static + MerkleTreeTrait>(
    cs: &mut impl ConstraintSystem<Fr>,
    bytes: u64,
) -> Result<()> {
    let sectors = WINDOW_POST_SECTOR_COUNT
        .read()
        .ok()
        .and_then(|counts| counts.get(&bytes).copied())
        .context("no window sector count for this size")?;
    let config = post_config(
        PoStType::Window,
        bytes,
        WINDOW_POST_CHALLENGE_COUNT,
        sectors,
    );
    let params = window_post_public_params::<Tree>(&config)?;
    let circuit = FallbackPoStCompound::<Tree>::blank_circuit(&params);
    Ok(circuit.synthesize(cs)?)
}

fn winning<Tree: 'static + MerkleTreeTrait>(
    cs: &mut impl ConstraintSystem<Fr>,
    bytes: u64,
) -> Result<()> {
    let (challenges, sectors) = (WINNING_POST_CHALLENGE_COUNT, WINNING_POST_SECTOR_COUNT);
    let config = post_config(PoStType::Winning, bytes, challenges, sectors);
    let params = winning_post_public_params::<Tree>(&config)?;
    let circuit = FallbackPoStCompound::<Tree>::blank_circuit(&params);
    Ok(circuit.synthesize(cs)?)
}

fn post_config(
    typ: PoStType,
    bytes: u64,
    challenge_count: usize,
    sector_count: usize,
) -> PoStConfig {
    PoStConfig {
        sector_size: bytes.into(),
        challenge_count,
        sector_count,
        typ,
        priority: false,
        api_version: API_VERSION,
    }
}
