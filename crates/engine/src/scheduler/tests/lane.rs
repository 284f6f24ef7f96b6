//! WinningPoSt: before all else, prepared ahead on whichever device, and whatever becomes of it.

use super::*;

/// As [`super::config`], for tests in which time passes before something is dropped.
fn config() -> Config {
    Config {
        heartbeat_ms: Millis::MAX / 2,
        ..super::config()
    }
}

fn sized(number: u8, circuit: CircuitId, units: u32, bytes: u64) -> Submission {
    let mut job = submission(number, circuit, units);
    job.unit_bytes = bytes;
    job
}

fn job(number: u8) -> JobId {
    JobId::from_bytes([number; 16])
}

fn unchecked() -> Verdict {
    Verdict::Unknown("no payload".to_owned())
}

/// However it ends that what is prepared is not begun there: it is begun elsewhere, once.
#[test]
fn winning_post_prepared_on_a_device_that_is_lost_or_quarantined_is_begun_once() {
    let lost = |world: &mut World, _: Begun| {
        world.event(Event::DeviceStopped {
            device: DeviceId(0),
            incarnation: 1,
            cause: "killed".to_owned(),
        })
    };
    let wrong = |world: &mut World, running: Begun| {
        // The wrong proof is one of a unit before: the device is busy with the next by then.
        world.returned(running.lease);
        world.judged(running.lease, Verdict::Wrong)
    };
    let hung = |world: &mut World, running: Begun| world.fail(running, Fault::Device);
    type End = fn(&mut World, Begun) -> Vec<Action>;
    for (at, end) in [lost as End, wrong, hung].into_iter().enumerate() {
        let mut world = World::new(config());
        world.add_device(0, CircuitId::all().collect(), 1);
        let (_, out) = world.submit_ok(submission(1, POREP, 5));
        let running = one(&out);
        let (winning, out) = world.submit_ok(submission(2, WINNING, 1));
        let ahead = prepared(&out)[0];
        world.add_device(1, CircuitId::all().collect(), 1);
        let out = world.event(Event::Tick);
        // The second device was free: it has taken it over already, or does now.
        assert!(begun(&out).is_empty());
        let mut starts = begun(&world.log);
        starts.retain(|begun| begun.unit.job == winning);
        assert_eq!(starts.len(), 1, "case {at}");
        assert_eq!(starts[0].device, DeviceId(1));
        end(&mut world, running);
        world.event(Event::UnitDiscarded { lease: ahead.lease });
        starts = begun(&world.log);
        starts.retain(|begun| begun.unit.job == winning);
        assert_eq!(starts.len(), 1, "case {at}");
    }
    for end in [lost as End, hung] {
        let mut world = World::new(config());
        world.add_device(0, CircuitId::all().collect(), 1);
        world.add_device(1, CircuitId::all().collect(), 0);
        let (_, out) = world.submit_ok(submission(1, POREP, 5));
        let running = begun(&out);
        let (winning, out) = world.submit_ok(submission(2, WINNING, 1));
        assert_eq!(prepared(&out)[0].device, DeviceId(0));
        end(&mut world, running[0]);
        let out = world.event(Event::UnitLeftDevice {
            lease: running[1].lease,
        });
        let all: Vec<_> = begun(&world.log);
        let winnings: Vec<_> = all.iter().filter(|b| b.unit.job == winning).collect();
        assert_eq!(winnings.len(), 1, "{out:?}");
    }
}

/// Cancelled, late or run down while it is prepared: nothing is left, neither memory nor leases.
#[test]
fn winning_post_that_ends_while_it_is_prepared_leaves_nothing() {
    let prepared_one = || {
        let mut world = World::new(config());
        world.add_device(0, CircuitId::all().collect(), 1);
        let (_, out) = world.submit_ok(submission(1, POREP, 1));
        let running = one(&out);
        let mut late = submission(2, WINNING, 1);
        late.deadline_ms = Some(5_000);
        let (_, out) = world.submit_ok(late);
        (world, running, prepared(&out)[0])
    };
    let (mut world, running, ahead) = prepared_one();
    assert_eq!(world.cancel("job-2"), (Some(job(2)), false));
    world.event(Event::UnitDiscarded { lease: ahead.lease });
    world.prove(running);
    assert_eq!(world.scheduler.memory().0, 0);
    let (mut world, running, ahead) = prepared_one();
    assert_eq!(failure_code(&world.pass(5_000)), "DEADLINE_EXCEEDED");
    world.event(Event::UnitDiscarded { lease: ahead.lease });
    world.prove(running);
    assert_eq!(world.scheduler.memory().0, 0);
    let (mut world, running, ahead) = prepared_one();
    world.event(Event::Drain);
    world.event(Event::UnitDiscarded { lease: ahead.lease });
    let out = world.prove(running);
    assert!(out.contains(&Action::Drained));
    assert_eq!(world.scheduler.memory().0, 0);
}

