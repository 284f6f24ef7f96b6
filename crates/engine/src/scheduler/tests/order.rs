//! Who is next: lane, priorities, deadlines, shares, the guard, keys, memory, look-ahead.

use super::*;

fn jobs(order: &[UnitKey]) -> Vec<u8> {
    order.iter().map(|unit| unit.job.as_bytes()[0]).collect()
}

#[test]
fn priorities_then_first_come() {
    let mut world = World::with_devices(config(), 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 1));
    for number in 2..=7 {
        let mut job = submission(number, [POREP, WINDOW, POREP][number as usize % 3], 1);
        if number == 6 {
            job.priority = Priority::Low;
        }
        world.submit_ok(job);
    }
    assert_eq!(jobs(&world.run_down(&out)), [1, 4, 7, 2, 3, 5, 6]);
}

#[test]
fn of_one_client_the_earliest_deadline_first_and_a_near_one_before_other_clients() {
    let mut world = World::with_devices(config(), 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 1));
    let mut deadline = |number, client: &str, deadline_ms| {
        let mut job = submission(number, POREP, 1);
        (job.client, job.deadline_ms) = (client.to_owned(), deadline_ms);
        world.submit_ok(job);
    };
    deadline(2, "a", None);
    deadline(3, "a", Some(2_000_000));
    deadline(4, "a", Some(1_000_000));
    deadline(5, "b", None);
    // Within twice the second that the first unit will have taken.
    deadline(6, "c", Some(3_000));
    // After that "a" is before "b": it was charged ten seconds, by estimate, when "b" came.
    assert_eq!(jobs(&world.run_down(&out)), [1, 6, 4, 3, 2, 5]);
}

#[test]
fn a_deadline_that_passes_ends_the_job() {
    let mut world = World::with_devices(config(), 1);
    let mut job = submission(1, POREP, 2);
    job.deadline_ms = Some(5000);
    let (_, out) = world.submit_ok(job);
    let running = one(&out);
    assert!(ends(&world.pass(4999)).is_empty());
    assert_eq!(failure_code(&world.pass(1)), "DEADLINE_EXCEEDED");
    assert!(begun(&world.prove(running)).is_empty());
}

#[test]
fn device_time_is_shared_by_weight() {
    let weights = [("b".to_owned(), 3)].into();
    let mut world = World::with_devices(
        Config {
            weights,
            ..config()
        },
        1,
    );
    let (_, mut out) = world.submit_ok(submission(1, POREP, 40));
    let mut other = submission(2, POREP, 40);
    other.client = "b".to_owned();
    out.extend(world.submit_ok(other).1);
    let order = jobs(&world.run_down(&out));
    let of_b = |units: &[u8]| units.iter().filter(|&&job| job == 2).count();
    // The first units only make up for the estimate that "a" was charged before "b" came.
    let share = of_b(&order[16..56]);
    assert!(
        (28..=32).contains(&share),
        "b has three quarters of 40 units, got {share}: {order:?}"
    );
}

#[test]
fn who_comes_late_has_no_saved_credit_and_one_client_does_not_block_another() {
    let mut world = World::with_devices(config(), 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 100));
    let mut running = one(&out);
    for _ in 0..50 {
        world.now += 1000;
        running = one(&world.prove(running));
    }
    let mut late = submission(2, POREP, 20);
    late.client = "late".to_owned();
    world.submit_ok(late);
    let mut order = Vec::new();
    for _ in 0..20 {
        world.now += 1000;
        running = one(&world.prove(running));
        order.push(running.unit);
    }
    let late = jobs(&order).iter().filter(|&&job| job == 2).count();
    assert!((9..=11).contains(&late), "half of 20 units, got {late}");
}

#[test]
fn idle_clients_are_forgotten() {
    let mut world = World::with_devices(config(), 1);
    for number in 0..5000_u32 {
        let mut job = submission(1, POREP, 1);
        job.id = JobId::from_bytes(u128::from(number).to_le_bytes());
        job.request_id = String::new();
        job.client = format!("client {number}");
        let (id, out) = world.submit_ok(job);
        world.prove(one(&out));
        world.event(Event::Forget { job: id });
    }
    assert!(
        world.scheduler.shares.len() <= 1026,
        "{}",
        world.scheduler.shares.len()
    );
    assert_eq!(world.scheduler.jobs.len(), 0);
}

