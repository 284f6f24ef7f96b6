//! Where every unit is, and which is next.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::run::{Limits, Work};
use crate::spans::Spans;

/// A unit that is dropped while it is prepared is said to be dropped after this time at the
/// latest: a daemon gives its worker 15 s. Preparing ends by itself later, and is forgotten then.
const DROP_PATIENCE: Duration = Duration::from_secs(8);
/// So many units that have ended are remembered: an order for one may still be under way.
const REMEMBERED: usize = 64;

/// All units of a pipeline.
pub struct Line<W: Work> {
    slots: HashMap<W::Id, Slot<W>>,
    /// To be prepared and not ordered yet, in order.
    ahead: VecDeque<W::Id>,
    /// To be proven, in order; those on the device and after it are not in here.
    ordered: VecDeque<W::Id>,
    /// What the device has handed over.
    summed: VecDeque<Summed<W>>,
    ended: VecDeque<W::Id>,
    on_device: usize,
    finishing: usize,
    /// An ordered unit is prepared by the thread that does nothing else.
    urgent_busy: bool,
    /// So many units may be on the device at a time.
    device_units: usize,
    pub stopping: bool,
}

struct Slot<W: Work> {
    unit: Arc<W::Unit>,
    bytes: u64,
    spans: Spans,
    stage: Stage<W::Ready>,
    is_ordered: bool,
    dropped: Dropped,
}

enum Stage<T> {
    Waiting,
    Preparing,
    Ready(T),
    /// On the device or after it.
    Beyond,
}

#[derive(PartialEq, Eq)]
enum Dropped {
    No,
    /// Nothing was said yet.
    Since(Instant),
    /// It was said to be dropped, and is as soon as preparing ends.
    Told,
}

/// A unit in a thread's hands.
pub struct Held<W: Work> {
    pub id: W::Id,
    pub unit: Arc<W::Unit>,
    pub spans: Spans,
}

/// A unit whose sums are there.
pub struct Summed<W: Work> {
    pub held: Held<W>,
    pub ready: W::Ready,
    pub sums: W::Sums,
}

/// What became of a prepared unit.
pub enum Prepared<W: Work> {
    Kept,
    /// It was dropped, which is to be said.
    Dropped(W::Id),
    Failed(Held<W>, W::Error),
}

impl<W: Work> Line<W> {
    pub fn new(device_units: usize) -> Self {
        Self {
            slots: HashMap::new(),
            ahead: VecDeque::new(),
            ordered: VecDeque::new(),
            summed: VecDeque::new(),
            ended: VecDeque::new(),
            on_device: 0,
            finishing: 0,
            urgent_busy: false,
            device_units,
            stopping: false,
        }
    }

    /// A unit to be prepared.
    pub fn prepare(&mut self, id: W::Id, unit: impl FnOnce() -> (W::Unit, u64)) {
        if self.insert(id, unit) {
            self.ahead.push_back(id);
        }
    }

    /// A unit to be proven, known or not. One that has ended is not begun again.
    pub fn prove(&mut self, id: W::Id, unit: impl FnOnce() -> (W::Unit, u64)) {
        self.insert(id, unit);
        self.ahead.retain(|other| *other != id);
        let new = |slot: &&mut Slot<W>| !slot.is_ordered && !matches!(slot.stage, Stage::Beyond);
        if let Some(slot) = self.slots.get_mut(&id).filter(new) {
            slot.is_ordered = true;
            self.ordered.push_back(id);
        }
    }

    /// Says whether the unit is a new one.
    fn insert(&mut self, id: W::Id, unit: impl FnOnce() -> (W::Unit, u64)) -> bool {
        if self.slots.contains_key(&id) || self.ended.contains(&id) {
            return false;
        }
        let (unit, bytes) = unit();
        let slot = Slot {
            unit: Arc::new(unit),
            bytes,
            spans: Spans::default(),
            stage: Stage::Waiting,
            is_ordered: false,
            dropped: Dropped::No,
        };
        self.slots.insert(id, slot);
        true
    }

    /// Drops a unit that is not on the device yet; says whether that is done. If not, it is being
    /// prepared.
    pub fn discard(&mut self, id: W::Id) -> bool {
        self.ahead.retain(|other| *other != id);
        self.ordered.retain(|other| *other != id);
        let Some(slot) = self.slots.get_mut(&id) else {
            return true;
        };
        match slot.stage {
            Stage::Preparing => {
                slot.dropped = Dropped::Since(Instant::now());
                return false;
            }
            Stage::Beyond => {}
            Stage::Waiting | Stage::Ready(_) => drop(self.slots.remove(&id)),
        }
        true
    }

    /// Dropped units of which nothing was said for too long.
    pub fn overdue_drops(&mut self) -> Vec<W::Id> {
        let mut overdue = Vec::new();
        for (id, slot) in &mut self.slots {
            if matches!(slot.dropped, Dropped::Since(time) if time.elapsed() >= DROP_PATIENCE) {
                slot.dropped = Dropped::Told;
                overdue.push(*id);
            }
        }
        overdue
    }

