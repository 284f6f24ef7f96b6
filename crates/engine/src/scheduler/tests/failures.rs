//! Retries, quarantine, silence, limits, restarts.

use super::*;

fn quarantined(world: &World) -> Vec<u32> {
    let is = |view: &DeviceView| matches!(view.status, DeviceStatus::Quarantined(_));
    world
        .scheduler
        .devices()
        .filter(is)
        .map(|view| view.id.0)
        .collect()
}

fn stopped(world: &mut World, device: u32, incarnation: Incarnation) -> Vec<Action> {
    let device = DeviceId(device);
    world.event(Event::DeviceStopped {
        device,
        incarnation,
        cause: "killed".to_owned(),
    })
}

#[test]
fn a_unit_that_failed_goes_to_another_device() {
    let mut world = World::with_devices(config(), 2);
    let (_, out) = world.submit_ok(submission(1, POREP, 1));
    let first = one(&out);
    let second = one(&world.fail(first, Fault::Try));
    assert_ne!(first.device, second.device);
    // With nobody left that has not tried, anybody may.
    let third = one(&world.fail(second, Fault::Try));
    let out = world.fail(third, Fault::Try);
    assert_eq!(failure_code(&out), "UNIT_FAILED");
    assert!(
        quarantined(&world).is_empty(),
        "one unit is no evidence against a device"
    );
}

/// An epoch lasts 30 seconds; a lost device may be gone for minutes.
#[test]
fn winning_post_does_not_wait_for_a_device_that_is_not_there() {
    let mut world = World::with_devices(config(), 2);
    stopped(&mut world, 1, 1);
    let (_, out) = world.submit_ok(submission(1, WINNING, 1));
    let first = one(&out);
    assert_eq!(first.device, DeviceId(0));
    let second = one(&world.fail(first, Fault::Try));
    assert_eq!(second.device, DeviceId(0), "the other one is gone");
    // Other kinds wait for it: it may well prove what this one could not.
    let mut world = World::with_devices(config(), 2);
    stopped(&mut world, 1, 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 1));
    assert!(begun(&world.fail(one(&out), Fault::Try)).is_empty());
}

#[test]
fn a_process_that_dies_with_two_units_of_a_job_costs_each_a_try() {
    let mut world = World::new(config());
    world.plug_in(0, 2, 0);
    world.ready(0, 1);
    let (job, mut out) = world.submit_ok(submission(1, POREP, 2));
    for incarnation in 1..=3 {
        assert_eq!(begun(&out).len(), 2, "process {incarnation}");
        let gone = stopped(&mut world, 0, incarnation);
        if incarnation == 3 {
            // The last try of both: the job fails once.
            assert_eq!(failure_code(&gone), "UNIT_FAILED");
            let ends =
                |action: &&Action| matches!(action, Action::Ended { job: id, .. } if *id == job);
            assert_eq!(gone.iter().filter(ends).count(), 1);
            return;
        }
        world.pass(600_000);
        out = Vec::new();
        world.tickets += 1;
        out.extend(world.event(Event::DeviceReady {
            device: DeviceId(0),
            incarnation: incarnation + 1,
        }));
    }
}

#[test]
fn a_process_that_dies_with_many_units_has_failed_once() {
    let mut world = World::new(config());
    world.plug_in(0, 3, 0);
    world.ready(0, 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 5));
    let first = begun(&out);
    world.event(Event::UnitLeftDevice {
        lease: first[0].lease,
    });
    let gone = stopped(&mut world, 0, 1);
    // Also of the unit of which only the proof was missing.
    let tried = |action: &&Action| matches!(action, Action::Persist(Write::Release { .. }));
    assert_eq!(gone.iter().filter(tried).count(), 4);
    assert!(quarantined(&world).is_empty());
}

#[test]
fn a_request_at_fault_is_not_tried_again() {
    let mut world = World::with_devices(config(), 2);
    let (_, out) = world.submit_ok(submission(1, POREP, 4));
    let out = world.fail(begun(&out)[0], Fault::Request);
    assert_eq!(failure_code(&out), "REQUEST_INVALID");
    assert!(begun(&out).is_empty() && quarantined(&world).is_empty());
}

