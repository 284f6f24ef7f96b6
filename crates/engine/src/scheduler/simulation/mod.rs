//! A simulated world: random clients and devices that fail in every way, a fake clock, and an
//! independent observer that checks what the scheduler promises.
//!
//! Checked after every event: the budget, one unit per device and one device per unit, that no
//! idle device is left without the work it could do (no lost wake-up), and that every accepted
//! attempt ends exactly once. Checked at each start: the bound on overdue jobs, and that
//! WinningPoSt starts with the first device that is free. Now and then: [`Scheduler::audit`].
//!
//! `CUZK_SIMULATION_EVENTS` and `CUZK_SIMULATION_SEED` change length and seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use filecoin::SectorSize;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use store::{Digest, JobId, Priority};

mod observer;
mod world;

use super::*;
use observer::Books;
use world::Process;

const DEVICES: u32 = 4;
const BUDGET: u64 = 1_000;
const LANE: u64 = 120;
/// Events per run of the test suite; a long run is asked for by the environment.
const EVENTS: u64 = 100_000;

struct Simulation {
    scheduler: Scheduler,
    rng: ChaCha8Rng,
    now: Millis,
    future: BinaryHeap<Reverse<(Millis, u64, usize)>>,
    events: Vec<Option<Event>>,
    order: u64,
    processes: BTreeMap<DeviceId, Process>,
    books: Books,
    numbers: u64,
    /// Devices fail and units go wrong.
    faults: bool,
    /// From the first event on nothing fails, and the budget stays.
    calm: bool,
    /// Largest unit of a WinningPoSt.
    lane_unit_most: u64,
    pending: BTreeMap<Ticket, Submission>,
}

fn settings() -> Config {
    Config {
        budget_bytes: BUDGET,
        lane_bytes: LANE,
        max_jobs: 60,
        max_payload_bytes: 20_000,
        patience_ms: 60_000,
        unit_limit_ms: PerKind {
            porep: 20_000,
            snap: 20_000,
            window: 20_000,
            winning: 5_000,
        },
        judge_limit_ms: 3_000,
        assembly_limit_ms: 5_000,
        heartbeat_ms: 5_000,
        start_limit_ms: 10_000,
        stop_limit_ms: 4_000,
        restart_ms: (500, 8_000),
        no_device_ms: 30_000,
        weights: [("client 0".to_owned(), 3)].into(),
        ..Config::default()
    }
}

/// How many units a device takes.
fn at_a_time(device: u32) -> usize {
    1 + device as usize % 2
}

/// The device that has places for WinningPoSts besides, if one has.
const WITH_LANE_PLACES: u32 = 1;

