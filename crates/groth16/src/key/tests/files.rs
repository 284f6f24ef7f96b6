//! Layout and encoding: files read back as written, and spoiled files are refused.

use blstrs::{G1Affine, G2Affine};
use group::prime::PrimeCurveAffine;
use proptest::prelude::*;

use super::*;
use crate::points::Points;

const SECTIONS: [&str; 5] = ["h", "l", "a", "b_g1", "b_g2"];

/// Reads every point of every section.
fn read_all(key: &ProvingKey) -> Result<(), KeyError> {
    for section in [key.h(), key.l(), key.a(), key.b_g1()] {
        section.read_vec(0, section.len())?;
    }
    key.b_g2().read_vec(0, key.b_g2().len()).map(|_| ())
}

#[test]
fn a_key_reads_back_as_written() {
    let file = KeyFile::new(COUNTS);
    let key = file.open().unwrap();
    assert_eq!(
        key.h().read_vec(0, 31).unwrap(),
        multiples::<G1Projective>(100, 31)
    );
    assert_eq!(
        key.b_g2().read_vec(0, 11).unwrap(),
        multiples::<G2Projective>(4100, 11)
    );
    assert_eq!(
        key.vk().to_bytes(),
        &file.bytes[..COUNTS.vk_bytes() as usize]
    );
    assert_eq!(key.vk().ic, multiples::<G1Projective>(5, 3));

    let mut out = [G1Affine::identity(); 4];
    key.l().read(13, &mut out).unwrap();
    assert_eq!(out.as_slice(), multiples::<G1Projective>(1113, 4));
    assert!(matches!(
        key.l().read(14, &mut out),
        Err(KeyError::Range { .. })
    ));
    assert!(matches!(
        key.l().read(usize::MAX, &mut out),
        Err(KeyError::Range { .. })
    ));
}

#[test]
fn sections_longer_than_a_chunk_read_in_parallel_as_in_one_go() {
    let counts = KeyCounts { h: 9001, ..COUNTS };
    let key = KeyFile::new(counts).open().unwrap();
    let mut serial = vec![G1Affine::identity(); 8999];
    key.h().read(1, &mut serial).unwrap();
    assert_eq!(key.h().read_vec(1, 8999).unwrap(), serial);
    assert_eq!(serial, multiples::<G1Projective>(101, 8999));
}

#[test]
fn every_length_but_the_right_one_is_refused() {
    let file = KeyFile::new(COUNTS);
    // Every length around the borders of the sections, and some within.
    let mut lengths = vec![0, 1, 863, 864, 867, 868, 869, file.bytes.len() - 1];
    for section in SECTIONS {
        let border = file.count_offset(section);
        lengths.extend([
            border - 1,
            border,
            border + 3,
            border + 4,
            border + 5,
            border + 100,
        ]);
    }
    for length in lengths {
        let mut cut = file.clone();
        cut.bytes.truncate(length);
        let error = cut.open().unwrap_err();
        assert!(
            matches!(error, KeyError::Malformed { .. }),
            "{length}: {error}"
        );
    }
    for extra in [1, 4, 96, 5000] {
        let mut long = file.clone();
        long.bytes.resize(file.bytes.len() + extra, 0);
        let error = long.open().unwrap_err().to_string();
        assert!(error.contains(&format!("{extra} bytes follow")), "{error}");
    }
}

#[test]
fn counts_that_lie_are_refused_by_name() {
    let file = KeyFile::new(COUNTS);
    for section in ["ic", "h", "l", "a", "b_g1", "b_g2"] {
        // Ten gigabytes and more are refused from the count alone, nothing is allocated.
        for count in [u32::MAX, 1 << 31, 110_000_000] {
            let mut lying = file.clone();
            lying.set_count(section, count);
            let error = lying.open().unwrap_err();
            assert!(
                matches!(error, KeyError::Malformed { .. }),
                "{section}: {error}"
            );
            assert!(error.to_string().contains(section), "{error}");
        }
        let mut lying = file.clone();
        lying.set_count(section, 0);
        match lying.open().unwrap_err() {
            KeyError::OtherCircuit {
                section: named,
                found: 0,
                ..
            } => assert_eq!(named, section),
            other => panic!("{section}: {other}"),
        }
    }
}

