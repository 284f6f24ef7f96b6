//! One test per rule, on a small world with a hand-driven clock.

mod admission;
mod failures;
mod lane;
mod leaving;
mod order;

use store::{Digest, JobId, Priority, UnitKey};

use super::*;
use filecoin::SectorSize;

pub(super) const POREP: CircuitId = CircuitId::new(ProofKind::Porep, SectorSize::KiB2);
pub(super) const POREP_8M: CircuitId = CircuitId::new(ProofKind::Porep, SectorSize::MiB8);
pub(super) const SNAP: CircuitId = CircuitId::new(ProofKind::Snap, SectorSize::KiB2);
pub(super) const WINDOW: CircuitId = CircuitId::new(ProofKind::Window, SectorSize::KiB2);
pub(super) const WINNING: CircuitId = CircuitId::new(ProofKind::Winning, SectorSize::KiB2);

/// A scheduler, its clock, and what it did last.
struct World {
    scheduler: Scheduler,
    now: Millis,
    /// Answer `Insert` and `Restart` at once.
    stores: bool,
    log: Vec<Action>,
    tickets: u64,
}

/// A unit on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begun {
    device: DeviceId,
    lease: LeaseId,
    unit: UnitKey,
}

fn config() -> Config {
    Config {
        budget_bytes: 1000,
        lane_bytes: 100,
        // Most tests are not about heartbeats.
        heartbeat_ms: Millis::MAX,
        ..Config::default()
    }
}

fn submission(number: u8, circuit: CircuitId, units: u32) -> Submission {
    Submission {
        id: JobId::from_bytes([number; 16]),
        request_id: format!("job-{number}"),
        digest: Digest::of(&[number]),
        client: "a".to_owned(),
        circuit,
        priority: match circuit.kind {
            ProofKind::Winning => Priority::Critical,
            ProofKind::Window => Priority::High,
            _ => Priority::Normal,
        },
        deadline_ms: None,
        units,
        unit_bytes: 10,
        payload_bytes: 100,
    }
}

impl World {
    fn new(config: Config) -> Self {
        let scheduler = Scheduler::new(config, 0);
        Self {
            scheduler,
            now: 0,
            stores: true,
            log: Vec::new(),
            tickets: 0,
        }
    }

    /// With so many devices, ready, that serve all circuits and do not look ahead.
    fn with_devices(config: Config, devices: u32) -> Self {
        let mut world = Self::new(config);
        for id in 0..devices {
            world.add_device(id, CircuitId::all().collect(), 0);
        }
        world
    }

    fn add_device(&mut self, id: u32, circuits: Vec<CircuitId>, look_ahead: usize) {
        let id = DeviceId(id);
        self.event(Event::DeviceAdded(DeviceSpec {
            id,
            circuits,
            at_a_time: 1,
            lane_places: 0,
            look_ahead,
        }));
        self.ready(id.0, 1);
    }

    /// A device for all circuits that is not ready yet.
    fn plug_in(&mut self, id: u32, at_a_time: usize, look_ahead: usize) {
        self.event(Event::DeviceAdded(DeviceSpec {
            id: DeviceId(id),
            circuits: CircuitId::all().collect(),
            at_a_time,
            lane_places: 0,
            look_ahead,
        }));
    }

    fn ready(&mut self, device: u32, incarnation: Incarnation) {
        self.event(Event::DeviceReady {
            device: DeviceId(device),
            incarnation,
        });
    }

    fn event(&mut self, event: Event) -> Vec<Action> {
        let mut out = Vec::new();
        self.scheduler.step(self.now, event, &mut out);
        self.scheduler.audit();
        let stored: Vec<_> = out
            .iter()
            .filter_map(|action| match action {
                Action::Persist(Write::Insert(job)) => Some(job.id),
                Action::Persist(Write::Restart { job, .. }) => Some(*job),
                _ => None,
            })
            .collect();
        self.log.extend(out.iter().cloned());
        if self.stores {
            for job in stored {
                out.extend(self.event(Event::Stored { job }));
            }
        }
        out
    }

    /// Lets time pass, with a tick at every time the scheduler asks for; devices stay alive.
    fn pass(&mut self, span: Millis) -> Vec<Action> {
        let end = self.now + span;
        let mut out = Vec::new();
        loop {
            let devices: Vec<_> = self
                .scheduler
                .devices
                .values()
                .map(|d| (d.id, d.incarnation))
                .collect();
            for (device, incarnation) in devices {
                out.extend(self.event(Event::Heartbeat {
                    device,
                    incarnation,
                }));
            }
            match self.scheduler.next_wake() {
                Some(wake) if wake <= end => {
                    self.now = wake;
                    out.extend(self.event(Event::Tick));
                    assert_ne!(
                        self.scheduler.next_wake(),
                        Some(wake),
                        "a tick does what is due"
                    );
                }
                _ => break,
            }
        }
        self.now = end;
        out.extend(self.event(Event::Tick));
        out
    }

