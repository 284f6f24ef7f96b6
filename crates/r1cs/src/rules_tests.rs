//! Every rule by brute force: with operands 0 or 1, the row admits no other values of its
//! variable than 0 and 1.

use ff::Field;

use super::*;
use crate::test_circuits::integer;
use crate::{Builder, CompiledCircuit, Fr, Variable};

/// Rows over variables named by small numbers: 0 is the constant one, k > 0 aux k − 1.
type Terms = &'static [(u32, i64)];
type RowTerms = [Terms; 3];

fn variable(name: u32) -> Variable {
    name.checked_sub(1).map_or(Variable::ONE, Variable::Aux)
}

fn circuit(aux: u32, bits: &[u32], rows: &[RowTerms]) -> CompiledCircuit {
    let mut builder = Builder::new();
    (0..aux).for_each(|_| {
        builder.alloc_aux();
    });
    for &bit in bits {
        let x = variable(bit);
        builder.enforce(
            &[(Variable::ONE, Fr::ONE), (x, -Fr::ONE)],
            &[(x, Fr::ONE)],
            &[],
        );
    }
    for row in rows {
        let [a, b, c] = row.map(|terms| {
            let terms = terms.iter().map(|&(v, c)| (variable(v), integer(c)));
            terms.collect::<Vec<_>>()
        });
        builder.enforce(&a, &b, &c);
    }
    builder.finish().unwrap()
}

/// The rule of the last row, if any.
fn last_rule(circuit: &CompiledCircuit) -> Option<Rule> {
    let template = &circuit.templates()[0];
    template.row_rule(template.rows() - 1)
}

/// A rule's rows for any literals a, b, c; the last row is the one that defines X.
struct Shape3 {
    rule: Rule,
    rows: fn(Lit, Lit, Lit) -> Vec<[Sum; 3]>,
}

type Lit = (u32, bool);
type Sum = Vec<(u32, i64)>;

fn literal(l: Lit, times: i64) -> Sum {
    if l.1 {
        vec![(0, times), (l.0, -times)]
    } else {
        vec![(l.0, times)]
    }
}

fn sum(parts: &[Sum]) -> Sum {
    parts.concat()
}

/// Operands are 1, 2, 3; the variable is 4; maj's product is 5.
const X: u32 = 4;
const Y: u32 = 5;

fn shapes() -> Vec<Shape3> {
    vec![
        Shape3 {
            rule: Rule::And,
            rows: |a, b, _| vec![[literal(a, 1), literal(b, 1), vec![(X, 1)]]],
        },
        Shape3 {
            rule: Rule::Copy,
            rows: |a, _, _| vec![[literal(a, 1), vec![(0, 1)], vec![(X, 1)]]],
        },
        Shape3 {
            rule: Rule::Copy,
            rows: |_, b, _| vec![[vec![(0, 1)], literal(b, 1), vec![(X, 1)]]],
        },
        Shape3 {
            rule: Rule::Zero,
            rows: |a, _, _| vec![[vec![], literal(a, 1), vec![(X, 1)]]],
        },
        Shape3 {
            rule: Rule::Zero,
            rows: |_, b, _| vec![[literal(b, 1), vec![], vec![(X, 1)]]],
        },
        Shape3 {
            rule: Rule::Ch,
            rows: |a, b, c| {
                vec![[
                    sum(&[literal(b, 1), literal(c, -1)]),
                    literal(a, 1),
                    sum(&[vec![(X, 1)], literal(c, -1)]),
                ]]
            },
        },
        Shape3 {
            rule: Rule::Maj,
            rows: |a, b, c| {
                vec![
                    [literal(b, 1), literal(c, 1), vec![(Y, 1)]],
                    [
                        sum(&[vec![(Y, 2)], literal(b, -1), literal(c, -1)]),
                        literal(a, 1),
                        vec![(Y, 1), (X, -1)],
                    ],
                ]
            },
        },
        Shape3 {
            rule: Rule::Xor,
            rows: |a, b, _| {
                vec![[
                    vec![(a.0, 2)],
                    vec![(b.0, 1)],
                    vec![(a.0, 1), (b.0, 1), (X, -1)],
                ]]
            },
        },
    ]
}

fn build(rows: &[[Sum; 3]]) -> CompiledCircuit {
    let mut builder = Builder::new();
    (0..5).for_each(|_| {
        builder.alloc_aux();
    });
    for bit in 1..=3 {
        let x = variable(bit);
        builder.enforce(
            &[(Variable::ONE, Fr::ONE), (x, -Fr::ONE)],
            &[(x, Fr::ONE)],
            &[],
        );
    }
    for row in rows {
        let [a, b, c] = row.each_ref().map(|terms| {
            let terms = terms.iter().map(|&(v, c)| (variable(v), integer(c)));
            terms.collect::<Vec<_>>()
        });
        builder.enforce(&a, &b, &c);
    }
    builder.finish().unwrap()
}

