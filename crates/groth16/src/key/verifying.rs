//! The verifying key and its file (`.vk`), which is also the head of every parameter file.

use std::path::Path;

use blstrs::{G1Affine, G2Affine};
use rayon::prelude::*;

use super::KeyError;
use super::counts::VK_FIXED_BYTES;
use super::encoding::{KeyPoint, PointFault};
use super::map::MappedFile;

/// Elements that every Groth16 verifier needs. Points are affine, in Montgomery form; every
/// one is finite, on its curve and in the subgroup of prime order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingKey {
    /// α in G1.
    pub alpha_g1: G1Affine,
    /// β in G1, for the prover.
    pub beta_g1: G1Affine,
    /// β in G2.
    pub beta_g2: G2Affine,
    /// γ in G2.
    pub gamma_g2: G2Affine,
    /// δ in G1, for the prover.
    pub delta_g1: G1Affine,
    /// δ in G2.
    pub delta_g2: G2Affine,
    /// (β·u_i + α·v_i + w_i)(τ) / γ for every public input, the constant one first.
    pub ic: Vec<G1Affine>,
}

/// A fault inside an encoded verifying key, still without the file's name.
#[derive(Debug)]
pub(crate) enum VkFault {
    Structure(String),
    Point(&'static str, u64, PointFault),
}

impl VkFault {
    pub(crate) fn at(self, path: &Path, kind: &'static str) -> KeyError {
        let path = path.to_path_buf();
        match self {
            VkFault::Structure(reason) => KeyError::Malformed { path, kind, reason },
            VkFault::Point(section, index, fault) => KeyError::Point {
                path,
                section,
                index,
                fault,
            },
        }
    }
}

impl VerifyingKey {
    /// Reads and checks a `.vk` file of a circuit with `inputs` public inputs (the constant
    /// one included).
    ///
    /// # Errors
    /// [`KeyError`]: unreadable, wrong length, another number of inputs, or a bad point.
    pub fn read(path: &Path, inputs: u64) -> Result<Self, KeyError> {
        const KIND: &str = "verifying key";
        let file = MappedFile::open(path, KIND)?;
        let bytes = file.slice(0, file.len())?;
        let found = ic_count(bytes).map_err(|fault| fault.at(path, KIND))?;
        if bytes.len() as u64 != VK_FIXED_BYTES + found * G1Affine::BYTES as u64 {
            return Err(KeyError::Malformed {
                path: path.to_path_buf(),
                kind: KIND,
                reason: format!(
                    "{} bytes long, but its count of {found} inputs asks for {}",
                    bytes.len(),
                    VK_FIXED_BYTES + found * G1Affine::BYTES as u64
                ),
            });
        }
        if found != inputs {
            return Err(KeyError::OtherCircuit {
                path: path.to_path_buf(),
                section: "ic",
                found,
                expected: inputs,
            });
        }
        Self::parse(bytes).map_err(|fault| fault.at(path, KIND))
    }

    /// Parses a verifying key that fills `bytes` exactly, with every check on every point.
    ///
    /// # Errors
    /// A text that says which byte count or which point is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        Self::parse(bytes).map_err(|fault| match fault {
            VkFault::Structure(reason) => reason,
            VkFault::Point(section, index, fault) => format!("point {index} of {section} {fault}"),
        })
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![0; VK_FIXED_BYTES as usize + self.ic.len() * G1Affine::BYTES];
        let mut rest = out.as_mut_slice();
        put(&mut rest, &self.alpha_g1);
        put(&mut rest, &self.beta_g1);
        put(&mut rest, &self.beta_g2);
        put(&mut rest, &self.gamma_g2);
        put(&mut rest, &self.delta_g1);
        put(&mut rest, &self.delta_g2);
        let count = u32::try_from(self.ic.len()).expect("invariant: variables are numbered by u32");
        let (head, mut rest) = rest.split_at_mut(4);
        head.copy_from_slice(&count.to_be_bytes());
        for point in &self.ic {
            put(&mut rest, point);
        }
        out
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, VkFault> {
        let count = ic_count(bytes)?;
        let (mut fixed, ic) = bytes.split_at(VK_FIXED_BYTES as usize);
        if ic.len() as u64 != count * G1Affine::BYTES as u64 {
            return Err(VkFault::Structure(format!(
                "{} bytes of input points where {count} points were announced",
                ic.len()
            )));
        }
        Ok(VerifyingKey {
            alpha_g1: take(&mut fixed, "alpha_g1")?,
            beta_g1: take(&mut fixed, "beta_g1")?,
            beta_g2: take(&mut fixed, "beta_g2")?,
            gamma_g2: take(&mut fixed, "gamma_g2")?,
            delta_g1: take(&mut fixed, "delta_g1")?,
            delta_g2: take(&mut fixed, "delta_g2")?,
            // A window-post key has 25 840 of them: a second of subgroup checks on one core.
            ic: ic
                .par_chunks_exact(G1Affine::BYTES)
                .enumerate()
                .map(|(index, bytes)| {
                    G1Affine::decode_checked(bytes)
                        .map_err(|fault| VkFault::Point("ic", index as u64, fault))
                })
                .collect::<Result<_, _>>()?,
        })
    }
}

/// The announced number of input points, once `bytes` is known to hold the fixed part.
pub(crate) fn ic_count(bytes: &[u8]) -> Result<u64, VkFault> {
    let fixed = VK_FIXED_BYTES as usize;
    let Some(head) = bytes.get(..fixed) else {
        return Err(VkFault::Structure(format!(
            "{} bytes are too few for the {fixed} that every verifying key begins with",
            bytes.len()
        )));
    };
    let count: [u8; 4] = head[fixed - 4..]
        .try_into()
        .expect("invariant: four bytes were cut off");
    Ok(u64::from(u32::from_be_bytes(count)))
}

fn take<P: KeyPoint>(bytes: &mut &[u8], name: &'static str) -> Result<P, VkFault> {
    let (head, rest) = bytes.split_at(P::BYTES);
    *bytes = rest;
    P::decode_checked(head).map_err(|fault| VkFault::Point(name, 0, fault))
}

fn put<P: KeyPoint>(out: &mut &mut [u8], point: &P) {
    let (head, rest) = std::mem::take(out).split_at_mut(P::BYTES);
    point.encode(head);
    *out = rest;
}
