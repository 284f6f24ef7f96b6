//! The file form of a compiled circuit, version 1.
//!
//! | bytes | content |
//! | --- | --- |
//! | 8 | `cuzkr1cs` |
//! | 4 | version, little-endian |
//! | 32 | SHA-256 of the 12 bytes before and the body |
//! | rest | body: one zstd frame |
//!
//! The body unpacks to the payload. Numbers are LEB128; signed ones zigzag.
//!
//! | section | content |
//! | --- | --- |
//! | rules | how many; each: length and bytes of its name; numbered from 1 |
//! | shape | rows, inputs, aux |
//! | coefficients | how many; each 32 bytes, little-endian, canonical |
//! | templates | how many; each as below |
//! | calls | how many; the template of each |
//! | arguments | per call and argument: distance (see `write_arguments`) |
//! | statistics | how many; the counts of [`Statistics::to_list`] |
//!
//! Template: rows, inputs, aux, arguments; the arguments' bit map (⌈n/8⌉ bytes); per matrix the
//! number of terms of every row, then every term's slot (signed difference to the
//! previous term's, for a row's first term to that of the last row with terms), then
//! every coefficient id; one byte per row: the rule by which it makes a variable a bit, or 0.
//!
//! Layout and density follow from the templates. The decoder infers the bits anew
//! and compares the rules and the counts with those in the file.

use std::io::Read;

use ff::{Field, PrimeField};
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use crate::circuit::CompiledCircuit;
use crate::codec::{Reader, write_number, write_signed};
use crate::dictionary::Dictionary;
use crate::placement;
use crate::rules::Rule;
use crate::template::{Call, Template, TermMatrix};
use crate::{AUX_TAG, Bitmap, Error, Fr, MAX_COUNT, Shape, Statistics};

const MAGIC: &[u8; 8] = b"cuzkr1cs";
const VERSION: u32 = 1;
const HEADER: usize = 8 + 4 + 32;
/// Largest payload that is unpacked: 128 MiB (porep-64g has about 20 MB).
const MAX_PAYLOAD: u64 = 128 << 20;
/// Largest zstd window that is allocated: 32 MiB.
const MAX_WINDOW_LOG: u32 = 25;
/// zstd level when writing: done once per circuit.
const LEVEL: i32 = 19;