fn value(sum: &Sum, values: &[Fr; 6]) -> Fr {
    sum.iter()
        .map(|&(v, c)| integer(c) * values[v as usize])
        .sum()
}

/// The value that a row c = a·b forces on `name`, given the others: c is linear in it with
/// coefficient ±1, and a and b do not contain it.
fn forced(row: &[Sum; 3], name: u32, values: &[Fr; 6]) -> Fr {
    let mut values = *values;
    values[name as usize] = Fr::ZERO;
    let [a, b, rest] = row.each_ref().map(|s| value(s, &values));
    assert!(row[..2].iter().flatten().all(|t| t.0 != name));
    let coefficient: i64 = row[2].iter().filter(|t| t.0 == name).map(|t| t.1).sum();
    assert_eq!(coefficient.abs(), 1);
    (a * b - rest) * integer(coefficient)
}

#[test]
fn implied_rules_force_bits_for_all_operand_values_and_signs() {
    for shape in shapes() {
        for operands in permutations_with_repeats() {
            for signs in 0..8u32 {
                let lit = |k: usize| (operands[k], signs >> k & 1 == 1);
                let rows = (shape.rows)(lit(0), lit(1), lit(2));
                let circuit = build(&rows);
                let rule = last_rule(&circuit);
                let expected_rule = match (shape.rule, lit(0), lit(1)) {
                    (Rule::And, a, b) if a.1 && b.1 => Rule::Nor,
                    (Rule::And, a, b) if a.1 || b.1 => Rule::AndNot,
                    (rule, _, _) => rule,
                };
                let distinct = operands[0] != operands[1]
                    && operands[1] != operands[2]
                    && operands[0] != operands[2];
                if distinct {
                    assert_eq!(rule, Some(expected_rule), "{operands:?} {signs:03b}");
                }
                if rule.is_none() {
                    continue;
                }
                // Operands that coincide may still match a rule: then it must be right too.
                for assignment in 0..8u64 {
                    let mut values = [Fr::ONE; 6];
                    for (k, value) in values[1..=3].iter_mut().enumerate() {
                        *value = Fr::from(assignment >> k & 1);
                    }
                    if rows.len() == 2 {
                        values[Y as usize] = forced(&rows[0], Y, &values);
                    }
                    let x = forced(rows.last().unwrap(), X, &values);
                    assert!(
                        x == Fr::ZERO || x == Fr::ONE,
                        "{:?} {operands:?} {signs:03b} {assignment:03b}: {x:?}",
                        shape.rule
                    );
                }
            }
        }
    }
}

fn permutations_with_repeats() -> impl Iterator<Item = [u32; 3]> {
    (0..27).map(|n| [1 + n % 3, 1 + n / 3 % 3, 1 + n / 9])
}

/// (1 − x)·x has the roots 0 and 1 and, being quadratic over a field, no others.
#[test]
fn boolean_rows_make_bits() {
    let c = circuit(1, &[1], &[]);
    assert_eq!(last_rule(&c), Some(Rule::Boolean));
    for x in [Fr::ZERO, Fr::ONE] {
        assert_eq!((Fr::ONE - x) * x, Fr::ZERO);
    }
    for x in [Fr::from(2), -Fr::ONE, Fr::from(2).invert().unwrap()] {
        assert_ne!((Fr::ONE - x) * x, Fr::ZERO);
    }
}

