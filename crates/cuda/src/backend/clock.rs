//! The device's events on one clock.

use std::sync::Mutex;
use std::time::Instant;

use super::lock;
use crate::device::{Device, Event, Stream};
use crate::error::Result;

/// How old the event may be that others are measured from. The driver gives differences in
/// milliseconds as `f32`: of this one they are exact to a microsecond.
const AGE_LIMIT_NS: u64 = 10_000_000_000;

/// Tells when events were reached, in nanoseconds since an instant of the host.
pub struct Clock {
    epoch: Instant,
    reference: Mutex<Reference>,
}

struct Reference {
    event: Event,
    ns: u64,
}

impl Clock {
    /// Begins now.
    ///
    /// # Errors
    /// A driver that fails.
    pub fn new(device: &Device) -> Result<Self> {
        let stream: Stream = device.stream()?;
        let event = stream.record()?;
        event.synchronize()?;
        Ok(Clock {
            epoch: Instant::now(),
            reference: Mutex::new(Reference { event, ns: 0 }),
        })
    }

    /// The host's instant 0, exact to the time that waiting for an event takes: some microseconds.
    pub fn epoch(&self) -> Instant {
        self.epoch
    }

    /// When `event` was reached; waits for it.
    ///
    /// # Errors
    /// A driver that fails, and failures of the work before.
    pub fn ns(&self, event: &Event) -> Result<u64> {
        let reference = lock(&self.reference);
        Self::since(&reference, event)
    }

    /// As [`Self::ns`]; later events are measured from one that `stream` records now, if the last such
    /// one is old. What is on the stream has been waited for.
    ///
    /// # Errors
    /// As [`Self::ns`].
    pub fn follow(&self, stream: &Stream) -> Result<()> {
        let mut reference = lock(&self.reference);
        if self.epoch.elapsed().as_nanos() as u64 > reference.ns + AGE_LIMIT_NS {
            let event = stream.record()?;
            let ns = Self::since(&reference, &event)?;
            *reference = Reference { event, ns };
        }
        Ok(())
    }

    fn since(reference: &Reference, event: &Event) -> Result<u64> {
        let ms = f64::from(event.elapsed_ms(&reference.event)?);
        Ok(reference.ns.saturating_add_signed((ms * 1e6) as i64))
    }
}