#[test]
fn a_key_of_another_circuit_is_refused() {
    let file = KeyFile::new(COUNTS);
    let (_dir, path) = file.on_disk();
    for (section, counts) in [
        (
            "ic",
            KeyCounts {
                inputs: 2,
                ..COUNTS
            },
        ),
        ("h", KeyCounts { h: 63, ..COUNTS }),
        ("l", KeyCounts { l: 18, ..COUNTS }),
        ("a", KeyCounts { a: 18, ..COUNTS }),
        ("b_g1", KeyCounts { b: 10, ..COUNTS }),
    ] {
        match ProvingKey::open(&path, &counts).unwrap_err() {
            KeyError::OtherCircuit { section: named, .. } => assert_eq!(named, section),
            KeyError::Malformed { reason, .. } => assert!(reason.contains("bytes"), "{reason}"),
            other => panic!("{section}: {other}"),
        }
    }
}

#[test]
fn text_folders_and_absent_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let open = |name: &str| ProvingKey::open(&dir.path().join(name), &COUNTS).unwrap_err();
    std::fs::write(dir.path().join("short"), "<html>404 not found</html>").unwrap();
    std::fs::write(dir.path().join("long"), "<html>404</html>\n".repeat(10_000)).unwrap();
    std::fs::write(dir.path().join("empty"), "").unwrap();
    std::fs::create_dir(dir.path().join("folder")).unwrap();
    for name in ["short", "long", "empty", "folder"] {
        let error = open(name);
        assert!(
            matches!(error, KeyError::Malformed { .. }),
            "{name}: {error}"
        );
    }
    assert!(matches!(open("absent"), KeyError::Io { .. }));
    assert!(VerifyingKey::read(&dir.path().join("long"), 3).is_err());
}

#[test]
fn each_fault_of_a_point_is_named() {
    type Spoil = fn(&mut [u8]);
    let faults: [(PointFault, Spoil); 7] = [
        (PointFault::Compressed, |point| point[0] |= 0x80),
        (PointFault::Compressed, |point| point[0] |= 0xc0),
        (PointFault::Infinity, |point| point[0] |= 0x40),
        (PointFault::StrayFlag, |point| point[0] |= 0x20),
        // Infinity as the reference encodes it, and the way blst holds it in memory.
        (PointFault::Infinity, |point| {
            point.fill(0);
            point[0] = 0x40;
        }),
        (PointFault::Infinity, |point| point.fill(0)),
        // p itself stands for 0 but is not canonical.
        (PointFault::NotCanonical, |point| {
            let p = "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";
            hex::decode_to_slice(p, &mut point[..48]).unwrap();
        }),
    ];
    for section in SECTIONS {
        for (expected, spoil) in faults {
            let mut file = KeyFile::new(COUNTS);
            spoil(file.point_mut(section, 7));
            let error = read_all(&file.open().unwrap()).unwrap_err();
            match error {
                KeyError::Point {
                    section: named,
                    index,
                    fault,
                    ..
                } => {
                    assert_eq!((named, index, fault), (section, 7, expected));
                }
                other => panic!("{section}: {other}"),
            }
        }
    }
}

#[test]
fn canonical_means_below_the_modulus() {
    let p = "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab";
    let mut bytes = [0; 96];
    hex::decode_to_slice(p, &mut bytes[..48]).unwrap();
    bytes[95] = 2;
    // x = p − 1, p, p + 1, each in both coordinates of G1.
    for (last, ok) in [(0xaa, true), (0xab, false), (0xac, false)] {
        bytes[47] = last;
        assert_eq!(G1Affine::decode(&bytes).is_ok(), ok);
        let mut swapped = bytes;
        swapped.rotate_left(48);
        assert_eq!(G1Affine::decode(&swapped).is_ok(), ok);
    }
    bytes[0] = 0x1b;
    assert_eq!(G1Affine::decode(&bytes), Err(PointFault::NotCanonical));
}

