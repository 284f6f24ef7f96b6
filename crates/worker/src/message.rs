//! What the two ends say to each other, as JSON in frames. Payloads have a frame of their own, so
//! that megabytes are not written as text.
//!
//! The worker begins with [`Report::Hello`] and, once its device is tested, [`Report::Ready`]. It
//! asks for a payload with [`Report::Want`] when it has a unit of a job that it does not know.

use std::io::{Read, Write};

use engine::scheduler::{Fault, LeaseId};
use filecoin::CircuitId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use store::{Digest, JobId, Timings};

use crate::Error;
use crate::frame::{self, Frame, Kind};

/// The longest cause of a failure, bytes.
const CAUSE_LIMIT: usize = 4_000;
/// The most phases of a unit.
const PHASE_LIMIT: usize = 256;

/// A unit of a job, as the worker needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Under this number the worker answers.
    #[serde(with = "lease")]
    pub lease: LeaseId,
    /// The job.
    #[serde(with = "text")]
    pub job: JobId,
    /// The client's name for it, for the log.
    pub name: String,
    /// Its circuit.
    #[serde(with = "text")]
    pub circuit: CircuitId,
    /// Digest of its payload.
    #[serde(with = "digest")]
    pub digest: Digest,
    /// Which unit.
    pub index: u32,
    /// Of how many.
    pub units: u32,
}

/// From the daemon to the worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Get a unit ready while another is proven.
    Prepare(Unit),
    /// Prove a unit, prepared or not.
    Prove(Unit),
    /// Drop a unit that was only prepared.
    Discard {
        /// Which.
        #[serde(with = "lease")]
        lease: LeaseId,
    },
    /// The payload that was asked for cannot be had.
    NoPayload {
        /// Which.
        #[serde(with = "digest")]
        digest: Digest,
        /// Whether it never can.
        damaged: bool,
        /// Why.
        cause: String,
    },
    /// Load a circuit's key; [`Report::Preloaded`] answers.
    Preload {
        /// Number of the question.
        question: u64,
        /// The circuit.
        #[serde(with = "text")]
        circuit: CircuitId,
    },
    /// Let go of a circuit's key; [`Report::Evicted`] answers.
    Evict {
        /// Number of the question.
        question: u64,
        /// The circuit.
        #[serde(with = "text")]
        circuit: CircuitId,
    },
    /// End, when the unit at work is done.
    Stop,
}

/// What a worker says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the program.
    pub program: String,
    /// Its device in words.
    pub device: String,
    /// `GPU-…`, of a GPU.
    pub uuid: Option<String>,
    /// Memory of the device, bytes, if it has its own.
    pub memory_bytes: Option<u64>,
    /// The circuits that it can prove.
    #[serde(with = "circuits")]
    pub circuits: Vec<CircuitId>,
    /// How many units it prepares beside the running one.
    pub look_ahead: usize,
    /// Seconds between its heartbeats, at most.
    pub heartbeat_s: u64,
}

/// A span of work on a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// What was done.
    pub name: String,
    /// What it counts as.
    pub part: Part,
    /// When it began: microseconds since the Unix epoch.
    pub start_us: u64,
    /// How long it took: microseconds.
    pub time_us: u64,
}

/// What a phase counts as in a job's timings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Loading a key.
    Load,
    /// Decoding, vanilla check and witness.
    Witness,
    /// Proving.
    Device,
}

/// The sums of the phases, rounded to milliseconds.
pub fn timings(phases: &[Phase]) -> Timings {
    let sum = |part: Part| {
        let of_part = phases.iter().filter(|phase| phase.part == part);
        let us: u64 = of_part.fold(0, |sum, phase| sum.saturating_add(phase.time_us));
        us.saturating_add(500) / 1_000
    };
    Timings {
        load_ms: sum(Part::Load),
        witness_ms: sum(Part::Witness),
        device_ms: sum(Part::Device),
    }
}

/// From the worker to the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The first one.
    Hello(Hello),
    /// Units may come.
    Ready,
    /// The worker is alive and, if it has a unit, gets on with it.
    Heartbeat {
        /// What it does at present, in words; empty for nothing.
        stage: String,
        /// How much of it is done, and of how much, in units of the stage.
        done: (u64, u64),
        /// Bytes of the device's memory that are free, of a device with memory of its own.
        #[serde(default)]
        memory_free: Option<u64>,
    },
    /// A circuit's key is loaded now, or no longer.
    KeyLoaded {
        /// The circuit.
        #[serde(with = "text")]
        circuit: CircuitId,
        /// Whether it is.
        loaded: bool,
        /// Its bytes.
        bytes: u64,
    },
    /// So many units may be on the device at a time from now on.
    Takes {
        /// At least one.
        at_a_time: usize,
    },
    /// The worker needs a payload.
    Want {
        /// Which.
        #[serde(with = "digest")]
        digest: Digest,
    },
    /// The device has done its part of a unit and is free for the next.
    LeftDevice {
        /// Which.
        #[serde(with = "lease")]
        lease: LeaseId,
    },
    /// A unit is proven.
    Returned {
        /// Which.
        #[serde(with = "lease")]
        lease: LeaseId,
        /// Its proof.
        #[serde(with = "bytes")]
        proof: Vec<u8>,
        /// What it took.
        phases: Vec<Phase>,
    },
    /// A unit is not proven.
    Failed {
        /// Which.
        #[serde(with = "lease")]
        lease: LeaseId,
        /// How bad it is.
        #[serde(with = "fault")]
        fault: Fault,
        /// One line.
        cause: String,
    },
    /// A unit is dropped.
    Discarded {
        /// Which.
        #[serde(with = "lease")]
        lease: LeaseId,
    },
    /// Answer to [`Order::Preload`].
    Preloaded {
        /// Number of the question.
        question: u64,
        /// Whether it was loaded before, and how long loading took in milliseconds; or why it
        /// cannot be loaded.
        result: Result<(bool, u64), String>,
    },
    /// Answer to [`Order::Evict`].
    Evicted {
        /// Number of the question.
        question: u64,
        /// Whether it was loaded.
        was_loaded: bool,
        /// Bytes that became free; 0 for a key in use, which stays.
        freed: u64,
    },
}

