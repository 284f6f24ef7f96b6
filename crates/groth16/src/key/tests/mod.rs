//! Key files that are right, and every way of being wrong that was thought of.

mod check;
mod files;
mod prepared;
mod store;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use blstrs::{G1Affine, G1Projective, G2Affine, G2Projective};
use group::Curve;
use group::prime::PrimeCurveAffine;
use tempfile::TempDir;

use super::*;

/// A small key's counts: no two vectors of a group are equally long.
pub(super) const COUNTS: KeyCounts = KeyCounts {
    inputs: 3,
    h: 31,
    l: 17,
    a: 19,
    b: 11,
};

/// first·G, (first + 1)·G, …: distinct points of the subgroup.
pub(super) fn multiples<C>(first: u64, count: u64) -> Vec<C::AffineRepr>
where
    C: Curve,
    C::AffineRepr: Default + Clone,
{
    let generator = C::generator();
    let mut point = C::identity();
    for _ in 0..first {
        point += generator;
    }
    let mut points = Vec::new();
    for _ in 0..count {
        points.push(point);
        point += generator;
    }
    let mut affine = vec![C::AffineRepr::default(); points.len()];
    C::batch_normalize(&points, &mut affine);
    affine
}

/// A key file in memory that can be spoiled in named places.
#[derive(Clone)]
pub(super) struct KeyFile {
    pub counts: KeyCounts,
    pub bytes: Vec<u8>,
}

impl KeyFile {
    /// A file of distinct multiples of the generators: well formed, made for no circuit.
    pub fn new(counts: KeyCounts) -> Self {
        static SMALL: LazyLock<KeyFile> = LazyLock::new(|| KeyFile::computed(COUNTS));
        if counts == COUNTS {
            SMALL.clone()
        } else {
            Self::computed(counts)
        }
    }

    fn computed(counts: KeyCounts) -> Self {
        let g1 = G1Affine::generator();
        let g2 = G2Affine::generator();
        let vk = VerifyingKey {
            alpha_g1: g1,
            beta_g1: g1,
            beta_g2: g2,
            gamma_g2: g2,
            delta_g1: g1,
            delta_g2: g2,
            ic: multiples::<G1Projective>(5, counts.inputs),
        };
        let mut bytes = vk.to_bytes();
        let mut first = 100;
        for count in [counts.h, counts.l, counts.a, counts.b] {
            append(&mut bytes, &multiples::<G1Projective>(first, count));
            first += 1000;
        }
        append(&mut bytes, &multiples::<G2Projective>(first, counts.b));
        assert_eq!(bytes.len() as u64, counts.params_bytes());
        KeyFile { counts, bytes }
    }

    /// Offset of a section's count, by name.
    pub fn count_offset(&self, section: &str) -> usize {
        let g1 = [
            ("h", self.counts.h),
            ("l", self.counts.l),
            ("a", self.counts.a),
            ("b_g1", self.counts.b),
            ("b_g2", self.counts.b),
        ];
        if section == "ic" {
            return 864;
        }
        let mut offset = self.counts.vk_bytes();
        for (name, count) in g1 {
            if name == section {
                return offset as usize;
            }
            offset += 4 + 96 * count;
        }
        panic!("no section {section}");
    }

    pub fn set_count(&mut self, section: &str, count: u32) {
        let offset = self.count_offset(section);
        self.bytes[offset..offset + 4].copy_from_slice(&count.to_be_bytes());
    }

    /// The encoded point at `index` of a section.
    pub fn point_mut(&mut self, section: &str, index: usize) -> &mut [u8] {
        let bytes = if section == "b_g2" { 192 } else { 96 };
        let offset = self.count_offset(section) + 4 + index * bytes;
        &mut self.bytes[offset..offset + bytes]
    }

    pub fn write(&self, path: &Path) {
        std::fs::write(path, &self.bytes).unwrap();
    }

    /// Writes the file to a fresh folder.
    pub fn on_disk(&self) -> (TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.params");
        self.write(&path);
        (dir, path)
    }

    pub fn open(&self) -> Result<ProvingKey, KeyError> {
        let (_dir, path) = self.on_disk();
        ProvingKey::open(&path, &self.counts)
    }
}

fn append<P: KeyPoint>(bytes: &mut Vec<u8>, points: &[P]) {
    bytes.extend_from_slice(&(points.len() as u32).to_be_bytes());
    for point in points {
        let start = bytes.len();
        bytes.resize(start + P::BYTES, 0);
        point.encode(&mut bytes[start..]);
    }
}

/// The point (0, 2): y² = x³ + 4 holds, and it has order 3.
pub(super) fn order_three() -> G1Affine {
    let mut bytes = [0; 96];
    bytes[95] = 2;
    let point = G1Affine::decode(&bytes).unwrap();
    assert!(point.on_curve() && !point.in_subgroup());
    point
}

/// A point of the twist outside the subgroup: the first small x that has a y.
pub(super) fn outside_g2() -> G2Affine {
    (0..=255u8)
        .find_map(|x| {
            let mut bytes = [0; 96];
            bytes[0] = 0x80;
            bytes[95] = x;
            Option::from(G2Affine::from_compressed_unchecked(&bytes))
                .filter(|point: &G2Affine| point.on_curve() && !point.in_subgroup())
        })
        .unwrap()
}
