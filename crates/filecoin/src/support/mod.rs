//! Help for tests, here and in the crates that use this one (feature `test-support`).

#![allow(
    clippy::unwrap_used,
    reason = "test code: a broken fixture must stop the test"
)]

pub mod corpus;
pub mod fixtures;
pub mod fuzz;
#[cfg(test)]
pub(crate) mod golden;
pub mod sectors;
pub mod synthetic;