impl Report {
    /// A failure, its cause cut to what a frame holds.
    pub fn failed(lease: LeaseId, fault: Fault, cause: &str) -> Self {
        let end = (0..=CAUSE_LIMIT.min(cause.len())).rev();
        let end = end.into_iter().find(|&at| cause.is_char_boundary(at));
        let cause = cause[..end.unwrap_or(0)].to_owned();
        Self::Failed {
            lease,
            fault,
            cause,
        }
    }

    /// A proof, its phases cut to what a frame holds.
    pub fn returned(lease: LeaseId, proof: Vec<u8>, mut phases: Vec<Phase>) -> Self {
        phases.truncate(PHASE_LIMIT);
        Self::Returned {
            lease,
            proof,
            phases,
        }
    }
}

/// What a worker hears.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// An order.
    Order(Order),
    /// A payload, not checked against its digest: the store has done that.
    Payload(Digest, Vec<u8>),
}

/// Sends an order or a report.
///
/// # Errors
/// As [`frame::write`].
pub fn send<M: Serialize>(writer: &mut impl Write, message: &M) -> Result<(), Error> {
    let body = serde_json::to_vec(message).map_err(|e| Error::Message(e.to_string()))?;
    frame::write(writer, Kind::Message, &[&body])
}

/// Sends a payload.
///
/// # Errors
/// As [`frame::write`].
pub fn send_payload(writer: &mut impl Write, digest: &Digest, bytes: &[u8]) -> Result<(), Error> {
    frame::write(writer, Kind::Payload, &[digest.as_bytes(), bytes])
}

/// Reads what the daemon says; `None` at the end.
///
/// # Errors
/// As [`frame::read`], and [`Error::Message`].
pub fn hear(reader: &mut impl Read) -> Result<Option<Heard>, Error> {
    let Some(Frame { kind, mut body }) = frame::read(reader)? else {
        return Ok(None);
    };
    if kind == Kind::Message {
        return Ok(Some(Heard::Order(parse(&body)?)));
    }
    let digest = body.first_chunk().copied().map(Digest::new);
    let digest = digest.ok_or_else(|| Error::Message("a payload without a digest".to_owned()))?;
    body.drain(..32);
    Ok(Some(Heard::Payload(digest, body)))
}

/// Reads what the worker says; `None` at the end.
///
/// # Errors
/// As [`frame::read`], and [`Error::Message`].
pub fn hear_report(reader: &mut impl Read) -> Result<Option<Report>, Error> {
    match frame::read(reader)? {
        None => Ok(None),
        Some(frame) if frame.kind == Kind::Message => parse(&frame.body).map(Some),
        Some(_) => Err(Error::Unexpected("a payload from a worker")),
    }
}

fn parse<M: DeserializeOwned>(body: &[u8]) -> Result<M, Error> {
    serde_json::from_slice(body).map_err(|e| Error::Message(e.to_string()))
}

/// Values with a text form.
mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<T: Display, S: Serializer>(value: &T, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(value)
    }

    pub fn deserialize<'de, T, D>(input: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        String::deserialize(input)?
            .parse()
            .map_err(de::Error::custom)
    }
}

mod circuits {
    use filecoin::CircuitId;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(circuits: &[CircuitId], out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(circuits.iter().map(|circuit| circuit.name()))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<CircuitId>, D::Error> {
        let names = Vec::<String>::deserialize(input)?;
        let circuits = names.iter().map(|name| name.parse());
        circuits
            .collect::<Result<_, _>>()
            .map_err(de::Error::custom)
    }
}

mod lease {
    use engine::scheduler::LeaseId;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(lease: &LeaseId, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u64(lease.0)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<LeaseId, D::Error> {
        u64::deserialize(input).map(LeaseId)
    }
}

mod digest {
    use serde::{Deserialize, Deserializer, Serializer, de};
    use store::Digest;

    pub fn serialize<S: Serializer>(digest: &Digest, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(digest)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Digest, D::Error> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(String::deserialize(input)?, &mut bytes).map_err(de::Error::custom)?;
        Ok(Digest::new(bytes))
    }
}

mod bytes {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(bytes: &[u8], out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&hex::encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<u8>, D::Error> {
        hex::decode(String::deserialize(input)?).map_err(de::Error::custom)
    }
}

mod fault {
    use engine::scheduler::Fault;
    use serde::{Deserialize, Deserializer, Serializer, de};

    const NAMES: [(Fault, &str); 5] = [
        (Fault::Request, "request"),
        (Fault::Parameters, "parameters"),
        (Fault::Payload, "payload"),
        (Fault::Try, "try"),
        (Fault::Device, "device"),
    ];

    pub fn serialize<S: Serializer>(fault: &Fault, out: S) -> Result<S::Ok, S::Error> {
        let name = NAMES.iter().find(|(known, _)| known == fault);
        out.serialize_str(name.map_or("try", |(_, name)| name))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Fault, D::Error> {
        let name = String::deserialize(input)?;
        let known = NAMES.iter().find(|(_, known)| *known == name);
        known
            .map(|(fault, _)| *fault)
            .ok_or_else(|| de::Error::custom("unknown fault"))
    }
}

#[cfg(test)]
mod tests;
