//! Reads where the templates stand: the file's calls and their arguments.

use crate::bitmap::Bitmap;
use crate::codec::Reader;
use crate::template::{Call, Template};
use crate::{AUX_TAG, Error, Shape};

/// What the calls have to know of a template.
pub(crate) struct TemplateSize {
    rows: u64,
    inputs: u64,
    aux: u64,
    arguments: usize,
}

impl TemplateSize {
    pub(crate) fn of(template: &Template) -> Self {
        Self {
            rows: u64::from(template.rows),
            inputs: u64::from(template.inputs),
            aux: u64::from(template.aux),
            arguments: template.arguments(),
        }
    }
}

/// The calls, without their bits: see [`number_bits`].
pub(crate) fn read_calls(
    reader: &mut Reader<'_>,
    shape: Shape,
    templates: &[TemplateSize],
) -> Result<Vec<Call>, Error> {
    reader.section("calls");
    let count = reader.count(1)?;
    let mut calls = Vec::with_capacity(count);
    let mut called = Bitmap::new(templates.len());
    let (mut row, mut input, mut aux, mut argument) = (0u64, 1u64, 0u64, 0u64);
    for _ in 0..count {
        let id = reader.number()?;
        let template = usize::try_from(id).ok().and_then(|id| templates.get(id));
        let template = template.ok_or_else(|| reader.malformed(format!("no template {id}")))?;
        called.set(id as usize);
        let narrow = |n: u64| {
            u32::try_from(n).map_err(|_| reader.malformed("the calls exceed 2^32 of something"))
        };
        calls.push(Call {
            template: narrow(id)?,
            row: narrow(row)?,
            input: narrow(input)?,
            aux: narrow(aux)?,
            bit: 0,
            dense: 0,
            argument: narrow(argument)?,
        });
        row += template.rows;
        input += template.inputs;
        aux += template.aux;
        argument += template.arguments as u64;
    }
    let totals = [row, input, aux];
    if totals != [shape.constraints, shape.inputs, shape.aux].map(|n| n as u64) {
        return Err(reader.malformed("the calls do not add up to the circuit's shape"));
    }
    if called.count_ones() != templates.len() {
        return Err(reader.malformed("a template is never called"));
    }
    if argument > reader.remaining() as u64 {
        return Err(reader.malformed("the calls have more arguments than the file has bytes"));
    }
    Ok(calls)
}

/// Numbers each call's first bit and first non-bit, once the templates' bits are known. There are
/// at most as many as aux variables.
pub(crate) fn number_bits(calls: &mut [Call], templates: &[Template]) {
    let counts: Vec<u32> = templates
        .iter()
        .map(|t| u32::try_from(t.bits.count_ones()).expect("at most 2^28"))
        .collect();
    let mut bit = 0;
    for call in calls {
        call.bit = bit;
        call.dense = call.aux - bit;
        bit += counts[call.template as usize];
    }
}

pub(crate) fn read_arguments(
    reader: &mut Reader<'_>,
    templates: &[TemplateSize],
    calls: &[Call],
) -> Result<Vec<u32>, Error> {
    reader.section("arguments");
    let mut arguments = Vec::new();
    for call in calls {
        let mut distance = 0i64;
        for _ in 0..templates[call.template as usize].arguments {
            distance = distance
                .checked_add(reader.signed()?)
                .filter(|&d| d >= 2)
                .ok_or_else(|| reader.malformed("an argument is not allocated before its call"))?;
            let back = distance >> 1;
            let packed = if distance & 1 == 0 {
                // Input 0 is a slot of its own and no argument.
                u32::try_from(i64::from(call.input) - back)
                    .ok()
                    .filter(|&i| i > 0)
            } else {
                u32::try_from(i64::from(call.aux) - back)
                    .ok()
                    .map(|i| i | AUX_TAG)
            };
            arguments.push(packed.ok_or_else(|| reader.malformed("an argument does not exist"))?);
        }
    }
    Ok(arguments)
}
