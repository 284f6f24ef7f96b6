//! `cuzk circuit`: the counts are those measured independently on the public circuits.

#![allow(clippy::unwrap_used, reason = "test code")]

mod common;

use common::run;
use serde_json::{Value, json};

/// Constraints, inputs, aux variables, terms of A, B and C, log2 of the domain.
const COUNTS: [(&str, [u64; 7]); 16] = [
    (
        "porep-2k",
        [
            2_687_921, 40, 2_685_673, 6_420_965, 2_689_006, 5_824_682, 22,
        ],
    ),
    (
        "porep-8m",
        [
            3_844_929, 40, 3_842_449, 9_388_413, 3_847_886, 8_234_882, 22,
        ],
    ),
    (
        "porep-512m",
        [
            4_423_433, 40, 4_420_837, 10_872_137, 4_427_326, 9_439_982, 23,
        ],
    ),
    (
        "porep-32g",
        [
            130_278_541,
            328,
            130_169_893,
            309_404_723,
            130_327_340,
            282_656_500,
            27,
        ],
    ),
    (
        "snap-2k",
        [1_705_039, 5, 1_703_569, 4_030_887, 1_706_537, 3_616_648, 21],
    ),
    (
        "snap-8m",
        [
            10_007_503, 5, 9_998_039, 23_284_273, 10_015_181, 21_302_734, 24,
        ],
    ),
    (
        "snap-512m",
        [
            57_450_479,
            5,
            57_401_314,
            135_362_847,
            57_500_527,
            121_971_144,
            26,
        ],
    ),
    (
        "snap-32g",
        [
            81_049_499,
            5,
            80_978_488,
            190_374_907,
            81_118_127,
            172_187_492,
            27,
        ],
    ),
    (
        "wpost-2k",
        [21_866, 23, 22_128, 150_262, 22_230, 27_456, 15],
    ),
    (
        "wpost-8m",
        [64_266, 23, 65_088, 442_262, 65_350, 80_736, 16],
    ),
    (
        "wpost-512m",
        [85_466, 23, 86_568, 588_262, 86_910, 107_376, 17],
    ),
    (
        "wpost-32g",
        [
            125_279_217,
            25_840,
            126_902_376,
            862_390_719,
            127_398_015,
            157_401_792,
            27,
        ],
    ),
    (
        "winning-2k",
        [90_750, 133, 91_674, 621_852, 92_070, 113_652, 17],
    ),
    (
        "winning-8m",
        [230_670, 133, 233_442, 1_585_452, 234_366, 289_476, 18],
    ),
    (
        "winning-512m",
        [300_630, 133, 304_326, 2_067_252, 305_514, 377_388, 19],
    ),
    (
        "winning-32g",
        [370_590, 133, 375_210, 2_549_052, 376_662, 465_300, 19],
    ),
];

/// Distinct aux variables in A and in B.
const DENSITY: [(&str, [u64; 2]); 8] = [
    ("porep-2k", [2_674_908, 685_521]),
    ("porep-8m", [3_814_996, 1_011_289]),
    ("snap-2k", [1_697_189, 444_403]),
    ("snap-8m", [9_981_015, 2_567_921]),
    ("winning-32g", [284_196, 272_184]),
    ("wpost-32g", [96_179_805, 91_925_766]),
    ("porep-32g", [129_753_292, 33_112_281]),
    ("snap-32g", [80_743_581, 20_983_607]),
];

/// Distinct coefficients: all, of A, of B, of C.
const COEFFICIENTS: [(&str, [u64; 4]); 4] = [
    ("porep-32g", [2466, 2131, 23, 590]),
    ("snap-32g", [1522, 1328, 12, 450]),
    ("wpost-32g", [985, 791, 12, 196]),
    ("winning-32g", [985, 791, 12, 196]),
];

