//! A key's points decoded on the device, and what it refuses, beside the reader on the host.

#![allow(clippy::unwrap_used, reason = "test helpers may unwrap")]

mod common;

use blstrs::{G1Affine, G2Affine};
use common::oracle::Group;
use cuda::points::{DecodePlan, Decoder, DevicePoint, Fault, PointOrder};
use cuda::{Device, DeviceSlice, Ledger, Lifetime};
use groth16::key::PointFault;
use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

/// Points decoded at a time: fewer than there are, and no multiple of a block.
const ROOM: usize = 300;
const LEN: usize = 1000;

/// p, big-endian.
const MODULUS: [u8; 48] = [
    0x1a, 0x01, 0x11, 0xea, 0x39, 0x7f, 0xe6, 0x9a, 0x4b, 0x1b, 0xa7, 0xb6, 0x43, 0x4b, 0xac, 0xd7,
    0x64, 0x77, 0x4b, 0x84, 0xf3, 0x85, 0x12, 0xbf, 0x67, 0x30, 0xd2, 0xa0, 0xf6, 0xb0, 0xf6, 0x24,
    0x1e, 0xab, 0xff, 0xfe, 0xb1, 0x53, 0xff, 0xff, 0xb9, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xaa, 0xab,
];

#[test]
fn g1_points_are_decoded_and_refused_as_on_the_host() {
    points_are_decoded_and_refused::<G1Affine>();
}

#[test]
fn g2_points_are_decoded_and_refused_as_on_the_host() {
    points_are_decoded_and_refused::<G2Affine>();
}

fn points_are_decoded_and_refused<P: DevicePoint + Group>() {
    let mut rng = ChaCha20Rng::seed_from_u64(4);
    let points: Vec<P> = (0..LEN).map(|_| P::random(&mut rng)).collect();
    let mut bytes = vec![0; LEN * P::BYTES];
    for (point, bytes) in points.iter().zip(bytes.chunks_exact_mut(P::BYTES)) {
        point.encode(bytes);
    }
    for device in common::devices() {
        let (stream, out, decoder, _arena) = decoder::<P>(&device);
        assert_eq!(decoder.load(&stream, &bytes, out).unwrap(), None);
        let mut found = vec![P::default(); LEN];
        stream.download(out, &mut found).unwrap();
        assert_eq!(found, points, "on {}", device.info().name);

        for (what, spoil) in spoilers() {
            // A bad point in the last piece, then one more in the first: the first is reported.
            let mut bad = bytes.clone();
            for index in [LEN - 1, ROOM - 1] {
                let point = &mut bad[index * P::BYTES..][..P::BYTES];
                spoil(point);
                let fault = P::decode(point).expect_err(what);
                let index = index as u64;
                assert_eq!(
                    decoder.load(&stream, &bad, out).unwrap(),
                    Some(Fault { index, fault }),
                    "{what} on {}",
                    device.info().name
                );
            }
            stream.download(out, &mut found).unwrap();
            for (i, (found, expected)) in found.iter().zip(&points).enumerate() {
                let expected = if i == LEN - 1 || i == ROOM - 1 {
                    P::infinity()
                } else {
                    *expected
                };
                assert_eq!(*found, expected, "{what}: point {i}");
            }
        }
    }
}

#[test]
fn points_off_the_curve_are_refused_when_asked() {
    off_the_curve_is_refused_when_asked::<G1Affine>();
    off_the_curve_is_refused_when_asked::<G2Affine>();
}

fn off_the_curve_is_refused_when_asked<P: DevicePoint + Group>() {
    let mut rng = ChaCha20Rng::seed_from_u64(5);
    let mut bytes = vec![0; LEN * P::BYTES];
    for bytes in bytes.chunks_exact_mut(P::BYTES) {
        P::random(&mut rng).encode(bytes);
    }
    for device in common::devices() {
        let (stream, out, decoder, _arena) = decoder::<P>(&device);
        let strict = decoder.clone().with_curve_check();
        assert_eq!(strict.load(&stream, &bytes, out).unwrap(), None);
        let mut bad = bytes.clone();
        bad[LEN * P::BYTES - 1] ^= 1; // the last y
        assert_eq!(decoder.load(&stream, &bad, out).unwrap(), None);
        let fault = Fault {
            index: LEN as u64 - 1,
            fault: PointFault::NotOnCurve,
        };
        assert_eq!(strict.load(&stream, &bad, out).unwrap(), Some(fault));
    }
}

#[test]
fn montgomery_points_are_checked_and_put_in_their_places() {
    montgomery_points_are_checked::<G1Affine>();
    montgomery_points_are_checked::<G2Affine>();
}