#[test]
fn who_has_waited_long_gets_the_guards_turns() {
    let patient = Config {
        patience_ms: 10_000,
        guard_every: 4,
        ..config()
    };
    let mut world = World::with_devices(patient, 1);
    let (_, out) = world.submit_ok(submission(1, WINDOW, 1));
    let mut running = one(&out);
    let mut low = submission(2, POREP, 8);
    low.priority = Priority::Low;
    world.submit_ok(low);
    let mut starts = Vec::new();
    for number in 3..=60 {
        // There is always a window job waiting.
        world.submit_ok(submission(number, WINDOW, 1));
        world.now += 1000;
        running = one(&world.prove(running));
        starts.push(running.unit.job.as_bytes()[0]);
    }
    let low: Vec<_> = (0..starts.len()).filter(|&i| starts[i] == 2).collect();
    assert_eq!(low.len(), 8, "all units of the low job ran: {starts:?}");
    assert!(low[0] >= 9, "not before its patience was at an end");
    assert!(
        low.windows(2).all(|pair| pair[1] - pair[0] == 4),
        "one in four: {low:?}"
    );
}

#[test]
fn a_loaded_key_is_used_before_another_is_loaded_but_not_for_ever() {
    let limited = Config {
        affinity_limit: 3,
        ..config()
    };
    let mut world = World::with_devices(limited, 1);
    world.key_loaded(0, SNAP, true);
    let (_, out) = world.submit_ok(submission(1, SNAP, 1));
    world.submit_ok(submission(2, POREP, 1));
    for number in 3..=8 {
        world.submit_ok(submission(number, SNAP, 1));
    }
    assert_eq!(jobs(&world.run_down(&out)), [1, 3, 4, 5, 2, 6, 7, 8]);
    world.key_loaded(0, SNAP, false);
    assert!(world.scheduler.devices().next().unwrap().loaded.is_empty());
}

#[test]
fn memory_is_never_exceeded_and_large_units_are_not_starved_by_small_ones() {
    let mut world = World::with_devices(config(), 4);
    let sized = |number, units, bytes| {
        let mut job = submission(number, POREP, units);
        job.unit_bytes = bytes;
        job
    };
    let (_, small) = world.submit_ok(sized(1, 4, 200));
    let small = begun(&small);
    assert_eq!(small.len(), 4, "4 × 200 fit into 900");
    world.submit_ok(sized(2, 1, 600));
    world.submit_ok(sized(3, 9, 100));
    // 300 are free after this, but the large unit is next and does not fit: nobody passes it.
    assert!(begun(&world.prove(small[0])).is_empty());
    assert!(begun(&world.prove(small[1])).is_empty());
    let out = world.prove(small[2]);
    assert_eq!(
        jobs(&begun(&out).iter().map(|b| b.unit).collect::<Vec<_>>()),
        [2, 3]
    );
    assert_eq!(world.scheduler.memory(), (900, 1000));
}

#[test]
fn units_are_prepared_ahead_as_far_as_the_device_allows() {
    let mut world = World::new(config());
    world.add_device(0, CircuitId::all().collect(), 2);
    let (_, out) = world.submit_ok(submission(1, POREP, 5));
    let (running, ahead) = (one(&out), prepared(&out));
    assert_eq!(ahead.len(), 2);
    let out = world.returned(running.lease);
    assert_eq!(one(&out), ahead[0]);
    assert_eq!(prepared(&out).len(), 1);
}

/// A device that takes two units at a time, and looks one ahead.
fn two_at_a_time(world: &mut World, id: u32) {
    world.plug_in(id, 2, 1);
    world.ready(id, 1);
}

#[test]
fn a_device_that_takes_two_units_has_two_and_the_lane_waits_for_either() {
    let mut world = World::new(config());
    two_at_a_time(&mut world, 0);
    let (_, out) = world.submit_ok(submission(1, POREP, 5));
    let running = begun(&out);
    assert_eq!((running.len(), prepared(&out).len()), (2, 1));
    let (winning, out) = world.submit_ok(submission(2, WINNING, 1));
    assert!(begun(&out).is_empty());
    // The second one ends first.
    let out = world.prove(running[1]);
    assert_eq!(one(&out).unit.job, winning);
    let view = world.scheduler.devices().next().unwrap();
    assert_eq!(view.running.unwrap().1, running[0].unit.index);
}

