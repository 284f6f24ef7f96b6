//! The stages and the threads that attend to them.

use std::fmt::Debug;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::line::{Held, Line, Prepared, Summed};
use crate::pools::Pools;
use crate::spans::Spans;

/// What the stages do with a unit. The calls come from several threads.
pub trait Work: Send + Sync {
    /// What tells units apart.
    type Id: Copy + Debug + Eq + Hash + Send;
    /// A unit.
    type Unit: Send + Sync;
    /// What the device needs of it.
    type Ready: Send;
    /// What the device computes.
    type Sums: Send;
    /// What comes out.
    type Proof;
    /// Why nothing does.
    type Error: Send;

    /// Bytes of host memory that a unit takes from its preparation to its end.
    fn bytes(&self, unit: &Self::Unit) -> u64;

    /// Gets a unit ready, without the device.
    ///
    /// # Errors
    /// Whatever keeps it from being proven.
    fn prepare(&self, unit: &Self::Unit, spans: &mut Spans) -> Result<Self::Ready, Self::Error>;

    /// What is done on the device.
    ///
    /// # Errors
    /// Whatever keeps it from being proven.
    fn sums(
        &self,
        unit: &Self::Unit,
        ready: &Self::Ready,
        spans: &mut Spans,
    ) -> Result<Self::Sums, Self::Error>;

    /// What follows the device.
    ///
    /// # Errors
    /// Whatever keeps it from being proven.
    fn finish(
        &self,
        unit: &Self::Unit,
        ready: Self::Ready,
        sums: Self::Sums,
        spans: &mut Spans,
    ) -> Result<Self::Proof, Self::Error>;

    /// The device has done its part of a unit. Called before the unit is finished, and before the device
    /// takes another.
    fn left_device(&self, _id: Self::Id) {}

    /// A stage has panicked with this text.
    fn panicked(&self, text: &str) -> Self::Error;

    /// Called once for each unit that was not dropped.
    fn ended(
        &self,
        id: Self::Id,
        unit: &Self::Unit,
        result: Result<Self::Proof, Self::Error>,
        spans: Spans,
    );

    /// A unit that was dropped while it was prepared is gone now.
    fn dropped(&self, _id: Self::Id) {}
}

/// How much is under way at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Threads that prepare units.
    pub preparers: usize,
    /// Whether one more prepares ordered units alone, so that none waits for one that is made ahead.
    pub urgent: bool,
    /// Threads for units on the device: the most that may ever be on it.
    pub device_threads: usize,
    /// Units on the device until [`Pipeline::set_device_units`] says otherwise.
    pub device_units: usize,
    /// Threads that finish.
    pub finishers: usize,
    /// Units that are prepared, or being prepared, and not on the device yet.
    pub ahead: usize,
    /// Bytes of all units from their preparation to their end.
    pub bytes: u64,
}

impl Limits {
    /// For a device that takes `units` at a time, on a machine that gives `threads` threads.
    pub fn new(units: usize, threads: usize, bytes: u64) -> Self {
        // A small witness takes one thread for twice as long as a GPU its sums.
        let preparers = (threads / 4).clamp(1, 3);
        Self {
            preparers,
            urgent: true,
            device_threads: units.max(1),
            device_units: units.max(1),
            finishers: if threads > 2 { 2 } else { 1 },
            ahead: preparers + 1,
            bytes,
        }
    }
}

/// What a thread attends to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Preparing units.
    Prepare,
    /// Preparing ordered units alone.
    PrepareOrdered,
    /// Units on the device, one for each thread.
    Device,
    /// Finishing.
    Finish,
}

impl Role {
    /// For a thread's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "ahead",
            Self::PrepareOrdered => "prepare",
            Self::Device => "device",
            Self::Finish => "finish",
        }
    }
}

/// Units in their stages. See the [crate](crate).
pub struct Pipeline<W: Work> {
    work: W,
    limits: Limits,
    pools: Option<Pools>,
    line: Mutex<Line<W>>,
    changed: Condvar,
}

impl<W: Work> Pipeline<W> {
    /// An empty one. Units are prepared in `pools`, if there are some, or else in rayon's global
    /// pool.
    pub fn new(work: W, limits: Limits, pools: Option<Pools>) -> Self {
        Self {
            work,
            limits,
            pools,
            line: Mutex::new(Line::new(limits.device_units.max(1))),
            changed: Condvar::new(),
        }
    }

    /// What the stages do.
    pub fn work(&self) -> &W {
        &self.work
    }

    /// One for each thread that the pipeline needs; each shall [attend](Self::attend) to its role.
    pub fn roles(&self) -> impl Iterator<Item = Role> + use<W> {
        let Limits {
            preparers,
            urgent,
            device_threads,
            finishers,
            ..
        } = self.limits;
        [
            (Role::PrepareOrdered, usize::from(urgent)),
            (Role::Prepare, preparers.max(usize::from(!urgent))),
            (Role::Device, device_threads.max(1)),
            (Role::Finish, finishers.max(1)),
        ]
        .into_iter()
        .flat_map(|(role, count)| std::iter::repeat_n(role, count))
    }

    fn line(&self) -> MutexGuard<'_, Line<W>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something; whoever waits looks again.
    fn change<T>(&self, change: impl FnOnce(&mut Line<W>) -> T) -> T {
        let result = change(&mut self.line());
        self.changed.notify_all();
        result
    }

