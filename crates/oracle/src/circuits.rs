//! The reference circuits of a request.
//!
//! A reference circuit is a type of its own for every kind and tree shape, so callers hand in a
//! [`Visitor`] that works for all of them.

use bellpepper_core::Circuit;
use filecoin::registry::{DRG_PARENTS, EXP_PARENTS, PostShape};
use filecoin::{CircuitId, PorepRequest, PostRequest, ProofKind, Request, SectorSize, SnapRequest};
use filecoin_hashers::{
    Domain, poseidon::PoseidonDomain, poseidon::PoseidonHasher, sha256::Sha256Domain,
};
use filecoin_proofs::constants::{
    DefaultPieceHasher, SectorShapeBase, SectorShapeSub8, SectorShapeTop2,
};
use r1cs::Fr;
use serde::{Serialize, de::DeserializeOwned};
use storage_proofs_core::{
    api_version::ApiVersion, compound_proof::CompoundProof, merkle::MerkleTreeTrait,
    proof::ProofScheme,
};
use storage_proofs_porep::stacked::{self, Challenges, StackedCompound, StackedDrg};
use storage_proofs_post::fallback::{self, FallbackPoStCompound, SectorProof};
use storage_proofs_update::{self as update, EmptySectorUpdateCompound, constants::h_default};

use crate::Error;

/// Work on a reference circuit, whatever its kind and tree shape.
pub trait Visitor {
    /// What the work yields.
    type Output;

    /// Takes the circuit.
    fn visit<C: Circuit<Fr> + Send>(self, circuit: C) -> Self::Output;
}

/// Calls `$function::<Tree, _>` with the replica tree's shape at a sector size.
macro_rules! with_tree {
    ($size:expr, $function:ident($($argument:expr),*)) => {
        match $size {
            SectorSize::KiB2 | SectorSize::MiB8 | SectorSize::MiB512 => {
                $function::<SectorShapeBase, _>($($argument),*)
            }
            SectorSize::GiB32 => $function::<SectorShapeSub8, _>($($argument),*),
            SectorSize::GiB64 => $function::<SectorShapeTop2, _>($($argument),*),
        }
    };
}

/// Builds the circuit of one partition of `request` with its values and hands it to `visitor`.
///
/// The circuit is built as the reference prover builds it, from the request's public values and its
/// vanilla proof; a short window partition is padded by repeating its last sector.
///
/// # Errors
/// [`Error::NoSuchPartition`], [`Error::NotCanonical`], and [`Error::Conversion`] or
/// [`Error::Reference`] where the reference types refuse the vanilla proof.
pub fn with_circuit<V: Visitor>(
    request: &Request,
    partition: usize,
    visitor: V,
) -> Result<V::Output, Error> {
    let partitions = request.partitions();
    if partition >= partitions {
        return Err(Error::NoSuchPartition {
            partition,
            partitions,
        });
    }
    let size = request.circuit_id().size;
    match request {
        Request::Porep(porep) => with_tree!(size, with_porep(porep, size, partition, visitor)),
        Request::Snap(snap) => with_tree!(size, with_snap(snap, size, partition, visitor)),
        Request::Window(post) => with_tree!(size, with_window(post, size, visitor)),
        Request::Winning(post) => with_tree!(size, with_winning(post, size, visitor)),
    }
}

/// Hands the circuit `id` to `visitor` without values, as for recording or for set-up.
///
/// # Errors
/// [`Error::Reference`] where the reference crates refuse their own parameters.
pub fn with_blank_circuit<V: Visitor>(id: CircuitId, visitor: V) -> Result<V::Output, Error> {
    with_tree!(id.size, blank(id, visitor))
}

