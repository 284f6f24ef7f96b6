//! Limits, idempotency, names, cancellation, recovery, drain.

use store::{JobState, LeaseRecord, OpenJob, UnitRecord};

use super::*;

#[test]
fn a_job_is_acknowledged_and_started_only_when_it_is_stored() {
    let mut world = World::with_devices(config(), 1);
    world.stores = false;
    let submission = submission(1, POREP, 2);
    let (ticket, id) = (Ticket(9), submission.id);
    let out = world.event(Event::Submit {
        ticket,
        submission: Box::new(submission),
    });
    assert!(
        matches!(out[..], [Action::Persist(Write::Insert(_))]),
        "{out:?}"
    );
    let out = world.event(Event::Stored { job: id });
    assert!(matches!(
        &out[0],
        Action::Reply {
            ticket: Ticket(9),
            reply: Reply::Admitted { .. }
        }
    ));
    assert_eq!(begun(&out).len(), 1);
}

#[test]
fn what_the_store_cannot_take_leaves_no_trace() {
    let mut world = World::with_devices(config(), 1);
    world.stores = false;
    let first = Box::new(submission(1, POREP, 2));
    let id = first.id;
    world.event(Event::Submit {
        ticket: Ticket(1),
        submission: first.clone(),
    });
    world.event(Event::Submit {
        ticket: Ticket(2),
        submission: first.clone(),
    });
    let out = world.event(Event::NotStored {
        job: id,
        cause: "disk full".to_owned(),
    });
    let refused: Vec<_> = out
        .iter()
        .filter_map(|action| match action {
            Action::Reply {
                ticket,
                reply: Reply::Refused(refusal),
            } => Some((*ticket, refusal)),
            _ => None,
        })
        .collect();
    assert_eq!(refused.len(), 2, "both who asked are answered: {out:?}");
    assert_eq!(refused[0].1.code(), "STORE_UNAVAILABLE");
    assert_eq!(refused[0].1.class(), RefusalClass::Unavailable);
    assert_eq!(world.scheduler.lookup("job-1"), None);
    world.stores = true;
    world.submit_ok(*first);
}

#[test]
fn a_unit_larger_than_the_budget_is_refused_at_once() {
    let mut world = World::with_devices(config(), 1);
    let mut large = submission(1, POREP, 1);
    large.unit_bytes = 901;
    let refusal = world.refused(large.clone());
    assert!(matches!(
        refusal,
        Refusal::BudgetExceeded {
            needed: 901,
            budget: 900,
            ..
        }
    ));
    assert_eq!(refusal.class(), RefusalClass::Never);
    large.unit_bytes = 900;
    world.submit_ok(large);
    let mut winning = submission(2, WINNING, 1);
    winning.unit_bytes = 1000;
    world.submit_ok(winning.clone());
    winning.unit_bytes = 1001;
    winning.digest = Digest::of(b"other");
    assert_eq!(world.refused(winning).code(), "BUDGET_EXCEEDED");
}

#[test]
fn a_budget_that_shrinks_fails_what_can_never_fit() {
    let mut world = World::with_devices(config(), 0);
    world.add_device(0, vec![SNAP], 0);
    world.add_device(1, vec![POREP], 0);
    let mut large = submission(1, POREP, 2);
    large.unit_bytes = 500;
    world.submit_ok(large);
    world.submit_ok(submission(2, SNAP, 1));
    let out = world.event(Event::Budget { bytes: 599 });
    assert_eq!(failure_code(&out), "BUDGET_EXCEEDED");
}

#[test]
fn limits_by_number_and_bytes_never_hold_up_winning_post() {
    let limits = Config {
        max_jobs: 2,
        max_payload_bytes: 250,
        ..config()
    };
    let mut world = World::with_devices(limits, 1);
    world.submit_ok(submission(1, POREP, 1));
    let mut heavy = submission(2, POREP, 1);
    heavy.payload_bytes = 151;
    let refusal = world.refused(heavy);
    assert_eq!(
        (refusal.code(), refusal.class()),
        ("QUEUE_BYTES_FULL", RefusalClass::Exhausted)
    );
    world.submit_ok(submission(3, POREP, 1));
    assert_eq!(world.refused(submission(4, WINDOW, 1)).code(), "QUEUE_FULL");
    world.submit_ok(submission(5, WINNING, 1));
    // The same request again is no new job.
    world.submit_ok(submission(1, POREP, 1));
}