/// File bytes and digest.
pub(crate) fn encode(circuit: &CompiledCircuit) -> (Vec<u8>, [u8; 32]) {
    let payload = write_payload(circuit);
    let body = zstd::bulk::compress(&payload, LEVEL).expect("zstd compresses any bytes in memory");
    let digest = digest(&body);
    let mut bytes = Vec::with_capacity(HEADER + body.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(digest);
    bytes.extend(body);
    (bytes, digest)
}

fn digest(body: &[u8]) -> [u8; 32] {
    Sha256::new()
        .chain_update(MAGIC)
        .chain_update(VERSION.to_le_bytes())
        .chain_update(body)
        .finalize()
        .into()
}

fn write_payload(circuit: &CompiledCircuit) -> Vec<u8> {
    let mut out = Vec::new();
    write_number(&mut out, Rule::ALL.len() as u64);
    for rule in Rule::ALL {
        write_number(&mut out, rule.name().len() as u64);
        out.extend(rule.name().as_bytes());
    }
    let shape = circuit.shape();
    for count in [shape.constraints, shape.inputs, shape.aux] {
        write_number(&mut out, count as u64);
    }
    let coefficients = circuit.dictionary().values();
    write_number(&mut out, coefficients.len() as u64);
    for value in coefficients {
        out.extend(value.to_repr());
    }
    write_number(&mut out, circuit.templates().len() as u64);
    for template in circuit.templates() {
        write_template(&mut out, template);
    }
    write_number(&mut out, circuit.calls().len() as u64);
    for call in circuit.calls() {
        write_number(&mut out, u64::from(call.template));
    }
    for call in circuit.calls() {
        write_arguments(&mut out, call, circuit.packed_arguments(call));
    }
    let statistics = circuit.statistics().to_list();
    write_number(&mut out, statistics.len() as u64);
    for count in statistics {
        write_number(&mut out, count);
    }
    out
}

fn write_template(out: &mut Vec<u8>, template: &Template) {
    let arguments = template.arguments();
    for count in [
        template.rows(),
        template.inputs(),
        template.aux(),
        arguments,
    ] {
        write_number(out, count as u64);
    }
    let words = template.argument_bits.words().iter();
    out.extend(
        words
            .flat_map(|w| w.to_le_bytes())
            .take(arguments.div_ceil(8)),
    );
    for matrix in &template.matrices {
        for range in matrix.starts.windows(2) {
            write_number(out, u64::from(range[1] - range[0]));
        }
        let mut first = 0;
        for row in 0..template.rows() {
            let (slots, _) = matrix.row(row);
            let mut previous = first;
            for &slot in slots {
                write_signed(out, i64::from(slot) - previous);
                previous = i64::from(slot);
            }
            first = slots.first().map_or(first, |&s| i64::from(s));
        }
        for &id in &matrix.coefficients {
            write_number(out, u64::from(id));
        }
    }
    out.extend(&template.row_rules);
}

/// The distance of an argument: how far back from the call's first own variable of its
/// kind, times 2, plus 1 for aux. Written as the difference to the previous argument's
/// (0 before the first): arguments often follow one another.
fn write_arguments(out: &mut Vec<u8>, call: &Call, arguments: &[u32]) {
    let mut previous = 0;
    for &packed in arguments {
        let distance = if packed & AUX_TAG == 0 {
            i64::from(call.input - packed) << 1
        } else {
            i64::from(call.aux - (packed & !AUX_TAG)) << 1 | 1
        };
        write_signed(out, distance - previous);
        previous = distance;
    }
}

/// The circuit and its digest.
pub(crate) fn decode(bytes: &[u8]) -> Result<(CompiledCircuit, [u8; 32]), Error> {
    let (header, body) = bytes.split_at_checked(HEADER).ok_or(Error::NotACircuit)?;
    let (magic, rest) = header.split_at(8);
    let (version, stated) = rest.split_at(4);
    if magic != MAGIC {
        return Err(Error::NotACircuit);
    }
    let found = u32::from_le_bytes(version.try_into().expect("split at 4"));
    if found != VERSION {
        return Err(Error::UnsupportedVersion {
            found,
            supported: VERSION,
        });
    }
    let digest = digest(body);
    if digest != stated {
        return Err(Error::DigestMismatch);
    }
    let payload = unpack(body).map_err(|e| Error::malformed("body", e.to_string()))?;
    if payload.len() as u64 > MAX_PAYLOAD {
        return Err(Error::TooLarge {
            what: "payload of a compiled circuit, in bytes,",
            value: payload.len() as u64,
            limit: MAX_PAYLOAD,
        });
    }
    read_payload(&payload).map(|circuit| (circuit, digest))
}

/// Unpacks at most one byte more than the limit: never trusts a stated size.
fn unpack(body: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body)?;
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    let mut payload = Vec::new();
    decoder.take(MAX_PAYLOAD + 1).read_to_end(&mut payload)?;
    Ok(payload)
}

fn read_payload(payload: &[u8]) -> Result<CompiledCircuit, Error> {
    let mut reader = Reader::new(payload);
    read_rules(&mut reader)?;
    reader.section("shape");
    let [constraints, inputs, aux] = read_limited(&mut reader, [MAX_COUNT; 3])?;
    if inputs == 0 {
        return Err(reader.malformed("no inputs: input 0, the constant one, always exists"));
    }
    let shape = Shape {
        constraints: constraints as usize,
        inputs: inputs as usize,
        aux: aux as usize,
    };
    let dictionary = read_dictionary(&mut reader)?;
    let mut templates = read_templates(&mut reader, shape, &dictionary)?;
    let sizes: Vec<placement::TemplateSize> =
        templates.iter().map(placement::TemplateSize::of).collect();
    // Inferring the bits takes about as long as reading the arguments.
    let (rules, placed) = rayon::join(
        || check_rules(&mut templates, &dictionary),
        || {
            let calls = placement::read_calls(&mut reader, shape, &sizes)?;
            let arguments = placement::read_arguments(&mut reader, &sizes, &calls)?;
            Ok((calls, arguments))
        },
    );
    rules?;
    let (mut calls, arguments) = placed?;
    placement::number_bits(&mut calls, &templates);
    let circuit = CompiledCircuit::from_parts(shape, dictionary, templates, calls, arguments);
    check_argument_bits(&circuit)?;
    check_statistics(&mut reader, circuit.statistics())?;
    Ok(circuit)
}