/// Steadily so many of them that one device has enough to do keep the other from no memory for long.
#[test]
fn steady_winning_posts_keep_a_large_unit_waiting_for_two_of_them_at_most() {
    let mut world = World::new(config());
    world.add_device(0, vec![WINNING], 1);
    world.add_device(1, vec![POREP], 1);
    let (_, out) = world.submit_ok(sized(1, POREP, 1, 500));
    let porep = one(&out);
    let (_, out) = world.submit_ok(sized(2, WINNING, 1, 60));
    let mut running = one(&out);
    world.submit_ok(sized(3, WINNING, 1, 60));
    world.submit_ok(sized(4, WINNING, 1, 60));
    let (large, _) = world.submit_ok(sized(100, POREP, 1, 900));
    world.prove(porep);
    for number in 5..30 {
        world.submit_ok(sized(number, WINNING, 1, 60));
        world.now += 1_000;
        let out = world.prove(running);
        let starts = begun(&out);
        if starts.iter().any(|begun| begun.unit.job == large) {
            assert!(number <= 7);
            return;
        }
        running = *starts.iter().find(|begun| begun.device.0 == 0).unwrap();
    }
    panic!("it never had its memory");
}

/// Also one that has failed everywhere: nobody is left who could do better.
#[test]
fn a_free_device_takes_winning_post_prepared_elsewhere_that_failed_on_all() {
    let mut world = World::new(config());
    world.add_device(0, CircuitId::all().collect(), 1);
    world.add_device(1, CircuitId::all().collect(), 1);
    let (winning, out) = world.submit_ok(submission(1, WINNING, 1));
    let first = one(&out);
    world.returned(first.lease);
    let second = one(&world.judged(first.lease, unchecked()));
    assert_ne!(first.device, second.device);
    world.returned(second.lease);
    let (_, out) = world.submit_ok(submission(2, POREP, 9));
    let running = begun(&out);
    assert_eq!(running.len(), 2);
    let out = world.judged(second.lease, unchecked());
    let ahead = prepared(&out)[0];
    assert_eq!(ahead.unit.job, winning);
    let other = running.iter().find(|unit| unit.device != ahead.device);
    let out = world.event(Event::UnitLeftDevice {
        lease: other.unwrap().lease,
    });
    assert_eq!(
        one(&out).unit.job,
        winning,
        "the next device that is free takes it"
    );
}

/// Nothing behind it starts while it does not fit: what its preparation holds comes free first.
#[test]
fn nothing_passes_winning_post_that_is_prepared_elsewhere_for_want_of_memory() {
    let mut world = World::new(config());
    world.add_device(0, vec![POREP, WINNING], 0);
    world.add_device(1, vec![WINDOW, WINNING], 1);
    world.add_device(2, vec![WINNING], 0);
    let (_, out) = world.submit_ok(sized(1, WINDOW, 1, 780));
    assert_eq!(one(&out).device, DeviceId(1));
    let (_, out) = world.submit_ok(sized(2, POREP, 50, 10));
    let mut porep = one(&out);
    let (_, out) = world.submit_ok(sized(3, WINNING, 1, 100));
    assert_eq!(one(&out).device, DeviceId(2), "it has the lane's memory");
    let (winning, out) = world.submit_ok(sized(4, WINNING, 1, 100));
    assert_eq!(prepared(&out)[0].device, DeviceId(1));
    for units in 0..20 {
        world.now += 1_000;
        let mut out = world.prove(porep);
        let dropped: Vec<_> = out
            .iter()
            .filter_map(|action| match action {
                Action::Discard { lease, .. } => Some(*lease),
                _ => None,
            })
            .collect();
        for lease in dropped {
            out.extend(world.event(Event::UnitDiscarded { lease }));
        }
        let next = one(&out);
        if next.unit.job == winning {
            assert_eq!(units, 0, "so many units passed it");
            return;
        }
        porep = next;
    }
    panic!("twenty units passed it, and it is not begun");
}