    /// Waits for something to do; `None` if there will be nothing. To take is a change as well: a unit
    /// that goes on leaves its place to another.
    fn next<T>(
        &self,
        mut take: impl FnMut(&mut Line<W>) -> Option<T>,
        is_over: impl Fn(&Line<W>) -> bool,
    ) -> Option<T> {
        let mut line = self.line();
        loop {
            if let Some(taken) = take(&mut line) {
                drop(line);
                self.changed.notify_all();
                return Some(taken);
            }
            if is_over(&line) {
                return None;
            }
            let waited = self.changed.wait(line);
            line = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn entry(&self, unit: W::Unit) -> impl FnOnce() -> (W::Unit, u64) {
        let bytes = self.work.bytes(&unit);
        move || (unit, bytes)
    }

    /// A unit to be prepared, and not proven before it is ordered.
    pub fn prepare(&self, id: W::Id, unit: W::Unit) {
        let entry = self.entry(unit);
        self.change(|line| line.prepare(id, entry));
    }

    /// Orders a unit, known or not, to be proven. One that has ended is not begun again.
    pub fn prove(&self, id: W::Id, unit: W::Unit) {
        let entry = self.entry(unit);
        self.change(|line| line.prove(id, entry));
    }

    /// Drops a unit that is not on the device yet; says whether that is done. If not, it is being
    /// prepared: [`Work::dropped`] will be called, unless [`Self::overdue_drops`] has named it.
    pub fn discard(&self, id: W::Id) -> bool {
        self.change(|line| line.discard(id))
    }

    /// Units that were dropped and have been prepared for too long since: they count as gone.
    pub fn overdue_drops(&self) -> Vec<W::Id> {
        self.line().overdue_drops()
    }

    /// How many units may be on the device at a time, at most as many as there are threads for it.
    pub fn set_device_units(&self, units: usize) {
        self.change(|line| line.set_device_units(units));
    }

    /// Takes no more units to any stage but the last from now on: what is on the device ends, and
    /// then all threads return.
    pub fn stop(&self) {
        self.change(|line| line.stopping = true);
    }

    /// Whether a unit has been ordered and not ended.
    pub fn is_busy(&self) -> bool {
        self.line().is_busy()
    }

    /// Whether a unit is on the device or after it.
    pub fn is_proving(&self) -> bool {
        self.line().is_proving()
    }

    /// Attends to a stage until [stopped](Self::stop). The threads of the last one return when
    /// nothing is under way any more.
    pub fn attend(&self, role: Role) {
        match role {
            Role::Prepare => self.attend_to_preparing(false),
            Role::PrepareOrdered => self.attend_to_preparing(true),
            Role::Device => self.attend_to_device(),
            Role::Finish => self.attend_to_finishing(),
        }
    }

    fn attend_to_preparing(&self, urgent: bool) {
        let take = |line: &mut Line<W>| {
            let stopping = line.stopping;
            (!stopping).then(|| line.next_to_prepare(&self.limits, urgent))?
        };
        while let Some((mut held, is_ordered)) = self.next(take, |line| line.stopping) {
            let (unit, spans) = (&*held.unit, &mut held.spans);
            let mut prepare = || self.caught(|| self.work.prepare(unit, spans));
            let result = match &self.pools {
                Some(pools) => pools.of(is_ordered).install(prepare),
                None => prepare(),
            };
            match self.change(|line| line.prepared(held, urgent, result)) {
                Prepared::Kept => {}
                Prepared::Dropped(id) => self.work.dropped(id),
                Prepared::Failed(held, error) => self.end(held, Err(error)),
            }
        }
    }

    fn attend_to_device(&self) {
        let take = |line: &mut Line<W>| {
            let stopping = line.stopping;
            (!stopping).then(|| line.next_for_device(&self.limits))?
        };
        while let Some((mut held, ready)) = self.next(take, |line| line.stopping) {
            let (unit, spans) = (&*held.unit, &mut held.spans);
            match self.caught(|| self.work.sums(unit, &ready, spans)) {
                Ok(sums) => {
                    self.work.left_device(held.id);
                    let summed = Summed { held, ready, sums };
                    self.change(|line| line.left_device(Some(summed)));
                }
                Err(error) => {
                    drop(ready);
                    self.end(held, Err(error));
                    self.change(|line| line.left_device(None));
                }
            }
        }
    }

    fn attend_to_finishing(&self) {
        let is_over = |line: &Line<W>| line.stopping && !line.is_proving();
        while let Some(summed) = self.next(Line::next_to_finish, is_over) {
            let Summed {
                mut held,
                ready,
                sums,
            } = summed;
            let (unit, spans) = (&*held.unit, &mut held.spans);
            let result = self.caught(|| self.work.finish(unit, ready, sums, spans));
            self.end(held, result);
            self.change(Line::finished);
        }
    }

    fn end(&self, held: Held<W>, result: Result<W::Proof, W::Error>) {
        let Held { id, unit, spans } = held;
        self.work.ended(id, &unit, result, spans);
        self.change(|line| line.forget(id));
    }

    fn caught<T>(&self, work: impl FnOnce() -> Result<T, W::Error>) -> Result<T, W::Error> {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            Err(self.work.panicked(text.unwrap_or("no message")))
        })
    }
}