#[test]
fn what_could_not_be_taken_is_known_before_its_payload() {
    let limits = Config {
        max_jobs: 2,
        max_payload_bytes: 250,
        ..config()
    };
    let mut world = World::with_devices(limits, 1);
    let early = |world: &World, id: &str, kind, bytes| {
        let refusal = world
            .scheduler
            .check_early(id, kind, Priority::Normal, bytes);
        refusal.err().map(|refusal| refusal.code())
    };
    world.submit_ok(submission(1, POREP, 1));
    assert_eq!(early(&world, "new", ProofKind::Porep, 150), None);
    assert_eq!(
        early(&world, "new", ProofKind::Porep, 151),
        Some("QUEUE_BYTES_FULL")
    );
    world.submit_ok(submission(2, POREP, 1));
    assert_eq!(early(&world, "new", ProofKind::Snap, 1), Some("QUEUE_FULL"));
    assert_eq!(early(&world, "", ProofKind::Snap, 1), Some("QUEUE_FULL"));
    // Never WinningPoSt, nor what may be there already.
    assert_eq!(early(&world, "new", ProofKind::Winning, 1 << 40), None);
    assert_eq!(early(&world, "job-1", ProofKind::Porep, 100), None);
    world.event(Event::Drain);
    assert_eq!(
        early(&world, "job-1", ProofKind::Winning, 1),
        Some("SHUTTING_DOWN")
    );
}

#[test]
fn malformed_submissions_are_refused() {
    let mut world = World::with_devices(config(), 0);
    world.add_device(0, vec![POREP], 0);
    world.now = 1000;
    assert_eq!(
        world.refused(submission(1, POREP, 0)).code(),
        "REQUEST_INVALID"
    );
    assert_eq!(
        world.refused(submission(1, POREP, 257)).code(),
        "REQUEST_INVALID"
    );
    assert_eq!(world.refused(submission(1, SNAP, 1)).code(), "NO_DEVICE");
    let mut late = submission(1, POREP, 1);
    late.deadline_ms = Some(1000);
    assert_eq!(world.refused(late).code(), "DEADLINE_EXCEEDED");
}

#[test]
fn the_same_request_joins_returns_or_runs_again() {
    let mut world = World::with_devices(config(), 1);
    let request = submission(1, POREP, 1);
    let how = |world: &mut World, id: u8| {
        let mut again = request.clone();
        again.id = JobId::from_bytes([id; 16]);
        match world.submit(again) {
            (Reply::Admitted { job, how, name, .. }, out) => {
                assert_eq!((job, name.as_str()), (request.id, "job-1"));
                (how, begun(&out))
            }
            (other, _) => panic!("{other:?}"),
        }
    };
    let (new, unit) = how(&mut world, 1);
    assert_eq!(new, Admitted::New);
    assert_eq!(how(&mut world, 2), (Admitted::Joined, vec![]));
    world.fail(unit[0], Fault::Request);
    let (again, unit) = how(&mut world, 3);
    assert_eq!((again, unit[0].unit.attempt), (Admitted::Again, 2));
    assert_eq!(world.cancel("job-1"), (Some(request.id), true));
    assert_eq!(how(&mut world, 4).0, Admitted::Again);
    // The device is still at the unit of the cancelled attempt; its proof is not taken.
    let out = world.returned(unit[0].lease);
    assert_eq!(one(&out).unit.attempt, 3);
    world.prove(one(&out));
    assert_eq!(how(&mut world, 5), (Admitted::Completed, vec![]));
    world.event(Event::Forget { job: request.id });
    assert_eq!(world.scheduler.lookup("job-1"), None);
}

#[test]
fn a_repeat_raises_the_priority() {
    let mut world = World::with_devices(config(), 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 1));
    world.submit_ok(submission(2, POREP, 1));
    let mut third = submission(3, POREP, 1);
    world.submit_ok(third.clone());
    third.priority = Priority::High;
    world.submit_ok(third);
    let order: Vec<_> = world
        .run_down(&out)
        .iter()
        .map(|unit| unit.job.as_bytes()[0])
        .collect();
    assert_eq!(order, [1, 3, 2]);
}

#[test]
fn one_id_with_several_payloads_is_several_jobs() {
    let mut world = World::with_devices(config(), 1);
    let submit = |world: &mut World, number: u8, id: &str, payload: &[u8]| {
        let mut request = submission(number, POREP, 1);
        request.request_id = id.to_owned();
        request.digest = Digest::of(payload);
        match world.submit(request).0 {
            Reply::Admitted { job, name, .. } => (job, name),
            other => panic!("{other:?}"),
        }
    };
    let (a, name_a) = submit(&mut world, 1, "porep-1-2", b"a");
    assert_eq!(name_a, "porep-1-2");
    let (b, name_b) = submit(&mut world, 2, "porep-1-2", b"b");
    assert_eq!(
        name_b,
        format!("porep-1-2#{}", &Digest::of(b"b").to_string()[..8])
    );
    let found = |world: &World, name: &str| world.scheduler.lookup(name);
    assert_eq!(found(&world, &name_b), Some(b));
    assert_eq!(
        found(&world, "porep-1-2"),
        Some(b),
        "the bare id means the newest"
    );
    // Who submits the first again gets a name that means it, and it is the newest now.
    let (again, name) = submit(&mut world, 3, "porep-1-2", b"a");
    assert_eq!(
        (again, found(&world, &name), found(&world, "porep-1-2")),
        (a, Some(a), Some(a))
    );
    // An id that looks like another's qualified name does not take it over.
    let (c, name_c) = submit(&mut world, 4, &name_b, b"c");
    assert_eq!(found(&world, &name_b), Some(b));
    assert_eq!(found(&world, &name_c), Some(c));
    // Without an id, every submission is a job of its own.
    let (d, name_d) = submit(&mut world, 5, "", b"a");
    let (e, _) = submit(&mut world, 6, "", b"a");
    assert_ne!(d, e);
    assert_eq!(
        (name_d.clone(), found(&world, &name_d)),
        (d.to_string(), Some(d))
    );
    assert_eq!(found(&world, "porep-1-2#"), None);
    assert_eq!(found(&world, "nothing"), None);
}

