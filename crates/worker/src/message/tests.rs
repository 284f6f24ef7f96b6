//! Every message comes back, and no bytes do harm.

use proptest::prelude::*;

use super::*;

fn unit(lease: u64) -> Unit {
    Unit {
        lease: LeaseId(lease),
        job: JobId::from_bytes([3; 16]),
        name: "wdpost-1000-0-[1 2 3]\n\"\u{1F600}".to_owned(),
        circuit: CircuitId::all().next().unwrap(),
        digest: Digest::new([0xab; 32]),
        index: 9,
        units: 10,
    }
}

fn orders() -> Vec<Order> {
    let circuit = CircuitId::all().last().unwrap();
    vec![
        Order::Prepare(unit(0)),
        Order::Prove(unit(u64::MAX)),
        Order::Discard { lease: LeaseId(7) },
        Order::NoPayload {
            digest: Digest::new([1; 32]),
            damaged: true,
            cause: "gone".to_owned(),
        },
        Order::Preload {
            question: 1,
            circuit,
        },
        Order::Evict {
            question: 2,
            circuit,
        },
        Order::Stop,
    ]
}

fn reports() -> Vec<Report> {
    let lease = LeaseId(5);
    let phase = |name: &str, part, time_us| Phase {
        name: name.to_owned(),
        part,
        start_us: 1,
        time_us,
    };
    let phases = vec![
        phase("witness", Part::Witness, 1_499),
        phase("sums", Part::Device, 1_500),
        phase("verify", Part::Device, 2_000),
    ];
    let mut all = vec![
        Report::Hello(Hello {
            program: "0.1.0".to_owned(),
            device: "CPU: 2 threads".to_owned(),
            uuid: None,
            memory_bytes: Some(1 << 40),
            circuits: CircuitId::all().collect(),
            look_ahead: 1,
            heartbeat_s: 2,
        }),
        Report::Ready,
        Report::Heartbeat {
            stage: "sums".to_owned(),
            done: (3, 9),
            memory_free: Some(1 << 37),
        },
        Report::KeyLoaded {
            circuit: CircuitId::all().next().unwrap(),
            loaded: true,
            bytes: 5,
        },
        Report::Takes { at_a_time: 4 },
        Report::Want {
            digest: Digest::new([9; 32]),
        },
        Report::returned(lease, vec![0, 255, 7], phases),
        Report::Discarded { lease },
        Report::Preloaded {
            question: 1,
            result: Ok((true, 0)),
        },
        Report::Preloaded {
            question: 1,
            result: Err("no file".to_owned()),
        },
        Report::Evicted {
            question: 2,
            was_loaded: true,
            freed: 1,
        },
    ];
    for fault in [
        Fault::Request,
        Fault::Parameters,
        Fault::Payload,
        Fault::Try,
        Fault::Device,
    ] {
        all.push(Report::failed(lease, fault, "why"));
    }
    all
}

#[test]
fn everything_comes_back() {
    let mut stream = Vec::new();
    for order in orders() {
        send(&mut stream, &order).unwrap();
    }
    let digest = Digest::new([4; 32]);
    send_payload(&mut stream, &digest, b"payload").unwrap();
    let mut stream = &stream[..];
    let heard: Vec<_> = std::iter::from_fn(|| hear(&mut stream).unwrap()).collect();
    let mut expected: Vec<_> = orders().into_iter().map(Heard::Order).collect();
    expected.push(Heard::Payload(digest, b"payload".to_vec()));
    assert_eq!(heard, expected);

    let mut stream = Vec::new();
    for report in reports() {
        send(&mut stream, &report).unwrap();
    }
    let mut stream = &stream[..];
    let heard: Vec<_> = std::iter::from_fn(|| hear_report(&mut stream).unwrap()).collect();
    assert_eq!(heard, reports());
}

#[test]
fn phases_add_up_to_rounded_timings() {
    let returned = reports().into_iter().find_map(|report| match report {
        Report::Returned { phases, .. } => Some(phases),
        _ => None,
    });
    let sums = timings(&returned.unwrap());
    assert_eq!((sums.load_ms, sums.witness_ms, sums.device_ms), (0, 1, 4));
}

#[test]
fn what_is_too_long_is_cut_to_fit() {
    let phase = Phase {
        name: "p".repeat(100),
        part: Part::Load,
        start_us: u64::MAX,
        time_us: u64::MAX,
    };
    let long = [
        Report::failed(LeaseId(1), Fault::Try, &"é".repeat(1_000_000)),
        Report::returned(LeaseId(1), vec![1; 192], vec![phase; 100_000]),
    ];
    for report in long {
        send(&mut Vec::new(), &report).unwrap();
    }
}

#[test]
fn the_wrong_kind_is_refused() {
    let mut stream = Vec::new();
    send_payload(&mut stream, &Digest::new([4; 32]), b"payload").unwrap();
    assert!(matches!(
        hear_report(&mut &stream[..]),
        Err(Error::Unexpected(_))
    ));
    let mut stream = Vec::new();
    frame::write(&mut stream, Kind::Payload, &[&[0; 31]]).unwrap();
    assert!(matches!(hear(&mut &stream[..]), Err(Error::Message(_))));
    let mut stream = Vec::new();
    send(&mut stream, &Report::Ready).unwrap();
    assert!(matches!(hear(&mut &stream[..]), Err(Error::Message(_))));
}

/// A message's JSON with one byte of it changed, in a valid frame.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let bodies: Vec<Vec<u8>> = orders()
        .iter()
        .map(|order| serde_json::to_vec(order).unwrap())
        .chain(
            reports()
                .iter()
                .map(|report| serde_json::to_vec(report).unwrap()),
        )
        .collect();
    let body = proptest::sample::select(bodies);
    (body, any::<proptest::sample::Index>(), any::<u8>()).prop_map(|(mut body, at, byte)| {
        let at = at.index(body.len());
        body[at] = byte;
        body
    })
}

proptest! {
    #[test]
    fn no_body_panics(body in prop_oneof![
        damaged(),
        proptest::collection::vec(any::<u8>(), 0..300),
    ], kind in prop_oneof![Just(Kind::Message), Just(Kind::Payload)]) {
        let mut stream = Vec::new();
        frame::write(&mut stream, kind, &[&body]).unwrap();
        let _ = hear(&mut &stream[..]);
        let _ = hear_report(&mut &stream[..]);
    }
}