#[test]
fn a_device_says_how_many_units_it_takes() {
    let mut world = World::new(config());
    two_at_a_time(&mut world, 0);
    let (_, out) = world.submit_ok(submission(1, POREP, 12));
    let first = begun(&out);
    assert_eq!(first.len(), 2);
    let takes = |incarnation, at_a_time| Event::DeviceTakes {
        device: DeviceId(0),
        incarnation,
        at_a_time,
    };
    // Of another process: nothing changes.
    assert!(begun(&world.event(takes(0, 4))).is_empty());
    let more = begun(&world.event(takes(1, 4)));
    assert_eq!(more.len(), 2);
    // Fewer: those that run end, and then there are as many as it takes.
    assert!(begun(&world.event(takes(1, 0))).is_empty());
    for running in [first[0], first[1], more[0]] {
        assert!(begun(&world.prove(running)).is_empty());
    }
    assert_eq!(begun(&world.prove(more[1])).len(), 1);
    // The next process takes what it took at first.
    let device = DeviceId(0);
    world.event(Event::DeviceStopped {
        device,
        incarnation: 1,
        cause: "killed".to_owned(),
    });
    assert_eq!(world.scheduler.devices[&device].at_a_time, 2);
}

#[test]
fn work_spreads_before_it_piles_up() {
    let mut world = World::new(config());
    two_at_a_time(&mut world, 0);
    two_at_a_time(&mut world, 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 2));
    let devices: Vec<_> = begun(&out).iter().map(|begun| begun.device).collect();
    assert_eq!(devices, [DeviceId(0), DeviceId(1)]);
    let (_, out) = world.submit_ok(submission(2, POREP, 3));
    assert_eq!((begun(&out).len(), prepared(&out).len()), (2, 1));
}

#[test]
fn an_idle_device_takes_what_another_has_only_prepared() {
    let mut world = World::new(config());
    world.add_device(0, CircuitId::all().collect(), 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 2));
    let ahead = prepared(&out)[0];
    world.plug_in(1, 1, 1);
    let mut out = Vec::new();
    world.scheduler.step(
        world.now,
        Event::DeviceReady {
            device: DeviceId(1),
            incarnation: 1,
        },
        &mut out,
    );
    assert!(out.contains(&Action::Discard {
        device: DeviceId(0),
        lease: ahead.lease
    }));
    let stolen = one(&out);
    assert_eq!((stolen.device, stolen.unit), (DeviceId(1), ahead.unit));
    assert_eq!(
        world.scheduler.memory().0,
        30,
        "counted twice until the first has dropped it"
    );
    world.event(Event::UnitDiscarded { lease: ahead.lease });
    assert_eq!(world.scheduler.memory().0, 20);
}

#[test]
fn a_device_gets_only_circuits_that_it_serves() {
    let mut world = World::new(config());
    world.add_device(0, vec![SNAP], 0);
    world.add_device(1, vec![POREP, POREP_8M], 0);
    let (_, out) = world.submit_ok(submission(1, POREP_8M, 3));
    assert_eq!(one(&out).device, DeviceId(1));
    let (_, out) = world.submit_ok(submission(2, SNAP, 1));
    assert_eq!(one(&out).device, DeviceId(0));
    assert!(world.scheduler.is_circuit_in_use(SNAP) && !world.scheduler.is_circuit_in_use(WINDOW));
}

#[test]
fn a_circuit_whose_key_has_come_is_served_from_then_on() {
    let mut world = World::new(config());
    world.add_device(0, vec![SNAP], 0);
    let refused = world.refused(submission(1, POREP, 1));
    assert_eq!(refused.code(), "NO_DEVICE");
    let (device, circuit) = (DeviceId(0), POREP);
    world.event(Event::CircuitServed { device, circuit });
    let (job, out) = world.submit_ok(submission(1, POREP, 1));
    assert_eq!(one(&out).unit.job, job);
}

#[test]
fn every_open_job_is_counted_once() {
    let mut world = World::with_devices(config(), 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 2));
    world.submit_ok(submission(2, POREP, 1));
    world.submit_ok(submission(3, WINDOW, 1));
    let counts = |world: &World| -> Vec<(u32, u32)> {
        world
            .scheduler
            .counts()
            .iter()
            .map(|(_, c)| (c.pending, c.in_progress))
            .collect()
    };
    assert_eq!(counts(&world), [(1, 1), (0, 0), (1, 0), (0, 0)]);
    world.run_down(&out);
    assert_eq!(counts(&world), [(0, 0); 4]);
}
