//! Who wants to see what the service does, as it does it.

use store::Timings;

use crate::scheduler::{Action, Event, LeaseId, Millis};

/// Sees everything that happens, in order, for metrics and timelines. Called from the service's
/// loop: an implementation returns at once and does not call the service.
pub trait Observer: Send + Sync {
    /// Something has happened; the scheduler hears of it next.
    fn event(&self, now: Millis, event: &Event);

    /// A device has handed over the proof of a unit, not yet checked, and says what it took. The
    /// event that follows is [`Event::UnitReturned`].
    fn returned(&self, now: Millis, lease: LeaseId, timings: &Timings);

    /// An action is carried out; what it depends on is durable.
    fn action(&self, now: Millis, action: &Action);
}

/// Sees nothing.
pub(super) struct Nobody;

impl Observer for Nobody {
    fn event(&self, _now: Millis, _event: &Event) {}
    fn returned(&self, _now: Millis, _lease: LeaseId, _timings: &Timings) {}
    fn action(&self, _now: Millis, _action: &Action) {}
}
