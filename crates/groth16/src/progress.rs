//! How long work reports that it moves.

/// Receives the progress of work that may take longer than a moment.
///
/// Calls come from several threads. `()` ignores them.
pub trait Progress: Sync {
    /// A stage of `total` units (bytes or points, whatever the stage counts) begins; the one
    /// before it, if any, is over.
    fn begin(&self, stage: &'static str, total: u64);

    /// `amount` more units of the current stage are done.
    fn advance(&self, amount: u64);
}

impl Progress for () {
    fn begin(&self, _stage: &'static str, _total: u64) {}

    fn advance(&self, _amount: u64) {}
}
