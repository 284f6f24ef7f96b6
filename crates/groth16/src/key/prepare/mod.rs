//! Prepared keys from published ones, by transforms in the group.
//!
//! With h_(n−1) the identity, E and D are the inverse transforms of h on the coset and on the
//! domain. A prepared key has e = −½·E, in bit-reversed order, for h, and adds Cᵀ·½·D to l. The
//! other vectors are the same points in another encoding.

mod check;
mod fold;
mod output;
mod scatter;
#[cfg(test)]
mod tests;
mod transform;

use std::path::{Path, PathBuf};

use blstrs::{G1Affine, Scalar};
use ff::PrimeField;
use r1cs::CompiledCircuit;

use super::prepared::{PreparedLayout, content_digest, prepared_name, unusable};
use super::{
    KeyDigest, KeyError, KeyForm, KeyPoint, KeyTrust, PreparedHeader, ProvingKey, Section, Trusted,
    remember_sound,
};
use crate::ntt::EvaluationSet;
use crate::points::Points;
use crate::progress::Progress;
use output::{DiskDraft, Output};

pub use transform::{CpuGroupTransform, GroupTransform};

/// What to prepare, and where to.
#[derive(Clone, Copy, Debug)]
pub struct PrepareRequest<'a> {
    /// Name of the circuit: `porep-32g`.
    pub circuit: &'a str,
    /// Folder to write to, created if absent; `None`: memory.
    pub folder: Option<&'a Path>,
    /// Our cache folder, to remember that the new key needs no check; `None` to leave that.
    pub cache: Option<&'a Path>,
}

/// A key that was prepared.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The key; its path says where it is.
    pub key: ProvingKey,
    /// Digest of its content.
    pub digest: KeyDigest,
    /// Vectors that an earlier run had left in a draft.
    pub resumed: Vec<&'static str>,
}

/// Makes the prepared key of a published one, and checks it against that before anything is named
/// after it: see `key/prepare/check.rs` for the identities and the probabilities that an error goes
/// unnoticed. Uses all threads beside the transform.
///
/// On disk a run that was ended goes on with what it had finished. Besides the key, memory holds
/// 96 bytes for each point of the domain while it is transformed and 192 for each variable, and
/// during the check about 160 for each.
///
/// # Errors
/// [`KeyError`]: a file exists already, no room, a source that is prepared itself or cannot be
/// read, a transform that fails, or a result that is wrong, which is deleted.
pub fn prepare(
    circuit: &CompiledCircuit,
    source: &Trusted<ProvingKey>,
    request: &PrepareRequest<'_>,
    transform: &dyn GroupTransform,
    progress: &dyn Progress,
) -> Result<Prepared, KeyError> {
    let key = &source.key;
    if key.form() != KeyForm::Published {
        return Err(unusable(
            key.path(),
            "what is prepared is a parameter file, and it is prepared already".to_owned(),
        ));
    }
    let counts = key.counts();
    let layout = PreparedLayout::of(counts);
    let header = PreparedHeader {
        circuit: circuit.digest(),
        source: Some(source.trust.digest()),
        seed: match source.trust {
            KeyTrust::Production { .. } => None,
            KeyTrust::Test { seed, .. } => Some(seed),
        },
        content: None,
    };
    let vk = key.vk().to_bytes();
    let name = prepared_name(request.circuit, KeyDigest::of_bytes(&vk));
    let target = match request.folder {
        Some(folder) => folder.join(name),
        None => PathBuf::from(format!("memory:{}", request.circuit)),
    };
    let mut output = match request.folder {
        Some(folder) => {
            crate::setup::refuse_existing(&target)?;
            std::fs::create_dir_all(folder).map_err(KeyError::io("create", folder))?;
            let bytes = header.to_bytes(counts);
            Output::Disk(DiskDraft::open(&target, layout.file_bytes, &bytes)?)
        }
        None => Output::memory(&target, layout.file_bytes)?,
    };
    output.write(0, &header.to_bytes(counts))?;
    output.write(layout.offsets[0], &vk)?;
    let job = Job {
        circuit,
        key,
        layout,
        transform,
        progress,
    };
    let resumed = job.write(&mut output)?;

    let made = ProvingKey::of(output.map()?, counts)?;
    if let Err(error) = check::check_against(circuit, &made, key, progress) {
        output.discard();
        return Err(error);
    }
    let digest = content_digest(made.file(), progress)?;
    drop(made);
    let header = PreparedHeader {
        content: Some(digest),
        ..header
    };
    output.write(0, &header.to_bytes(counts))?;
    let key = ProvingKey::of(output.complete(&target)?, counts)?;
    if request.folder.is_some() {
        remember_sound(request.cache, &target, digest);
    }
    Ok(Prepared {
        key,
        digest,
        resumed,
    })
}

