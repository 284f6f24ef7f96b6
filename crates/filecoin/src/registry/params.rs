//! Official parameter files: names and digests.

use super::{CircuitId, ProofKind};

/// What is published about one circuit's parameter files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfficialKey {
    /// Hex SHA-256 of the circuit's identifier string; part of the file names.
    pub identifier_hash: &'static str,
    /// First 32 hex digits of BLAKE2b-512 over the `.params` file.
    pub params_digest: &'static str,
    /// First 32 hex digits of BLAKE2b-512 over the `.vk` file.
    pub vk_digest: &'static str,
}

impl CircuitId {
    /// The published identifier hash and file digests.
    pub fn official_key(self) -> &'static OfficialKey {
        &KEYS[self.position()]
    }

    /// File name without extension: `v28-<prefix>-<shape…>-<hash>`. The proving
    /// key is `<stem>.params`, the verifying key `<stem>.vk`.
    pub fn params_stem(self) -> String {
        let tree = format!("merkletree-poseidon_hasher-{}", self.size.tree().label());
        let prefix = match self.kind {
            ProofKind::Porep => {
                format!("stacked-proof-of-replication-{tree}-sha256_hasher")
            }
            ProofKind::Snap => format!("empty-sector-update-{tree}"),
            ProofKind::Window | ProofKind::Winning => {
                format!("proof-of-spacetime-fallback-{tree}")
            }
        };
        format!("v28-{prefix}-{}", self.official_key().identifier_hash)
    }

    /// Published digest of the `.params` file (first 32 hex digits of BLAKE2b-512).
    pub fn params_digest(self) -> &'static str {
        self.official_key().params_digest
    }

    /// Published digest of the `.vk` file (first 32 hex digits of BLAKE2b-512).
    pub fn vk_digest(self) -> &'static str {
        self.official_key().vk_digest
    }

    /// The string whose SHA-256 is in the file names: the reference's `Debug`-like
    /// identifier of the circuit's public parameters.
    pub fn identifier(self) -> String {
        let (size, nodes) = (self.size.bytes(), self.size.nodes());
        match self.kind {
            ProofKind::Porep => {
                let porep = self.size.porep();
                format!(
                    "layered_drgporep::PublicParams{{ graph: stacked_graph::StackedGraph{{\
                    expansion_degree: 8 base_graph: drgraph::BucketGraph{{size: {nodes}; \
                    degree: 6; hasher: poseidon_hasher}} }}, challenges: LayerChallenges {{ \
                    layers: {}, max_count: {} }}, tree: merkletree-poseidon_hasher-{} }}",
                    porep.layers,
                    porep.challenges,
                    self.size.tree().label(),
                )
            }
            ProofKind::Snap => {
                format!("empty_sector_update::PublicParams{{ sector_nodes: {nodes} }}")
            }
            ProofKind::Window => post_identifier(size, self.size.window()),
            ProofKind::Winning => post_identifier(size, self.size.winning()),
        }
    }
}

fn post_identifier(sector_size: u64, shape: super::PostShape) -> String {
    format!(
        "FallbackPoSt::PublicParams{{sector_size: {sector_size}, challenge_count: {}, \
         sector_count: {}}}",
        shape.challenges, shape.sectors
    )
}

const fn key(
    identifier_hash: &'static str,
    params_digest: &'static str,
    vk_digest: &'static str,
) -> OfficialKey {
    OfficialKey {
        identifier_hash,
        params_digest,
        vk_digest,
    }
}

