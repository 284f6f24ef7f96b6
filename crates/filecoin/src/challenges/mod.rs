//! Which leafs a proof must open, derived from its public values.

mod porep;
mod post;
mod snap;
#[cfg(test)]
mod tests;

pub use porep::PorepChallenges;
pub use post::PostChallenges;
pub use snap::{EncodingRandomness, snap_challenges};
