//! Random made-up requests of every kind, bit for bit against the public circuits.

use peers::exact::{compare, small_circuits};

/// `scripts/verify-full` compares 200 of each, and the circuits of full size.
#[test]
fn five_instances_of_every_kind_at_2kib_and_8mib() {
    for circuit in small_circuits() {
        let agreement = compare(circuit, 0..5).unwrap();
        assert_eq!(agreement.instances, 5);
        println!("{agreement}");
    }
}
