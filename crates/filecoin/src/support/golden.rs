//! `testdata/derivations.json`: challenges and parents by the reference, one entry per type.

use serde_json::Value;

use crate::domain::{Domain, PoseidonDomain};

/// The entries that have `key`.
///
/// # Panics
/// If the file is no list.
pub fn derivations(key: &str) -> Vec<Value> {
    let golden: Value =
        serde_json::from_str(include_str!("../../testdata/derivations.json")).unwrap();
    let entries = golden.as_array().unwrap().iter();
    entries
        .filter(|entry| entry.get(key).is_some())
        .cloned()
        .collect()
}

/// 32 bytes in hex.
///
/// # Panics
/// If it is anything else.
pub fn bytes(value: &Value) -> [u8; 32] {
    let bytes = hex::decode(value.as_str().unwrap()).unwrap();
    bytes.try_into().unwrap()
}

/// A canonical field element in hex.
///
/// # Panics
/// If it is anything else.
pub fn poseidon(value: &Value) -> PoseidonDomain {
    PoseidonDomain::from_bytes(bytes(value)).unwrap()
}

/// A list of numbers.
///
/// # Panics
/// If it is anything else.
pub fn numbers(value: &Value) -> Vec<u64> {
    let list = value.as_array().unwrap().iter();
    list.map(|number| number.as_u64().unwrap()).collect()
}