impl Simulation {
    /// `lane_places`: how many one of the devices has.
    fn new(seed: u64, lane_places: usize) -> Self {
        let mut simulation = Self {
            scheduler: Scheduler::new(settings(), 0),
            rng: ChaCha8Rng::seed_from_u64(seed),
            now: 0,
            future: BinaryHeap::new(),
            events: Vec::new(),
            order: 0,
            processes: BTreeMap::new(),
            books: Books::default(),
            numbers: 0,
            faults: true,
            calm: false,
            lane_unit_most: LANE,
            pending: BTreeMap::new(),
        };
        for id in 0..DEVICES {
            // The last device serves PoSt alone, as a small card would.
            let small = id + 1 == DEVICES;
            let post = |c: &CircuitId| matches!(c.kind, ProofKind::Window | ProofKind::Winning);
            let circuits = CircuitId::all().filter(|c| !small || post(c)).collect();
            let id = DeviceId(id);
            let look_ahead = id.0 as usize % 3;
            let at_a_time = at_a_time(id.0);
            let lane_places = if id.0 == WITH_LANE_PLACES {
                lane_places
            } else {
                0
            };
            simulation.processes.insert(id, Process::default());
            simulation.later(
                0,
                Event::DeviceAdded(DeviceSpec {
                    id,
                    circuits,
                    at_a_time,
                    lane_places,
                    look_ahead,
                }),
            );
        }
        simulation
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.rng.next_u64() % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn later(&mut self, delay: Millis, event: Event) {
        self.order += 1;
        self.events.push(Some(event));
        self.future.push(Reverse((
            self.now + delay,
            self.order,
            self.events.len() - 1,
        )));
        if self.events.len() > 100_000 {
            self.compact();
        }
    }

    /// Forgets events that have happened.
    fn compact(&mut self) {
        let mut old = std::mem::take(&mut self.events);
        for Reverse((time, order, at)) in std::mem::take(&mut self.future) {
            self.events.push(old[at].take());
            self.future
                .push(Reverse((time, order, self.events.len() - 1)));
        }
    }

    /// A random client does something.
    fn client(&mut self) {
        match self.below(20) {
            0 => {
                let name = format!("id {}", self.below(400));
                self.step(Event::Cancel {
                    ticket: Ticket(0),
                    name,
                });
            }
            1..4 if self.calm => self.submit(),
            1 if self.one_in(20) => {
                let bytes = BUDGET / 2 + self.below(BUDGET / 2 + 1);
                self.step(Event::Budget { bytes });
            }
            2 => self.step(Event::Budget { bytes: BUDGET }),
            3 => {
                let device = DeviceId(self.below(DEVICES.into()) as u32);
                self.step(Event::DeviceReleased { device });
            }
            _ => self.submit(),
        }
    }

    /// What a request asks for. It is in the payload, so requests with one digest ask for the same.
    fn content(&self, rng: &mut ChaCha8Rng) -> (CircuitId, u32, u64) {
        let mut below = |bound: u64| rng.next_u64() % bound;
        let kind = match below(10) {
            0 => ProofKind::Winning,
            1 | 2 => ProofKind::Window,
            3..6 => ProofKind::Snap,
            _ => ProofKind::Porep,
        };
        let size = match below(3) {
            0 => SectorSize::MiB8,
            _ => SectorSize::KiB2,
        };
        let units = match kind {
            ProofKind::Window | ProofKind::Winning => 1,
            _ => 1 + below(6) as u32,
        };
        let most = match kind {
            ProofKind::Winning => self.lane_unit_most,
            _ => 300,
        };
        (CircuitId::new(kind, size), units, 1 + below(most))
    }

    fn submit(&mut self) {
        self.numbers += 1;
        let (request_id, payload) = match self.below(4) {
            0 => (String::new(), u64::MAX - self.numbers),
            _ => {
                let id = self.below(400);
                (format!("id {id}"), 3 * id + self.below(3))
            }
        };
        let (circuit, units, unit_bytes) = self.content(&mut ChaCha8Rng::seed_from_u64(payload));
        let submission = Submission {
            id: JobId::from_bytes(u128::from(self.numbers).to_be_bytes()),
            request_id,
            digest: Digest::of(&payload.to_le_bytes()),
            client: format!("client {}", self.below(5)),
            circuit,
            priority: Priority::ALL[self.below(4) as usize],
            deadline_ms: match self.below(8) {
                0 => Some(self.now + 1 + self.below(120_000)),
                _ => None,
            },
            units,
            unit_bytes,
            payload_bytes: self.below(1_000),
        };
        let ticket = Ticket(self.numbers);
        self.pending.insert(ticket, submission.clone());
        self.step(Event::Submit {
            ticket,
            submission: Box::new(submission),
        });
    }

    /// One event, its actions, and the observer's checks.
    fn step(&mut self, event: Event) {
        self.look_at_lane();
        let mut actions = Vec::new();
        self.scheduler.step(self.now, event, &mut actions);
        for action in actions {
            self.act(action);
        }
        self.check();
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Persist(write) => self.persist(write),
            Action::Reply { ticket, reply } => self.replied(ticket, &reply),
            Action::Prepare {
                device,
                lease,
                unit,
            } => {
                self.process_gets(device, lease);
                self.taken(device, unit);
            }
            Action::Start {
                device,
                lease,
                unit,
            } => self.started(device, lease, unit),
            Action::Discard { device, lease } => {
                let process = &self.processes[&device];
                if process.alive && !process.hung {
                    let delay = self.below(1_000);
                    self.later(delay, Event::UnitDiscarded { lease });
                }
            }
            Action::Assemble { job, attempt } => {
                let delay = if self.one_in(50) {
                    9_000
                } else {
                    self.below(500)
                };
                let result = if self.one_in(100) {
                    Err("lost".to_owned())
                } else {
                    Ok(())
                };
                self.later(
                    delay,
                    Event::Assembled {
                        job,
                        attempt,
                        result,
                    },
                );
            }
            Action::Ended { job, outcome } => self.ended(job, &outcome),
            Action::StartDevice {
                device,
                incarnation,
            } => self.boot(device, incarnation),
            Action::StopDevice {
                device,
                incarnation,
                ..
            } => {
                // Some processes cannot be ended for a long time.
                let delay = if self.one_in(20) {
                    30_000
                } else {
                    self.below(2_000)
                };
                self.dies(device, incarnation, delay);
            }
            Action::Quarantined { .. } => self.books.quarantines += 1,
            Action::Drained => panic!("nobody asked to drain"),
        }
    }

    /// Lets the next thing happen: the scheduler's timer or an event of the world.
    fn advance(&mut self) {
        let timer = self.scheduler.next_wake().unwrap_or(Millis::MAX);
        match self.future.peek() {
            Some(&Reverse((time, _, at))) if time <= timer => {
                self.future.pop();
                self.now = self.now.max(time);
                let event = self.events[at].take().expect("each event happens once");
                if self.happens(&event) {
                    self.step(event);
                }
            }
            _ => {
                assert_ne!(timer, Millis::MAX, "nothing will ever happen again");
                self.now = self.now.max(timer);
                self.step(Event::Tick);
            }
        }
    }

