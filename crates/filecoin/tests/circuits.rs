//! The embedded circuits against counts that were taken independently of this code: by
//! running the circuits of the public crates through a counting constraint system.

#![allow(clippy::unwrap_used, reason = "test code")]

use filecoin::CircuitId;
use r1cs::{CompiledCircuit, Rule, Statistics};

fn load(name: &str) -> CompiledCircuit {
    let bytes = CircuitId::parse(name).unwrap().compiled_bytes();
    CompiledCircuit::from_bytes(bytes).unwrap()
}

fn statistics(name: &str) -> Statistics {
    load(name).statistics().clone()
}

/// Rows, inputs, aux; terms in A, B, C; logarithm of the domain.
#[rustfmt::skip]
const SIZES: [(&str, [usize; 3], [u64; 3], u32); 16] = [
    ("porep-2k", [2_687_921, 40, 2_685_673], [6_420_965, 2_689_006, 5_824_682], 22),
    ("porep-8m", [3_844_929, 40, 3_842_449], [9_388_413, 3_847_886, 8_234_882], 22),
    ("porep-512m", [4_423_433, 40, 4_420_837], [10_872_137, 4_427_326, 9_439_982], 23),
    ("porep-32g", [130_278_541, 328, 130_169_893], [309_404_723, 130_327_340, 282_656_500], 27),
    ("snap-2k", [1_705_039, 5, 1_703_569], [4_030_887, 1_706_537, 3_616_648], 21),
    ("snap-8m", [10_007_503, 5, 9_998_039], [23_284_273, 10_015_181, 21_302_734], 24),
    ("snap-512m", [57_450_479, 5, 57_401_314], [135_362_847, 57_500_527, 121_971_144], 26),
    ("snap-32g", [81_049_499, 5, 80_978_488], [190_374_907, 81_118_127, 172_187_492], 27),
    ("wpost-2k", [21_866, 23, 22_128], [150_262, 22_230, 27_456], 15),
    ("wpost-8m", [64_266, 23, 65_088], [442_262, 65_350, 80_736], 16),
    ("wpost-512m", [85_466, 23, 86_568], [588_262, 86_910, 107_376], 17),
    ("wpost-32g", [125_279_217, 25_840, 126_902_376], [862_390_719, 127_398_015, 157_401_792], 27),
    ("winning-2k", [90_750, 133, 91_674], [621_852, 92_070, 113_652], 17),
    ("winning-8m", [230_670, 133, 233_442], [1_585_452, 234_366, 289_476], 18),
    ("winning-512m", [300_630, 133, 304_326], [2_067_252, 305_514, 377_388], 19),
    ("winning-32g", [370_590, 133, 375_210], [2_549_052, 376_662, 465_300], 19),
];

#[test]
fn sizes_are_the_measured_ones() {
    for (name, [constraints, inputs, aux], nonzeros, log_domain) in SIZES {
        let s = statistics(name);
        assert_eq!(s.shape.constraints, constraints, "{name}");
        assert_eq!(s.shape.inputs, inputs, "{name}");
        assert_eq!(s.shape.aux, aux, "{name}");
        assert_eq!(s.nonzeros, nonzeros, "{name}");
        assert_eq!(s.domain(), 1 << log_domain, "{name}");
    }
}

#[test]
fn distinct_variables_are_the_measured_ones() {
    for (name, a, b) in [
        ("porep-2k", 2_674_908, 685_521),
        ("porep-8m", 3_814_996, 1_011_289),
        ("porep-32g", 129_753_292, 33_112_281),
        ("snap-2k", 1_697_189, 444_403),
        ("snap-8m", 9_981_015, 2_567_921),
        ("snap-32g", 80_743_581, 20_983_607),
        ("winning-32g", 284_196, 272_184),
        ("wpost-32g", 96_179_805, 91_925_766),
    ] {
        let s = statistics(name);
        assert_eq!((s.aux_in_a, s.aux_in_b), (a, b), "{name}");
    }
    // The constant one is the only input in B, in every circuit.
    for id in CircuitId::all() {
        let circuit = load(id.name());
        assert_eq!(circuit.statistics().inputs_in_b, 1, "{id}");
        assert!(circuit.density().b_inputs.get(0), "{id}");
    }
}

