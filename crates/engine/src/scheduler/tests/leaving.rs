//! Units that have left their device, and whose proofs are not there yet.

use super::*;

#[test]
fn a_device_that_is_done_with_a_unit_gets_the_next_before_its_proof_is_there() {
    let mut world = World::new(config());
    world.add_device(0, CircuitId::all().collect(), 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 4));
    let (first, second) = (one(&out), prepared(&out)[0]);
    let left = |lease| Event::UnitLeftDevice { lease };
    let out = world.event(left(first.lease));
    assert_eq!(one(&out), second);
    assert_eq!(prepared(&out).len(), 1);
    // Once: it has one place on the device, and one that is prepared has none.
    assert!(begun(&world.event(left(first.lease))).is_empty());
    let third = prepared(&out)[0];
    assert!(begun(&world.event(left(third.lease))).is_empty());
    // It is free already.
    assert!(begun(&world.prove(first)).is_empty());
    // Without that event, the proof says so.
    assert_eq!(one(&world.prove(second)), third);
    world.event(left(second.lease));
    let view = world.scheduler.devices().next().unwrap();
    assert_eq!(view.running.unwrap().1, third.unit.index);
}

/// What is done beside the device takes no device time: who has long checks is not charged for them.
#[test]
fn a_client_is_charged_for_the_device_and_not_for_what_follows_it() {
    let mut world = World::with_devices(config(), 1);
    let (slow, mut out) = world.submit_ok(submission(1, POREP, 60));
    let mut other = submission(2, POREP, 60);
    other.client = "b".to_owned();
    out.extend(world.submit_ok(other).1);
    // Each unit has the device for a second; those of "a" are then verified for nine.
    let mut finishing: Vec<(Millis, Begun)> = Vec::new();
    let mut running = one(&out);
    let mut of_a = Vec::new();
    for _ in 0..80 {
        world.now += 1_000;
        let due: Vec<_> = finishing
            .iter()
            .filter(|(at, _)| *at <= world.now)
            .map(|(_, unit)| *unit)
            .collect();
        finishing.retain(|(at, _)| *at > world.now);
        for unit in due {
            assert!(begun(&world.prove(unit)).is_empty());
        }
        let out = world.event(Event::UnitLeftDevice {
            lease: running.lease,
        });
        let is_a = running.unit.job == slow;
        of_a.push(is_a);
        finishing.push((world.now + if is_a { 9_000 } else { 0 }, running));
        running = one(&out);
    }
    let share = of_a[40..].iter().filter(|is_a| **is_a).count();
    assert!(
        (18..=22).contains(&share),
        "a has half of 40 units, got {share}"
    );
}

/// Nothing follows from a unit that is said to have left when it has not been there, or has gone.
#[test]
fn only_a_unit_on_the_device_leaves_it_and_once() {
    let mut world = World::new(config());
    world.add_device(0, CircuitId::all().collect(), 1);
    let left = |lease| Event::UnitLeftDevice { lease };
    let (job, out) = world.submit_ok(submission(1, POREP, 2));
    let (first, second) = (one(&out), prepared(&out)[0]);
    assert!(world.event(left(LeaseId(u64::MAX))).is_empty());
    assert!(world.event(left(second.lease)).is_empty(), "only prepared");
    world.submit_ok(submission(2, POREP, 4));
    let out = world.event(left(first.lease));
    assert_eq!(one(&out), second);
    for _ in 0..3 {
        assert!(world.event(left(first.lease)).is_empty(), "once");
    }
    // A job that has ended: what is left of it runs to its end, and frees the device as before.
    assert_eq!(world.cancel("job-1"), (Some(job), true));
    let (used, _) = world.scheduler.memory();
    assert_eq!(used, 30, "both of its units, and one that is prepared");
    let third = one(&world.event(left(second.lease)));
    assert!(world.event(left(second.lease)).is_empty());
    assert!(world.returned(second.lease).is_empty());
    assert!(
        world.event(left(second.lease)).is_empty(),
        "it has returned"
    );
    world.fail(first, Fault::Try);
    assert_eq!(world.scheduler.memory().0, 20);
    // Judged or proven: it is gone.
    world.returned(third.lease);
    assert!(world.event(left(third.lease)).is_empty());
    world.judged(third.lease, Verdict::Right);
    assert!(world.event(left(third.lease)).is_empty());
}

/// Units beside the device hold their memory, so their number has a bound.
#[test]
fn units_that_have_left_the_device_hold_their_memory() {
    let mut world = World::with_devices(config(), 1);
    let (_, out) = world.submit_ok(Submission {
        unit_bytes: 300,
        ..submission(1, POREP, 9)
    });
    let mut units = begun(&out);
    while let Some(last) = units.last().copied().filter(|_| units.len() < 9) {
        let more = begun(&world.event(Event::UnitLeftDevice { lease: last.lease }));
        if more.is_empty() {
            break;
        }
        units.extend(more);
    }
    assert_eq!(units.len(), 3, "900 bytes below the lane");
    // The lane has its own, and goes on.
    let (_, out) = world.submit_ok(submission(2, WINNING, 1));
    let lane = one(&out);
    world.event(Event::UnitLeftDevice { lease: lane.lease });
    assert_eq!(world.scheduler.memory().0, 910);
    // Each that ends makes room for one.
    assert_eq!(begun(&world.prove(units[1])).len(), 1);
}

/// The end waits for those that need only the process any more; a new process does not know of them.
#[test]
fn draining_and_the_end_of_a_process_count_units_that_have_left_the_device() {
    let mut world = World::with_devices(config(), 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 2));
    let first = one(&out);
    let second = one(&world.event(Event::UnitLeftDevice { lease: first.lease }));
    let gone = world.event(Event::DeviceStopped {
        device: DeviceId(0),
        incarnation: 1,
        cause: "killed".to_owned(),
    });
    assert!(begun(&gone).is_empty());
    assert_eq!(world.scheduler.memory().0, 0);
    world.pass(2_000);
    world.ready(0, 2);
    let again = *begun(&world.log).last().unwrap();
    // What the former process said comes late, and means nothing.
    for lease in [first.lease, second.lease] {
        assert!(world.event(Event::UnitLeftDevice { lease }).is_empty());
        assert!(world.returned(lease).is_empty());
    }
    let next = one(&world.event(Event::UnitLeftDevice { lease: again.lease }));
    world.event(Event::UnitLeftDevice { lease: next.lease });
    assert!(!world.event(Event::Drain).contains(&Action::Drained));
    assert!(!world.prove(next).contains(&Action::Drained));
    assert!(!world.returned(again.lease).contains(&Action::Drained));
    let (job, attempt) = (again.unit.job, again.unit.attempt);
    assert!(
        !world
            .judged(again.lease, Verdict::Right)
            .contains(&Action::Drained)
    );
    let result = Ok(());
    let out = world.event(Event::Assembled {
        job,
        attempt,
        result,
    });
    assert!(out.contains(&Action::Drained));
}
