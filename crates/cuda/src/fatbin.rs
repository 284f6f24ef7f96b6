//! What a fatbin holds: the targets of its machine code and PTX.
//!
//! A fatbin is a header of 16 bytes (magic, version, the header's length, the length of what
//! follows) and entries, each a header (kind, version, the header's length, the payload's length,
//! …, at 28 the compute capability as 10·major + minor) and a payload. NVIDIA does not document
//! it; this was read off files of nvcc 13.0.

use std::fmt;

/// A target that code was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Compute capability, 10·major + minor.
    pub arch: u32,
    /// Whether it is PTX, from which the driver makes code for this and any later capability;
    /// otherwise machine code, for this and later ones of the same major number.
    pub ptx: bool,
}

impl Target {
    /// Whether a device of this compute capability runs it.
    pub fn runs_on(self, (major, minor): (u32, u32)) -> bool {
        let device = 10 * major + minor;
        self.arch <= device && (self.ptx || self.arch / 10 == major)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.ptx { "compute" } else { "sm" };
        write!(f, "{kind}_{}", self.arch)
    }
}

#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "such builds have no images")
)]
/// The targets of a fatbin, in its order; `None` if it is none.
pub fn targets(fatbin: &[u8]) -> Option<Vec<Target>> {
    const MAGIC: u32 = 0xba55_ed50;
    const KIND_PTX: u16 = 1;
    const KIND_MACHINE_CODE: u16 = 2;
    if word(fatbin, 0)? != MAGIC {
        return None;
    }
    let header = usize::from(half(fatbin, 6)?);
    let length = usize::try_from(long(fatbin, 8)?).ok()?;
    let mut entries = fatbin.get(header..header.checked_add(length)?)?;
    let mut targets = Vec::new();
    while !entries.is_empty() {
        let ptx = match half(entries, 0)? {
            KIND_PTX => true,
            KIND_MACHINE_CODE => false,
            _ => return None,
        };
        targets.push(Target {
            arch: word(entries, 28)?,
            ptx,
        });
        let header = word(entries, 4)? as usize;
        let payload = usize::try_from(long(entries, 8)?).ok()?;
        let end = header.checked_add(payload).filter(|end| *end > 0)?;
        entries = entries.get(end..)?;
    }
    Some(targets)
}

fn bytes<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..at + N)?.try_into().ok()
}

fn half(data: &[u8], at: usize) -> Option<u16> {
    bytes(data, at).map(u16::from_le_bytes)
}

fn word(data: &[u8], at: usize) -> Option<u32> {
    bytes(data, at).map(u32::from_le_bytes)
}

fn long(data: &[u8], at: usize) -> Option<u64> {
    bytes(data, at).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: u16, arch: u32, payload: usize) -> Vec<u8> {
        let mut entry = vec![0; 64 + payload];
        entry[..2].copy_from_slice(&kind.to_le_bytes());
        entry[4..8].copy_from_slice(&64u32.to_le_bytes());
        entry[8..16].copy_from_slice(&(payload as u64).to_le_bytes());
        entry[28..32].copy_from_slice(&arch.to_le_bytes());
        entry
    }

    fn fatbin(entries: &[Vec<u8>]) -> Vec<u8> {
        let entries = entries.concat();
        let mut fatbin = 0xba55_ed50u32.to_le_bytes().to_vec();
        fatbin.extend([1, 0, 16, 0]);
        fatbin.extend((entries.len() as u64).to_le_bytes());
        fatbin.extend(entries);
        fatbin
    }

    #[test]
    fn entries_are_read_and_damage_is_noticed() {
        let good = fatbin(&[entry(1, 75, 8), entry(2, 75, 0), entry(2, 120, 40)]);
        let names: Vec<String> = targets(&good)
            .unwrap()
            .iter()
            .map(Target::to_string)
            .collect();
        assert_eq!(names, ["compute_75", "sm_75", "sm_120"]);
        assert_eq!(targets(&fatbin(&[])), Some(vec![]));
        for end in 0..good.len() {
            assert_eq!(targets(&good[..end]), None, "cut at {end}");
        }
        assert_eq!(targets(&fatbin(&[entry(3, 75, 8)])), None);
    }

    #[test]
    fn machine_code_stays_within_its_major_number() {
        let runs = |arch, ptx, device| Target { arch, ptx }.runs_on(device);
        assert!(runs(80, false, (8, 0)) && runs(80, false, (8, 9)) && !runs(80, false, (9, 0)));
        assert!(!runs(89, false, (8, 6)) && !runs(120, false, (10, 0)));
        assert!(runs(75, true, (7, 5)) && runs(75, true, (12, 0)) && !runs(75, true, (7, 0)));
    }
}