fn blank<Tree, V>(id: CircuitId, visitor: V) -> Result<V::Output, Error>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
    V: Visitor,
{
    Ok(match id.kind {
        ProofKind::Porep => {
            visitor.visit(StackedCompound::<Tree, DefaultPieceHasher>::blank_circuit(
                &porep_params::<Tree>(id.size)?,
            ))
        }
        ProofKind::Snap => visitor.visit(EmptySectorUpdateCompound::<Tree>::blank_circuit(
            &snap_params(id.size),
        )),
        ProofKind::Window => visitor.visit(FallbackPoStCompound::<Tree>::blank_circuit(
            &window_params(id.size),
        )),
        ProofKind::Winning => visitor.visit(FallbackPoStCompound::<Tree>::blank_circuit(
            &winning_params(id.size),
        )),
    })
}

fn with_porep<Tree, V>(
    request: &PorepRequest,
    size: SectorSize,
    partition: usize,
    visitor: V,
) -> Result<V::Output, Error>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
    V: Visitor,
{
    let public = stacked::PublicInputs {
        replica_id: poseidon_domain("replica_id", request.replica_id)?,
        tau: Some(stacked::Tau {
            comm_d: sha256_domain("comm_d", request.comm_d)?,
            comm_r: poseidon_domain("comm_r", request.comm_r)?,
        }),
        k: Some(partition),
        seed: Some(request.seed),
    };
    let vanilla: Vec<stacked::Proof<Tree, DefaultPieceHasher>> =
        transcode("the vanilla proof", &request.partitions[partition])?;
    let circuit = StackedCompound::<Tree, DefaultPieceHasher>::circuit(
        &public,
        (),
        &vanilla,
        &porep_params::<Tree>(size)?,
        Some(partition),
    )
    .map_err(Error::reference)?;
    drop(vanilla);
    Ok(visitor.visit(circuit))
}

fn with_snap<Tree, V>(
    request: &SnapRequest,
    size: SectorSize,
    partition: usize,
    visitor: V,
) -> Result<V::Output, Error>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
    V: Visitor,
{
    let params = snap_params(size);
    let public = update::PublicInputs {
        k: partition,
        comm_r_old: poseidon_domain("comm_r_old", request.comm_r_old)?,
        comm_d_new: sha256_domain("comm_d_new", request.comm_d_new)?,
        comm_r_new: poseidon_domain("comm_r_new", request.comm_r_new)?,
        h: h_default(params.sector_nodes),
    };
    let vanilla: update::PartitionProof<Tree> =
        transcode("the vanilla proof", &request.partitions[partition])?;
    let circuit =
        EmptySectorUpdateCompound::<Tree>::circuit(&public, (), &vanilla, &params, Some(partition))
            .map_err(Error::reference)?;
    drop(vanilla);
    Ok(visitor.visit(circuit))
}

fn with_window<Tree, V>(
    request: &PostRequest,
    size: SectorSize,
    visitor: V,
) -> Result<V::Output, Error>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
    V: Visitor,
{
    let params = window_params(size);
    let mut sectors = Vec::with_capacity(params.sector_count);
    for sector in &request.sectors {
        let proof: fallback::Proof<Tree::Proof> =
            transcode("the vanilla proof", &sector.vanilla_proof)?;
        sectors.extend(proof.sectors);
    }
    let last = sectors.last().cloned().ok_or(Error::NoSectors)?;
    sectors.resize(params.sector_count.max(sectors.len()), last);
    with_fallback::<Tree, V>(request, &params, sectors, visitor)
}

fn with_winning<Tree, V>(
    request: &PostRequest,
    size: SectorSize,
    visitor: V,
) -> Result<V::Output, Error>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
    V: Visitor,
{
    let sector = request.sectors.first().ok_or(Error::NoSectors)?;
    let proof: fallback::Proof<Tree::Proof> =
        transcode("the vanilla proof", &sector.vanilla_proof)?;
    // The circuit sees a sector with many challenges as many sectors with one challenge each.
    let mut sectors = Vec::new();
    for SectorProof {
        inclusion_proofs,
        comm_c,
        comm_r_last,
    } in proof.sectors
    {
        sectors.extend(inclusion_proofs.into_iter().map(|inclusion| SectorProof {
            inclusion_proofs: vec![inclusion],
            comm_c,
            comm_r_last,
        }));
    }
    with_fallback::<Tree, V>(request, &winning_params(size), sectors, visitor)
}

