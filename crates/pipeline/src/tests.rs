//! The laws of the pipeline, over work that waits as it is told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

const LONG: Duration = Duration::from_secs(20);

/// A unit in words: `prepare:DOOR`, `sums:DOOR`, `finish:DOOR` wait for that door; `…:wrong` fails,
/// `…:panic` panics, `…:N` takes N milliseconds; `bytes:N` is its size.
type Unit = &'static str;

/// What is said of units that have ended.
type End = (u32, Result<String, String>, Spans);

struct Scripted {
    ends: Mutex<Sender<End>>,
    dropped: Mutex<Vec<u32>>,
    open: Mutex<Vec<String>>,
    changed: Condvar,
    /// How many are in each stage, and were at most.
    inside: Mutex<BTreeMap<&'static str, (usize, usize)>>,
    waiting: AtomicUsize,
}

impl Scripted {
    fn new() -> (Self, Receiver<End>) {
        let (sender, ends) = channel();
        let scripted = Self {
            ends: Mutex::new(sender),
            dropped: Mutex::default(),
            open: Mutex::default(),
            changed: Condvar::new(),
            inside: Mutex::default(),
            waiting: AtomicUsize::new(0),
        };
        (scripted, ends)
    }

    fn open(&self, door: &str) {
        self.open.lock().unwrap().push(door.to_owned());
        self.changed.notify_all();
    }

    fn waits_for(&self, count: usize) {
        let start = Instant::now();
        while self.waiting.load(Ordering::SeqCst) < count {
            assert!(start.elapsed() < LONG, "nobody comes to the doors");
            thread::yield_now();
        }
    }

    fn at_most(&self, stage: &str) -> usize {
        self.inside.lock().unwrap()[stage].1
    }

    fn act(&self, unit: Unit, stage: &'static str) -> Result<(), String> {
        {
            let mut inside = self.inside.lock().unwrap();
            let (now, most) = inside.entry(stage).or_default();
            *now += 1;
            *most = (*most).max(*now);
        }
        let word = |word: &'static str| word.strip_prefix(stage)?.strip_prefix(':');
        let result = match unit.split(' ').find_map(word) {
            None => Ok(()),
            Some("wrong") => Err(format!("{stage} says wrong")),
            Some("panic") => panic!("told to panic"),
            Some(ms) if ms.parse::<u64>().is_ok() => {
                thread::sleep(Duration::from_millis(ms.parse().unwrap()));
                Ok(())
            }
            Some(door) => {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                let open = self.open.lock().unwrap();
                let is_shut = |open: &mut Vec<String>| !open.iter().any(|name| name == door);
                let waited = self.changed.wait_timeout_while(open, LONG, is_shut);
                let timed_out = waited.unwrap().1.timed_out();
                (!timed_out).then_some(()).ok_or("nobody opens".to_owned())
            }
        };
        self.inside.lock().unwrap().get_mut(stage).unwrap().0 -= 1;
        result
    }
}

impl Work for Scripted {
    type Id = u32;
    type Unit = Unit;
    type Ready = u32;
    type Sums = u64;
    type Proof = String;
    type Error = String;

    fn bytes(&self, unit: &Unit) -> u64 {
        let size = |word: &str| word.strip_prefix("bytes:")?.parse().ok();
        unit.split(' ').find_map(size).unwrap_or(1)
    }

    fn prepare(&self, unit: &Unit, spans: &mut Spans) -> Result<u32, String> {
        spans.run("prepare", Lane::Witness, || self.act(unit, "prepare"))?;
        Ok(7)
    }

    fn sums(&self, unit: &Unit, ready: &u32, spans: &mut Spans) -> Result<u64, String> {
        spans.run("sums", Lane::Device, || self.act(unit, "sums"))?;
        Ok(u64::from(*ready) + 1)
    }

    fn finish(
        &self,
        unit: &Unit,
        ready: u32,
        sums: u64,
        spans: &mut Spans,
    ) -> Result<String, String> {
        spans.run("finish", Lane::Finish, || self.act(unit, "finish"))?;
        Ok(format!("{ready} {sums}"))
    }

    fn panicked(&self, text: &str) -> String {
        format!("panic: {text}")
    }

    fn ended(&self, id: u32, _: &Unit, result: Result<String, String>, spans: Spans) {
        let ends = self.ends.lock().unwrap();
        ends.send((id, result, spans)).unwrap();
    }

    fn dropped(&self, id: u32) {
        self.dropped.lock().unwrap().push(id);
    }
}

fn limits(device_units: usize) -> Limits {
    Limits {
        preparers: 2,
        urgent: true,
        device_threads: 4,
        device_units,
        finishers: 1,
        ahead: 3,
        bytes: 100,
    }
}