#[test]
fn distinct_coefficients_are_the_measured_ones() {
    for (name, all, by_matrix) in [
        ("porep-32g", 2_466, [2_131, 23, 590]),
        ("snap-32g", 1_522, [1_328, 12, 450]),
        ("wpost-32g", 985, [791, 12, 196]),
        ("winning-32g", 985, [791, 12, 196]),
    ] {
        let s = statistics(name);
        assert_eq!(s.coefficients, all, "{name}");
        assert_eq!(s.coefficients_by_matrix, by_matrix, "{name}");
    }
}

#[test]
fn bits_are_the_measured_ones() {
    for (name, explicit, implied, rest) in [
        ("porep-32g", 31_877_247, 96_593_544, 1_699_102),
        ("snap-32g", 20_296_530, 59_716_920, 965_038),
        ("wpost-32g", 704_700, 469_800, 125_727_876),
        ("winning-32g", 1_980, 1_320, 371_910),
    ] {
        let s = statistics(name);
        let counts = (s.explicit_bits(), s.implied_bits(), s.non_bits());
        assert_eq!(counts, (explicit, implied, rest), "{name}");
    }
    assert_eq!(statistics("porep-2k").non_bits(), 43_806);
    assert_eq!(statistics("snap-2k").non_bits(), 25_896);
    assert_eq!(statistics("winning-2k").bits(), 660);
    assert_eq!(statistics("wpost-2k").bits(), 200);

    let s = statistics("porep-32g");
    let by_rule = [
        (Rule::Boolean, 31_877_247),
        (Rule::Xor, 65_787_336),
        (Rule::And, 10_277_568),
        (Rule::Maj, 10_251_072),
        (Rule::Ch, 10_251_072),
        (Rule::Nor, 14_688),
        (Rule::AndNot, 11_808),
        (Rule::Copy, 0),
        (Rule::Zero, 0),
    ];
    for (rule, count) in by_rule {
        assert_eq!(s.bits_by(rule), count, "{}", rule.name());
    }
}

/// Repetition is found: whole sectors of PoSt circuits are one template with no arguments.
#[test]
fn templates_are_few() {
    let s = statistics("wpost-32g");
    assert_eq!((s.templates, s.calls, s.arguments), (1, 2_349, 0));
    assert_eq!((s.template_rows, s.template_terms), (53_333, 488_374));
    let s = statistics("winning-32g");
    assert_eq!((s.templates, s.calls, s.arguments), (1, 66, 0));
    for id in CircuitId::all() {
        let s = statistics(id.name());
        assert!(s.templates <= 30, "{id}: {} templates", s.templates);
        assert!(s.template_terms <= 3_000_000, "{id}: {}", s.template_terms);
    }
}

/// What ships: at most 10 MB in all, porep-32g below 1 MB.
#[test]
fn files_are_small() {
    let size = |id: CircuitId| id.compiled_bytes().len();
    let total: usize = CircuitId::all().map(size).sum();
    assert!(total <= 10_000_000, "{total} bytes in all");
    let porep = size(CircuitId::parse("porep-32g").unwrap());
    assert!(porep < 1_000_000, "porep-32g: {porep} bytes");
}

/// The file form is canonical: decoding and encoding gives the same bytes.
#[test]
fn files_encode_to_themselves() {
    for name in ["porep-2k", "snap-2k", "wpost-2k", "winning-64g"] {
        let bytes = CircuitId::parse(name).unwrap().compiled_bytes();
        assert_eq!(load(name).to_bytes(), bytes, "{name}");
    }
}