fn with_fallback<Tree, V>(
    request: &PostRequest,
    params: &fallback::PublicParams,
    sectors: Vec<SectorProof<Tree::Proof>>,
    visitor: V,
) -> Result<V::Output, Error>
where
    Tree: 'static + MerkleTreeTrait<Hasher = PoseidonHasher>,
    V: Visitor,
{
    let public = fallback::PublicInputs {
        randomness: poseidon_domain("randomness", request.randomness)?,
        // The circuit takes the prover's id but constrains nothing by it.
        prover_id: PoseidonDomain::default(),
        sectors: request
            .sectors
            .iter()
            .map(|sector| {
                Ok(fallback::PublicSector {
                    id: sector.sector_id.into(),
                    comm_r: poseidon_domain("comm_r", sector.comm_r)?,
                })
            })
            .collect::<Result<_, Error>>()?,
        // A request is one partition, whatever its index; the index enters only the challenges.
        k: None,
    };
    let circuit = FallbackPoStCompound::<Tree>::circuit(
        &public,
        Default::default(),
        &fallback::Proof { sectors },
        params,
        None,
    )
    .map_err(Error::reference)?;
    Ok(visitor.visit(circuit))
}

// The network's shapes, as the reference crates want to be told them. Nothing in them but the
// shape reaches a circuit, so API version and porep_id are arbitrary.

fn porep_params<Tree>(size: SectorSize) -> Result<stacked::PublicParams<Tree>, Error>
where
    Tree: 'static + MerkleTreeTrait,
{
    let shape = size.porep();
    StackedDrg::<Tree, DefaultPieceHasher>::setup(&stacked::SetupParams {
        nodes: nodes(size),
        degree: DRG_PARENTS,
        expansion_degree: EXP_PARENTS,
        porep_id: [0; 32],
        challenges: Challenges::new_interactive(shape.challenges),
        num_layers: shape.layers,
        api_version: ApiVersion::V1_1_0,
        api_features: Vec::new(),
    })
    .map_err(Error::reference)
}

fn snap_params(size: SectorSize) -> update::PublicParams {
    update::PublicParams::from_sector_size(size.bytes())
}

fn window_params(size: SectorSize) -> fallback::PublicParams {
    fallback_params(size, size.window())
}

fn winning_params(size: SectorSize) -> fallback::PublicParams {
    fallback_params(size, size.winning())
}

fn fallback_params(size: SectorSize, shape: PostShape) -> fallback::PublicParams {
    fallback::PublicParams {
        sector_size: size.bytes(),
        challenge_count: shape.challenges,
        sector_count: shape.sectors,
        api_version: ApiVersion::V1_2_0,
    }
}

fn nodes(size: SectorSize) -> usize {
    usize::try_from(size.nodes()).expect("a 64 GiB sector has 2^31 nodes")
}

fn poseidon_domain(
    name: &'static str,
    bytes: impl Into<[u8; 32]>,
) -> Result<PoseidonDomain, Error> {
    PoseidonDomain::try_from_bytes(&canonical(name, bytes)?).map_err(Error::reference)
}

fn sha256_domain(name: &'static str, bytes: impl Into<[u8; 32]>) -> Result<Sha256Domain, Error> {
    Sha256Domain::try_from_bytes(&canonical(name, bytes)?).map_err(Error::reference)
}

/// The reference types take any bytes and panic later, on use as a field element.
fn canonical(name: &'static str, bytes: impl Into<[u8; 32]>) -> Result<[u8; 32], Error> {
    let bytes = bytes.into();
    if bool::from(Fr::from_bytes_le(&bytes).is_none()) {
        return Err(Error::NotCanonical { name });
    }
    Ok(bytes)
}

/// Turns a value of ours into the reference type with the same encoding, by way of its bytes.
fn transcode<A: Serialize, B: DeserializeOwned>(what: &'static str, value: &A) -> Result<B, Error> {
    let bytes = bincode::serialize(value).map_err(|source| Error::Conversion { what, source })?;
    bincode::deserialize(&bytes).map_err(|source| Error::Conversion { what, source })
}