/// Points of a prepared key are the library's own limbs.
fn montgomery_points_are_checked<P: DevicePoint + Group>() {
    const LOG: u32 = 9;
    let mut rng = ChaCha20Rng::seed_from_u64(6);
    let mut points: Vec<P> = (0..1 << LOG).map(|_| P::random(&mut rng)).collect();
    points[3] = P::infinity();
    let reversed = |i: usize| i.reverse_bits() >> (usize::BITS - LOG);
    let p: Vec<u8> = MODULUS.iter().rev().copied().collect();
    for device in common::devices() {
        let (stream, section, decoder, _arena) = decoder::<P>(&device);
        let section = section.slice(0..points.len());
        let check =
            |points: &[P], spoiled: Option<(usize, usize, &[u8])>, order, allow_infinity| {
                decoder.begin(&stream).unwrap();
                for (piece, first) in points.chunks(ROOM).zip((0..).step_by(ROOM)) {
                    let room = decoder.encoded().slice(0..piece.len() * P::BYTES);
                    stream.upload(room.cast(), piece).unwrap();
                    if let Some((index, at, bytes)) = spoiled
                        && (first..first + piece.len()).contains(&index)
                    {
                        let at = (index - first) * P::BYTES + at;
                        stream
                            .upload(room.slice(at..at + bytes.len()), bytes)
                            .unwrap();
                    }
                    let place = (section, order);
                    decoder
                        .check(&stream, room, place, first as u64, allow_infinity)
                        .unwrap();
                }
                let mut found = vec![P::default(); points.len()];
                stream.download(section, &mut found).unwrap();
                (decoder.fault(&stream).unwrap(), found)
            };
        let fault = |index, fault| Some(Fault { index, fault });
        assert_eq!(
            check(&points, None, PointOrder::Natural, true),
            (None, points.clone())
        );
        let (refused, found) = check(&points, None, PointOrder::BitReversed, true);
        assert_eq!(refused, None);
        for (i, point) in points.iter().enumerate() {
            assert_eq!(found[reversed(i)], *point, "point {i}");
        }
        let (refused, _) = check(&points, None, PointOrder::Natural, false);
        assert_eq!(refused, fault(3, PointFault::Infinity));

        let off_curve = [0x55u8];
        for (index, at, bytes, expected) in [
            (400, 0, &off_curve[..], PointFault::NotOnCurve),
            (0, P::BYTES - 48, &off_curve, PointFault::NotOnCurve),
            (511, 0, &p, PointFault::NotCanonical),
            (299, P::BYTES - 48, &p, PointFault::NotCanonical),
            (300, P::BYTES - 48, &[0xff; 48], PointFault::NotCanonical),
        ] {
            for order in [PointOrder::Natural, PointOrder::BitReversed] {
                let (refused, found) = check(&points, Some((index, at, bytes)), order, true);
                assert_eq!(refused, fault(index as u64, expected), "byte {at}");
                let place = if order == PointOrder::Natural {
                    index
                } else {
                    reversed(index)
                };
                assert_eq!(found[place], P::infinity());
            }
        }
    }
}

fn decoder<P: DevicePoint>(
    device: &Device,
) -> (cuda::Stream, DeviceSlice<P>, Decoder<P>, cuda::Arena) {
    let mut ledger = Ledger::new("a test");
    let plan = DecodePlan::<P>::new(ROOM, Lifetime::RESIDENT, &mut ledger);
    let out = ledger.reserve::<P>("points", LEN, Lifetime::RESIDENT);
    let arena = device.arena(&ledger).unwrap();
    let decoder = plan.bind(device, &arena).unwrap();
    (device.stream().unwrap(), arena.get(out), decoder, arena)
}

type Spoiler = (&'static str, fn(&mut [u8]));

/// Every way in which a point can be bad, alone and together with others.
fn spoilers() -> Vec<Spoiler> {
    vec![
        ("the compressed flag", |point| point[0] |= 0x80),
        ("the infinity flag", |point| point[0] |= 0x40),
        ("the sign flag", |point| point[0] |= 0x20),
        ("all flags", |point| point[0] |= 0xe0),
        ("infinity and sign", |point| point[0] |= 0x60),
        ("zeros", |point| point.fill(0)),
        ("the first coordinate p", |point| {
            point[..48].copy_from_slice(&MODULUS);
        }),
        ("the last coordinate p", |point| {
            let last = point.len() - 48;
            point[last..].copy_from_slice(&MODULUS);
        }),
        ("the last coordinate all ones", |point| {
            let last = point.len() - 48;
            point[last..].fill(0xff);
        }),
        ("a flag and a coordinate p", |point| {
            let last = point.len() - 48;
            point[last..].copy_from_slice(&MODULUS);
            point[0] |= 0x40;
        }),
        ("the coordinate p before zeros", |point| {
            point.fill(0);
            let last = point.len() - 48;
            point[last..].copy_from_slice(&MODULUS);
        }),
    ]
}
