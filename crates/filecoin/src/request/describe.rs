//! A request in words: what it asks for and what it holds.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::decode::Decoded;
use crate::error::quote;
use crate::registry::{ProofKind, SectorSize};
use crate::request::{PorepRequest, PostRequest, Request, SnapRequest};

/// One fact about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Stable name, for JSON.
    pub key: &'static str,
    /// Name for people.
    pub label: &'static str,
    /// The value, in words.
    pub text: String,
    /// The value, for JSON.
    pub value: serde_json::Value,
}

/// The facts about a request, in reading order. As JSON it is one object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    /// The facts.
    pub facts: Vec<Fact>,
}

impl Serialize for Description {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.facts.len()))?;
        for fact in &self.facts {
            map.serialize_entry(fact.key, &fact.value)?;
        }
        map.end()
    }
}

impl Description {
    /// A fact whose value reads the same for people and machines.
    fn plain(&mut self, key: &'static str, label: &'static str, text: impl Into<String>) {
        let text = text.into();
        let value = text.clone().into();
        self.facts.push(Fact {
            key,
            label,
            text,
            value,
        });
    }

    /// A number with words around it for people.
    fn number(&mut self, key: &'static str, label: &'static str, value: u64, text: String) {
        self.facts.push(Fact {
            key,
            label,
            text,
            value: value.into(),
        });
    }

    /// A value that may be unknown: `null` for machines.
    fn optional(
        &mut self,
        key: &'static str,
        label: &'static str,
        value: Option<u64>,
        text: impl Fn(u64) -> String,
    ) {
        self.facts.push(Fact {
            key,
            label,
            text: value.map_or_else(|| "not named by the request".to_owned(), text),
            value: value.into(),
        });
    }

    fn sector_size(&mut self, size: SectorSize) {
        let text = format!("{size} ({} nodes of 32 bytes)", size.nodes());
        self.number("sector_size", "sector size", size.bytes(), text);
    }

    fn miner(&mut self, miner_id: Option<u64>) {
        self.optional("miner_id", "miner", miner_id, |id| format!("f0{id}"));
    }

    fn sector(&mut self, number: Option<u64>) {
        self.optional("sector_number", "sector", number, |n| n.to_string());
    }

    fn porep(&mut self, porep: &PorepRequest) {
        self.miner(porep.miner_id);
        self.sector(porep.sector_number);
        self.plain("comm_r", "comm_r", porep.comm_r.to_string());
        self.plain("comm_d", "comm_d", porep.comm_d.to_string());
        self.plain("replica_id", "replica id", porep.replica_id.to_string());
        self.plain("ticket", "ticket", hex::encode(porep.ticket));
        self.plain("seed", "seed", hex::encode(porep.seed));
        let shape = porep.proof_type.size.porep();
        let text = format!(
            "{} per partition, {} layers",
            shape.challenges, shape.layers
        );
        self.number("challenges", "challenges", shape.challenges as u64, text);
    }

    fn snap(&mut self, snap: &SnapRequest) {
        self.miner(snap.miner_id);
        self.sector(snap.sector_number);
        self.plain("comm_r_old", "comm_r before", snap.comm_r_old.to_string());
        self.plain("comm_r_new", "comm_r after", snap.comm_r_new.to_string());
        self.plain("comm_d_new", "comm_d after", snap.comm_d_new.to_string());
        let challenges = snap.proof_type.size.snap().challenges as u64;
        let text = format!("{challenges} per partition");
        self.number("challenges", "challenges", challenges, text);
    }

    fn post(&mut self, kind: ProofKind, post: &PostRequest) {
        self.miner(post.miner_id);
        self.plain("randomness", "randomness", post.randomness.to_string());
        let given = post.sectors.len() as u64;
        let size = post.proof_type.size;
        let sectors = &post.sectors;
        let numbers: Vec<u64> = sectors.iter().map(|entry| entry.sector_id).collect();
        let listed = list(&numbers);
        let (challenges, text) = match kind {
            ProofKind::Winning => (size.winning().sectors, listed),
            _ => {
                let index = u64::from(post.partition_index);
                self.number(
                    "partition_index",
                    "partition index",
                    index,
                    index.to_string(),
                );
                let room = size.window().sectors;
                let text = match (room as u64).saturating_sub(given) {
                    0 => format!("{given}, a full partition: {listed}"),
                    _ => format!(
                        "{given} of {room}, the last repeated to fill the circuit: {listed}"
                    ),
                };
                (size.window().challenges, text)
            }
        };
        self.facts.push(Fact {
            key: "sectors",
            label: "sectors",
            text,
            value: numbers.into(),
        });
        let text = format!("{challenges} per sector");
        self.number("challenges", "challenges", challenges as u64, text);
    }
}

