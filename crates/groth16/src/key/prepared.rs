//! The file of a prepared key (`cuzk-<circuit>-<digest of the verifying key>.key`).
//!
//! A header of 4 096 bytes, then the verifying key as in a `.vk` file and the vectors h, l, a, b
//! (G1), b (G2) in [`PointEncoding::Montgomery`], each from a multiple of 4 096 bytes on, with
//! zeros between; the file ends with the last point. The header's numbers are little-endian:
//!
//! | offset | bytes | |
//! | --- | --- | --- |
//! | 0 | 8 | `cuzk-key` |
//! | 8 | 4 | version, 1 |
//! | 12 | 4 | flags: 1 test key, 2 the content's digest is known, 4 the source's digest is known |
//! | 16 | 32 | digest of the compiled circuit |
//! | 48 | 16 | digest of the parameter file that the key was made from |
//! | 64 | 8 | seed of a test key |
//! | 72 | 40 | points of ic, h, l, a, b |
//! | 112 | 48 | offsets of the verifying key, h, l, a, b (G1), b (G2) |
//! | 160 | 8 | length of the file |
//! | 168 | 16 | the content's digest: see [`content_digest`] |
//! | 184 | 16 | digest of the 184 bytes before |
//! | 200 | | zeros |
//!
//! Offsets and length follow from the counts; they stand there for other readers.

use std::path::Path;

use blstrs::{G1Affine, G2Affine};
use r1cs::CompiledCircuit;
use rayon::prelude::*;

use super::counts::KeyCounts;
use super::digest::KeyDigest;
use super::encoding::KeyPoint;
use super::map::MappedFile;
use super::{KeyError, PointEncoding};
use crate::progress::Progress;

/// Bytes of the header, and what sections' offsets are multiples of.
pub(crate) const HEADER_BYTES: usize = 4096;
/// How every prepared key begins.
pub(crate) const MAGIC: [u8; 8] = *b"cuzk-key";
/// What the file is called in messages.
pub(crate) const PREPARED: &str = "prepared key";
/// How it holds its points.
pub(crate) const ENCODING: PointEncoding = PointEncoding::Montgomery;

const VERSION: u32 = 1;
const TEST: u32 = 1;
const CONTENT: u32 = 2;
const SOURCE: u32 = 4;
/// Bytes that the header's checksum covers.
const CHECKED: usize = 184;

/// Bytes that the content's digest takes in one piece.
const PIECE: usize = 4 << 20;

/// Where everything stands in a prepared key's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PreparedLayout {
    /// Offsets of the verifying key, h, l, a, b in G1, b in G2.
    pub offsets: [u64; 6],
    /// Bytes of each.
    pub lengths: [u64; 6],
    /// Length of the file.
    pub file_bytes: u64,
}

impl PreparedLayout {
    pub fn of(counts: &KeyCounts) -> Self {
        let (g1, g2) = (G1Affine::BYTES as u64, G2Affine::BYTES as u64);
        let lengths = [
            counts.vk_bytes(),
            counts.prepared_h() * g1,
            counts.prepared_l() * g1,
            counts.a * g1,
            counts.b * g1,
            counts.b * g2,
        ];
        let mut end = HEADER_BYTES as u64;
        let offsets = lengths.map(|length| {
            let offset = end.next_multiple_of(HEADER_BYTES as u64);
            end = offset + length;
            offset
        });
        PreparedLayout {
            offsets,
            lengths,
            file_bytes: end,
        }
    }
}

/// What a prepared key's header says besides counts and offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreparedHeader {
    /// Digest of the compiled circuit, whose matrix C is in l.
    pub circuit: [u8; 32],
    /// Digest of the parameter file that the key was made from; `None` for a test key made
    /// from its secrets.
    pub source: Option<KeyDigest>,
    /// The seed of a test key.
    pub seed: Option<u64>,
    /// Digest of everything after the header; `None` for a key that never leaves memory.
    pub content: Option<KeyDigest>,
}

impl PreparedHeader {
    /// Of a test key made from the seed's secrets for a circuit with this digest, whose content
    /// has no digest, at least not yet.
    pub(crate) fn of_test_key(circuit: [u8; 32], seed: u64) -> Self {
        Self {
            circuit,
            source: None,
            seed: Some(seed),
            content: None,
        }
    }

