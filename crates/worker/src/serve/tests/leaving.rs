//! Units that have left the device, and whose proofs are not there yet.

use std::collections::BTreeSet;

use super::*;

#[test]
fn the_device_is_free_before_the_proof_is_there() {
    let daemon = Daemon::new();
    let left = |lease| Report::LeftDevice {
        lease: LeaseId(lease),
    };
    daemon.says(&Order::Prove(unit(1, 1, "finish:a")));
    assert!(matches!(daemon.hears_all(), Report::KeyLoaded { .. }));
    assert_eq!(daemon.hears_all(), left(1));
    daemon.says(&Order::Prove(unit(2, 2, "")));
    assert_eq!(daemon.hears_all(), left(2));
    daemon.doors.open("a");
    proof(daemon.hears_of_units(), 1);
    proof(daemon.hears_of_units(), 2);
    // One that fails on the device has not left it with anything.
    daemon.says(&Order::Prove(unit(3, 3, "prove:wrong")));
    failure(daemon.hears_all(), 3);
}

/// The daemon chooses the next unit, and how many, when it hears that the device is free: it must know
/// by then which key the device has, and for how many units there is room with it.
#[test]
fn what_the_device_has_is_told_before_that_it_is_free() {
    let daemon = Daemon::new();
    let circuit = spacious();
    daemon.says(&Order::Prove(Unit {
        circuit,
        ..unit(1, 1, "")
    }));
    assert!(matches!(daemon.hears_all(), Report::KeyLoaded { .. }));
    assert_eq!(daemon.hears_all(), Report::Takes { at_a_time: 4 });
    let lease = LeaseId(1);
    assert_eq!(daemon.hears_all(), Report::LeftDevice { lease });
    proof(daemon.hears_all(), 1);
}

/// A proof that turns out to be wrong beside the device is a failure like any other, said once.
#[test]
fn a_unit_may_fail_when_it_has_left_the_device() {
    let daemon = Daemon::new();
    for (lease, script) in [(1, "finish:wrong"), (2, "finish:panic")] {
        daemon.says(&Order::Prove(unit(lease, 1, script)));
        let of_units = || {
            let reports = std::iter::repeat_with(|| daemon.hears_all());
            let mut of_units = reports.filter(|report| !matches!(report, Report::KeyLoaded { .. }));
            of_units.next().unwrap()
        };
        let lease_id = LeaseId(lease);
        assert_eq!(of_units(), Report::LeftDevice { lease: lease_id });
        failure(of_units(), lease);
    }
    daemon.says(&Order::Prove(unit(3, 1, "")));
    proof(daemon.hears_of_units(), 3);
}

/// Units whose proofs are slow to come hold the device up before they pile up.
#[test]
fn units_that_have_left_the_device_do_not_pile_up() {
    let daemon = Daemon::new();
    for lease in 1..=20 {
        daemon.says(&Order::Prove(unit(lease, 1, "finish:a")));
    }
    let leaves = |report: &Report| matches!(report, Report::LeftDevice { .. });
    // One finisher: one in its hands and two behind it.
    let reports = std::iter::repeat_with(|| daemon.hears_all());
    assert_eq!(reports.filter(leaves).take(3).count(), 3);
    // The fourth finds the device taken.
    let more = daemon.reports.recv_timeout(Duration::from_millis(300));
    assert!(more.is_err(), "{more:?}");
    daemon.doors.open("a");
    let returned = std::iter::repeat_with(|| match daemon.hears_of_units() {
        Report::Returned { lease, .. } => lease.0,
        other => panic!("{other:?}"),
    });
    let returned: BTreeSet<u64> = returned.take(20).collect();
    assert!(returned.into_iter().eq(1..=20));
}
