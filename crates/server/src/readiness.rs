//! Whether the daemon is ready for work: one latch per part, each opened once.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What must be done before the daemon is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The store's jobs are taken up.
    Store,
    /// The key files are there and as they should be.
    Keys,
    /// A proof was made and verified.
    SelfTest,
}

impl Part {
    /// All, in order.
    pub const ALL: [Self; 3] = [Self::Store, Self::Keys, Self::SelfTest];

    /// For people and JSON.
    pub fn label(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Keys => "keys",
            Self::SelfTest => "self_test",
        }
    }
}

/// How far a part is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Progress {
    /// Not yet.
    #[default]
    Waiting,
    /// Done.
    Passed,
    /// Failed, for this reason.
    Failed(String),
}

/// The latches. All parts wait at first.
#[derive(Debug, Default)]
pub struct Readiness {
    parts: Mutex<[Progress; Part::ALL.len()]>,
}

impl Readiness {
    /// The part is done.
    pub fn passed(&self, part: Part) {
        self.lock()[part as usize] = Progress::Passed;
    }

    /// The part failed: the daemon is not ready until it passes after all.
    pub fn failed(&self, part: Part, cause: impl Into<String>) {
        self.lock()[part as usize] = Progress::Failed(cause.into());
    }

    /// Whether all parts are done.
    pub fn is_ready(&self) -> bool {
        self.lock().iter().all(|part| *part == Progress::Passed)
    }

    /// How far each part is.
    pub fn parts(&self) -> Vec<(Part, Progress)> {
        let parts = self.lock();
        Part::ALL.into_iter().zip(parts.iter().cloned()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, [Progress; Part::ALL.len()]> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_when_every_part_has_passed() {
        let readiness = Readiness::default();
        readiness.passed(Part::Store);
        readiness.passed(Part::SelfTest);
        assert!(!readiness.is_ready());
        readiness.failed(Part::Keys, "no file");
        assert!(!readiness.is_ready());
        let failed = Progress::Failed("no file".to_owned());
        assert_eq!(readiness.parts()[1], (Part::Keys, failed));
        readiness.passed(Part::Keys);
        assert!(readiness.is_ready());
    }
}