/// Writes one vector.
type Part<'p> = &'p dyn Fn(&Output) -> Result<(), KeyError>;

/// The work on the vectors.
struct Job<'a> {
    circuit: &'a CompiledCircuit,
    key: &'a ProvingKey,
    layout: PreparedLayout,
    transform: &'a dyn GroupTransform,
    progress: &'a dyn Progress,
}

impl Job<'_> {
    /// Writes all vectors that are missing; returns the others' names.
    fn write(&self, output: &mut Output) -> Result<Vec<&'static str>, KeyError> {
        let parts: [(&'static str, Part<'_>); 5] = [
            ("a", &|output| self.convert(output, self.key.a(), 3)),
            ("b_g1", &|output| self.convert(output, self.key.b_g1(), 4)),
            ("b_g2", &|output| self.convert(output, self.key.b_g2(), 5)),
            ("h", &|output| self.write_h(output)),
            ("l", &|output| self.write_l(output)),
        ];
        let mut resumed = Vec::new();
        for (name, write) in parts {
            if output.has(name) {
                resumed.push(name);
                continue;
            }
            write(output)?;
            output.finished(name)?;
        }
        Ok(resumed)
    }

    /// Writes a vector whose points stay as they are.
    fn convert<P: KeyPoint>(
        &self,
        output: &Output,
        section: &Section<P>,
        place: usize,
    ) -> Result<(), KeyError> {
        self.progress.begin(section.name(), section.len() as u64);
        output.write_points(self.layout.offsets[place], section.len(), |start, out| {
            section.read(start, out)?;
            self.progress.advance(out.len() as u64);
            Ok(())
        })
    }

    /// scale times the inverse transform of h.
    fn transformed(&self, set: EvaluationSet, scale: Scalar) -> Result<Vec<G1Affine>, KeyError> {
        let h = self.key.h();
        let mut points = h.read_vec(0, h.len())?;
        points.push(G1Affine::default());
        // How far it is, only the transform knows.
        self.progress.begin("transform", 0);
        self.transform
            .inverse(&mut points, set, scale)
            .map_err(KeyError::device)?;
        Ok(points)
    }

    fn write_h(&self, output: &Output) -> Result<(), KeyError> {
        let e = self.transformed(EvaluationSet::Coset, -Scalar::TWO_INV)?;
        let bits = e.len().ilog2();
        let reversed = |index: usize| match bits {
            0 => 0,
            bits => index.reverse_bits() >> (usize::BITS - bits),
        };
        output.write_points(self.layout.offsets[1], e.len(), |start, out| {
            for (index, out) in out.iter_mut().enumerate() {
                *out = e[reversed(start + index)];
            }
            Ok(())
        })
    }

    fn write_l(&self, output: &Output) -> Result<(), KeyError> {
        let d = self.transformed(EvaluationSet::Subgroup, Scalar::TWO_INV)?;
        let mut l = vec![G1Affine::default(); self.circuit.shape().inputs];
        l.append(&mut self.key.l().read_vec(0, self.key.l().len())?);
        fold::add_columns(self.circuit, &d, &mut l, self.progress);
        drop(d);
        output.write_points(self.layout.offsets[2], l.len(), |start, out| {
            out.copy_from_slice(&l[start..start + out.len()]);
            Ok(())
        })
    }
}
