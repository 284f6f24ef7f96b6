//! JSON with errors that name the field, and the odd types of proto3 JSON.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use memchr::memchr2;
use rayon::prelude::*;
use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::error::Category;

use crate::domain::DomainError;
use crate::error::{Error, one_line};

/// Deepest nesting accepted. A phase-1 output nests 17 levels.
const DEPTH_LIMIT: usize = 64;

/// Most top-level keys that are remembered; the rest are counted as unknown.
const KEY_LIMIT: usize = 64;

/// A JSON document: its name for errors about the whole, and the path in front
/// of its fields' names (empty at the top level).
#[derive(Clone, Copy)]
pub(crate) struct Document<'a> {
    pub(crate) name: &'a str,
    pub(crate) prefix: &'a str,
}

impl Document<'_> {
    fn path(self, path: &str) -> String {
        match (self.prefix, path) {
            (_, "" | "." | "?") => self.name.to_owned(),
            ("", path) => one_line(path, 300),
            (prefix, path) => format!("{prefix}.{}", one_line(path, 300)),
        }
    }
}

/// Reads a document into `T`, borrowing strings where it can.
///
/// # Errors
/// [`Error::Json`] for bad syntax and nesting beyond the limit;
/// [`Error::MissingField`], [`Error::NotANode`] and [`Error::BadField`] for
/// values that do not fit, with the value's path.
pub(crate) fn parse<'de, T: Deserialize<'de>>(
    document: Document<'_>,
    bytes: &'de [u8],
) -> Result<T, Error> {
    check_depth(document, bytes)?;
    serde_json::from_slice(bytes).map_err(|error| explain::<T>(document, bytes, &error))
}

/// Turns a parser's error into ours. The path is found by reading once more with
/// path tracking, so that good input does not pay for it.
fn explain<'de, T: Deserialize<'de>>(
    document: Document<'_>,
    bytes: &'de [u8],
    error: &serde_json::Error,
) -> Error {
    let mut track = serde_path_to_error::Track::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    // This fails as it did before; a parse that succeeds here has trailing text.
    let _ = T::deserialize(serde_path_to_error::Deserializer::new(
        &mut deserializer,
        &mut track,
    ));
    let path = track.path().to_string();
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let cause = text
        .strip_suffix(&format!(" at line {line} column {column}"))
        .unwrap_or(&text);
    if error.classify() != Category::Data {
        return Error::Json {
            field: document.path(&path),
            cause: one_line(cause, 200),
            line,
            column,
        };
    }
    let missing = cause
        .strip_prefix("missing field `")
        .and_then(|rest| rest.strip_suffix('`'));
    if let Some(name) = missing {
        let path = match path.as_str() {
            "" | "." => name.to_owned(),
            parent => format!("{parent}.{name}"),
        };
        return Error::MissingField {
            field: document.path(&path),
            remedy: "make the request again with the tool that wrote it",
        };
    }
    for node_error in [DomainError::NotCanonical, DomainError::NotTruncated] {
        if cause == node_error.to_string() {
            return Error::NotANode {
                field: document.path(&path),
                cause: node_error,
            };
        }
    }
    Error::BadField {
        field: document.path(&path),
        cause: format!(
            "{} (line {line}, column {column})",
            one_line(&shorten(cause), 200)
        ),
        remedy: "correct this value",
    }
}

/// Shortens the text that a parser quotes, which may be a whole payload.
fn shorten(cause: &str) -> Cow<'_, str> {
    const SHOWN: usize = 24;
    let quoted = cause
        .split_once(": string \"")
        .and_then(|(before, rest)| Some((before, rest.rsplit_once("\", expected")?)));
    match quoted {
        Some((before, (text, after))) if text.len() > SHOWN => {
            let text: String = text.chars().take(SHOWN).collect();
            Cow::Owned(format!("{before}: string \"{text}…\", expected{after}"))
        }
        _ => Cow::Borrowed(cause),
    }
}