    /// The next unit to prepare, for the thread that takes ordered ones alone or for another; and
    /// whether it is ordered.
    pub fn next_to_prepare(&mut self, limits: &Limits, urgent: bool) -> Option<(Held<W>, bool)> {
        let waits = |id: &W::Id| matches!(self.slots.get(id), Some(slot) if matches!(slot.stage, Stage::Waiting));
        let next = self.ordered.iter().copied().find(waits);
        // Left to the thread that is there for it.
        let mine = urgent || self.urgent_busy || !limits.urgent;
        if let Some(id) = next.filter(|id| mine && self.is_admitted(limits, *id, true)) {
            self.urgent_busy |= urgent;
            return self.take_to_prepare(id).map(|held| (held, true));
        }
        if urgent {
            return None;
        }
        let id = self.ahead.front().copied()?;
        if !self.is_admitted(limits, id, false) {
            return None;
        }
        self.ahead.pop_front();
        self.take_to_prepare(id).map(|held| (held, false))
    }

    fn take_to_prepare(&mut self, id: W::Id) -> Option<Held<W>> {
        let slot = self.slots.get_mut(&id)?;
        slot.stage = Stage::Preparing;
        Some(Held {
            id,
            unit: Arc::clone(&slot.unit),
            spans: std::mem::take(&mut slot.spans),
        })
    }

    /// Whether there is room for one more. There always is for a unit that nothing else has to wait for:
    /// an ordered one if no other ordered one has room, any if none has. So nothing stands still. Nor does an
    /// ordered one wait for places that those made ahead have.
    fn is_admitted(&self, limits: &Limits, id: W::Id, ordered: bool) -> bool {
        let (mut ahead, mut bytes, mut any) = (0, 0_u64, false);
        for slot in self.slots.values() {
            let is_ahead = match slot.stage {
                Stage::Waiting => continue,
                Stage::Preparing | Stage::Ready(_) => true,
                Stage::Beyond => false,
            };
            ahead += usize::from(is_ahead && (slot.is_ordered || !ordered));
            bytes = bytes.saturating_add(slot.bytes);
            any |= slot.is_ordered || !ordered;
        }
        let more = self.slots.get(&id).map_or(0, |slot| slot.bytes);
        !any || (ahead < limits.ahead && bytes.saturating_add(more) <= limits.bytes)
    }

    /// A unit has been prepared, or not.
    pub fn prepared(
        &mut self,
        held: Held<W>,
        urgent: bool,
        result: Result<W::Ready, W::Error>,
    ) -> Prepared<W> {
        self.urgent_busy &= !urgent;
        let Some(slot) = self.slots.get_mut(&held.id) else {
            return Prepared::Dropped(held.id);
        };
        if slot.dropped != Dropped::No {
            self.slots.remove(&held.id);
            return Prepared::Dropped(held.id);
        }
        match result {
            Ok(ready) => {
                slot.stage = Stage::Ready(ready);
                slot.spans = held.spans;
                Prepared::Kept
            }
            Err(error) => {
                // It stays known until its end has been said.
                slot.stage = Stage::Beyond;
                self.ordered.retain(|other| *other != held.id);
                Prepared::Failed(held, error)
            }
        }
    }

    /// The next unit for the device: of those ordered the first that is prepared.
    pub fn next_for_device(&mut self, limits: &Limits) -> Option<(Held<W>, W::Ready)> {
        let behind = self.summed.len() + self.finishing;
        if self.on_device >= self.device_units || behind > 2 * limits.finishers {
            return None;
        }
        let is_ready = |id: &W::Id| matches!(self.slots.get(id), Some(slot) if matches!(slot.stage, Stage::Ready(_)));
        let at = self.ordered.iter().position(is_ready)?;
        let id = self.ordered.remove(at)?;
        let slot = self.slots.get_mut(&id)?;
        let Stage::Ready(ready) = std::mem::replace(&mut slot.stage, Stage::Beyond) else {
            return None;
        };
        self.on_device += 1;
        let held = Held {
            id,
            unit: Arc::clone(&slot.unit),
            spans: std::mem::take(&mut slot.spans),
        };
        Some((held, ready))
    }

    /// The device has handed over sums, or none.
    pub fn left_device(&mut self, summed: Option<Summed<W>>) {
        self.on_device -= 1;
        self.summed.extend(summed);
    }

    /// The next unit to finish.
    pub fn next_to_finish(&mut self) -> Option<Summed<W>> {
        let summed = self.summed.pop_front()?;
        self.finishing += 1;
        Some(summed)
    }

    /// A unit is finished, or not.
    pub fn finished(&mut self) {
        self.finishing -= 1;
    }

    /// A unit's end has been said.
    pub fn forget(&mut self, id: W::Id) {
        self.slots.remove(&id);
        self.ended.push_back(id);
        if self.ended.len() > REMEMBERED {
            self.ended.pop_front();
        }
    }

    /// Whether a unit is on the device or after it.
    pub fn is_proving(&self) -> bool {
        self.on_device > 0 || self.finishing > 0 || !self.summed.is_empty()
    }

    /// Whether a unit has been ordered and not ended.
    pub fn is_busy(&self) -> bool {
        self.is_proving() || !self.ordered.is_empty()
    }

    pub fn set_device_units(&mut self, units: usize) {
        self.device_units = units.max(1);
    }
}