#[test]
fn a_verifying_key_reads_back_and_every_point_of_it_is_checked() {
    let file = KeyFile::new(COUNTS);
    let vk_bytes = &file.bytes[..COUNTS.vk_bytes() as usize];
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key.vk");
    let read = |bytes: &[u8], inputs| {
        std::fs::write(&path, bytes).unwrap();
        VerifyingKey::read(&path, inputs)
    };
    assert_eq!(read(vk_bytes, 3).unwrap().to_bytes(), vk_bytes);
    assert!(matches!(
        read(vk_bytes, 4),
        Err(KeyError::OtherCircuit { section: "ic", .. })
    ));
    for length in [0, 100, 867, 868, vk_bytes.len() - 1] {
        let error = read(&vk_bytes[..length], 3).unwrap_err();
        assert!(
            matches!(error, KeyError::Malformed { .. }),
            "{length}: {error}"
        );
    }
    assert!(matches!(
        read(&file.bytes, 3),
        Err(KeyError::Malformed { .. })
    ));

    // Each point in turn: another curve point outside the subgroup, and off the curve.
    let (small, twist) = (order_three(), outside_g2());
    let names = [
        "alpha_g1", "beta_g1", "beta_g2", "gamma_g2", "delta_g1", "delta_g2", "ic",
    ];
    let offsets = [0, 96, 192, 384, 576, 672, 868];
    for (name, offset) in names.into_iter().zip(offsets) {
        let size = if name.ends_with("g2") { 192 } else { 96 };
        let fault_of = |replace: &dyn Fn(&mut [u8])| {
            let mut bytes = vk_bytes.to_vec();
            replace(&mut bytes[offset..offset + size]);
            match read(&bytes, 3).unwrap_err() {
                KeyError::Point {
                    section,
                    index: 0,
                    fault,
                    ..
                } if section == name => fault,
                other => panic!("{name}: {other}"),
            }
        };
        let outside = fault_of(&|point| {
            if size == 96 {
                small.encode(point);
            } else {
                twist.encode(point);
            }
        });
        assert_eq!(outside, PointFault::NotInSubgroup);
        let off = fault_of(&|point| point[size - 1] ^= 1);
        assert_eq!(off, PointFault::NotOnCurve);
        assert_eq!(fault_of(&|point| point.fill(0)), PointFault::Infinity);
    }
}

#[test]
fn a_file_that_changes_under_its_map_is_an_error() {
    let file = KeyFile::new(KeyCounts {
        h: 20_000,
        ..COUNTS
    });
    let (_dir, path) = file.on_disk();
    let key = ProvingKey::open(&path, &file.counts).unwrap();
    read_all(&key).unwrap();

    // Replaced by name: the map keeps the old file.
    std::fs::rename(&path, path.with_extension("old")).unwrap();
    KeyFile::new(COUNTS).write(&path);
    read_all(&key).unwrap();

    let (_dir, path) = file.on_disk();
    let key = ProvingKey::open(&path, &file.counts).unwrap();
    let handle = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    handle.set_len(1000).unwrap();
    assert!(matches!(read_all(&key), Err(KeyError::Changed { .. })));
}

proptest! {
    // Whatever is written over a file, at whatever place: an error or a key, never a panic.
    #[test]
    fn garbage_never_panics(
        offset in 0usize..9000,
        garbage in prop::collection::vec(any::<u8>(), 1..300),
        length in 0usize..12_000,
    ) {
        let mut file = KeyFile::new(COUNTS);
        for (byte, garbage) in file.bytes.iter_mut().skip(offset).zip(&garbage) {
            *byte = *garbage;
        }
        file.bytes.truncate(length);
        if let Ok(key) = file.open() {
            let _ = read_all(&key);
        }
    }

    // Encoding and decoding are inverse to each other, and agree with blstrs.
    #[test]
    fn encodings_round_trip(k in 1u64..u64::MAX) {
        let g1: G1Affine = (G1Affine::generator() * blstrs::Scalar::from(k)).to_affine();
        let g2: G2Affine = (G2Affine::generator() * blstrs::Scalar::from(k)).to_affine();
        let (mut b1, mut b2) = ([0; 96], [0; 192]);
        g1.encode(&mut b1);
        g2.encode(&mut b2);
        prop_assert_eq!(b1, g1.to_uncompressed());
        prop_assert_eq!(b2, g2.to_uncompressed());
        prop_assert_eq!(G1Affine::decode_checked(&b1), Ok(g1));
        prop_assert_eq!(G2Affine::decode_checked(&b2), Ok(g2));
        let montgomery = PointEncoding::Montgomery;
        montgomery.encode(&g1, &mut b1);
        montgomery.encode(&g2, &mut b2);
        prop_assert_eq!(montgomery.decode(&b1), Ok(g1));
        prop_assert_eq!(montgomery.decode(&b2), Ok(g2));
    }
}