/// Refuses a document that nests deeper than any request does.
fn check_depth(document: Document<'_>, bytes: &[u8]) -> Result<(), Error> {
    let Some(at) = too_deep(bytes, 0) else {
        return Ok(());
    };
    let line = 1 + bytes[..at].iter().filter(|&&b| b == b'\n').count();
    let start = bytes[..at].iter().rposition(|&b| b == b'\n');
    Err(Error::Json {
        field: document.name.to_owned(),
        cause: format!("nests deeper than {DEPTH_LIMIT} levels"),
        line,
        column: at - start.map_or(0, |newline| newline + 1) + 1,
    })
}

/// Where a text inside `outside` levels nests deeper than any request does. Brackets are counted
/// outside strings; whether they match is the parser's business.
pub(super) fn too_deep(bytes: &[u8], outside: usize) -> Option<usize> {
    let mut depth = outside;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at + 1),
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH_LIMIT {
                    return Some(at);
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where the closing quote of a string stands whose contents begin at `at`; beyond the end if it has none.
/// Payloads are strings of many megabytes, so this does not look at every byte by itself.
pub(super) fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return at;
        }
        // A backslash and what it escapes.
        at += 2;
    }
    bytes.len()
}

/// The keys of a JSON object, in order, at most [`KEY_LIMIT`] of them.
///
/// # Errors
/// As [`parse`].
pub(crate) fn top_level_keys<'de>(
    document: Document<'_>,
    bytes: &'de [u8],
) -> Result<Vec<Cow<'de, str>>, Error> {
    parse::<Keys<'de>>(document, bytes).map(|keys| keys.0)
}

struct Keys<'a>(Vec<Cow<'a, str>>);

impl<'de> Deserialize<'de> for Keys<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Keys<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut keys = Vec::new();
                while let Some(Text(key)) = map.next_key()? {
                    let IgnoredAny = map.next_value()?;
                    if keys.len() < KEY_LIMIT {
                        keys.push(key);
                    }
                }
                Ok(Keys(keys))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

/// A string, borrowed unless it has escapes.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Encodes in the standard alphabet, padded.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Decodes base64 of either alphabet, padded or not, as proto3 JSON allows; a long text on all threads.
pub(crate) fn decode_base64(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    let text = text.as_bytes();
    let (alphabet, engine) = match memchr2(b'-', b'_', text) {
        Some(_) => (&alphabet::URL_SAFE, URL_SAFE),
        None => (&alphabet::STANDARD, STANDARD),
    };
    // What is wrong with a text is told of the whole.
    match decode_in_pieces(text, alphabet, &engine) {
        Some(decoded) => Ok(decoded),
        None => engine.decode(text),
    }
}

/// Symbols of a piece that a thread decodes: whole groups of four.
const PIECE: usize = 1 << 20;

/// The same as `last` makes of the whole text; `None` for a short text and for one that is wrong.
fn decode_in_pieces(
    text: &[u8],
    alphabet: &alphabet::Alphabet,
    last: &GeneralPurpose,
) -> Option<Vec<u8>> {
    if text.len() <= PIECE {
        return None;
    }
    // Padding ends a text: it has no place in any piece but the last.
    let strict =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireNone);
    let before_last = GeneralPurpose::new(alphabet, strict);
    let whole = (text.len() - 1) / PIECE * PIECE;
    let mut decoded = Vec::with_capacity(whole / 4 * 3 + PIECE);
    decoded.resize(whole / 4 * 3, 0);
    decoded
        .par_chunks_mut(PIECE / 4 * 3)
        .zip(text[..whole].par_chunks(PIECE))
        .all(|(out, piece)| before_last.decode_slice(piece, out) == Ok(out.len()))
        .then_some(())?;
    last.decode_vec(&text[whole..], &mut decoded).ok()?;
    Some(decoded)
}

/// `bytes` of proto3 JSON.
#[derive(Debug, Default)]
pub(crate) struct Base64(pub(crate) Vec<u8>);

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Text::deserialize(deserializer)?;
        decode_base64(&text.0).map(Self).map_err(|error| {
            de::Error::custom(format_args!("not base64: {}", base64_cause(&error)))
        })
    }
}

