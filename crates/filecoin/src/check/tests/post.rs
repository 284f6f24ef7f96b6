use super::*;
use crate::registered::RegisteredPostProof;
use crate::registry::ProofKind;
use crate::request::PostRequest;
use crate::support::sectors;

fn request(name: &str) -> PostRequest {
    match fixtures::fixture(name).requests().remove(0) {
        Request::Window(post) | Request::Winning(post) => post,
        other => panic!("{:?}", other.kind()),
    }
}

fn wrap(post: PostRequest) -> Request {
    match post.proof_type.kind() {
        ProofKind::Winning => Request::Winning(post),
        _ => Request::Window(post),
    }
}

fn sector(request: &mut PostRequest) -> &mut crate::post::SectorProof {
    &mut request.sectors[0].vanilla_proof.sectors[0]
}

type Edit = fn(&mut PostRequest);

/// (what is changed, how, place after the sector, fault); for window and winning.
#[allow(
    clippy::semicolon_if_nothing_returned,
    reason = "one expression per change, however it is wrapped"
)]
const CHANGES: &[(&str, Edit, &str, &str)] = &[
    (
        "randomness",
        |r| r.randomness.flip(),
        "challenge 0, inclusion_proofs[0]",
        "PATH_INDEX",
    ),
    (
        "comm_r",
        |r| r.sectors[0].comm_r.flip(),
        "comm_r",
        "COMMITMENT",
    ),
    (
        "comm_c",
        |r| sector(r).comm_c.flip(),
        "comm_r",
        "COMMITMENT",
    ),
    (
        "comm_r_last",
        |r| sector(r).comm_r_last.flip(),
        "comm_r",
        "COMMITMENT",
    ),
    (
        "leaf",
        |r| parts(&mut sector(r).inclusion_proofs[3]).leaf.flip(),
        "challenge 3, inclusion_proofs[3]",
        "PATH_HASH",
    ),
    (
        "root",
        |r| parts(&mut sector(r).inclusion_proofs[9]).root.flip(),
        "challenge 9, inclusion_proofs[9]",
        "ROOT",
    ),
    (
        "path hash",
        |r| element(&mut sector(r).inclusion_proofs[0], 1).hashes[4].flip(),
        "challenge 0, inclusion_proofs[0]",
        "PATH_HASH",
    ),
    (
        "path index",
        |r| element(&mut sector(r).inclusion_proofs[2], 0).index ^= 1,
        "challenge 2, inclusion_proofs[2]",
        "PATH_INDEX",
    ),
    (
        "an inclusion proof less",
        |r| shorten(&mut sector(r).inclusion_proofs),
        "vanilla_proofs",
        "COUNT",
    ),
    (
        "no sector proof",
        |r| r.sectors[0].vanilla_proof.sectors.clear(),
        "vanilla_proofs",
        "COUNT",
    ),
];

#[test]
fn every_change_is_refused_with_its_place_and_cause() {
    for name in [
        "2KiB/window-post-1-partition",
        "2KiB/window-post-v1",
        "2KiB/winning-post-b",
        "8MiB/window-post-1-sector",
        "8MiB/winning-post-a",
    ] {
        let original = request(name);
        let number = original.sectors[0].sector_id;
        for (what, edit, place, code) in CHANGES {
            let mut changed = original.clone();
            edit(&mut changed);
            let place = format!("sector {number}, {place}");
            assert_refused(&format!("{name}: {what}"), &wrap(changed), &place, code);
        }
    }
}

#[test]
fn sector_number_enters_the_challenges() {
    let mut changed = request("2KiB/winning-post-a");
    changed.sectors[0].sector_id += 1;
    assert_eq!(refused(&wrap(changed)).fault.code(), "PATH_INDEX");
}

#[test]
fn order_and_number_of_sectors() {
    let original = request("2KiB/window-post-1-partition");
    let (first, second) = (original.sectors[0].sector_id, original.sectors[1].sector_id);

    let mut swapped = original.clone();
    swapped.sectors.swap(0, 1);
    assert_refused(
        "swapped",
        &wrap(swapped),
        &format!("sector {first}, vanilla_proofs"),
        "SECTOR_ORDER",
    );

    let mut twice = original.clone();
    twice.sectors[1] = twice.sectors[0].clone();
    assert_refused(
        "twice",
        &wrap(twice),
        &format!("sector {first}, vanilla_proofs"),
        "SECTOR_ORDER",
    );

    // Proofs change places, numbers stay.
    let mut exchanged = original.clone();
    exchanged.sectors.swap(0, 1);
    (
        exchanged.sectors[0].sector_id,
        exchanged.sectors[1].sector_id,
    ) = (first, second);
    let failure = refused(&wrap(exchanged));
    assert_eq!(failure.fault.code(), "PATH_INDEX");

    let mut three = original.clone();
    three.sectors.push(original.sectors[1].clone());
    assert_refused("three", &wrap(three), "vanilla_proofs", "COUNT");
    let mut none = original.clone();
    none.sectors.clear();
    assert_refused("none", &wrap(none), "vanilla_proofs", "COUNT");

    let mut two_winners = request("2KiB/winning-post-a");
    two_winners
        .sectors
        .push(request("2KiB/winning-post-b").sectors.remove(0));
    assert_refused("two winners", &wrap(two_winners), "vanilla_proofs", "COUNT");
}

#[test]
fn the_kind_must_be_the_proof_types() {
    let winning = request("2KiB/winning-post-a");
    assert_refused(
        "as window",
        &Request::Window(winning),
        "vanilla_proofs",
        "KIND",
    );
    let window = request("2KiB/window-post-1-sector");
    assert_refused(
        "as winning",
        &Request::Winning(window),
        "vanilla_proofs",
        "KIND",
    );
}

/// The partition's number matters for types 5–9 only.
#[test]
fn partition_index() {
    let mut old = request("2KiB/window-post-v1");
    old.partition_index = 1;
    let place = format!(
        "sector {}, challenge 0, inclusion_proofs[0]",
        old.sectors[0].sector_id
    );
    assert_refused("window v1", &wrap(old), &place, "PATH_INDEX");

    let mut new = request("2KiB/window-post-1-partition");
    new.partition_index = u32::MAX;
    assert!(check(&wrap(new), &()).is_ok());
}

/// Types 5–9 in partition 1: the first sector's challenges are numbered from N · 10 on, as those
/// of sector N of one long list would be.
#[test]
fn window_v1_counts_sectors_over_partitions() {
    let proof_type = RegisteredPostProof::from_number(ProofKind::Window, 5).unwrap();
    for partition_index in [0, 1, 7] {
        let mut request = sectors::post(proof_type, 2, partition_index, 5);
        assert!(check(&wrap(request.clone()), &()).is_ok());
        request.partition_index += 1;
        assert_eq!(refused(&wrap(request)).fault.code(), "PATH_INDEX");
    }
}

#[test]
fn accepts_synthetic_sectors_of_all_sizes() {
    for proof_type in RegisteredPostProof::all() {
        let sectors = if proof_type.kind() == ProofKind::Winning {
            1
        } else {
            2
        };
        let request = wrap(sectors::post(proof_type, sectors, 3, proof_type.number()));
        let report = check(&request, &()).unwrap_or_else(|error| panic!("{proof_type}: {error}"));
        let expected = if sectors == 1 { 66 } else { 20 };
        assert_eq!(
            (report.challenges, report.merkle_paths),
            (expected, expected)
        );
    }
}
