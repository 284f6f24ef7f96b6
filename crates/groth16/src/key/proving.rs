//! The proving key: a parameter file (`.params`) or a prepared key, mapped and read in chunks.

use std::path::Path;
use std::sync::Arc;

use blstrs::{G1Affine, G2Affine};
use r1cs::CompiledCircuit;

use super::counts::{COUNT_BYTES, KeyCounts, VK_FIXED_BYTES};
use super::encoding::KeyPoint;
use super::map::{FileStamp, MappedFile};
use super::prepared::{self, PreparedHeader, PreparedLayout};
use super::verifying::{VerifyingKey, ic_count};
use super::{KeyError, PointEncoding, Section};

/// What the file is called in messages.
pub(crate) const PARAMETER: &str = "parameter";

/// What a proving key's vectors h and l hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// What the network's parameter files hold: the sum over h takes the coefficients of H,
    /// that over l the auxiliary variables.
    Published,
    /// Points for the values of A·B on the coset, and C folded into l, which has points for the
    /// inputs too: a proof needs four transforms, and never the matrix C.
    Prepared,
}

/// A mapped key file whose layout agrees with its circuit.
///
/// A parameter file's bytes are those of the verifying key, then the vectors h, l, a, b (G1), b (G2), each a
/// big-endian u32 count and uncompressed points; the file ends with the last one. For a prepared
/// key see `key/prepared.rs`. Cloning is cheap and shares the map.
#[derive(Clone, Debug)]
pub struct ProvingKey {
    file: Arc<MappedFile>,
    counts: KeyCounts,
    /// `None` for the published form.
    prepared: Option<PreparedHeader>,
    vk: Arc<VerifyingKey>,
    h: Section<G1Affine>,
    l: Section<G1Affine>,
    a: Section<G1Affine>,
    b_g1: Section<G1Affine>,
    b_g2: Section<G2Affine>,
}

impl ProvingKey {
    /// Maps a parameter file or a prepared key, checks every count against the circuit's and against the file's
    /// length, and parses the verifying key at its head with full checks on its points.
    ///
    /// The vectors' points are not touched yet: reading decodes them, and
    /// whether they may be believed is decided by the key's digest or a full check.
    ///
    /// # Errors
    /// [`KeyError`] when the file cannot be mapped, is no key, is another circuit's,
    /// is too short or too long, or has a bad point in its head.
    pub fn open(path: &Path, counts: &KeyCounts) -> Result<Self, KeyError> {
        Self::of(MappedFile::open(path, PARAMETER)?, counts)
    }

    /// The key in a mapped file, with the checks of [`Self::open`].
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn of(file: MappedFile, counts: &KeyCounts) -> Result<Self, KeyError> {
        let head = file.slice(0, file.len().min(prepared::MAGIC.len()))?;
        if head == prepared::MAGIC {
            return Self::prepared_in(file, counts);
        }
        Self::published_in(file, counts)
    }

    fn prepared_in(file: MappedFile, counts: &KeyCounts) -> Result<Self, KeyError> {
        let header = PreparedHeader::read(&file, counts)?;
        let PreparedLayout {
            offsets: [vk, h, l, a, b_g1, b_g2],
            lengths,
            ..
        } = PreparedLayout::of(counts);
        let vk = file.slice(as_index(vk), as_index(lengths[0]))?;
        let vk =
            VerifyingKey::parse(vk).map_err(|fault| fault.at(file.path(), prepared::PREPARED))?;
        let file = Arc::new(file);
        let g1 = |name, offset, count| {
            Section::new(
                &file,
                name,
                prepared::ENCODING,
                as_index(offset),
                as_index(count),
            )
        };
        Ok(ProvingKey {
            counts: *counts,
            prepared: Some(header),
            vk: Arc::new(vk),
            h: g1("h", h, counts.prepared_h()),
            l: g1("l", l, counts.prepared_l()),
            a: g1("a", a, counts.a),
            b_g1: g1("b_g1", b_g1, counts.b),
            b_g2: Section::new(
                &file,
                "b_g2",
                prepared::ENCODING,
                as_index(b_g2),
                as_index(counts.b),
            ),
            file,
        })
    }

    fn published_in(file: MappedFile, counts: &KeyCounts) -> Result<Self, KeyError> {
        let file = Arc::new(file);
        let path = file.path();
        let found = {
            let head = file.slice(0, file.len().min(as_index(VK_FIXED_BYTES)))?;
            ic_count(head).map_err(|fault| fault.at(path, PARAMETER))?
        };
        let mut layout = Layout {
            file: &file,
            position: VK_FIXED_BYTES,
        };
        layout.check_count::<G1Affine>("ic", found, counts.inputs)?;
        layout.position = counts.vk_bytes();
        let h = layout.section("h", counts.h)?;
        let l = layout.section("l", counts.l)?;
        let a = layout.section("a", counts.a)?;
        let b_g1 = layout.section("b_g1", counts.b)?;
        let b_g2 = layout.section("b_g2", counts.b)?;
        layout.finish()?;

        let head = file.slice(0, as_index(counts.vk_bytes()))?;
        let vk = VerifyingKey::parse(head).map_err(|fault| fault.at(path, PARAMETER))?;
        Ok(ProvingKey {
            counts: *counts,
            prepared: None,
            vk: Arc::new(vk),
            h,
            l,
            a,
            b_g1,
            b_g2,
            file,
        })
    }