/// Runs `test` beside the pipeline's threads, which all return afterwards.
fn with(limits: Limits, test: impl FnOnce(&Pipeline<Scripted>, &Receiver<End>)) {
    let (work, ends) = Scripted::new();
    let pools = Some(Pools::new(4).expect("threads"));
    let pipeline = Pipeline::new(work, limits, pools);
    thread::scope(|scope| {
        for role in pipeline.roles() {
            let pipeline = &pipeline;
            scope.spawn(move || pipeline.attend(role));
        }
        let _stops = Stop(&pipeline);
        test(&pipeline, &ends);
    });
}

/// Stops it, also when a test fails.
struct Stop<'a>(&'a Pipeline<Scripted>);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn next(ends: &Receiver<End>) -> (u32, Result<String, String>) {
    let (id, result, _) = ends.recv_timeout(LONG).expect("a unit ends");
    (id, result)
}

#[test]
fn all_stages_are_occupied_at_once() {
    with(limits(2), |pipeline, ends| {
        // One is finished, two are on the device, three are ahead of it: each stands at a door. The first
        // has to be past the device before others stand there, which may be ready sooner.
        pipeline.prove(1, "finish:f");
        pipeline.work().waits_for(1);
        for (id, unit) in [
            (2, "sums:s"),
            (3, "sums:s"),
            (4, "prepare:p"),
            (5, "prepare:p"),
            (6, "prepare:p"),
            (7, ""),
        ] {
            pipeline.prove(id, unit);
        }
        pipeline.work().waits_for(6);
        assert!(pipeline.is_busy());
        // The seventh has no place yet.
        assert!(ends.try_recv().is_err());
        for door in ["p", "s", "f"] {
            pipeline.work().open(door);
        }
        let mut found: Vec<u32> = (0..7).map(|_| next(ends).0).collect();
        found.sort_unstable();
        assert_eq!(found, [1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(pipeline.work().at_most("sums"), 2);
        assert_eq!(pipeline.work().at_most("finish"), 1);
    });
}

/// The device takes the unit whose place the next one waits for, before the next one looks or after.
#[test]
fn a_place_that_the_device_frees_is_taken_at_once() {
    for _ in 0..50 {
        let limits = Limits {
            ahead: 1,
            ..limits(1)
        };
        with(limits, |pipeline, ends| {
            pipeline.prove(1, "sums:s");
            pipeline.prove(2, "prepare:p");
            pipeline.work().waits_for(2);
            pipeline.work().open("s");
            pipeline.work().open("p");
            let mut found = [next(ends).0, next(ends).0];
            found.sort_unstable();
            assert_eq!(found, [1, 2]);
        });
    }
}

/// One after the other a unit takes 15 + 20 + 10 ms; overlapped, what its slowest stage takes.
#[test]
fn a_unit_takes_as_long_as_the_slowest_stage() {
    const UNITS: u32 = 20;
    let one_at_a_time = Limits {
        preparers: 1,
        urgent: false,
        ..limits(1)
    };
    with(one_at_a_time, |pipeline, ends| {
        let start = Instant::now();
        for id in 0..UNITS {
            pipeline.prove(id, "prepare:15 sums:20 finish:10");
        }
        let mut device = Vec::new();
        for _ in 0..UNITS {
            let (_, result, spans) = ends.recv_timeout(LONG).expect("a unit ends");
            result.expect("it is proven");
            let on_device = spans.iter().filter(|span| span.lane == Lane::Device);
            device.extend(on_device.map(|span| (span.start, span.end)));
        }
        let (wall, busy) = (start.elapsed(), covered(device));
        let ms = |n: u32| Duration::from_millis(u64::from(n));
        assert!(busy >= ms(20 * UNITS), "{busy:?}");
        // Half-way between the law, 425 ms, and no overlap, 900 ms: sleeps are never short, but may
        // be long.
        assert!(wall < ms(33 * UNITS), "{wall:?}");
    });
}

#[test]
fn what_is_only_prepared_waits_for_its_order() {
    with(limits(1), |pipeline, ends| {
        pipeline.prepare(1, "prepare:a");
        pipeline.work().waits_for(1);
        // Not behind the first, which is still being prepared.
        pipeline.prove(2, "");
        assert_eq!(next(ends), (2, Ok("7 8".to_owned())));
        pipeline.work().open("a");
        pipeline.prove(3, "");
        assert_eq!(next(ends).0, 3);
        assert!(ends.try_recv().is_err());
        pipeline.prove(1, "");
        assert_eq!(next(ends).0, 1);
        // Ordered once more, it is not begun again.
        pipeline.prove(1, "");
        pipeline.prove(4, "");
        assert_eq!(next(ends).0, 4);
    });
}

#[test]
fn bytes_and_number_ahead_are_bounded_and_nothing_stands_still() {
    with(limits(1), |pipeline, ends| {
        // The first is larger than all that may be under way, and goes alone.
        for (id, unit) in [
            (1, "bytes:900 sums:s"),
            (2, "bytes:90 prepare:p"),
            (3, "bytes:90"),
        ] {
            pipeline.prove(id, unit);
        }
        pipeline.work().waits_for(1);
        thread::sleep(Duration::from_millis(30));
        assert_eq!(pipeline.work().at_most("prepare"), 1);
        pipeline.work().open("s");
        assert_eq!(next(ends).0, 1);
        pipeline.work().waits_for(2);
        thread::sleep(Duration::from_millis(30));
        // Two of 90 bytes are too many.
        assert_eq!(pipeline.work().at_most("prepare"), 1);
        pipeline.work().open("p");
        let mut rest = [next(ends).0, next(ends).0];
        rest.sort_unstable();
        assert_eq!(rest, [2, 3]);
        // What is only prepared may hold all the room: an ordered unit has its own.
        pipeline.prepare(4, "bytes:99");
        pipeline.prove(5, "bytes:99");
        assert_eq!(next(ends).0, 5);
        pipeline.prove(4, "");
        assert_eq!(next(ends).0, 4);
    });
    assert_eq!(Limits::new(2, 16, 1).ahead, 4);
}

#[test]
fn failures_and_panics_end_their_unit_alone() {
    with(limits(2), |pipeline, ends| {
        for stage in ["prepare", "sums", "finish"] {
            for how in ["wrong", "panic"] {
                let unit: Unit = match (stage, how) {
                    ("prepare", "wrong") => "prepare:wrong",
                    ("prepare", _) => "prepare:panic",
                    ("sums", "wrong") => "sums:wrong",
                    ("sums", _) => "sums:panic",
                    (_, "wrong") => "finish:wrong",
                    _ => "finish:panic",
                };
                let id = 10 + u32::try_from(unit.len()).unwrap() + 100 * u32::from(how == "wrong");
                pipeline.prove(id, unit);
                let expected = match how {
                    "wrong" => format!("{stage} says wrong"),
                    _ => "panic: told to panic".to_owned(),
                };
                assert_eq!(next(ends), (id, Err(expected)));
                pipeline.prove(id + 1000, "");
                assert_eq!(next(ends).0, id + 1000);
            }
        }
    });
}

#[test]
fn dropped_units_go_at_once_or_when_they_are_prepared() {
    // The first has the only place, so the second waits.
    let limits = Limits {
        ahead: 1,
        ..limits(1)
    };
    with(limits, |pipeline, ends| {
        assert!(pipeline.discard(9));
        pipeline.prepare(1, "prepare:a");
        pipeline.work().waits_for(1);
        assert!(!pipeline.discard(1));
        assert!(pipeline.overdue_drops().is_empty());
        pipeline.prepare(2, "");
        assert!(pipeline.discard(2));
        pipeline.work().open("a");
        pipeline.prove(3, "");
        assert_eq!(next(ends).0, 3);
        while pipeline.work().dropped.lock().unwrap().is_empty() {
            thread::yield_now();
        }
        assert_eq!(*pipeline.work().dropped.lock().unwrap(), [1]);
        assert!(ends.try_recv().is_err());
    });
}

#[test]
fn stopping_lets_what_is_on_the_device_end() {
    let (work, ends) = Scripted::new();
    let pipeline = Pipeline::new(work, limits(1), None);
    thread::scope(|scope| {
        for role in pipeline.roles() {
            let pipeline = &pipeline;
            scope.spawn(move || pipeline.attend(role));
        }
        let _stops = Stop(&pipeline);
        pipeline.prove(1, "sums:s");
        pipeline.work().waits_for(1);
        pipeline.prove(2, "");
        pipeline.stop();
        pipeline.work().open("s");
        assert_eq!(next(&ends).0, 1);
    });
    assert!(ends.try_recv().is_err());
}

#[test]
fn more_units_on_the_device_when_told() {
    with(limits(1), |pipeline, ends| {
        for id in 1..=4 {
            pipeline.prove(id, "sums:s");
        }
        pipeline.work().waits_for(1);
        pipeline.set_device_units(3);
        pipeline.work().waits_for(3);
        thread::sleep(Duration::from_millis(20));
        assert_eq!(pipeline.work().at_most("sums"), 3);
        pipeline.work().open("s");
        for _ in 0..4 {
            drop(next(ends));
        }
    });
}