fn read_limited<const N: usize>(
    reader: &mut Reader<'_>,
    limits: [u64; N],
) -> Result<[u32; N], Error> {
    let mut values = [0; N];
    for (value, limit) in values.iter_mut().zip(limits) {
        *value = reader.at_most(limit)?;
    }
    Ok(values)
}

fn read_rules(reader: &mut Reader<'_>) -> Result<(), Error> {
    reader.section("rules");
    let count = reader.count(1)?;
    let mut names = Vec::with_capacity(count);
    for _ in 0..count {
        let length = reader.count(1)?;
        names.push(reader.bytes(length)?);
    }
    if !names
        .into_iter()
        .eq(Rule::ALL.iter().map(|r| r.name().as_bytes()))
    {
        return Err(reader.malformed("the rules for bits are not those of this version"));
    }
    Ok(())
}

fn read_dictionary(reader: &mut Reader<'_>) -> Result<Dictionary, Error> {
    reader.section("coefficients");
    let count = reader.count(32)?;
    if count > 1 << 16 {
        return Err(reader.malformed(format!("{count} coefficients, ids have 16 bits")));
    }
    let mut seen = std::collections::HashSet::with_capacity(count);
    let mut values = Vec::with_capacity(count);
    for k in 0..count {
        let bytes: [u8; 32] = reader.bytes(32)?.try_into().expect("32 bytes");
        let value: Option<Fr> = Fr::from_repr(bytes).into();
        let value = value.filter(|v| !bool::from(v.is_zero()) && seen.insert(bytes));
        values.push(value.ok_or_else(|| {
            reader.malformed(format!(
                "coefficient {k} is zero, not canonical or there twice"
            ))
        })?);
    }
    Ok(Dictionary::new(values))
}

fn read_templates(
    reader: &mut Reader<'_>,
    shape: Shape,
    dictionary: &Dictionary,
) -> Result<Vec<Template>, Error> {
    reader.section("templates");
    let count = reader.count(4)?;
    // Every template is called, so together they fit into the circuit: this bounds what
    // a short file can make us allocate. Input 0 is in no template.
    let mut left = [shape.constraints, shape.inputs - 1, shape.aux].map(|n| n as u64);
    let mut templates = Vec::new();
    for _ in 0..count {
        let [rows, inputs, aux] = read_limited(reader, left)?;
        for (left, used) in left.iter_mut().zip([rows, inputs, aux]) {
            *left -= u64::from(used);
        }
        let mut template = Template {
            rows,
            inputs,
            aux,
            ..Template::default()
        };
        read_template(reader, &mut template, dictionary)?;
        templates.push(template);
    }
    Ok(templates)
}

fn read_template(
    reader: &mut Reader<'_>,
    template: &mut Template,
    dictionary: &Dictionary,
) -> Result<(), Error> {
    // At most 8 arguments a remaining byte, and as many as there may be variables.
    let most = (reader.remaining() as u64 * 8).min(MAX_COUNT);
    let arguments = reader.at_most(most)? as usize;
    template.argument_bits = read_bitmap(reader, arguments)?;
    if template.slots() as u64 > u64::from(u32::MAX) {
        return Err(reader.malformed("a template has more than 2^32 slots"));
    }
    for m in 0..3 {
        template.matrices[m] = read_matrix(reader, template, dictionary.values().len())?;
    }
    template.row_rules = reader.bytes(template.rows())?.to_vec();
    Ok(())
}