/// What waits prepared on a busy device is not passed by younger ones for as long as that is busy.
#[test]
fn younger_winning_posts_do_not_pass_for_ever_one_prepared_on_a_busy_device() {
    let mut world = World::new(config());
    world.add_device(0, vec![WINNING], 1);
    world.add_device(1, vec![POREP, WINNING], 1);
    world.submit_ok(submission(1, POREP, 1));
    let (_, out) = world.submit_ok(submission(2, WINNING, 1));
    let mut running = one(&out);
    world.submit_ok(submission(3, WINNING, 1));
    let (_, out) = world.submit_ok(submission(4, WINNING, 1));
    assert_eq!(prepared(&out)[0].device, DeviceId(1));
    for number in 5..40 {
        world.submit_ok(submission(number, WINNING, 1));
        world.now += 1_000;
        running = one(&world.prove(running));
        assert_eq!(running.device, DeviceId(0));
        if running.unit.job == job(4) {
            assert!(number <= 7, "{} passed it", number - 5);
            return;
        }
    }
    panic!("dozens of younger ones passed it");
}

/// Oldest first, whichever is prepared.
#[test]
fn a_winning_post_that_is_ready_again_goes_before_younger_ones_that_are_prepared() {
    let mut world = World::new(config());
    world.add_device(0, vec![WINNING], 2);
    let (_, out) = world.submit_ok(submission(1, WINNING, 1));
    let first = one(&out);
    for number in 2..6 {
        world.submit_ok(submission(number, WINNING, 1));
    }
    let second = one(&world.returned(first.lease));
    world.judged(first.lease, unchecked());
    assert_eq!(
        one(&world.prove(second)).unit.job,
        job(1),
        "it waited for one unit"
    );
}

#[test]
fn winning_post_takes_the_next_device_that_is_free_even_before_what_is_prepared() {
    let mut world = World::new(config());
    world.add_device(0, CircuitId::all().collect(), 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 5));
    let (running, prepared) = (one(&out), prepared(&out)[0]);
    let (winning, out) = world.submit_ok(submission(2, WINNING, 1));
    assert!(begun(&out).is_empty());
    let out = world.prove(running);
    let lane = one(&out);
    assert_eq!(lane.unit.job, winning);
    let out = world.prove(lane);
    assert_eq!(
        one(&out),
        prepared,
        "then the prepared unit, under its lease"
    );
}

/// So a device that proves nothing else has no gaps, and one that proves other things has one less.
#[test]
fn winning_post_is_prepared_ahead_beside_what_else_is() {
    let mut world = World::new(config());
    world.add_device(0, CircuitId::all().collect(), 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 5));
    let (running, porep) = (one(&out), prepared(&out)[0]);
    let (_, out) = world.submit_ok(submission(2, WINNING, 1));
    let second = prepared(&out)[0];
    let (third, out) = world.submit_ok(submission(3, WINNING, 1));
    assert!(prepared(&out).is_empty(), "one is prepared at a time");
    let out = world.event(Event::UnitLeftDevice {
        lease: running.lease,
    });
    assert_eq!(one(&out), second, "under its lease");
    let ahead = prepared(&out);
    assert_eq!((ahead.len(), ahead[0].unit.job), (1, third));
    // A younger one that is not prepared does not pass it.
    world.submit_ok(submission(4, WINNING, 1));
    let out = world.prove(second);
    assert_eq!(one(&out), ahead[0]);
    let fourth = prepared(&out)[0];
    let out = world.prove(ahead[0]);
    assert_eq!(one(&out), fourth);
    assert_eq!(one(&world.prove(fourth)), porep);
}

#[test]
fn a_free_device_takes_winning_post_that_another_has_prepared_before_all_else() {
    let mut world = World::new(config());
    world.add_device(0, CircuitId::all().collect(), 1);
    world.add_device(1, CircuitId::all().collect(), 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 9));
    let running = begun(&out);
    assert_eq!((running.len(), prepared(&out).len()), (2, 2));
    let (_, out) = world.submit_ok(submission(2, WINNING, 1));
    let ahead = prepared(&out)[0];
    assert_eq!(ahead.device, DeviceId(0));
    let out = world.event(Event::UnitLeftDevice {
        lease: running[1].lease,
    });
    let taken = one(&out);
    assert_eq!((taken.device, taken.unit), (DeviceId(1), ahead.unit));
    assert!(out.contains(&Action::Discard {
        device: DeviceId(0),
        lease: ahead.lease
    }));
    // It is not begun twice.
    world.event(Event::UnitDiscarded { lease: ahead.lease });
    let out = world.event(Event::UnitLeftDevice {
        lease: running[0].lease,
    });
    assert_eq!(one(&out).unit.job, JobId::from_bytes([1; 16]));
}