#[test]
fn what_no_device_could_do_fails_the_job_and_blames_none() {
    let mut world = World::with_devices(config(), 1);
    for (i, fault, code) in [
        (1, Fault::Parameters, "PARAMETERS_UNUSABLE"),
        (2, Fault::Payload, "PAYLOAD_DAMAGED"),
        (3, Fault::Parameters, "PARAMETERS_UNUSABLE"),
        (4, Fault::Payload, "PAYLOAD_DAMAGED"),
    ] {
        let (_, out) = world.submit_ok(submission(i, POREP, 1));
        let out = world.fail(one(&out), fault);
        assert_eq!(failure_code(&out), code);
    }
    assert!(quarantined(&world).is_empty());
}

#[test]
fn a_device_that_never_starts_is_tried_with_growing_pauses_and_then_quarantined() {
    let mut world = World::with_devices(config(), 1);
    let tries = config().start_tries;
    stopped(&mut world, 0, 1);
    for incarnation in 2..2 + tries {
        assert!(quarantined(&world).is_empty());
        // The longest pause.
        let out = world.pass(config().restart_ms.1);
        let start = Action::StartDevice {
            device: DeviceId(0),
            incarnation,
        };
        assert!(out.contains(&start), "{incarnation}: {out:?}");
        stopped(&mut world, 0, incarnation);
    }
    assert_eq!(quarantined(&world), [0]);
    let out = world.pass(3_600_000);
    assert!(!out.iter().any(|a| matches!(a, Action::StartDevice { .. })));
    world.event(Event::DeviceReleased {
        device: DeviceId(0),
    });
    assert!(quarantined(&world).is_empty());
}

#[test]
fn one_wrong_proof_quarantines_the_device_and_the_unit_is_made_elsewhere() {
    let mut world = World::with_devices(config(), 2);
    let (job, out) = world.submit_ok(submission(1, POREP, 1));
    let first = one(&out);
    world.returned(first.lease);
    let out = world.judged(first.lease, Verdict::Wrong);
    assert_eq!(quarantined(&world), [first.device.0]);
    assert_eq!(stops(&out), [first.device]);
    let second = one(&out);
    assert_ne!(second.device, first.device);
    assert_eq!(ends(&world.prove(second)), [(job, Outcome::Completed)]);
    // It stays out until it is released.
    stopped(&mut world, first.device.0, 1);
    assert!(
        !world
            .pass(3_600_000)
            .iter()
            .any(|a| matches!(a, Action::StartDevice { .. }))
    );
    let out = world.event(Event::DeviceReleased {
        device: first.device,
    });
    let restarted = Action::StartDevice {
        device: first.device,
        incarnation: 2,
    };
    assert!(out.contains(&restarted) && quarantined(&world).is_empty());
}

#[test]
fn a_unit_that_two_devices_prove_wrongly_is_itself_at_fault() {
    let mut world = World::with_devices(config(), 3);
    let (_, out) = world.submit_ok(submission(1, POREP, 1));
    let first = one(&out);
    world.returned(first.lease);
    let second = one(&world.judged(first.lease, Verdict::Wrong));
    world.returned(second.lease);
    let out = world.judged(second.lease, Verdict::Wrong);
    assert_eq!(failure_code(&out), "PROOF_WRONG");
    assert!(
        quarantined(&world).is_empty(),
        "the devices are not to blame"
    );
}

#[test]
fn repeated_failures_of_different_units_quarantine_the_device() {
    let mut world = World::with_devices(
        Config {
            unit_tries: 1,
            ..config()
        },
        1,
    );
    for number in 1..=5 {
        let (_, out) = world.submit_ok(submission(number, POREP, 1));
        if number == 3 {
            // A success in between: the count starts anew.
            world.prove(one(&out));
            continue;
        }
        assert!(quarantined(&world).is_empty());
        world.fail(one(&out), Fault::Try);
    }
    let (_, out) = world.submit_ok(submission(6, POREP, 1));
    let out = world.fail(one(&out), Fault::Try);
    assert_eq!(
        (quarantined(&world), stops(&out)),
        (vec![0], vec![DeviceId(0)])
    );
}