/// Infers the bits of every template and compares the rules found with the stated ones.
fn check_rules(templates: &mut [Template], dictionary: &Dictionary) -> Result<(), Error> {
    templates.par_iter_mut().try_for_each(|template| {
        let stated = std::mem::take(&mut template.row_rules);
        template.infer(dictionary.small_values());
        if template.row_rules == stated {
            return Ok(());
        }
        let cause = "a row's rule for bits is not the one that holds there";
        Err(Error::malformed("templates", cause))
    })
}

fn read_bitmap(reader: &mut Reader<'_>, len: usize) -> Result<Bitmap, Error> {
    let bytes = reader.bytes(len.div_ceil(8))?;
    let words = bytes
        .chunks(8)
        .map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        })
        .collect();
    Bitmap::from_words(words, len).ok_or_else(|| reader.malformed("a bit beyond a bit map's end"))
}

fn read_matrix(
    reader: &mut Reader<'_>,
    template: &Template,
    coefficients: usize,
) -> Result<TermMatrix, Error> {
    // Each row takes at least a byte, each term at least two: the file bounds the memory.
    if template.rows() > reader.remaining() {
        return Err(reader.malformed("a template has more rows than the file has bytes"));
    }
    let mut starts = Vec::with_capacity(template.rows() + 1);
    let mut total = 0;
    starts.push(0);
    for _ in 0..template.rows() {
        total += u64::from(reader.at_most(MAX_PAYLOAD)?);
        if total > reader.remaining() as u64 / 2 {
            return Err(reader.malformed("a template has more terms than the file has bytes"));
        }
        starts.push(u32::try_from(total).expect("below the payload's size"));
    }
    let slot_limit = template.slots() as i64;
    let mut slots = Vec::with_capacity(total as usize);
    let mut first = 0;
    for range in starts.windows(2) {
        let mut previous = first;
        for term in range[0]..range[1] {
            let slot = reader.signed()?.checked_add(previous);
            let slot = slot.filter(|s| (0..slot_limit).contains(s));
            previous = slot.ok_or_else(|| reader.malformed("a term's slot does not exist"))?;
            if term == range[0] {
                first = previous;
            }
            slots.push(u32::try_from(previous).expect("below the number of slots"));
        }
    }
    let mut ids = Vec::with_capacity(total as usize);
    for _ in 0..total {
        let id = reader.number()?;
        if id >= coefficients as u64 {
            return Err(reader.malformed("a term's coefficient does not exist"));
        }
        ids.push(u16::try_from(id).expect("at most 2^16 coefficients"));
    }
    Ok(TermMatrix {
        starts,
        slots,
        coefficients: ids,
    })
}

/// A template says which arguments are bits: every call must give it such.
fn check_argument_bits(circuit: &CompiledCircuit) -> Result<(), Error> {
    circuit.calls().par_iter().try_for_each(|call| {
        let template = circuit.template(call);
        for (k, &packed) in circuit.packed_arguments(call).iter().enumerate() {
            let bit = packed & AUX_TAG != 0 && circuit.layout().is_bit(packed & !AUX_TAG);
            if bit != template.argument_bits.get(k) {
                let cause = "an argument is a bit where the template has none, or the reverse";
                return Err(Error::malformed("arguments", cause));
            }
        }
        Ok(())
    })
}

fn check_statistics(reader: &mut Reader<'_>, statistics: &Statistics) -> Result<(), Error> {
    reader.section("statistics");
    let expected = statistics.to_list();
    let count = reader.count(1)?;
    if count != expected.len() {
        return Err(reader.malformed("another number of counts than this version has"));
    }
    for value in expected {
        if reader.number()? != value {
            return Err(reader.malformed("the counts are not those of the templates"));
        }
    }
    if reader.remaining() > 0 {
        return Err(reader.malformed("bytes after the end"));
    }
    Ok(())
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
