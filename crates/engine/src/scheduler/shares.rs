//! Fairness between clients: start-time fair queueing over device time.
//!
//! Each client has a virtual time that advances by (device time) / (weight) with every unit it
//! is given. The client with the least virtual time is served first. A client that comes (back)
//! starts at the least virtual time of the active ones, so that nobody saves up credit.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::config::Millis;

/// Virtual time units per millisecond of device time at weight 1.
const SCALE: u64 = 1 << 10;
/// Inactive clients beyond this number are forgotten.
const IDLE_CLIENTS: usize = 1_024;

#[derive(Debug, Default)]
struct Share {
    virtual_time: u64,
    open_jobs: usize,
}

/// The virtual times of all clients.
#[derive(Debug, Default)]
pub(super) struct Shares {
    clients: BTreeMap<Arc<str>, Share>,
    weights: BTreeMap<String, u32>,
    active: usize,
}

impl Shares {
    pub(super) fn new(weights: BTreeMap<String, u32>) -> Self {
        Self {
            clients: BTreeMap::new(),
            weights,
            active: 0,
        }
    }

    fn floor(&self) -> Option<u64> {
        let active = self.clients.values().filter(|share| share.open_jobs > 0);
        active.map(|share| share.virtual_time).min()
    }

    /// A client has one more open job.
    pub(super) fn enter(&mut self, client: &Arc<str>) {
        let floor = self.floor();
        let share = self.clients.entry(Arc::clone(client)).or_default();
        if share.open_jobs == 0 {
            self.active += 1;
            share.virtual_time = share.virtual_time.max(floor.unwrap_or(0));
        }
        share.open_jobs += 1;
    }

    /// A client has one open job less.
    pub(super) fn leave(&mut self, client: &str) {
        let share = self
            .clients
            .get_mut(client)
            .expect("invariant: who leaves has entered");
        share.open_jobs -= 1;
        if share.open_jobs > 0 {
            return;
        }
        self.active -= 1;
        if self.clients.len() > self.active + IDLE_CLIENTS {
            self.clients.retain(|_, share| share.open_jobs > 0);
        }
    }

    /// The client's place in the order: smaller is served first.
    pub(super) fn virtual_time(&self, client: &str) -> u64 {
        self.clients
            .get(client)
            .map_or(0, |share| share.virtual_time)
    }

    fn cost(&self, client: &str, device_ms: Millis) -> u64 {
        let weight = self.weights.get(client).copied().unwrap_or(1).max(1);
        device_ms.max(1).saturating_mul(SCALE) / u64::from(weight)
    }

    /// A unit that will take about `device_ms` is given to the client.
    pub(super) fn charge(&mut self, client: &str, device_ms: Millis) {
        let cost = self.cost(client, device_ms);
        if let Some(share) = self.clients.get_mut(client) {
            share.virtual_time = share.virtual_time.saturating_add(cost);
        }
    }

    /// The unit took `actual_ms`, not the `charged_ms` that were charged (0 for a unit that was
    /// not run at all).
    pub(super) fn correct(&mut self, client: &str, charged_ms: Millis, actual_ms: Millis) {
        let charged = self.cost(client, charged_ms);
        let actual = if actual_ms == 0 {
            0
        } else {
            self.cost(client, actual_ms)
        };
        if let Some(share) = self.clients.get_mut(client) {
            let without = share.virtual_time.saturating_sub(charged);
            share.virtual_time = without.saturating_add(actual);
        }
    }

    /// Clients that are known, for tests of boundedness.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }
}
