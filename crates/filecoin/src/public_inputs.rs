//! The public inputs of every Groth16 proof of a request, as a verifier derives them.
//!
//! Nothing here is read from a vanilla proof except the sector numbers and commitments that
//! a PoSt is about. The constant one in front of every list is left out.

use blstrs::Scalar as Fr;

use crate::challenges::{PorepChallenges, PostChallenges};
use crate::domain::Domain;
use crate::error::Error;
use crate::graph::Graph;
use crate::registry::{PorepShape, ProofKind};
use crate::request::{PorepRequest, PostRequest, Request, SnapRequest};

/// One list per partition, in order.
///
/// | kind | inputs |
/// | --- | --- |
/// | PoRep | replica_id, comm_d, comm_r; per challenge: the node, its 6 DRG and 8 expander parents, the node three times more |
/// | snap | partition + 2^(bits of partition numbers) · selector of h; comm_r_old, comm_d_new, comm_r_new |
/// | window | per sector of the circuit: comm_r and its 10 challenges; the last sector is repeated until the circuit is full |
/// | winning | 66 times: comm_r and one challenge |
///
/// # Errors
/// [`Error::WrongCount`] for a PoSt of no sector or of more than the circuit takes.
pub fn public_inputs(request: &Request) -> Result<Vec<Vec<Fr>>, Error> {
    match request {
        Request::Porep(porep) => Ok(porep_inputs(porep)),
        Request::Snap(snap) => Ok(snap_inputs(snap)),
        Request::Window(post) => Ok(vec![window_inputs(post)?]),
        Request::Winning(post) => Ok(vec![winning_inputs(post)?]),
    }
}

fn porep_inputs(request: &PorepRequest) -> Vec<Vec<Fr>> {
    let graph = Graph::new(request.proof_type);
    let challenges = PorepChallenges::of(request);
    let PorepShape {
        challenges: count, ..
    } = request.proof_type.size.porep();
    (0..request.proof_type.partitions())
        .map(|partition| {
            let mut inputs = Vec::with_capacity(3 + count * 18);
            inputs.extend([
                request.replica_id.to_fr(),
                request.comm_d.to_fr(),
                request.comm_r.to_fr(),
            ]);
            for node in challenges.partition(partition) {
                // The data node's path, the parents' paths, the challenge itself, the paths of the
                // replica node and of the node's column.
                let nodes = std::iter::once(node)
                    .chain(graph.drg_parents(node))
                    .chain(graph.expander_parents(node))
                    .chain([node; 3]);
                inputs.extend(nodes.map(|node| Fr::from(u64::from(node))));
            }
            inputs
        })
        .collect()
}

fn snap_inputs(request: &SnapRequest) -> Vec<Vec<Fr>> {
    let shape = request.proof_type.size.snap();
    let partition_bits = shape.partitions.ilog2();
    let selector = shape.h_selector() << partition_bits;
    (0..shape.partitions as u64)
        .map(|partition| {
            vec![
                Fr::from(partition | selector),
                request.comm_r_old.to_fr(),
                request.comm_d_new.to_fr(),
                request.comm_r_new.to_fr(),
            ]
        })
        .collect()
}

fn window_inputs(request: &PostRequest) -> Result<Vec<Fr>, Error> {
    let slots = request.proof_type.size.window().sectors;
    check_sectors(request, ProofKind::Window, slots)?;
    let challenges = PostChallenges::of(request);
    let per_sector: Vec<Vec<Fr>> = request
        .sectors
        .iter()
        .enumerate()
        .map(|(position, sector)| {
            let leafs = challenges
                .sector(position, sector.sector_id)
                .into_iter()
                .map(Fr::from);
            std::iter::once(sector.comm_r.to_fr())
                .chain(leafs)
                .collect()
        })
        .collect();
    let last = per_sector.len() - 1;
    Ok((0..slots)
        .flat_map(|slot| per_sector[slot.min(last)].iter().copied())
        .collect())
}

fn winning_inputs(request: &PostRequest) -> Result<Vec<Fr>, Error> {
    check_sectors(request, ProofKind::Winning, 1)?;
    let sector = &request.sectors[0];
    let comm_r = sector.comm_r.to_fr();
    Ok(PostChallenges::of(request)
        .sector(0, sector.sector_id)
        .into_iter()
        .flat_map(|leaf| [comm_r, Fr::from(leaf)])
        .collect())
}

/// Between 1 and `most` sectors, and the proof type is of the request's kind.
fn check_sectors(request: &PostRequest, kind: ProofKind, most: usize) -> Result<(), Error> {
    let actual = request.sectors.len();
    if request.proof_type.kind() == kind && (1..=most).contains(&actual) {
        return Ok(());
    }
    Err(Error::WrongCount {
        field: "vanilla_proofs".to_owned(),
        what: "sectors",
        actual,
        expected: if most == 1 {
            "1".to_owned()
        } else {
            format!("1 to {most}")
        },
        context: format!("{kind} of {}", request.proof_type),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::fixtures;
    use ff::PrimeField;
    use serde_json::Value;

    fn hex_list(value: &Value) -> Vec<String> {
        let list = value.as_array().unwrap().iter();
        list.map(|item| item.as_str().unwrap().to_owned()).collect()
    }

    /// What the reference recorded: a list per partition, in `witness.json` next to the fixture's folder.
    fn recorded(fixture: &fixtures::Fixture) -> Vec<Vec<String>> {
        let path = fixture.folder.join("../witness.json");
        let all: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let name = fixture.folder.file_name().unwrap().to_str().unwrap();
        let entries = all
            .as_array()
            .unwrap()
            .iter()
            .filter(|entry| entry["fixture"] == name);
        let mut lists: Vec<(u64, Vec<String>)> = entries
            .map(|entry| {
                (
                    entry["partition"].as_u64().unwrap(),
                    hex_list(&entry["public_inputs"]),
                )
            })
            .collect();
        lists.sort();
        lists.into_iter().map(|(_, list)| list).collect()
    }

    #[test]
    fn equal_the_references_for_every_fixture_and_partition() {
        let mut partitions = 0;
        for fixture in fixtures::all() {
            let ours: Vec<Vec<String>> = fixture
                .requests()
                .iter()
                .flat_map(|request| public_inputs(request).unwrap())
                .map(|list| list.iter().map(|x| hex::encode(x.to_repr())).collect())
                .collect();
            let expected = recorded(&fixture);
            assert!(!expected.is_empty(), "{}", fixture.name);
            assert_eq!(ours, expected, "{}", fixture.name);
            if let Some(lists) = fixture.meta["public_inputs"].as_array() {
                assert_eq!(
                    ours,
                    lists.iter().map(hex_list).collect::<Vec<_>>(),
                    "{}",
                    fixture.name
                );
            }
            partitions += ours.len();
        }
        assert_eq!(partitions, 34);
    }
}