#[test]
fn a_silent_device_is_stopped_and_its_unit_goes_on_elsewhere() {
    let listening = Config {
        heartbeat_ms: 15_000,
        ..config()
    };
    let mut world = World::with_devices(listening, 2);
    let (_, out) = world.submit_ok(submission(1, POREP, 1));
    let first = one(&out);
    let other = DeviceId(1 - first.device.0);
    world.now = 14_000;
    world.event(Event::Heartbeat {
        device: other,
        incarnation: 1,
    });
    world.now = 15_000;
    let out = world.event(Event::Tick);
    assert_eq!(stops(&out), [first.device]);
    assert_eq!(one(&out).device, other);
    assert_eq!(
        world.scheduler.memory().0,
        20,
        "counted until the process is gone"
    );
    stopped(&mut world, first.device.0, 1);
    assert_eq!(world.scheduler.memory().0, 10);
    // What the dead process still says is not heard.
    assert!(world.returned(first.lease).is_empty());
}

#[test]
fn a_unit_over_its_limit_stops_the_device() {
    let mut world = World::with_devices(config(), 1);
    let (_, out) = world.submit_ok(submission(1, WINNING, 1));
    one(&out);
    let out = world.pass(119_999);
    assert!(stops(&out).is_empty());
    assert_eq!(stops(&world.pass(1)), [DeviceId(0)]);
}

#[test]
fn a_check_that_does_not_end_is_a_failed_try() {
    let mut world = World::with_devices(config(), 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 1));
    let first = one(&out);
    world.returned(first.lease);
    let out = world.pass(60_000);
    let second = one(&out);
    assert!(
        world.judged(first.lease, Verdict::Right).is_empty(),
        "too late"
    );
    world.returned(second.lease);
    let out = world.judged(second.lease, Verdict::Unknown("no memory".to_owned()));
    one(&out);
}

#[test]
fn a_lost_device_is_started_again_after_growing_pauses() {
    let mut world = World::with_devices(config(), 1);
    let mut pauses = Vec::new();
    for incarnation in 1..12 {
        stopped(&mut world, 0, incarnation);
        let lost = world.now;
        while !world.log.contains(&Action::StartDevice {
            device: DeviceId(0),
            incarnation: incarnation + 1,
        }) {
            world.pass(500);
        }
        pauses.push(world.now - lost);
        world.ready(0, incarnation + 1);
    }
    assert_eq!(pauses[..5], [1000, 2000, 4000, 8000, 16_000]);
    assert_eq!(pauses[10], 300_000);
    // A right proof resets it.
    let (_, out) = world.submit_ok(submission(1, POREP, 1));
    world.prove(one(&out));
    stopped(&mut world, 0, 12);
    let out = world.pass(1000);
    assert!(out.contains(&Action::StartDevice {
        device: DeviceId(0),
        incarnation: 13
    }));
    // The end of an old process says nothing about the new one.
    world.ready(0, 13);
    stopped(&mut world, 0, 12);
    assert!(matches!(
        world.scheduler.devices().next().unwrap().status,
        DeviceStatus::Ready
    ));
}

#[test]
fn a_device_that_does_not_become_ready_or_does_not_end_is_dealt_with() {
    let mut world = World::new(config());
    world.plug_in(0, 1, 0);
    let out = world.pass(600_000);
    assert_eq!(stops(&out), [DeviceId(0)]);
    world.pass(60_000);
    assert_eq!(
        quarantined(&world),
        [0],
        "it cannot be stopped: nothing more is sent to it"
    );
    // Released, it starts once the old process is gone.
    world.event(Event::DeviceReleased {
        device: DeviceId(0),
    });
    stopped(&mut world, 0, 1);
    let out = world.pass(1000);
    assert!(out.contains(&Action::StartDevice {
        device: DeviceId(0),
        incarnation: 2
    }));
}

#[test]
fn a_device_fault_replaces_the_process() {
    let mut world = World::with_devices(config(), 2);
    let (_, out) = world.submit_ok(submission(1, POREP, 1));
    let first = one(&out);
    let out = world.fail(first, Fault::Device);
    assert_eq!(stops(&out), [first.device]);
    assert_ne!(one(&out).device, first.device);
}

#[test]
fn jobs_do_not_wait_for_ever_for_a_device() {
    let mut world = World::with_devices(config(), 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 2));
    let first = one(&out);
    world.returned(first.lease);
    world.judged(first.lease, Verdict::Wrong);
    assert_eq!(world.refused(submission(2, POREP, 1)).code(), "NO_DEVICE");
    assert!(ends(&world.pass(299_999)).is_empty());
    assert_eq!(failure_code(&world.pass(1)), "NO_DEVICE");
}

