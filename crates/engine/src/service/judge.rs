//! What the service needs of whoever knows proofs.

use super::device::JobInfo;

/// A job's proof bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// As the client gets them.
    pub proof: Vec<u8>,
    /// Whether they were made with a test key.
    pub test_key: bool,
}

/// Verifies and joins proofs. Called from the service's judge threads, where it may take its time.
///
/// A panic in here is caught: it counts as a check that could not be made.
pub trait Judge: Send + Sync {
    /// Whether `proof` proves unit `index` of the job. `payload` reads the job's payload, which
    /// may be large: what is needed of it is best kept for the job's next unit.
    ///
    /// An error says that it could not be checked, and why.
    fn verify(
        &self,
        job: &JobInfo,
        payload: &dyn Fn() -> Result<Vec<u8>, String>,
        index: u32,
        proof: &[u8],
    ) -> Result<bool, String>;

    /// The job's proof from those of its units, in order of their numbers.
    fn join(&self, job: &JobInfo, proofs: Vec<Vec<u8>>) -> Result<Joined, String>;
}