/// Up to eight numbers, then how many more.
fn list(numbers: &[u64]) -> String {
    let shown: Vec<String> = numbers.iter().take(8).map(u64::to_string).collect();
    match numbers.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

impl Request {
    /// What the request asks for, fact by fact.
    pub fn describe(&self) -> Description {
        let mut description = Description::default();
        let kind = match self.kind() {
            ProofKind::Porep if self.is_non_interactive() => {
                "PoRep, seal commit phase 2, non-interactive (to be aggregated)"
            }
            ProofKind::Porep => "PoRep, seal commit phase 2",
            ProofKind::Snap => "SnapDeals, update of an empty sector",
            ProofKind::Window => "WindowPoSt of one partition",
            ProofKind::Winning => "WinningPoSt",
        };
        description.facts.push(Fact {
            key: "kind",
            label: "proof",
            text: kind.to_owned(),
            value: self.kind().label().into(),
        });
        description.plain("proof_type", "registered proof", self.proof_type());
        description.sector_size(self.sector_size());
        description.plain("circuit", "circuit", self.circuit_id().name());
        match self {
            Self::Porep(porep) => description.porep(porep),
            Self::Snap(snap) => description.snap(snap),
            Self::Window(post) | Self::Winning(post) => description.post(self.kind(), post),
        }
        let partitions = self.partitions() as u64;
        let bytes = partitions * crate::proof_bytes::PROOF_BYTES as u64;
        let text = match partitions {
            1 => format!("1, a proof of {bytes} bytes"),
            _ if self.is_non_interactive() => {
                format!("{partitions}, {bytes} bytes before aggregation")
            }
            _ => format!("{partitions}, {bytes} bytes of proofs"),
        };
        description.number("partitions", "partitions", partitions, text);
        description
    }
}

impl Decoded {
    /// The form that the request came in, then [`Request::describe`].
    pub fn describe(&self) -> Description {
        let mut description = Description::default();
        let form = match self.compression {
            Some(compression) => format!("{}, {compression}", self.form),
            None => self.form.to_string(),
        };
        description.plain("form", "form", form);
        if let Some(id) = &self.request_id {
            description.facts.push(Fact {
                key: "request_id",
                label: "request id",
                text: quote(id),
                value: id.as_str().into(),
            });
        }
        description.facts.extend(self.request.describe().facts);
        description
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::support::fixtures;

    #[test]
    fn every_fixture_is_described_with_distinct_keys_and_one_line_texts() {
        for fixture in fixtures::all() {
            for decoded in fixture.decoded() {
                let description = decoded.describe();
                let keys: HashSet<_> = description.facts.iter().map(|fact| fact.key).collect();
                assert_eq!(keys.len(), description.facts.len(), "{}", fixture.name);
                for fact in &description.facts {
                    assert!(!fact.text.is_empty() && !fact.text.contains('\n'));
                }
                let json = serde_json::to_value(&description).unwrap();
                assert_eq!(json["kind"], fixture.kind().label());
                assert_eq!(json["sector_size"], fixture.meta["sector_size"]);
            }
        }
    }

    #[test]
    fn a_padded_window_reads_well() {
        let fixture = fixtures::fixture("2KiB/window-post-2-partitions");
        let description = fixture.requests()[1].describe();
        let lines: Vec<String> = description
            .facts
            .iter()
            .map(|fact| format!("{}: {}", fact.label, fact.text))
            .collect();
        assert_eq!(
            lines,
            [
                "proof: WindowPoSt of one partition",
                "registered proof: StackedDrgWindow2KiBV1_2 (10)",
                "sector size: 2KiB (64 nodes of 32 bytes)",
                "circuit: wpost-2k",
                "miner: f0857192",
                "randomness: cd9d16784506e22a6b1909f1b4cf46c397f898a68afd55b46c5727058956a432",
                "partition index: 0",
                "sectors: 1 of 2, the last repeated to fill the circuit: 88134",
                "challenges: 10 per sector",
                "partitions: 1, a proof of 192 bytes",
            ]
        );
        assert_eq!(
            list(&(0..20).collect::<Vec<_>>()),
            "0, 1, 2, 3, 4, 5, 6, 7 and 12 more"
        );
    }
}
