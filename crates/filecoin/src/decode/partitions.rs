//! Phase-1 outputs of many megabytes, their partitions parsed on all threads.
//!
//! The document without its partitions is parsed by itself, and each partition by itself. Whenever
//! anything about it is unusual the answer is `None`, and the whole has to be parsed in one piece, which
//! also finds the words for an error: what comes out is always what that gives.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr3;
use rayon::prelude::*;

use super::json::{string_end, too_deep};
use super::phase1::{Phase1Output, VanillaSealProof};
use crate::porep;

/// Shorter documents are parsed in one piece.
const WORTH_BYTES: usize = 1 << 20;
/// More partitions than any circuit has, of which a document may not have as many as it likes here.
const PARTITIONS_MAX: usize = 256;
/// Levels around a partition: the document, the object of the proofs, the array of partitions.
const LEVELS: usize = 3;
/// The key whose object has the partitions.
const KEY: &[u8] = b"\"vanilla_proofs\"";

/// Parses a document; `None` does not say that it is wrong.
pub(super) fn parse(bytes: &[u8]) -> Option<Phase1Output<'static>> {
    if bytes.len() < WORTH_BYTES {
        return None;
    }
    parse_any(bytes)
}

/// The same, whatever the length.
pub(super) fn parse_any(bytes: &[u8]) -> Option<Phase1Output<'static>> {
    let places = Places::find(bytes)?;
    let rest = [&bytes[..places.array.start], &bytes[places.array.end..]].concat();
    if too_deep(&rest, 0).is_some() {
        return None;
    }
    let rest: Phase1Output<'_> = serde_json::from_slice(&rest).ok()?;
    if !rest.vanilla_proofs.partitions.is_empty() {
        return None;
    }
    let partition = |place: &Range<usize>| -> Option<Vec<porep::Proof>> {
        let bytes = &bytes[place.clone()];
        match too_deep(bytes, LEVELS) {
            None => serde_json::from_slice(bytes).ok(),
            Some(_) => None,
        }
    };
    let partitions = places.partitions.par_iter().map(partition);
    Some(Phase1Output {
        registered_proof: Cow::Owned(rest.registered_proof.into_owned()),
        vanilla_proofs: VanillaSealProof {
            partitions: partitions.collect::<Option<_>>()?,
            ..rest.vanilla_proofs
        },
        comm_r: rest.comm_r,
        comm_d: rest.comm_d,
        replica_id: rest.replica_id,
        seed: rest.seed,
        ticket: rest.ticket,
    })
}

/// Where the partitions stand in a document.
struct Places {
    /// Between the brackets of their array.
    array: Range<usize>,
    /// Each with its brackets; between them is one comma.
    partitions: Vec<Range<usize>>,
}