/// Rows that look like a rule's and are not: none may be taken.
#[test]
fn near_misses_make_no_bits() {
    let rows: &[(&str, &[RowTerms])] = &[
        (
            "boolean, wrong constant",
            &[[&[(0, 2), (4, -1)], &[(4, 1)], &[]]],
        ),
        ("boolean, scaled", &[[&[(0, 1), (4, -2)], &[(4, 1)], &[]]]),
        (
            "boolean, product not zero",
            &[[&[(0, 1), (4, -1)], &[(4, 1)], &[(0, 1)]]],
        ),
        (
            "boolean of two variables",
            &[[&[(0, 1), (4, -1)], &[(5, 1)], &[]]],
        ),
        (
            "xor without the 2",
            &[[&[(1, 1)], &[(2, 1)], &[(1, 1), (2, 1), (4, -1)]]],
        ),
        (
            "xor with 3",
            &[[&[(1, 3)], &[(2, 1)], &[(1, 1), (2, 1), (4, -1)]]],
        ),
        (
            "xor of one operand",
            &[[&[(1, 2)], &[(1, 1)], &[(1, 2), (4, -1)]]],
        ),
        (
            "xor, wrong sign",
            &[[&[(1, 2)], &[(2, 1)], &[(1, 1), (2, 1), (4, 1)]]],
        ),
        (
            "xor, another operand in C",
            &[[&[(1, 2)], &[(2, 1)], &[(1, 1), (3, 1), (4, -1)]]],
        ),
        ("and, scaled result", &[[&[(1, 1)], &[(2, 1)], &[(4, 2)]]]),
        ("and, negated result", &[[&[(1, 1)], &[(2, 1)], &[(4, -1)]]]),
        ("and, scaled operand", &[[&[(1, 2)], &[(2, 1)], &[(4, 1)]]]),
        (
            "and with a sum",
            &[[&[(1, 1), (2, 1)], &[(3, 1)], &[(4, 1)]]],
        ),
        ("and over a non-bit", &[[&[(1, 1)], &[(5, 1)], &[(4, 1)]]]),
        ("and over itself", &[[&[(4, 1)], &[(1, 1)], &[(4, 1)]]]),
        (
            "and, constant operand 1 + b",
            &[[&[(0, 1), (1, 1)], &[(2, 1)], &[(4, 1)]]],
        ),
        (
            "ch, b and c not as in C",
            &[[&[(1, 1), (2, -1)], &[(3, 1)], &[(4, 1), (1, -1)]]],
        ),
        (
            "ch, plus c",
            &[[&[(1, 1), (2, 1)], &[(3, 1)], &[(4, 1), (2, -1)]]],
        ),
        (
            "ch over a non-bit",
            &[[&[(1, 1), (5, -1)], &[(3, 1)], &[(4, 1), (5, -1)]]],
        ),
        (
            "maj without its product",
            &[[&[(5, 2), (1, -1), (2, -1)], &[(3, 1)], &[(5, 1), (4, -1)]]],
        ),
        (
            "maj, product of other bits",
            &[
                [&[(1, 1)], &[(3, 1)], &[(5, 1)]],
                [&[(5, 2), (1, -1), (2, -1)], &[(3, 1)], &[(5, 1), (4, -1)]],
            ],
        ),
        (
            "maj, product of negated bits",
            &[
                [&[(1, 1)], &[(0, 1), (2, -1)], &[(5, 1)]],
                [&[(5, 2), (1, -1), (2, -1)], &[(3, 1)], &[(5, 1), (4, -1)]],
            ],
        ),
        ("copy of twice a bit", &[[&[(1, 2)], &[(0, 1)], &[(4, 1)]]]),
        (
            "copy of a sum",
            &[[&[(1, 1), (2, 1)], &[(0, 1)], &[(4, 1)]]],
        ),
        ("copy of a non-bit", &[[&[(5, 1)], &[(0, 1)], &[(4, 1)]]]),
        ("zero, scaled result", &[[&[], &[], &[(4, 2)]]]),
        (
            "zero, but a constant in C",
            &[[&[], &[], &[(0, 1), (4, 1)]]],
        ),
        ("two unknowns", &[[&[(1, 1)], &[(2, 1)], &[(4, 1), (5, 1)]]]),
        (
            "input as operand is impossible: constant",
            &[[&[(0, 1)], &[(0, 1)], &[(4, 1)]]],
        ),
    ];
    for (name, rows) in rows {
        let circuit = circuit(5, &[1, 2, 3], rows);
        assert_eq!(last_rule(&circuit), None, "{name}");
        assert!(!circuit.layout().is_bit(X - 1), "{name}");
    }
}

/// A conclusion may not rest on a bit that is only known afterwards.
#[test]
fn operands_must_be_known_before() {
    let rows: [RowTerms; 2] = [
        [&[(1, 1)], &[(2, 1)], &[(4, 1)]],
        [&[(0, 1), (2, -1)], &[(2, 1)], &[]],
    ];
    let circuit = circuit(5, &[1], &rows);
    assert!(circuit.layout().is_bit(1));
    assert!(!circuit.layout().is_bit(3));
}

/// Two rows that would each make the other's operand a bit prove nothing.
#[test]
fn circles_prove_nothing() {
    let rows: [RowTerms; 2] = [
        [&[(1, 1)], &[(5, 1)], &[(4, 1)]],
        [&[(1, 1)], &[(4, 1)], &[(5, 1)]],
    ];
    let circuit = circuit(5, &[1], &rows);
    assert!(!circuit.layout().is_bit(3) && !circuit.layout().is_bit(4));
}

#[test]
fn names_and_numbers_are_distinct() {
    for (k, rule) in Rule::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(rule.id()), k + 1);
        assert_eq!(Rule::from_id(rule.id()), Some(rule));
        assert!(Rule::ALL[..k].iter().all(|r| r.name() != rule.name()));
    }
    assert_eq!(Rule::from_id(0), None);
    assert_eq!(Rule::from_id(10), None);
}