/// The decoder's complaint without the payload's symbols.
pub(crate) fn base64_cause(error: &base64::DecodeError) -> String {
    match error {
        base64::DecodeError::InvalidByte(offset, _) => format!("bad symbol at offset {offset}"),
        base64::DecodeError::InvalidLength(length) => format!("bad length {length}"),
        base64::DecodeError::InvalidLastSymbol { offset, .. } => {
            format!("stray bits in the last symbol, at offset {offset}")
        }
        base64::DecodeError::InvalidPadding => "bad padding".to_owned(),
    }
}

/// An integer of proto3 JSON: a number (also written with a fraction of zero or
/// an exponent) or the same in a string.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Uint64(pub(crate) u64);

impl<'de> Deserialize<'de> for Uint64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Integer;

        impl Visitor<'_> for Integer {
            type Value = Uint64;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer from 0 to 18446744073709551615, as number or string")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Uint64, E> {
                Ok(Uint64(value))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Uint64, E> {
                // Below 2^53 every integral f64 is exact.
                if value.fract() == 0.0 && (0.0..9_007_199_254_740_992.0).contains(&value) {
                    return Ok(Uint64(value as u64));
                }
                Err(E::invalid_value(de::Unexpected::Float(value), &self))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Uint64, E> {
                value
                    .parse()
                    .map(Uint64)
                    .map_err(|_| E::invalid_value(de::Unexpected::Str(value), &self))
            }
        }

        deserializer.deserialize_any(Integer)
    }
}

/// An enum of proto3 JSON: a name or a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EnumValue {
    Name(String),
    Number(i64),
}

