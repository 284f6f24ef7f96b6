//! The full check of points: right keys pass, single bad points are found and named.

use super::*;
use crate::key::check::check_points;

/// Enough points in both groups for the bucket sums to be used, not a multiple of any chunk.
const LARGE: KeyCounts = KeyCounts {
    inputs: 3,
    h: 16_383,
    l: 5000,
    a: 4099,
    b: 8200,
};

fn fault_of(file: &KeyFile) -> (&'static str, u64, PointFault) {
    match check_points(&file.open().unwrap(), &()).unwrap_err() {
        KeyError::Point {
            section,
            index,
            fault,
            ..
        } => (section, index, fault),
        other => panic!("{other}"),
    }
}

#[test]
fn right_keys_pass_with_and_without_buckets() {
    for counts in [COUNTS, LARGE] {
        check_points(&KeyFile::new(counts).open().unwrap(), &()).unwrap();
    }
}

/// Spoils one point in both ways and expects each fault to be named.
fn expect_both_faults(file: &KeyFile, section: &'static str, index: usize) {
    let mut off = file.clone();
    *off.point_mut(section, index).last_mut().unwrap() ^= 1;
    let place = (section, index as u64);
    assert_eq!(fault_of(&off), (place.0, place.1, PointFault::NotOnCurve));

    let mut outside = file.clone();
    let point = outside.point_mut(section, index);
    if section == "b_g2" {
        outside_g2().encode(point);
    } else {
        order_three().encode(point);
    }
    assert_eq!(
        fault_of(&outside),
        (place.0, place.1, PointFault::NotInSubgroup)
    );
}

#[test]
fn a_bad_point_is_found_and_named_wherever_it_is() {
    let small = KeyFile::new(COUNTS);
    for (section, last) in [("h", 30), ("l", 16), ("a", 18), ("b_g1", 10), ("b_g2", 10)] {
        expect_both_faults(&small, section, 0);
        expect_both_faults(&small, section, last);
    }
    let large = KeyFile::new(LARGE);
    expect_both_faults(&large, "l", 4999);
    expect_both_faults(&large, "b_g2", 0);
}

/// Components of order 3 that cancel out in the sum of all points: what a single linear
/// combination with small coefficients, or the plain sum, would miss.
#[test]
fn components_of_order_three_that_cancel_are_found() {
    let small = order_three().to_curve();
    let shift = |file: &mut KeyFile, section: &str, index: usize, by: G1Projective| {
        let bytes = file.point_mut(section, index);
        let point = G1Affine::decode(bytes).unwrap();
        (by + point).to_affine().encode(bytes);
    };
    let mut file = KeyFile::new(LARGE);
    shift(&mut file, "h", 5000, small);
    shift(&mut file, "a", 77, -small);
    let (section, index, fault) = fault_of(&file);
    assert!(matches!((section, index), ("h", 5000) | ("a", 77)));
    assert_eq!(fault, PointFault::NotInSubgroup);

    // The same component in many points.
    let mut file = KeyFile::new(LARGE);
    for index in 0..3000 {
        shift(&mut file, "l", index, small);
    }
    assert_eq!(fault_of(&file).2, PointFault::NotInSubgroup);
}