/// Bits with a boolean row, bits by implication, the rest.
const BITS: [(&str, [u64; 3]); 4] = [
    ("porep-32g", [31_877_247, 96_593_544, 1_699_102]),
    ("snap-32g", [20_296_530, 59_716_920, 965_038]),
    ("wpost-32g", [704_700, 469_800, 125_727_876]),
    ("winning-32g", [1_980, 1_320, 371_910]),
];

/// Variables that are not bits.
const NOT_BITS: [(&str, u64); 4] = [
    ("porep-2k", 43_806),
    ("snap-2k", 25_896),
    ("winning-2k", 91_674 - 660),
    ("wpost-2k", 22_128 - 200),
];

fn show(name: &str) -> Value {
    let mut document = run(["circuit", "show", name, "--json"]).json();
    assert_eq!(document["schema"], "cuzk.circuit/1");
    document["circuit"].take()
}

#[test]
fn counts_are_the_measured_ones() {
    for (name, [constraints, inputs, aux, a, b, c, log_domain]) in COUNTS {
        let circuit = show(name);
        assert_eq!(circuit["circuit"], name);
        assert_eq!(circuit["constraints"], constraints, "{name}");
        assert_eq!(circuit["inputs"], inputs, "{name}");
        assert_eq!(circuit["aux"], aux, "{name}");
        assert_eq!(
            circuit["nonzeros"],
            json!({ "a": a, "b": b, "c": c }),
            "{name}"
        );
        assert_eq!(circuit["domain"], 1u64 << log_domain, "{name}");
        // The constant one is the only input that occurs in B, in every circuit measured.
        assert_eq!(circuit["density"]["inputs_in_b"], 1, "{name}");
    }
    for (name, [a, b]) in DENSITY {
        let density = &show(name)["density"];
        assert_eq!(
            (&density["aux_in_a"], &density["aux_in_b"]),
            (&json!(a), &json!(b)),
            "{name}"
        );
    }
    for (name, [all, a, b, c]) in COEFFICIENTS {
        let expected = json!({ "all": all, "a": a, "b": b, "c": c });
        assert_eq!(show(name)["distinct_coefficients"], expected, "{name}");
    }
    for (name, [explicit, implied, not_bits]) in BITS {
        let bits = &show(name)["bits"];
        assert_eq!(bits["explicit"], explicit, "{name}");
        assert_eq!(bits["implied"], implied, "{name}");
        assert_eq!(bits["not_bits"], not_bits, "{name}");
        assert_eq!(bits["all"], explicit + implied, "{name}");
    }
    for (name, not_bits) in NOT_BITS {
        assert_eq!(show(name)["bits"]["not_bits"], not_bits, "{name}");
    }
}

#[test]
fn key_files_have_their_published_names_and_sizes() {
    let files = &show("porep-32g")["files"];
    assert_eq!(files["params_bytes"], 47_373_928_632_u64);
    assert_eq!(files["params_digest"], "6a388072a518cf46ebd661f5cc46900a");
    assert_eq!(files["vk_bytes"], 868 + 328 * 96);
    assert_eq!(
        files["stem"],
        "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-8-8-0-sha256_hasher-82a357d2f2ca81dc61bb45f4a762807aedee1b0a53fd6c4e77b46a01bfef7820"
    );
}

#[test]
fn all_twenty_are_listed() {
    let document = run(["circuit", "list", "--json"]).json();
    assert_eq!(document["schema"], "cuzk.circuit-list/1");
    let circuits = document["circuits"].as_array().unwrap();
    let names: Vec<&str> = circuits
        .iter()
        .map(|c| c["circuit"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 20);
    let text = run(["circuit", "list"]).ok().to_owned();
    assert_eq!(text.lines().count(), 21);
    for name in names {
        assert!(text.contains(name), "{name}");
    }
}

#[test]
fn one_is_shown_in_words() {
    let text = run(["circuit", "show", "porep-32g"]).ok().to_owned();
    for words in [
        "130 278 541",
        "2^27 = 134 217 728",
        "98.69 %",
        "44.1 GiB",
        "10 proofs",
        "boolean 31 877 247",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
}