    fn submit(&mut self, submission: Submission) -> (Reply, Vec<Action>) {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let out = self.event(Event::Submit {
            ticket,
            submission: Box::new(submission),
        });
        let reply = out.iter().find_map(|action| match action {
            Action::Reply {
                ticket: answered,
                reply,
            } if *answered == ticket => Some(reply.clone()),
            _ => None,
        });
        (
            reply.expect("every submission is answered once stored"),
            out,
        )
    }

    fn submit_ok(&mut self, submission: Submission) -> (JobId, Vec<Action>) {
        match self.submit(submission) {
            (Reply::Admitted { job, .. }, out) => (job, out),
            (other, _) => panic!("not admitted: {other:?}"),
        }
    }

    fn refused(&mut self, submission: Submission) -> Refusal {
        match self.submit(submission).0 {
            Reply::Refused(refusal) => refusal,
            other => panic!("not refused: {other:?}"),
        }
    }

    fn cancel(&mut self, name: &str) -> (Option<JobId>, bool) {
        let out = self.event(Event::Cancel {
            ticket: Ticket(0),
            name: name.to_owned(),
        });
        match out
            .iter()
            .find(|action| matches!(action, Action::Reply { .. }))
        {
            Some(Action::Reply {
                reply: Reply::Cancelled { job, was_running },
                ..
            }) => (*job, *was_running),
            other => panic!("no answer: {other:?}"),
        }
    }

    fn key_loaded(&mut self, device: u32, circuit: CircuitId, loaded: bool) -> Vec<Action> {
        self.event(Event::KeyLoaded {
            device: DeviceId(device),
            circuit,
            loaded,
        })
    }

    fn returned(&mut self, lease: LeaseId) -> Vec<Action> {
        self.event(Event::UnitReturned { lease })
    }

    fn judged(&mut self, lease: LeaseId, verdict: Verdict) -> Vec<Action> {
        self.event(Event::UnitJudged { lease, verdict })
    }

    /// The device ends its unit, the proof is right, the job is joined if it is whole.
    fn prove(&mut self, begun: Begun) -> Vec<Action> {
        let mut out = self.returned(begun.lease);
        out.extend(self.judged(begun.lease, Verdict::Right));
        let whole = out
            .iter()
            .any(|action| matches!(action, Action::Assemble { .. }));
        if whole {
            let (job, attempt) = (begun.unit.job, begun.unit.attempt);
            out.extend(self.event(Event::Assembled {
                job,
                attempt,
                result: Ok(()),
            }));
        }
        out
    }

    fn fail(&mut self, begun: Begun, fault: Fault) -> Vec<Action> {
        self.event(Event::UnitFailed {
            lease: begun.lease,
            fault,
            cause: "broke".to_owned(),
        })
    }

    /// Runs units to their end, one after the other, in the order in which they began, until
    /// nothing runs. Returns that order.
    fn run_down(&mut self, first: &[Action]) -> Vec<UnitKey> {
        let mut waiting: std::collections::VecDeque<_> = begun(first).into();
        let mut order = Vec::new();
        while let Some(next) = waiting.pop_front() {
            order.push(next.unit);
            self.now += 1000;
            let out = self.prove(next);
            waiting.extend(begun(&out));
        }
        order
    }
}

fn begun(actions: &[Action]) -> Vec<Begun> {
    let begun = |action: &Action| match *action {
        Action::Start {
            device,
            lease,
            unit,
        } => Some(Begun {
            device,
            lease,
            unit,
        }),
        _ => None,
    };
    actions.iter().filter_map(begun).collect()
}

/// The only unit that began.
fn one(actions: &[Action]) -> Begun {
    match begun(actions)[..] {
        [begun] => begun,
        ref other => panic!("{} units began: {other:?}", other.len()),
    }
}

fn prepared(actions: &[Action]) -> Vec<Begun> {
    let prepared = |action: &Action| match *action {
        Action::Prepare {
            device,
            lease,
            unit,
        } => Some(Begun {
            device,
            lease,
            unit,
        }),
        _ => None,
    };
    actions.iter().filter_map(prepared).collect()
}

fn ends(actions: &[Action]) -> Vec<(JobId, Outcome)> {
    let ended = |action: &Action| match action {
        Action::Ended { job, outcome } => Some((*job, outcome.clone())),
        _ => None,
    };
    actions.iter().filter_map(ended).collect()
}

/// The code with which the only job that ended failed.
fn failure_code(actions: &[Action]) -> String {
    match &ends(actions)[..] {
        [(_, Outcome::Failed(failure))] => {
            assert!(!failure.message.is_empty() && !failure.message.contains('\n'));
            failure.code.clone()
        }
        other => panic!("not one failure: {other:?}"),
    }
}

fn stops(actions: &[Action]) -> Vec<DeviceId> {
    let stop = |action: &Action| match action {
        Action::StopDevice { device, .. } => Some(*device),
        _ => None,
    };
    actions.iter().filter_map(stop).collect()
}