impl<'de> Deserialize<'de> for EnumValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameOrNumber;

        impl Visitor<'_> for NameOrNumber {
            type Value = EnumValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an enum's name or number")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<EnumValue, E> {
                Ok(EnumValue::Number(value))
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<EnumValue, E> {
                // Beyond i64 no enum has a value; saturating keeps it out of range.
                Ok(EnumValue::Number(i64::try_from(value).unwrap_or(i64::MAX)))
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<EnumValue, E> {
                Ok(EnumValue::Name(value.to_owned()))
            }
        }

        deserializer.deserialize_any(NameOrNumber)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::PoseidonDomain;

    const REQUEST: Document<'_> = Document {
        name: "request",
        prefix: "",
    };

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Sample {
        id: Uint64,
        nodes: Vec<PoseidonDomain>,
    }

    fn error(json: &str) -> Error {
        parse::<Sample>(REQUEST, json.as_bytes()).unwrap_err()
    }

    #[test]
    fn errors_name_the_value() {
        let long = format!(r#"{{"id":"{}","nodes":[]}}"#, r"A\n".repeat(1_000_000));
        let text = error(&long).to_string();
        assert!(
            text.starts_with(r#"id: invalid value: string "A\nA\n"#),
            "{text}"
        );
        assert!(
            text.len() < 200 && text.contains("…\", expected an integer"),
            "{text}"
        );
        let huge = format!(r#"{{"id":1,"nodes":[[{}]]}}"#, ["255"; 32].join(","));
        let cases = [
            (r#"{"id":1}"#, "MISSING_FIELD", "nodes: missing"),
            (r#"{"id":-1,"nodes":[]}"#, "BAD_FIELD", "id: invalid type"),
            (r#"{"id":1.5,"nodes":[]}"#, "BAD_FIELD", "id: invalid value"),
            (
                r#"{"id":1,"nodes":[[1]]}"#,
                "BAD_FIELD",
                "nodes[0]: invalid length 1",
            ),
            (
                r#"{"id":1,"nodes":[[1,300]]}"#,
                "BAD_FIELD",
                "nodes[0][1]: invalid value",
            ),
            (
                r#"{"id":1,"nodes":[]} x"#,
                "BAD_JSON",
                "request: trailing characters",
            ),
            (r#"{"id":1,"nodes":["#, "BAD_JSON", "nodes: EOF"),
            (
                &huge,
                "NOT_CANONICAL",
                "nodes[0]: not a canonical field element",
            ),
        ];
        for (json, code, start) in cases {
            let error = error(json);
            assert_eq!(error.code(), code, "{error}");
            assert!(error.to_string().starts_with(start), "{error}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_without_recursion() {
        let deep = format!(r#"{{"a":{}"#, "[".repeat(5_000_000));
        assert!(error(&deep).to_string().contains("nests deeper"));
        for text in [
            r#"{"id":1,"s":"\"#,
            r#"{"id":1,"s":"\""#,
            r#"{"id":1,"s":""#,
        ] {
            assert_eq!(error(text).code(), "BAD_JSON", "{text}");
        }
        let after = format!(r#"{{"id":1,"s":"\"[\\","nodes":{}"#, "[".repeat(100));
        assert!(error(&after).to_string().contains("nests deeper"));
        let text = r#"{"id":1,"nodes":[],"s":"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"[["}"#;
        parse::<Sample>(REQUEST, text.as_bytes()).unwrap();
    }

    #[test]
    fn base64_of_both_alphabets() {
        let bytes = vec![0xfb, 0xff, 0xfe, 0x01];
        for text in ["+//+AQ==", "+//+AQ", "-__-AQ==", "-__-AQ"] {
            assert_eq!(decode_base64(text).unwrap(), bytes, "{text}");
        }
        for text in ["+__+AQ==", "+//+A", "+//+AQ===", "+//+AR==", "+//+ AQ=="] {
            assert!(decode_base64(text).is_err(), "{text}");
        }
    }

    /// Texts of several pieces, whole and wrong, as one piece decodes them.
    #[test]
    fn long_base64_is_decoded_as_a_whole_is() {
        let bytes: Vec<u8> = (0..2 * PIECE as u32 + 5).map(|i| (i >> 4) as u8).collect();
        let serial = |text: &str| match text.contains(['-', '_']) {
            true => URL_SAFE.decode(text),
            false => STANDARD.decode(text),
        };
        for end in 0..5 {
            let bytes = &bytes[..bytes.len() - end];
            let padded = encode_base64(bytes);
            let bare = padded.trim_end_matches('=').to_owned();
            let url = padded.replace('+', "-").replace('/', "_");
            for text in [padded, bare, url] {
                assert!(decode_base64(&text).unwrap() == bytes, "{end}");
            }
        }
        let text = encode_base64(&bytes);
        for (at, symbol) in [
            (0, "!"),
            (PIECE - 1, "="),
            (PIECE - 2, "=="),
            (PIECE, "="),
            (2 * PIECE, "-"),
            (text.len() - 2, "!"),
        ] {
            let mut wrong = text.clone();
            wrong.replace_range(at..at + symbol.len(), symbol);
            let error = decode_base64(&wrong).unwrap_err();
            assert_eq!(error, serial(&wrong).unwrap_err(), "{symbol} at {at}");
        }
        let whole = &text[..PIECE];
        assert_eq!(decode_base64(whole), serial(whole));
        let one_more = &text[..PIECE + 1];
        assert_eq!(decode_base64(one_more), serial(one_more));
    }

    #[test]
    fn integers_are_numbers_or_strings() {
        for (json, value) in [
            ("7", 7),
            ("\"7\"", 7),
            ("7.0", 7),
            ("1e3", 1000),
            ("18446744073709551615", u64::MAX),
            ("\"18446744073709551615\"", u64::MAX),
        ] {
            assert_eq!(serde_json::from_str::<Uint64>(json).unwrap().0, value);
        }
        for json in [
            "-1",
            "\"\"",
            "\"x\"",
            "1e30",
            "true",
            "18446744073709551616",
            "[]",
        ] {
            assert!(serde_json::from_str::<Uint64>(json).is_err(), "{json}");
        }
    }
}