    fn run(&mut self, events: u64) {
        let mut next_client = 0;
        for event in 0..events {
            if self.now >= next_client {
                self.client();
                // Busy and quiet times.
                let pause = if (self.now / 600_000).is_multiple_of(2) {
                    1_500
                } else {
                    6_000
                };
                next_client = self.now + self.below(pause);
            } else if self
                .future
                .peek()
                .is_none_or(|Reverse((time, ..))| *time > next_client)
                && self
                    .scheduler
                    .next_wake()
                    .is_none_or(|time| time > next_client)
            {
                self.now = next_client;
            } else {
                self.advance();
            }
            if event % 1_000 == 0 {
                self.scheduler.audit();
            }
        }
    }

    /// No more submissions, no more faults: all that is open must end, and soon.
    fn run_out(&mut self) {
        self.faults = false;
        let began = self.now;
        for id in 0..DEVICES {
            self.step(Event::DeviceReleased {
                device: DeviceId(id),
            });
        }
        self.step(Event::Budget { bytes: BUDGET });
        while !self.books.open.is_empty() || !self.pending.is_empty() {
            assert!(
                self.now < began + 3_600_000,
                "still open: {:?}",
                self.books.open.keys()
            );
            self.advance();
        }
        self.scheduler.audit();
        assert_eq!(
            self.books.accepted, self.books.ended,
            "each accepted attempt ended once"
        );
    }
}

/// Nothing fails, the lane's memory is enough for a unit on every place of every device: as it is
/// with the defaults, 512 MiB for units of less than 64 MiB.
#[test]
fn winning_post_starts_within_a_unit_s_time() {
    let seed = environment("CUZK_SIMULATION_SEED", 0x6375_7A6B);
    for lane_places in [0, 2] {
        check_waits_of_lane(seed, lane_places);
    }
}

fn check_waits_of_lane(seed: u64, lane_places: usize) {
    let mut simulation = Simulation::new(seed, lane_places);
    (simulation.calm, simulation.faults) = (true, false);
    let places: usize = (0..DEVICES).map(at_a_time).sum::<usize>() + lane_places;
    simulation.lane_unit_most = LANE / places as u64;
    simulation.run(environment("CUZK_SIMULATION_EVENTS", EVENTS));
    simulation.run_out();
    let books = &simulation.books;
    println!(
        "{lane_places} places beside: {} of the lane waited at most {} ms, the others {} ms",
        books.lane_starts, books.lane_first_wait_max, books.wait_max
    );
    assert!(books.lane_starts > 500 && books.wait_max > 60_000);
    assert!(
        books.lane_first_wait_max <= world::UNIT_MS_MAX,
        "{:?}",
        books.lane_worst
    );
}

fn environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn a_long_random_life() {
    let events = environment("CUZK_SIMULATION_EVENTS", EVENTS);
    let seed = environment("CUZK_SIMULATION_SEED", 0x6375_7A6B);
    println!("seed {seed}, {events} events");
    let mut simulation = Simulation::new(seed, 2);
    simulation.run(events);
    simulation.run_out();
    let books = &simulation.books;
    println!(
        "simulated {} s; accepted {}",
        simulation.now / 1000,
        books.accepted
    );
    println!("outcomes {:?}; refused {:?}", books.outcomes, books.refused);
    println!(
        "memory peak {} of {BUDGET}; longest wait {} ms, of WinningPoSt {} ms; {} quarantines",
        books.memory_peak, books.wait_max, books.lane_wait_max, books.quarantines
    );
    println!(
        "WinningPoSt waited at most {} ms for its first start; the longest wait of all: {:?}",
        books.lane_first_wait_max, books.lane_worst
    );
    println!(
        "of that, while a device was there: at most {} ms",
        books.lane_busy_max
    );
    println!(
        "longest time without a turn: {} units of {}",
        books.since_turn_max,
        4 * 4
    );
    for outcome in [
        "COMPLETED",
        "CANCELLED",
        "UNIT_FAILED",
        "REQUEST_INVALID",
        "PROOF_WRONG",
        "DEADLINE_EXCEEDED",
    ] {
        assert!(
            books.outcomes.contains_key(outcome),
            "the run saw no {outcome}"
        );
    }
    assert!(books.memory_peak > BUDGET / 2, "the run put memory to use");
    // The longest of the units in front of it runs into its limit, and its process is ended.
    let config = settings();
    let bound = config.unit_limit_ms.porep + config.stop_limit_ms;
    assert!(books.lane_busy_max <= bound, "{:?}", books.lane_worst);
}