impl Places {
    /// Looks for the key in the document's outermost object, and for arrays in the array that its object
    /// begins with.
    fn find(bytes: &[u8]) -> Option<Self> {
        let (mut at, mut depth) = (0, 0_usize);
        loop {
            match bytes.get(at)? {
                b'"' => {
                    let end = string_end(bytes, at + 1);
                    let found = depth == 1 && bytes.get(at..=end) == Some(KEY);
                    if let Some(array) = found.then(|| array_after(bytes, end + 1)).flatten() {
                        return Self::of_array(bytes, array);
                    }
                    at = end;
                }
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            at += 1;
        }
    }

    /// Those in the array whose contents begin at `start`.
    fn of_array(bytes: &[u8], start: usize) -> Option<Self> {
        let mut partitions = Vec::new();
        let mut at = start;
        loop {
            at = after_space(bytes, at);
            if *bytes.get(at)? != b'[' || partitions.len() == PARTITIONS_MAX {
                return None;
            }
            let end = closing(bytes, at)? + 1;
            partitions.push(at..end);
            at = after_space(bytes, end);
            match bytes.get(at)? {
                b',' => at += 1,
                b']' => {
                    return Some(Places {
                        array: start..at,
                        partitions,
                    });
                }
                _ => return None,
            }
        }
    }
}

/// Where the contents of the array begin in `: { "…": [`.
fn array_after(bytes: &[u8], at: usize) -> Option<usize> {
    let after = |at, symbol| {
        let at = after_space(bytes, at);
        (bytes.get(at) == Some(&symbol)).then_some(at + 1)
    };
    let key = after(after(at, b':')?, b'{')?;
    let key = after(key, b'"')?;
    let end = string_end(bytes, key) + 1;
    after(after(end, b':')?, b'[')
}

/// The place of the bracket that closes the one at `open`; braces are the parser's business.
fn closing(bytes: &[u8], open: usize) -> Option<usize> {
    let (mut at, mut depth) = (open, 0_usize);
    loop {
        at += memchr3(b'[', b']', b'"', bytes.get(at..)?)?;
        match bytes[at] {
            b'[' => depth += 1,
            b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => at = string_end(bytes, at + 1),
        }
        at += 1;
    }
}

/// The first place from `at` on without JSON's white space.
fn after_space(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    at + rest.iter().take_while(|byte| space(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::json::{self, Document};
    use crate::support::fixtures::fixture;

    fn document() -> String {
        String::from_utf8(fixture("2KiB/porep-v1_2-ni").read("c1.json")).unwrap()
    }

    fn in_one_piece(bytes: &[u8]) -> Option<Phase1Output<'_>> {
        let (name, prefix) = ("document", "");
        json::parse(Document { name, prefix }, bytes).ok()
    }

    /// Whatever is done to a document, its parts give what the whole gives, or nothing.
    #[test]
    fn parts_give_what_the_whole_gives() {
        let plain = document();
        let whole = in_one_piece(plain.as_bytes()).unwrap();
        assert_eq!(parse_any(plain.as_bytes()).as_ref(), Some(&whole));
        assert!(whole.vanilla_proofs.partitions.len() > 1);

        let place = plain.find("\"vanilla_proofs\"").unwrap();
        let key = "\"vanilla_proofs\":";
        let deep = format!("\"x\":{}{},{key}", "[".repeat(63), "]".repeat(63));
        let edits: [(&str, &str); 15] = [
            (key, " \"vanilla_proofs\" \n:\t"),
            (key, "\"vanilla\\u005fproofs\":"),
            (key, "\"vanilla_proof\":"),
            (
                key,
                "\"a\":{\"vanilla_proofs\":{\"StackedDrg2KiBV1\":[[]]}},\"vanilla_proofs\":",
            ),
            (
                key,
                "\"vanilla_proofs\":{\"StackedDrg2KiBV1\":[[]]},\"vanilla_proofs\":",
            ),
            (key, "\"b\":\"vanilla_proofs\",\"vanilla_proofs\":"),
            (key, &deep),
            ("}],[{", "}] , [{"),
            ("}],[{", "}],,[{"),
            ("}],[{", "}][{"),
            ("}],[{", "}],[],[{"),
            ("}],[{", "}],{},[{"),
            ("{\"StackedDrg2KiBV1\":[", "{ \"StackedDrg2KiBV1\" : [ "),
            ("{\"StackedDrg2KiBV1\":[", "{\"StackedDrg4KiBV1\":["),
            (
                "{\"StackedDrg2KiBV1\":[",
                "{\"StackedDrg2KiBV1\":[],\"x\":[",
            ),
        ];
        let mut taken = 0;
        for (from, to) in edits {
            let edited = plain.replacen(from, to, 1);
            let whole = in_one_piece(edited.as_bytes());
            let parts = parse_any(edited.as_bytes());
            taken += usize::from(parts.is_some());
            assert!(parts.is_none() || parts == whole, "{from} → {to}");
        }
        assert!(taken >= 5, "{taken} edited documents in parts");
        // Cut anywhere, and with any bracket turned.
        for at in (place..plain.len()).step_by(plain.len() / 97) {
            assert_eq!(parse_any(&plain.as_bytes()[..at]), None);
        }
        let brackets = plain.bytes().enumerate().skip(place);
        let brackets = brackets.filter(|(_, byte)| b"[]{}".contains(byte));
        for (at, byte) in brackets.step_by(997) {
            let mut turned = plain.clone().into_bytes();
            turned[at] = if byte == b'[' { b'{' } else { b'[' };
            assert_eq!(in_one_piece(&turned), None, "{at}");
            assert_eq!(parse_any(&turned), None, "{at}");
        }
    }

    /// A partition nests as deep as in the whole document.
    #[test]
    fn depth_is_counted_from_the_outside() {
        let inner = |levels: usize| {
            let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            let plain = document();
            plain.replacen("[[{", &format!("[[{{\"x\":{deep},"), 1)
        };
        // Levels: the document, its object, two arrays, the proof; then these.
        for (levels, fits) in [(59, true), (60, false)] {
            let text = inner(levels);
            assert_eq!(too_deep(text.as_bytes(), 0).is_none(), fits, "{levels}");
            assert_eq!(parse_any(text.as_bytes()).is_some(), fits, "{levels}");
        }
    }
}