    /// What h and l hold.
    pub fn form(&self) -> KeyForm {
        match self.prepared {
            None => KeyForm::Published,
            Some(_) => KeyForm::Prepared,
        }
    }

    /// What a prepared key's header says; `None` for the published form.
    pub fn prepared(&self) -> Option<&PreparedHeader> {
        self.prepared.as_ref()
    }

    /// Fails if this is a prepared key of another circuit, or of another compilation of it.
    /// Only a prepared key knows.
    ///
    /// # Errors
    /// [`KeyError::Prepared`].
    pub fn check_circuit(&self, circuit: &CompiledCircuit) -> Result<(), KeyError> {
        match &self.prepared {
            None => Ok(()),
            Some(header) => header.check_circuit(self.path(), circuit),
        }
    }

    /// The verifying key at the file's head.
    pub fn vk(&self) -> &VerifyingKey {
        &self.vk
    }

    /// Published: h_i = [τ^i·Z(τ)/δ]₁ for i = 0 … n − 2. Prepared: e_i = −½·[φ(L_i)(τ)·Z(τ)/δ]₁ for
    /// every point of the coset, in bit-reversed order, where L_i is 1 at g·ω^i and 0 at the
    /// coset's other points, g² = ω, and φ drops the coefficient of x^(n−1).
    pub fn h(&self) -> &Section<G1Affine> {
        &self.h
    }

    /// Published: l_j = [(β·u_j + α·v_j + w_j)(τ)/δ]₁ for every auxiliary variable. Prepared:
    /// ½·Σ_i C_ij·\[φ(L_i)(τ)·Z(τ)/δ\]₁ for every input, then l_j plus the same sum for every
    /// auxiliary variable, where L_i is 1 at ω^i and 0 at the domain's other points.
    pub fn l(&self) -> &Section<G1Affine> {
        &self.l
    }

    /// [u_j(τ)]₁ for the inputs, then the auxiliary variables that occur in A.
    pub fn a(&self) -> &Section<G1Affine> {
        &self.a
    }

    /// [v_j(τ)]₁ for the inputs, then the auxiliary variables, that occur in B.
    pub fn b_g1(&self) -> &Section<G1Affine> {
        &self.b_g1
    }

    /// [v_j(τ)]₂, the same variables as [`Self::b_g1`].
    pub fn b_g2(&self) -> &Section<G2Affine> {
        &self.b_g2
    }

    /// Number of points in every vector of the published form.
    pub fn counts(&self) -> &KeyCounts {
        &self.counts
    }

    /// The file; for one in memory, what errors call it.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Size, times and inode of the file when it was opened.
    pub fn stamp(&self) -> FileStamp {
        self.file.stamp()
    }

    /// The mapped file.
    pub(crate) fn file(&self) -> &MappedFile {
        &self.file
    }
}

/// Walks over the file's sections, in 64-bit offsets that cannot overflow: every count comes
/// from a u32.
struct Layout<'f> {
    file: &'f Arc<MappedFile>,
    position: u64,
}

impl Layout<'_> {
    /// Fails unless `bytes` more fit between the position and the file's end.
    fn require(&self, section: &'static str, bytes: u64) -> Result<(), KeyError> {
        let end = self.position + bytes;
        let len = self.file.len() as u64;
        if end > len {
            return Err(self.malformed(format!(
                "{len} bytes long, but section {section} ends at byte {end}: it is cut short"
            )));
        }
        Ok(())
    }

    fn section<P: KeyPoint>(
        &mut self,
        name: &'static str,
        expected: u64,
    ) -> Result<Section<P>, KeyError> {
        self.require(name, COUNT_BYTES)?;
        let bytes = self
            .file
            .slice(as_index(self.position), as_index(COUNT_BYTES))?;
        let count: [u8; 4] = bytes
            .try_into()
            .expect("invariant: four bytes were asked for");
        let found = u64::from(u32::from_be_bytes(count));
        self.position += COUNT_BYTES;
        self.check_count::<P>(name, found, expected)?;
        let section = Section::new(
            self.file,
            name,
            PointEncoding::Published,
            as_index(self.position),
            as_index(found),
        );
        self.position += found * P::BYTES as u64;
        Ok(section)
    }

    /// Compares a count with the circuit's and with the bytes that are left. A count that is
    /// wrong and does not fit either speaks of garbage rather than of another circuit.
    fn check_count<P: KeyPoint>(
        &self,
        section: &'static str,
        found: u64,
        expected: u64,
    ) -> Result<(), KeyError> {
        let bytes = found * P::BYTES as u64;
        if found == expected {
            return self.require(section, bytes);
        }
        if self.position + bytes > self.file.len() as u64 {
            return Err(self.malformed(format!(
                "section {section} announces {found} points, more than its {} bytes hold",
                self.file.len()
            )));
        }
        Err(KeyError::OtherCircuit {
            path: self.file.path().to_path_buf(),
            section,
            found,
            expected,
        })
    }

    fn finish(self) -> Result<(), KeyError> {
        let len = self.file.len() as u64;
        if self.position != len {
            return Err(self.malformed(format!(
                "{} bytes follow its last section, where it should end",
                len - self.position
            )));
        }
        Ok(())
    }

    fn malformed(&self, reason: String) -> KeyError {
        KeyError::Malformed {
            path: self.file.path().to_path_buf(),
            kind: PARAMETER,
            reason,
        }
    }
}

/// Offsets within a mapped file fit the address space.
fn as_index(offset: u64) -> usize {
    usize::try_from(offset).expect("invariant: offsets were checked against a mapped length")
}
