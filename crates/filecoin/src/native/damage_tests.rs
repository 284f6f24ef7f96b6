//! Wherever one byte of a request is wrong, the pass that checks and makes the witnesses names the field,
//! or the byte did not matter.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Checked, check};
use crate::check::{Failure, Place, check as check_alone};
use crate::public_inputs;
use crate::request::Request;
use crate::support::fixtures;
use crate::witness::WitnessError;

/// Every request of every fixture.
static REQUESTS: LazyLock<Vec<Request>> = LazyLock::new(|| {
    let all = fixtures::all();
    all.iter().flat_map(fixtures::Fixture::requests).collect()
});

/// A changed byte: where, as far as a failure can tell.
#[derive(Debug)]
struct Damage {
    partition: Option<usize>,
    sector: Option<u64>,
    challenge: Option<usize>,
    /// Names and numbers on the way to the value.
    path: Vec<String>,
}

/// Choices on the way to a value: of a key, of an element, of a byte.
struct Choices<'a>(std::slice::Iter<'a, usize>);

impl Choices<'_> {
    fn below(&mut self, count: usize) -> usize {
        self.0.next().copied().unwrap_or(0) % count
    }
}

/// Changes one byte of one number inside `value`, and adds the way there to `path`.
fn flip(value: &mut Value, choices: &mut Choices<'_>, by: u8, path: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let number = choices.below(fields.len());
            let (name, field) = fields.iter_mut().nth(number).unwrap();
            path.push(name.clone());
            flip(field, choices, by, path);
        }
        // A node, which is the value; its bytes are not named.
        Value::Array(bytes) if bytes.len() == 32 && bytes.iter().all(Value::is_number) => {
            let byte = &mut bytes[choices.below(32)];
            *byte = (byte.as_u64().unwrap() as u8 ^ by).into();
        }
        Value::Array(elements) => {
            let number = choices.below(elements.len());
            path.push(number.to_string());
            flip(&mut elements[number], choices, by, path);
        }
        Value::Number(number) => {
            let shift = 8 * choices.below(8);
            *value = (number.as_u64().unwrap() ^ u64::from(by) << shift).into();
        }
        // The marker of a column.
        _ => {}
    }
}

/// Flips a byte somewhere in `part`; `false` if no such part can be decoded.
fn flip_in<T: Serialize + DeserializeOwned>(
    part: &mut T,
    choices: &mut Choices<'_>,
    by: u8,
    path: &mut Vec<String>,
) -> bool {
    let mut value = serde_json::to_value(&*part).unwrap();
    flip(&mut value, choices, by, path);
    serde_json::from_value(value).is_ok_and(|damaged| {
        *part = damaged;
        true
    })
}

/// Flips a byte of a vanilla proof; none if no such proof can be decoded.
fn damage_proof(request: &mut Request, choices: &mut Choices<'_>, by: u8) -> Option<Damage> {
    let mut damage = Damage {
        partition: None,
        sector: None,
        challenge: None,
        path: Vec::new(),
    };
    let path = &mut damage.path;
    let decodes = match request {
        Request::Porep(porep) => {
            let partition = choices.below(porep.partitions.len());
            let challenge = choices.below(porep.partitions[partition].len());
            (damage.partition, damage.challenge) = (Some(partition), Some(challenge));
            flip_in(
                &mut porep.partitions[partition][challenge],
                choices,
                by,
                path,
            )
        }
        Request::Snap(snap) => {
            let partition = choices.below(snap.partitions.len());
            damage.partition = Some(partition);
            flip_in(&mut snap.partitions[partition], choices, by, path)
        }
        Request::Window(post) | Request::Winning(post) => {
            let sector = choices.below(post.sectors.len());
            damage.sector = Some(post.sectors[sector].sector_id);
            flip_in(&mut post.sectors[sector], choices, by, path)
        }
    };
    if let ["challenge_proofs", number, ..] = strings(&damage.path)[..] {
        damage.challenge = number.parse().ok();
    }
    if let [
        "vanilla_proof",
        "sectors",
        _,
        "inclusion_proofs",
        number,
        ..,
    ] = strings(&damage.path)[..]
    {
        damage.challenge = number.parse().ok();
    }
    decodes.then_some(damage)
}