/// Whatever is prepared, there is memory for a WinningPoSt that starts.
#[test]
fn what_is_prepared_ahead_of_winning_post_takes_none_of_its_memory() {
    let mut world = World::new(config());
    world.add_device(0, CircuitId::all().collect(), 1);
    world.add_device(1, CircuitId::all().collect(), 0);
    let sized = |number, circuit, bytes| {
        let mut job = submission(number, circuit, 1);
        job.unit_bytes = bytes;
        job
    };
    let (_, out) = world.submit_ok(sized(1, POREP, 450));
    let first = one(&out);
    let (_, out) = world.submit_ok(sized(2, POREP, 400));
    let second = one(&out);
    // 50 are left of the 900 that all may have, and the lane's own 100.
    let (_, out) = world.submit_ok(sized(3, WINNING, 60));
    assert!(prepared(&out).is_empty());
    let (_, out) = world.submit_ok(sized(4, WINNING, 60));
    assert!(prepared(&out).is_empty());
    let out = world.prove(second);
    assert_eq!(one(&out).unit.job, JobId::from_bytes([3; 16]));
    let out = world.event(Event::UnitLeftDevice { lease: first.lease });
    assert_eq!(one(&out).unit.job, JobId::from_bytes([4; 16]));
    // The PoRep's proof is being made still.
    assert_eq!(world.scheduler.memory().0, 570);
}

#[test]
fn winning_post_has_memory_of_its_own() {
    let mut world = World::with_devices(config(), 2);
    let mut hungry = submission(1, POREP, 2);
    hungry.unit_bytes = 900;
    let (_, out) = world.submit_ok(hungry);
    one(&out);
    let mut winning = submission(2, WINNING, 1);
    winning.unit_bytes = 100;
    let (job, out) = world.submit_ok(winning);
    assert_eq!(one(&out).unit.job, job);
}

/// What is prepared for later gets no memory that a WinningPoSt waits for.
#[test]
fn nothing_is_prepared_while_winning_post_waits_for_memory() {
    let mut world = World::new(config());
    world.add_device(0, vec![WINNING], 0);
    world.add_device(1, CircuitId::all().collect(), 1);
    let mut sized = |number, circuit, units, bytes| {
        let mut job = submission(number, circuit, units);
        job.unit_bytes = bytes;
        world.submit_ok(job)
    };
    sized(1, WINNING, 1, 100);
    let (_, out) = sized(2, POREP, 9, 400);
    let (running, ahead) = (one(&out), prepared(&out)[0]);
    let (winning, _) = sized(3, WINNING, 1, 600);
    let out = world.prove(running);
    assert_eq!(one(&out), ahead, "500 are in use, 600 more do not fit");
    assert!(prepared(&out).is_empty());
    let out = world.prove(ahead);
    assert_eq!(one(&out).unit.job, winning);
}

/// Two units at a time, a place more for WinningPoSt, one ahead. It has the keys.
fn with_a_place_and_keys(world: &mut World) {
    with_a_place(world);
    world.key_loaded(0, POREP, true);
    world.key_loaded(0, WINNING, true);
}

/// The same without keys.
fn with_a_place(world: &mut World) {
    world.event(Event::DeviceAdded(DeviceSpec {
        id: DeviceId(0),
        circuits: CircuitId::all().collect(),
        at_a_time: 2,
        lane_places: 1,
        look_ahead: 1,
    }));
    world.ready(0, 1);
}

#[test]
fn winning_post_has_a_place_of_its_own_and_no_other_unit_takes_it() {
    let mut world = World::new(config());
    with_a_place_and_keys(&mut world);
    let (porep, out) = world.submit_ok(submission(1, POREP, 8));
    let running = begun(&out);
    assert_eq!((running.len(), prepared(&out).len()), (2, 1));
    // At once; the next is made ready meanwhile, beside what else is.
    let (winning, out) = world.submit_ok(submission(2, WINNING, 1));
    let first = one(&out);
    assert_eq!(first.unit.job, winning);
    let (second, out) = world.submit_ok(submission(3, WINNING, 1));
    assert_eq!((begun(&out).len(), prepared(&out)[0].unit.job), (0, second));
    // Whichever place comes free, the lane is next.
    let out = world.prove(running[0]);
    let next = one(&out);
    assert_eq!(next.unit.job, second);
    // Two are there as before: the place that comes free is the lane's, then the others'.
    assert!(begun(&world.prove(first)).is_empty());
    assert_eq!(one(&world.prove(next)).unit.job, porep);
}

