//! What the service needs of a device, and how a device talks back.

use std::sync::Arc;

use filecoin::CircuitId;
use store::{Digest, JobId, JobRecord, OpenJob, Timings, UnitKey};

use super::gate::Gate;
use super::message::{Inbox, Message};
use crate::Error;
use crate::scheduler::{DeviceId, Event, Fault, Incarnation, LeaseId};

/// What does not change about a job while it is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobInfo {
    /// Its id.
    pub id: JobId,
    /// The client's name for it.
    pub name: String,
    /// Its circuit.
    pub circuit: CircuitId,
    /// Digest of its payload: [`Port::payload`] reads it.
    pub digest: Digest,
    /// How many units it has.
    pub units: u32,
}

impl JobInfo {
    /// Of a stored job; `None` if this program does not know the circuit.
    pub(super) fn of(record: &JobRecord) -> Option<Self> {
        Some(Self {
            id: record.id,
            name: record.name.clone(),
            circuit: record.circuit.parse().ok()?,
            digest: record.digest,
            units: record.units,
        })
    }

    pub(super) fn of_open(open: &OpenJob) -> Option<Self> {
        Self::of(&open.job)
    }
}

/// A unit for a device.
#[derive(Debug, Clone)]
pub struct Task {
    /// Under this number the device answers.
    pub lease: LeaseId,
    /// Which unit.
    pub unit: UnitKey,
    /// Of which job.
    pub job: Arc<JobInfo>,
}

/// What a device hands over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitProof {
    /// The proof of the unit, as it goes into the job's proof.
    pub bytes: Vec<u8>,
    /// What it took.
    pub timings: Timings,
}

/// Something that proves units: the process of a worker, or a stand-in.
///
/// The calls come from the service's loop and must return at once. What follows from them is
/// told through the [`Port`] that [`Device::start`] gives. A device may get calls that have been
/// overtaken by its own end; it ignores leases that it does not know.
pub trait Device: Send + Sync {
    /// For people.
    fn name(&self) -> String;
    /// The circuits that it can serve; [`Port::serves`] tells of more.
    fn circuits(&self) -> Vec<CircuitId>;
    /// How many units run on it at a time, until it says otherwise ([`Port::takes`]).
    fn at_a_time(&self) -> usize {
        1
    }
    /// How many more of WinningPoSt may run beside those.
    fn lane_places(&self) -> usize {
        0
    }
    /// How many units beside the running ones it prepares, and as many of WinningPoSt.
    fn look_ahead(&self) -> usize;
    /// Starts the process; it says [`Port::ready`], then [`Port::heartbeat`] every few seconds.
    /// If it cannot be started, [`Port::stopped`] says why.
    fn start(&self, port: Port);
    /// Gets a unit ready.
    fn prepare(&self, task: Task);
    /// Proves a unit, prepared or not.
    fn prove(&self, task: Task);
    /// Drops a unit that was only prepared; [`Port::discarded`] says when.
    fn discard(&self, lease: LeaseId);
    /// Ends the process; [`Port::stopped`] says when it is gone, with all its memory.
    fn stop(&self, cause: &str);
}

/// A device's process talks to the service through this. Cheap to clone.
#[derive(Clone)]
pub struct Port {
    pub(super) device: DeviceId,
    pub(super) incarnation: Incarnation,
    pub(super) inbox: Inbox,
    pub(super) gate: Arc<Gate>,
}

impl Port {
    /// The number of the process.
    pub fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// A job's payload, checked.
    ///
    /// Errors: the store's, and [`Error::Stopped`].
    pub fn payload(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        self.gate.read(|store| store.payload(digest))
    }

    fn tell(&self, event: Event) {
        self.inbox.send(Message::Event(event));
    }

    /// The process takes units.
    pub fn ready(&self) {
        let (device, incarnation) = (self.device, self.incarnation);
        self.tell(Event::DeviceReady {
            device,
            incarnation,
        });
    }

    /// The process is alive.
    pub fn heartbeat(&self) {
        let (device, incarnation) = (self.device, self.incarnation);
        self.tell(Event::Heartbeat {
            device,
            incarnation,
        });
    }

    /// The process is gone.
    pub fn stopped(&self, cause: &str) {
        let (device, incarnation) = (self.device, self.incarnation);
        self.tell(Event::DeviceStopped {
            device,
            incarnation,
            cause: cause.to_owned(),
        });
    }

    /// The device has a circuit's key, or no longer.
    pub fn key_loaded(&self, circuit: CircuitId, loaded: bool) {
        self.tell(Event::KeyLoaded {
            device: self.device,
            circuit,
            loaded,
        });
    }

    /// The device can serve one more circuit from now on; of the device, not of its process.
    pub fn serves(&self, circuit: CircuitId) {
        let device = self.device;
        self.tell(Event::CircuitServed { device, circuit });
    }

    /// So many units run on the device at a time from now on.
    pub fn takes(&self, at_a_time: usize) {
        let (device, incarnation) = (self.device, self.incarnation);
        self.tell(Event::DeviceTakes {
            device,
            incarnation,
            at_a_time,
        });
    }

    /// The device has done its part of the unit and is free for the next.
    pub fn left_device(&self, lease: LeaseId) {
        self.tell(Event::UnitLeftDevice { lease });
    }

    /// The unit is proven.
    pub fn returned(&self, lease: LeaseId, proof: UnitProof) {
        self.inbox.send(Message::Returned { lease, proof });
    }

    /// The unit is not proven.
    pub fn failed(&self, lease: LeaseId, fault: Fault, cause: &str) {
        self.tell(Event::UnitFailed {
            lease,
            fault,
            cause: cause.to_owned(),
        });
    }

    /// The unit is dropped.
    pub fn discarded(&self, lease: LeaseId) {
        self.tell(Event::UnitDiscarded { lease });
    }
}
