//! The units of a worker: which are to be prepared, which proven, and how far each is.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::scheduler::LeaseId;

use super::{Phases, UnitError};
use crate::message::Unit;

/// A unit that is being prepared when it is dropped is said to be dropped after this time at the
/// latest: the daemon gives a worker 15 s. It ends by itself later, and is forgotten then.
const DISCARD_PATIENCE: Duration = Duration::from_secs(8);
/// So many units that have ended are remembered: an order to prove one may be under way.
const REMEMBERED: usize = 64;

/// `T` is what preparing gives.
pub(super) struct Units<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    slots: HashMap<LeaseId, Slot<T>>,
    /// To be prepared, in order; those in `to_prove` are not in here.
    ahead: VecDeque<LeaseId>,
    /// To be proven, in order.
    to_prove: VecDeque<LeaseId>,
    /// Units that have ended, proven or not.
    ended: VecDeque<LeaseId>,
    /// The prover thread has a unit.
    proving: bool,
    stopping: bool,
}

struct Slot<T> {
    unit: Unit,
    stage: Stage<T>,
    phases: Phases,
    dropped: Dropped,
}

enum Stage<T> {
    Waiting,
    Preparing,
    Ready(T),
}

#[derive(PartialEq, Eq)]
enum Dropped {
    No,
    /// While it is being prepared; nothing was said yet.
    Since(Instant),
    /// It was said to be dropped, and is as soon as preparing ends.
    Told,
}

/// What the prover thread does next.
pub(super) enum Next<T> {
    /// This unit; prepared, if it was.
    Unit(Unit, Option<T>, Phases),
    /// Nothing more.
    Stopped,
}

impl<T> Units<T> {
    pub(super) fn new() -> Self {
        let state = State {
            slots: HashMap::new(),
            ahead: VecDeque::new(),
            to_prove: VecDeque::new(),
            ended: VecDeque::new(),
            proving: false,
            stopping: false,
        };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        let waited = self.changed.wait(state);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// A unit to be prepared.
    pub(super) fn prepare(&self, unit: &Unit) {
        let mut state = self.state();
        if state.insert(unit) {
            state.ahead.push_back(unit.lease);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// A unit to be proven, known or not. One that has ended is not begun again.
    pub(super) fn prove(&self, unit: &Unit) {
        let mut state = self.state();
        if !state.ended.contains(&unit.lease) {
            state.insert(unit);
            state.ahead.retain(|lease| *lease != unit.lease);
            if !state.to_prove.contains(&unit.lease) {
                state.to_prove.push_back(unit.lease);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Drops a unit; says whether that is done. If not, it is being prepared.
    pub(super) fn discard(&self, lease: LeaseId) -> bool {
        let mut state = self.state();
        state.ahead.retain(|other| *other != lease);
        state.to_prove.retain(|other| *other != lease);
        match state.slots.get_mut(&lease) {
            Some(slot) if matches!(slot.stage, Stage::Preparing) => {
                slot.dropped = Dropped::Since(Instant::now());
                false
            }
            _ => {
                state.slots.remove(&lease);
                true
            }
        }
    }

    /// Dropped units of which nothing was said for too long.
    pub(super) fn overdue_discards(&self) -> Vec<LeaseId> {
        let mut state = self.state();
        let mut overdue = Vec::new();
        for (lease, slot) in &mut state.slots {
            if matches!(slot.dropped, Dropped::Since(time) if time.elapsed() >= DISCARD_PATIENCE) {
                slot.dropped = Dropped::Told;
                overdue.push(*lease);
            }
        }
        overdue
    }

    /// Waits for a unit to prepare ahead; `None` when there will be none.
    pub(super) fn next_to_prepare(&self) -> Option<(Unit, Phases)> {
        let mut state = self.state();
        loop {
            if state.stopping {
                return None;
            }
            let next = state.ahead.pop_front();
            if let Some(slot) = next.and_then(|lease| state.slots.get_mut(&lease)) {
                slot.stage = Stage::Preparing;
                return Some((slot.unit.clone(), std::mem::take(&mut slot.phases)));
            }
            if next.is_none() {
                state = self.wait(state);
            }
        }
    }

    /// The look-ahead thread is done with a unit. `None`: it was dropped, which is to be said.
    /// An error is to be said too.
    pub(super) fn prepared(
        &self,
        lease: LeaseId,
        result: Result<T, UnitError>,
        phases: Phases,
    ) -> Option<Result<(), UnitError>> {
        let mut state = self.state();
        let slot = state.slots.get_mut(&lease)?;
        let outcome = if slot.dropped != Dropped::No {
            state.slots.remove(&lease);
            None
        } else {
            match result {
                Ok(ready) => {
                    slot.stage = Stage::Ready(ready);
                    slot.phases = phases;
                    Some(Ok(()))
                }
                Err(error) => {
                    state.forget(lease);
                    Some(Err(error))
                }
            }
        };
        drop(state);
        self.changed.notify_all();
        outcome
    }

    /// Waits for a unit to prove: the first in order, once it is not being prepared any more.
    pub(super) fn next_to_prove(&self) -> Next<T> {
        let mut state = self.state();
        loop {
            if state.stopping {
                return Next::Stopped;
            }
            let Some(&lease) = state.to_prove.front() else {
                state = self.wait(state);
                continue;
            };
            match state.slots.get(&lease).map(|slot| &slot.stage) {
                Some(Stage::Preparing) => state = self.wait(state),
                Some(_) => {
                    state.to_prove.pop_front();
                    if let Some(slot) = state.slots.remove(&lease) {
                        state.proving = true;
                        let ready = match slot.stage {
                            Stage::Ready(ready) => Some(ready),
                            _ => None,
                        };
                        return Next::Unit(slot.unit, ready, slot.phases);
                    }
                }
                None => {
                    state.to_prove.pop_front();
                }
            }
        }
    }

    /// The prover thread is done with a unit.
    pub(super) fn done(&self, lease: LeaseId) {
        let mut state = self.state();
        state.proving = false;
        // Ordered once more while it was proven: it would be proven twice.
        state.forget(lease);
    }

    /// Takes no more units from now on; says whether none is being proven.
    pub(super) fn stop(&self) -> bool {
        let mut state = self.state();
        state.stopping = true;
        let idle = !state.proving;
        drop(state);
        self.changed.notify_all();
        idle
    }

    pub(super) fn is_proving(&self) -> bool {
        self.state().proving
    }
}

impl<T> State<T> {
    /// Says whether the unit is a new one.
    fn insert(&mut self, unit: &Unit) -> bool {
        if self.slots.contains_key(&unit.lease) || self.ended.contains(&unit.lease) {
            return false;
        }
        let slot = Slot {
            unit: unit.clone(),
            stage: Stage::Waiting,
            phases: Phases::default(),
            dropped: Dropped::No,
        };
        self.slots.insert(unit.lease, slot);
        true
    }

    fn forget(&mut self, lease: LeaseId) {
        self.slots.remove(&lease);
        self.to_prove.retain(|other| *other != lease);
        self.ahead.retain(|other| *other != lease);
        self.ended.push_back(lease);
        if self.ended.len() > REMEMBERED {
            self.ended.pop_front();
        }
    }
}