#[test]
fn joining_that_fails_or_does_not_end_fails_the_job() {
    let mut world = World::with_devices(config(), 1);
    for (number, in_time) in [(1, true), (2, false)] {
        let (job, out) = world.submit_ok(submission(number, POREP, 1));
        let unit = one(&out);
        world.returned(unit.lease);
        world.judged(unit.lease, Verdict::Right);
        let out = if in_time {
            world.event(Event::Assembled {
                job,
                attempt: 1,
                result: Err("lost".to_owned()),
            })
        } else {
            world.pass(600_000)
        };
        assert_eq!(failure_code(&out), "ASSEMBLY_FAILED");
    }
}

#[test]
fn messages_are_one_bounded_line() {
    let failure = super::super::refusal::failure("X", &"line\n\u{1F980}".repeat(1000));
    assert!(failure.message.len() <= 1000 && !failure.message.contains('\n'));
    assert!(
        !super::super::refusal::failure("X", " \n")
            .message
            .is_empty()
    );
}

/// A sticky error of a GPU: each unit that the process has fails of it, and says so.
#[test]
fn a_process_whose_units_all_fail_with_it_has_failed_once() {
    let mut world = World::new(config());
    world.plug_in(0, 4, 0);
    world.ready(0, 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 4));
    for unit in begun(&out) {
        world.fail(unit, Fault::Device);
    }
    stopped(&mut world, 0, 1);
    assert_eq!(world.scheduler.devices[&DeviceId(0)].failed_units.len(), 1);
    assert!(quarantined(&world).is_empty());
}

/// Two processes have ended: that is two failures, of three that are too many.
#[test]
fn the_ends_of_two_processes_with_two_units_each_are_two_failures() {
    let mut world = World::new(Config {
        unit_tries: 1,
        ..config()
    });
    world.plug_in(0, 2, 0);
    for incarnation in 1..=3 {
        world.ready(0, incarnation);
        let number = 2 * incarnation as u8;
        let (_, out) = world.submit_ok(submission(number, POREP, 1));
        world.submit_ok(submission(number + 1, POREP, 1));
        assert!(
            quarantined(&world).is_empty(),
            "after {} ends",
            incarnation - 1
        );
        world.fail(one(&out), Fault::Device);
        stopped(&mut world, 0, incarnation);
        world.pass(10_000);
    }
    assert_eq!(quarantined(&world), [0]);
}

/// The unit that is over its limit is the one that failed, not the one that has just begun.
#[test]
fn a_finishing_unit_over_its_limit_is_the_one_that_failed() {
    let mut world = World::with_devices(config(), 1);
    let (winning, out) = world.submit_ok(submission(1, WINNING, 1));
    let first = one(&out);
    let (_, out) = world.submit_ok(submission(2, POREP, 1));
    assert!(begun(&out).is_empty());
    world.pass(119_000);
    let out = world.event(Event::UnitLeftDevice { lease: first.lease });
    let second = one(&out);
    assert_ne!(second.unit.job, winning);
    assert_eq!(stops(&world.pass(1_000)), [DeviceId(0)]);
    let failed = &world.scheduler.devices[&DeviceId(0)].failed_units;
    assert_eq!(failed.iter().copied().collect::<Vec<_>>(), [(winning, 0)]);
}