#[test]
fn cancelling_stops_at_the_end_of_the_unit() {
    let mut world = World::with_devices(config(), 1);
    let (first, out) = world.submit_ok(submission(1, POREP, 3));
    let running = one(&out);
    let (second, _) = world.submit_ok(submission(2, POREP, 1));
    assert_eq!(world.cancel("job-2"), (Some(second), false));
    assert_eq!(world.cancel("job-1"), (Some(first), true));
    assert_eq!(world.cancel("job-1"), (None, false), "it has ended");
    assert_eq!(world.cancel("job-7"), (None, false));
    assert_eq!(
        world.scheduler.devices().next().unwrap().running.unwrap().0,
        first
    );
    let out = world.prove(running);
    assert!(begun(&out).is_empty() && ends(&out).is_empty());
    assert_eq!(world.scheduler.memory().0, 0);
    let ended = ends(&world.log);
    assert_eq!(
        ended,
        [(second, Outcome::Cancelled), (first, Outcome::Cancelled)]
    );
}

#[test]
fn recovery_goes_on_where_it_was() {
    let mut world = World::with_devices(config(), 2);
    let mut source = World::with_devices(config(), 1);
    let (_, out) = source.submit_ok(submission(1, POREP, 3));
    let record = out
        .iter()
        .find_map(|action| match action {
            Action::Persist(Write::Insert(record)) => Some(record.clone()),
            _ => None,
        })
        .unwrap();
    let lease = LeaseRecord {
        token: 5,
        holder: "local".to_owned(),
        expires_ms: 1,
    };
    let unit = |index, proven, failures, lease| UnitRecord {
        index,
        failures,
        lease,
        proven,
    };
    let units = vec![unit(0, true, 0, None), unit(1, false, 2, Some(lease))];
    let open = OpenJob {
        job: (*record).clone(),
        units,
    };
    let out = world.event(Event::Restore(Box::new(open)));
    let units = begun(&out);
    assert_eq!(
        units
            .iter()
            .map(|begun| begun.unit.index)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    // The third failure of unit 1 is one too many, even though two were before the restart.
    assert_eq!(
        failure_code(&world.fail(units[0], Fault::Try)),
        "UNIT_FAILED"
    );

    let mut ended = (*record).clone();
    ended.id = JobId::from_bytes([8; 16]);
    ended.request_id = "old".to_owned();
    ended.name = "old".to_owned();
    ended.state = JobState::Completed;
    world.event(Event::RestoreEnded(Box::new(ended.clone())));
    let mut again = submission(8, POREP, 3);
    again.request_id = "old".to_owned();
    again.digest = ended.digest;
    let reply = world.submit(again).0;
    assert!(
        matches!(
            reply,
            Reply::Admitted {
                how: Admitted::Completed,
                ..
            }
        ),
        "{reply:?}"
    );

    let mut whole = (*record).clone();
    whole.id = JobId::from_bytes([9; 16]);
    whole.request_id = "whole".to_owned();
    whole.name = "whole".to_owned();
    let units = (0..3).map(|index| unit(index, true, 0, None)).collect();
    let out = world.event(Event::Restore(Box::new(OpenJob { job: whole, units })));
    assert!(
        out.iter()
            .any(|action| matches!(action, Action::Assemble { .. })),
        "{out:?}"
    );
}

#[test]
fn draining_lets_running_units_end_and_starts_no_other() {
    let mut world = World::new(config());
    world.add_device(0, CircuitId::all().collect(), 1);
    let (_, out) = world.submit_ok(submission(1, POREP, 3));
    let (running, prepared) = (one(&out), prepared(&out)[0]);
    let out = world.event(Event::Drain);
    assert!(out.contains(&Action::Discard {
        device: DeviceId(0),
        lease: prepared.lease
    }));
    assert_eq!(world.refused(submission(2, WINNING, 1)), Refusal::Draining);
    world.event(Event::UnitDiscarded {
        lease: prepared.lease,
    });
    let out = world.returned(running.lease);
    assert!(
        !out.contains(&Action::Drained),
        "the proof is still being checked"
    );
    let out = world.judged(running.lease, Verdict::Right);
    assert!(
        begun(&out).is_empty() && out.contains(&Action::Drained),
        "{out:?}"
    );
    assert!(
        ends(&world.log).is_empty(),
        "the job is open for the next start"
    );
    assert!(
        !world.event(Event::Tick).contains(&Action::Drained),
        "said once"
    );
}
