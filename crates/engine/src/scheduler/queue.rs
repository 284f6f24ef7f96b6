//! The jobs that have a unit waiting, in the orders in which they are looked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use filecoin::CircuitId;
use store::JobId;

use super::job::{Class, Job, Rank};

/// One client's jobs of one class: by circuit, in rank order.
type ClientQueue = BTreeMap<CircuitId, BTreeSet<Rank>>;

/// The jobs of one class.
#[derive(Debug, Default)]
pub(super) struct ClassQueue {
    clients: BTreeMap<Arc<str>, ClientQueue>,
    by_age: BTreeSet<(u64, JobId)>,
}

impl ClassQueue {
    /// Clients with waiting jobs, by name.
    pub(super) fn clients(&self) -> impl Iterator<Item = &Arc<str>> {
        self.clients.keys()
    }

    /// Jobs, oldest first.
    pub(super) fn oldest(&self) -> impl Iterator<Item = JobId> + '_ {
        self.by_age.iter().map(|&(_, job)| job)
    }

    /// The first job of a client, in rank order, for one of `circuits` and of which `fits` says
    /// yes.
    pub(super) fn first_of(
        &self,
        client: &str,
        circuits: &BTreeSet<CircuitId>,
        mut fits: impl FnMut(JobId) -> bool,
    ) -> Option<Rank> {
        let queue = self.clients.get(client)?;
        queue
            .iter()
            .filter(|(circuit, _)| circuits.contains(circuit))
            .filter_map(|(_, ranks)| ranks.iter().find(|rank| fits(rank.job)).copied())
            .min()
    }

    /// How many jobs.
    pub(super) fn len(&self) -> usize {
        self.by_age.len()
    }
}

/// All waiting jobs.
#[derive(Debug, Default)]
pub(super) struct Queue {
    classes: BTreeMap<Class, ClassQueue>,
    /// How many jobs wait for each circuit.
    circuits: BTreeMap<CircuitId, usize>,
}

impl Queue {
    /// The class's jobs, if there are any.
    pub(super) fn class(&self, class: Class) -> Option<&ClassQueue> {
        self.classes.get(&class)
    }

    /// Circuits that jobs wait for.
    pub(super) fn circuits(&self) -> impl Iterator<Item = CircuitId> + '_ {
        self.circuits.keys().copied()
    }

    /// Jobs in this class and the classes before it.
    pub(super) fn count_up_to(&self, class: Class) -> usize {
        self.classes
            .range(..=class)
            .map(|(_, queue)| queue.len())
            .sum()
    }

    /// Whether the job is in.
    pub(super) fn contains(&self, job: &Job) -> bool {
        self.classes
            .get(&job.class())
            .is_some_and(|queue| queue.by_age.contains(&(job.sequence, job.id)))
    }

    /// How many jobs there are.
    pub(super) fn len(&self) -> usize {
        self.classes.values().map(ClassQueue::len).sum()
    }

    /// Puts a job in; nothing happens if it is in.
    pub(super) fn insert(&mut self, job: &Job) {
        let class = self.classes.entry(job.class()).or_default();
        if !class.by_age.insert((job.sequence, job.id)) {
            return;
        }
        let client = class.clients.entry(Arc::clone(&job.client)).or_default();
        client.entry(job.circuit).or_default().insert(job.rank());
        *self.circuits.entry(job.circuit).or_default() += 1;
    }

    /// Takes a job out; nothing happens if it is not in. Class, rank and client must be those
    /// with which it was put in.
    pub(super) fn remove(&mut self, job: &Job) {
        let Some(class) = self.classes.get_mut(&job.class()) else {
            return;
        };
        if !class.by_age.remove(&(job.sequence, job.id)) {
            return;
        }
        if let Some(client) = class.clients.get_mut(&job.client) {
            if let Some(ranks) = client.get_mut(&job.circuit) {
                ranks.remove(&job.rank());
                if ranks.is_empty() {
                    client.remove(&job.circuit);
                }
            }
            if client.is_empty() {
                class.clients.remove(&job.client);
            }
        }
        if class.by_age.is_empty() {
            self.classes.remove(&job.class());
        }
        if let Some(count) = self.circuits.get_mut(&job.circuit) {
            *count -= 1;
            if *count == 0 {
                self.circuits.remove(&job.circuit);
            }
        }
    }
}