const KEYS: [OfficialKey; CircuitId::COUNT] = [
    // porep-2k
    key(
        "032d3138d22506ec0082ed72b2dcba18df18477904e35bafee82b3793b06832f",
        "434fb1338ecfaf0f59256f30dde4968f",
        "dc1ade9929ade1708238f155343044ac",
    ),
    // porep-8m
    key(
        "ecd683648512ab1765faa2a5f14bab48f676e633467f0aa8aad4b55dcb0652bb",
        "09e612e4eeb7a0eb95679a88404f960c",
        "b687beb9adbd9dabe265a7e3620813e4",
    ),
    // porep-512m
    key(
        "6babf46ce344ae495d558e7770a585b2382d54f225af8ed0397b8be7c3fcd472",
        "6c77597eb91ab936c1cef4cf19eba1b3",
        "065179da19fbe515507267677f02823e",
    ),
    // porep-32g
    key(
        "82a357d2f2ca81dc61bb45f4a762807aedee1b0a53fd6c4e77b46a01bfef7820",
        "6a388072a518cf46ebd661f5cc46900a",
        "0c7b4aac1c40fdb7eb82bc355b41addf",
    ),
    // porep-64g
    key(
        "96f1b4a04c5c51e4759bbf224bbc2ef5a42c7100f16ec0637123f16a845ddfb2",
        "1801f8a6e1b00bceb00cc27314bb5ce3",
        "a89884252c04c298d0b3c81bfd884164",
    ),
    // snap-2k
    key(
        "fb9e095bebdd77511c0269b967b4d87ba8b8a525edaa0e165de23ba454510194",
        "311f92a3e75036ced01b1c0025f1fa0c",
        "eadad9784969890d30f2749708c79771",
    ),
    // snap-8m
    key(
        "92180959e1918d26350b8e6cfe217bbdd0a2d8de51ebec269078b364b715ad63",
        "5aedd2cf3e5c0a15623d56a1b43110ad",
        "abd80269054d391a734febdac0d2e687",
    ),
    // snap-512m
    key(
        "61fa69f38b9cc771ba27b670124714b4ea77fbeae05e377fb859c4a43b73a30c",
        "c3ad7bb549470b82ad52ed070aebb4f4",
        "994c5b7d450ca9da348c910689f2dc7f",
    ),
    // snap-32g
    key(
        "3b7f44a9362e3985369454947bc94022e118211e49fd672d52bec1cbfd599d18",
        "1b3cfd761a961543f9eb273e435a06a2",
        "3a6941983754737fde880d29c7094905",
    ),
    // snap-64g
    key(
        "102e1444a7e9a97ebf1e3d6855dcc77e66c011ea66f936d9b2c508f87f2f83a7",
        "1a392e7b759fb18e036c7559b5ece816",
        "80e366df2f1011953c2d01c7b7c9ee8e",
    ),
    // wpost-2k
    key(
        "0170db1f394b35d995252228ee359194b13199d259380541dc529fb0099096b0",
        "7610b9f82bfc88405b7a832b651ce2f6",
        "0e0958009936b9d5e515ec97b8cb792d",
    ),
    // wpost-8m
    key(
        "5294475db5237a2e83c3e52fd6c2b03859a1831d45ed08c4f35dbf9a803165a9",
        "c49499bb76a0762884896f9683403f55",
        "34d4feeacd9abf788d69ef1bb4d8fd00",
    ),
    // wpost-512m
    key(
        "0cfb4f178bbb71cf2ecfcd42accce558b27199ab4fb59cb78f2483fe21ef36d9",
        "1a7d4a9c8a502a497ed92a54366af33f",
        "4dae975de4f011f101f5a2f86d1daaba",
    ),
    // wpost-32g
    key(
        "0377ded656c6f524f1618760bffe4e0a1c51d5a70c4509eedae8a27555733edc",
        "2cf49eb26f1fee94c85781a390ddb4c8",
        "0f8ec542485568fa3468c066e9fed82b",
    ),
    // wpost-64g
    key(
        "2627e4006b67f99cef990c0a47d5426cb7ab0a0ad58fc1061547bf2d28b09def",
        "3810b7780ac0e299b22ae70f1f94c9bc",
        "59d2bf1857adc59a4f08fcf2afaa916b",
    ),
    // winning-2k
    key(
        "3ea05428c9d11689f23529cde32fd30aabd50f7d2c93657c1d3650bca3e8ea9e",
        "82c88066be968bb550a05e30ff6c2413",
        "ffd79788d614d27919ae5bd2d94eacb6",
    ),
    // winning-8m
    key(
        "50c7368dea9593ed0989e70974d28024efa9d156d585b7eea1be22b2e753f331",
        "700171ecf7334e3199437c930676af82",
        "79ebb55f56fda427743e35053edad8fc",
    ),
    // winning-512m
    key(
        "7d739b8cf60f1b0709eeebee7730e297683552e4b69cab6984ec0285663c5781",
        "827359440349fe8f5a016e7598993b79",
        "bd2cd62f65c1ab84f19ca27e97b7c731",
    ),
    // winning-32g
    key(
        "559e581f022bb4e4ec6e719e563bf0e026ad6de42e56c18714a2c692b1b88d7e",
        "d84f79a16fe40e9e25a36e2107bb1ba0",
        "fc02943678dd119e69e7fab8420e8819",
    ),
    // winning-64g
    key(
        "b62098629d07946e9028127e70295ed996fe3ed25b0f9f88eb610a0ab4385a3c",
        "2170a91ad5bae22ea61f2ea766630322",
        "6d3789148fb6466d07ee1e24d6292fd6",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::SectorSize;
    use sha2::{Digest, Sha256};

    #[test]
    fn hashes_are_those_of_the_identifiers() {
        for id in CircuitId::all() {
            let hash = hex::encode(Sha256::digest(id.identifier()));
            assert_eq!(hash, id.official_key().identifier_hash, "{id}");
        }
    }

    #[test]
    fn digests_are_distinct_and_well_formed() {
        let mut seen = std::collections::HashSet::new();
        for id in CircuitId::all() {
            for digest in [id.params_digest(), id.vk_digest()] {
                assert_eq!(digest.len(), 32);
                assert_eq!(hex::decode(digest).unwrap().len(), 16);
                assert!(seen.insert(digest), "{id} repeats {digest}");
            }
        }
    }

    #[test]
    fn stems_are_the_published_names() {
        let id = CircuitId::new(ProofKind::Porep, SectorSize::GiB32);
        assert_eq!(
            id.params_stem(),
            "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-8-8-0-sha256_hasher-\
            82a357d2f2ca81dc61bb45f4a762807aedee1b0a53fd6c4e77b46a01bfef7820"
        );
        let id = CircuitId::new(ProofKind::Snap, SectorSize::GiB64);
        assert_eq!(
            id.params_stem(),
            "v28-empty-sector-update-merkletree-poseidon_hasher-8-8-2-\
            102e1444a7e9a97ebf1e3d6855dcc77e66c011ea66f936d9b2c508f87f2f83a7"
        );
        let id = CircuitId::new(ProofKind::Winning, SectorSize::KiB2);
        assert_eq!(
            id.params_stem(),
            "v28-proof-of-spacetime-fallback-merkletree-poseidon_hasher-8-0-0-\
            3ea05428c9d11689f23529cde32fd30aabd50f7d2c93657c1d3650bca3e8ea9e"
        );
    }
}