#[test]
fn winning_posts_alone_have_all_places_and_leave_them_to_others_as_they_end() {
    let mut world = World::new(config());
    with_a_place_and_keys(&mut world);
    let mut running = Vec::new();
    for number in 1..=5 {
        running.extend(begun(&world.submit_ok(submission(number, WINNING, 1)).1));
    }
    assert_eq!(running.len(), 3);
    let (porep, out) = world.submit_ok(submission(9, POREP, 1));
    assert!(begun(&out).is_empty());
    for at in 0..5 {
        let ended = running.remove(0);
        running.extend(begun(&world.prove(ended)));
        let others = running.iter().filter(|begun| begun.unit.job == porep);
        // Two that are left of five, then one: two places are for all.
        assert_eq!(others.count(), usize::from(at >= 3), "{at}");
    }
    assert_eq!(running.len(), 1);
}

#[test]
fn winning_post_does_not_begin_where_it_would_wait_for_a_key() {
    for missing in [POREP, WINNING] {
        let mut world = World::new(config());
        with_a_place_and_keys(&mut world);
        world.key_loaded(0, missing, false);
        let (_, out) = world.submit_ok(submission(1, POREP, 8));
        assert_eq!(begun(&out).len(), 2);
        let (winning, out) = world.submit_ok(submission(2, WINNING, 1));
        assert_eq!((begun(&out).len(), prepared(&out).len()), (0, 1));
        // Another device, also one that has only the common places, has it at once.
        world.add_device(1, CircuitId::all().collect(), 0);
        let starts = begun(&world.log);
        let start = starts.iter().find(|begun| begun.unit.job == winning);
        assert_eq!(start.unwrap().device, DeviceId(1));
        // Once the key is there, the place is of use.
        let (next, out) = world.submit_ok(submission(3, WINNING, 1));
        assert!(begun(&out).is_empty());
        let out = world.key_loaded(0, missing, true);
        assert_eq!(one(&out).unit.job, next);
    }
}

/// One that was begun beside a unit whose key is being loaded waits for that in the process.
#[test]
fn a_limit_does_not_end_while_the_device_loads_another_circuit_s_key() {
    let limits = config().unit_limit_ms;
    let (short, long) = (limits.get(WINNING.kind), limits.get(POREP.kind));
    assert!(3 * short < long);
    let mut world = World::new(config());
    with_a_place(&mut world);
    world.submit_ok(submission(1, POREP, 1));
    let (_, out) = world.submit_ok(submission(2, WINNING, 1));
    assert_eq!(begun(&out).len(), 1);
    assert!(stops(&world.pass(short)).is_empty());
    assert!(stops(&world.pass(short)).is_empty());
    // The key is there: from the next look on the WinningPoSt has its own time.
    world.key_loaded(0, POREP, true);
    assert_eq!(stops(&world.pass(short)).len(), 1);
}

/// However many wait for one another: the first of them has its limit.
#[test]
fn a_device_that_loads_for_ever_is_stopped() {
    let limit = config().unit_limit_ms.get(POREP.kind);
    for first in [POREP, WINNING] {
        let mut world = World::new(config());
        with_a_place(&mut world);
        let second = if first == POREP { WINNING } else { POREP };
        world.submit_ok(submission(1, first, 1));
        world.submit_ok(submission(2, second, 1));
        let mut stopped = 0;
        let mut passed = 0;
        while passed < limit + limit / 2 {
            passed += limit / 20;
            stopped += stops(&world.pass(limit / 20)).len();
        }
        assert_eq!(stopped, 1);
    }
}

/// A job that was cancelled is forgotten after a time, its unit may run for longer.
#[test]
fn a_unit_outlives_its_job() {
    let mut world = World::new(config());
    with_a_place_and_keys(&mut world);
    let (cancelled, out) = world.submit_ok(submission(1, POREP, 1));
    let running = one(&out);
    world.cancel("job-1");
    world.event(Event::Forget { job: cancelled });
    for number in [2, 3] {
        let (_, out) = world.submit_ok(submission(number, WINNING, 1));
        assert_eq!(begun(&out).len(), 1);
    }
    let (_, out) = world.submit_ok(submission(4, POREP, 2));
    assert!(begun(&out).is_empty());
    world.returned(running.lease);
}