/// Flips a byte of a public value; none if it is not such a value any more.
fn damage_public(request: &mut Request, choices: &mut Choices<'_>, by: u8) -> Option<()> {
    let mut ignored = Vec::new();
    let mut any = |part: &mut dyn FnMut(&mut Choices<'_>, &mut Vec<String>) -> bool,
                   choices: &mut Choices<'_>| part(choices, &mut ignored);
    macro_rules! one_of {
        ($($field:expr),*) => {{
            let fields: &mut [&mut dyn FnMut(&mut Choices<'_>, &mut Vec<String>) -> bool] =
                &mut [$(&mut |choices, path| flip_in(&mut $field, choices, by, path)),*];
            let field = choices.below(fields.len());
            any(fields[field], choices)
        }};
    }
    let decodes = match request {
        Request::Porep(p) => one_of!(
            p.comm_r,
            p.comm_d,
            p.replica_id,
            p.seed,
            p.ticket,
            p.miner_id,
            p.sector_number
        ),
        Request::Snap(s) => one_of!(s.comm_r_old, s.comm_r_new, s.comm_d_new),
        Request::Window(p) | Request::Winning(p) => one_of!(p.randomness, p.partition_index),
    };
    decodes.then_some(())
}

fn strings(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// Whether a failure points at the damaged field.
fn names(request: &Request, failure: &Failure, damage: &Damage) -> bool {
    let place = &failure.place;
    let here = place.partition == damage.partition
        && place.sector == damage.sector
        && place.challenge == damage.challenge;
    let path = strings(&damage.path);
    match request {
        Request::Porep(_) => names_in_porep(place, here, damage, &path),
        Request::Snap(_) => names_in_snap(place, here, damage, &path),
        // The number decides which sector a proof is of, so either may be what is wrong.
        Request::Window(_) | Request::Winning(_) if path == ["sector_id"] => true,
        Request::Window(_) | Request::Winning(_) => {
            let element = match path[..] {
                [
                    "vanilla_proof",
                    "sectors",
                    _,
                    "inclusion_proofs",
                    number,
                    ..,
                ] => {
                    format!("inclusion_proofs[{number}]")
                }
                // comm_r = H(comm_c, comm_r_last): any of the three may be what is wrong.
                _ => "comm_r".to_owned(),
            };
            here && place.element == element
        }
    }
}

fn names_in_porep(place: &Place, here: bool, damage: &Damage, path: &[&str]) -> bool {
    let owner = match path {
        ["replica_column_proofs", "c_x", ..] => "replica_column_proofs.c_x".to_owned(),
        ["replica_column_proofs", parents, number, ..] => {
            format!("replica_column_proofs.{parents}[{number}]")
        }
        ["labeling_proofs", number, ..] => format!("labeling_proofs[{number}]"),
        _ => path[0].to_owned(),
    };
    // The first challenge's roots are the sector's.
    let of_sector = (damage.partition, damage.challenge) == (Some(0), Some(0))
        && path.last() == Some(&"root")
        && *place == Place::whole("comm_r");
    here && place.element.starts_with(&owner) || of_sector
}

fn names_in_snap(place: &Place, here: bool, damage: &Damage, path: &[&str]) -> bool {
    if place.partition != damage.partition {
        return false;
    }
    let element = place.element.as_str();
    match path {
        ["comm_c"] => here && element == "comm_c",
        ["apex_leafs", ..] => element.starts_with("apex_leafs"),
        ["challenge_proofs", number, proof, rest @ ..] => {
            let of_proof = here && element.starts_with(proof);
            // Old and new node and data make up the encoding, which is reported of the new.
            let of_encoding = here && rest.last() == Some(&"leaf") && element == "proof_r_new.leaf";
            // A data path is compared with the apex leaf it passes through, and the first
            // challenge's gives the path above the apex tree and the roots of the others.
            let of_apex = *proof == "proof_d_new" && element.starts_with("apex_leafs");
            let of_roots = *number == "0" && rest.last() == Some(&"root") && element == "comm_c";
            of_proof || of_encoding || of_apex || of_roots
        }
        _ => false,
    }
}

/// Checks a request with everything kept.
fn one_pass(request: &Request) -> Result<Checked, WitnessError> {
    let circuit = request.circuit_id().compiled().unwrap();
    check(request, &circuit, usize::MAX, &())
}

/// The verdict on a damaged request; the place of the failure, if it is refused.
fn judge(request: &Request, damaged: &Request) -> Result<Option<Box<Failure>>, TestCaseError> {
    let alone = check_alone(damaged, &());
    match one_pass(damaged) {
        Ok(checked) => {
            prop_assert!(alone.is_ok(), "only the check alone refuses: {alone:?}");
            prop_assert!(checked.witnesses == one_pass(request).unwrap().witnesses);
            prop_assert!(public_inputs(damaged).unwrap() == public_inputs(request).unwrap());
            Ok(None)
        }
        Err(WitnessError::Vanilla(failure)) => {
            prop_assert!(alone.is_err(), "only the one pass refuses: {failure}");
            Ok(Some(failure))
        }
        Err(other) => Err(TestCaseError::fail(other.to_string())),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_flipped_byte_of_a_vanilla_proof_is_named_or_does_not_matter(
        which in any::<prop::sample::Index>(),
        choices in prop::collection::vec(any::<usize>(), 24),
        by in 1u8..,
    ) {
        let request = which.get(&REQUESTS);
        let mut damaged = request.clone();
        if let Some(damage) = damage_proof(&mut damaged, &mut Choices(choices.iter()), by) {
            if let Some(failure) = judge(request, &damaged)? {
                prop_assert!(names(request, &failure, &damage), "{damage:?}: {failure}");
            } else {
                // Of a vanilla proof, everything matters but the columns' markers.
                prop_assert_eq!(damage.path.last().map(String::as_str), Some("_h"));
            }
        }
    }

    #[test]
    fn a_flipped_byte_of_a_public_value_is_refused_or_does_not_matter(
        which in any::<prop::sample::Index>(),
        named in any::<bool>(),
        choices in prop::collection::vec(any::<usize>(), 4),
        by in 1u8..,
    ) {
        let mut request = which.get(&REQUESTS).clone();
        if let (Request::Porep(porep), false) = (&mut request, named) {
            porep.miner_id = None;
        }
        let mut damaged = request.clone();
        if damage_public(&mut damaged, &mut Choices(choices.iter()), by).is_some() {
            judge(&request, &damaged)?;
        }
    }
}
