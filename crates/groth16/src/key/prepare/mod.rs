//! Prepared keys from published ones, by transforms in the group.
//!
//! With h_(n−1) the identity, E and D are the inverse transforms of h on the coset and on the
//! domain. A prepared key has e = −½·E, in bit-reversed order, for h, and adds Cᵀ·½·D to l. The
//! other vectors are the same points in another encoding.
//!
//! On a GPU the two transforms take nearly all of the time, and leave the CPU alone. So they have a lane
//! of their own ([`job`]): while D is computed the CPU converts a and b and computes what the check
//! compares with, while E is computed it folds C into l and checks that. What is left at the end is to
//! write and check e. Memory is bounded by there being two vectors of points at most.

mod check;
mod fold;
mod job;
mod output;
mod scatter;
mod steps;
#[cfg(test)]
mod tests;
mod transform;

use std::path::{Path, PathBuf};

use r1cs::CompiledCircuit;

use super::prepared::{PreparedLayout, content_digest, prepared_name, unusable};
use super::{
    KeyDigest, KeyError, KeyForm, KeyTrust, PreparedHeader, ProvingKey, Trusted, remember_sound,
};
use crate::progress::Progress;
use job::Job;
use output::{DiskDraft, Output};
use steps::Timeline;

pub use steps::{Lane, Step};
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
    /// What was done when, in the order in which it ended.
    pub steps: Vec<Step>,
}

/// Makes the prepared key of a published one, and checks it against that before anything is named
/// after it: see `key/prepare/check.rs` for the identities and the probabilities that an error goes
/// unnoticed. Uses all threads beside the transform.
///
/// On disk a run that was ended goes on with what it had finished. Besides the key, memory holds
/// at most 192 bytes for each point of the domain and 96 for each variable: two vectors of points of
/// the domain, and l or, before that, the scalars of the check.
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
    let timeline = Timeline::start();
    let job = Job {
        circuit,
        key,
        layout,
        transform,
        progress,
        timeline: &timeline,
    };
    let resumed = match job.run(&mut output) {
        Ok(resumed) => resumed,
        Err(error) => {
            // What a device did not do can be gone on with; what is wrong cannot.
            if matches!(error, KeyError::Prepared { .. } | KeyError::Point { .. }) {
                output.discard();
            }
            return Err(error);
        }
    };
    let digest = timeline.host("digest", || content_digest(&output.map()?, progress))?;
    let header = PreparedHeader {
        content: Some(digest),
        ..header
    };
    output.write(0, &header.to_bytes(counts))?;
    let key = timeline.host("complete", || {
        ProvingKey::of(output.complete(&target)?, counts)
    })?;
    if request.folder.is_some() {
        remember_sound(request.cache, &target, digest);
    }
    Ok(Prepared {
        key,
        digest,
        resumed,
        steps: timeline.finish(),
    })
}