    /// The header's bytes.
    pub(crate) fn to_bytes(self, counts: &KeyCounts) -> Vec<u8> {
        let layout = PreparedLayout::of(counts);
        let flag = |present: bool, flag: u32| if present { flag } else { 0 };
        let flags = flag(self.seed.is_some(), TEST)
            | flag(self.content.is_some(), CONTENT)
            | flag(self.source.is_some(), SOURCE);
        let digest = |digest: Option<KeyDigest>| digest.map_or([0; 16], |d| *d.as_bytes());
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&self.circuit);
        out.extend_from_slice(&digest(self.source));
        out.extend_from_slice(&self.seed.unwrap_or(0).to_le_bytes());
        let numbers = prepared_counts(counts).into_iter().chain(layout.offsets);
        for number in numbers.chain([layout.file_bytes]) {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&digest(self.content));
        let checksum = KeyDigest::of_bytes(&out);
        out.extend_from_slice(checksum.as_bytes());
        out.resize(HEADER_BYTES, 0);
        out
    }

    /// Parses the head of a mapped file, and checks it against the circuit's counts and the
    /// file's length.
    pub(crate) fn read(file: &MappedFile, counts: &KeyCounts) -> Result<Self, KeyError> {
        let bad = |reason: String| unusable(file.path(), reason);
        if file.len() < HEADER_BYTES {
            return Err(bad(format!("{} bytes are too few for one", file.len())));
        }
        let mut fields = Fields(file.slice(0, HEADER_BYTES)?);
        let checksum = KeyDigest::of_bytes(&fields.0[..CHECKED]);
        if fields.take() != MAGIC {
            return Err(bad("it does not begin as one does".to_owned()));
        }
        let version = u32::from_le_bytes(fields.take());
        if version != VERSION {
            return Err(bad(format!(
                "its version is {version}, this program reads {VERSION}"
            )));
        }
        let flags = u32::from_le_bytes(fields.take());
        let circuit = fields.take();
        let source = KeyDigest::from_bytes(fields.take());
        let seed = fields.number();
        let found: [u64; 5] = std::array::from_fn(|_| fields.number());
        let offsets: [u64; 6] = std::array::from_fn(|_| fields.number());
        let file_bytes = fields.number();
        let content = KeyDigest::from_bytes(fields.take());
        if fields.take() != *checksum.as_bytes() || fields.0.iter().any(|byte| *byte != 0) {
            return Err(bad("its header is damaged".to_owned()));
        }
        if flags & !(TEST | CONTENT | SOURCE) != 0 {
            return Err(bad(format!("its flags {flags:#x} are not known")));
        }
        let names = ["ic", "h", "l", "a", "b"];
        for ((section, found), expected) in
            names.into_iter().zip(found).zip(prepared_counts(counts))
        {
            if found != expected {
                return Err(KeyError::OtherCircuit {
                    path: file.path().to_path_buf(),
                    section,
                    found,
                    expected,
                });
            }
        }
        let layout = PreparedLayout::of(counts);
        if offsets != layout.offsets || file_bytes != layout.file_bytes {
            return Err(bad("its sections do not stand where they should".to_owned()));
        }
        if file.len() as u64 != file_bytes {
            return Err(bad(format!(
                "{} bytes long where its header says {file_bytes}",
                file.len()
            )));
        }
        let known = |flag: u32| flags & flag != 0;
        Ok(PreparedHeader {
            circuit,
            source: known(SOURCE).then_some(source),
            seed: known(TEST).then_some(seed),
            content: known(CONTENT).then_some(content),
        })
    }

    /// Fails unless the key was prepared for this very circuit.
    pub(crate) fn check_circuit(
        &self,
        path: &Path,
        circuit: &CompiledCircuit,
    ) -> Result<(), KeyError> {
        if self.circuit == circuit.digest() {
            return Ok(());
        }
        Err(unusable(
            path,
            "it was prepared for another version of the circuit".to_owned(),
        ))
    }
}

/// Points of ic, h, l, a and b.
fn prepared_counts(counts: &KeyCounts) -> [u64; 5] {
    [
        counts.inputs,
        counts.prepared_h(),
        counts.prepared_l(),
        counts.a,
        counts.b,
    ]
}

/// Name of the file of a circuit's prepared key, which belongs to the verifying key of this
/// digest: that tells apart the official key and every test key, however they were made.
pub fn prepared_name(circuit: &str, vk: KeyDigest) -> String {
    format!("cuzk-{circuit}-{vk}.key")
}

pub(crate) fn unusable(path: &Path, reason: String) -> KeyError {
    KeyError::Prepared {
        path: path.to_path_buf(),
        reason,
    }
}

/// Digest of a prepared key's content: that of the digests of its pieces of 4 MiB from the
/// end of the header on, one after another, so that all threads can take it.
///
/// # Errors
/// [`KeyError::Changed`] when the file changes meanwhile.
pub(crate) fn content_digest(
    file: &MappedFile,
    progress: &dyn Progress,
) -> Result<KeyDigest, KeyError> {
    let bytes = file.len().saturating_sub(HEADER_BYTES);
    progress.begin("digest", bytes as u64);
    let pieces: Vec<[u8; 16]> = (0..bytes.div_ceil(PIECE))
        .into_par_iter()
        .map(|index| {
            let start = index * PIECE;
            let count = PIECE.min(bytes - start);
            let digest = KeyDigest::of_bytes(file.slice(HEADER_BYTES + start, count)?);
            progress.advance(count as u64);
            Ok(*digest.as_bytes())
        })
        .collect::<Result<_, KeyError>>()?;
    // A piece may have changed while it was hashed.
    file.slice(0, 0)?;
    Ok(KeyDigest::of_bytes(pieces.as_flattened()))
}

/// The rest of the header.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self
            .0
            .split_first_chunk()
            .expect("invariant: the fields are shorter than the header");
        self.0 = rest;
        *head
    }

    fn number(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}