/// While the store takes no writes, what was decided does not happen: nothing is late for it.
#[test]
fn nothing_is_late_for_the_time_in_which_the_store_fails() {
    const DAY: Millis = 86_400_000;
    let settings = Config {
        heartbeat_ms: 15_000,
        ..config()
    };
    let mut world = World::new(settings);
    world.add_device(0, CircuitId::all().collect(), 1);
    world.add_device(1, vec![SNAP], 0);
    let (_, out) = world.submit_ok(submission(1, POREP, 1));
    let whole = one(&out);
    world.returned(whole.lease);
    world.judged(whole.lease, Verdict::Right);
    let (_, out) = world.submit_ok(submission(2, POREP, 2));
    let (running, ahead) = (one(&out), prepared(&out)[0]);
    let (_, out) = world.submit_ok(submission(3, SNAP, 1));
    let checked = one(&out);
    world.returned(checked.lease);
    world.add_device(2, vec![WINDOW], 0);
    stopped(&mut world, 2, 1);
    world.cancel("job-2");
    world.event(Event::StoreFails);
    assert_eq!(world.scheduler.next_wake(), None);
    world.now += DAY;
    // It may be said again.
    world.event(Event::StoreFails);
    assert!(world.event(Event::Tick).is_empty());
    assert!(world.event(Event::StoreWorks).is_empty());
    assert!(world.event(Event::StoreWorks).is_empty());
    // All go on as if no time had passed.
    world.event(Event::UnitDiscarded { lease: ahead.lease });
    assert!(begun(&world.prove(running)).is_empty());
    let (job, attempt, result) = (whole.unit.job, whole.unit.attempt, Ok(()));
    let joined = Event::Assembled {
        job,
        attempt,
        result,
    };
    assert_eq!(ends(&world.event(joined)).len(), 1);
    let right = world.judged(checked.lease, Verdict::Right);
    let joins = |action: &Action| matches!(action, Action::Assemble { .. });
    assert!(right.iter().any(joins));
    let ready = |view: &DeviceView| view.status == DeviceStatus::Ready;
    assert_eq!(world.scheduler.devices().filter(ready).count(), 2);
    assert!(quarantined(&world).is_empty());
    // And time passes again: the device that was to be started is.
    let starts =
        |action: &Action| matches!(action, Action::StartDevice { device, .. } if device.0 == 2);
    assert!(world.pass(1_000).iter().any(starts));
}

/// What was late before is late after, by as much as was left.
#[test]
fn a_limit_goes_on_where_it_was_when_the_store_works_again() {
    let mut world = World::with_devices(config(), 1);
    let (_, out) = world.submit_ok(submission(1, WINNING, 1));
    one(&out);
    world.pass(119_000);
    world.event(Event::StoreFails);
    world.now += 1_000_000;
    world.event(Event::StoreWorks);
    assert!(stops(&world.pass(999)).is_empty());
    assert_eq!(stops(&world.pass(1)), [DeviceId(0)]);
}

/// What began meanwhile has all its time from then on, and no more.
#[test]
fn what_begins_while_the_store_fails_has_its_limit_from_when_it_works() {
    let settings = Config {
        heartbeat_ms: 15_000,
        ..config()
    };
    let mut world = World::new(settings);
    world.add_device(0, CircuitId::all().collect(), 0);
    world.add_device(1, vec![WINNING], 0);
    let (_, out) = world.submit_ok(submission(1, WINNING, 1));
    let first = one(&out);
    world.submit_ok(submission(2, WINNING, 1));
    world.submit_ok(submission(3, WINNING, 1));
    world.event(Event::StoreFails);
    world.now += 1_000_000;
    world.prove(first);
    let beats = Event::Heartbeat {
        device: DeviceId(0),
        incarnation: 1,
    };
    world.event(beats);
    world.event(Event::StoreWorks);
    // The second device was silent meanwhile: it has its fifteen seconds, less what was over.
    world.now += 15_000;
    assert_eq!(stops(&world.event(Event::Tick)), [DeviceId(0), DeviceId(1)]);
    let mut world = World::with_devices(config(), 1);
    let (_, out) = world.submit_ok(submission(1, WINNING, 1));
    let first = one(&out);
    world.submit_ok(submission(2, WINNING, 1));
    world.event(Event::StoreFails);
    world.now += 1_000_000;
    one(&world.prove(first));
    world.event(Event::StoreWorks);
    assert!(stops(&world.pass(119_999)).is_empty());
    assert_eq!(stops(&world.pass(1)), [DeviceId(0)]);
}

/// The client has not had the device while the lease could not be stored.
#[test]
fn nobody_is_charged_for_the_time_in_which_the_store_fails() {
    let mut world = World::with_devices(config(), 1);
    world.event(Event::StoreFails);
    let (_, out) = world.submit_ok(submission(1, POREP, 2));
    let first = one(&out);
    world.now += 3_600_000;
    world.event(Event::StoreWorks);
    // Only now it is on the device.
    world.now += 1_000;
    world.prove(first);
    assert_eq!(world.scheduler.estimate(POREP), 1_000);
}
