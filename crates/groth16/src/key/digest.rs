//! The digest by which the network's parameter files are known.

use std::fmt;
use std::str::FromStr;

use super::KeyError;
use super::map::MappedFile;
use crate::progress::Progress;

/// First 16 bytes of BLAKE2b-512 over a file, written as 32 lower-case hex digits: the form
/// in which the network publishes its parameter files.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyDigest([u8; 16]);

impl KeyDigest {
    /// Of bytes in memory.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self::finish(blake2b_simd::State::new().update(bytes))
    }

    /// The sixteen bytes.
    pub(crate) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// A digest from its sixteen bytes.
    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        KeyDigest(bytes)
    }

    /// Of a whole mapped file.
    ///
    /// # Errors
    /// [`KeyError::Changed`] when the file changes meanwhile.
    pub(crate) fn of_file(file: &MappedFile, progress: &dyn Progress) -> Result<Self, KeyError> {
        const CHUNK: usize = 4 << 20;
        progress.begin("digest", file.len() as u64);
        let mut state = blake2b_simd::State::new();
        for start in (0..file.len()).step_by(CHUNK) {
            let count = CHUNK.min(file.len() - start);
            state.update(file.slice(start, count)?);
            progress.advance(count as u64);
        }
        // The last chunk may have changed while it was hashed.
        file.slice(0, 0)?;
        Ok(Self::finish(&state))
    }

    /// The state's digest, cut to the published length.
    pub(crate) fn finish(state: &blake2b_simd::State) -> Self {
        let mut digest = [0; 16];
        digest.copy_from_slice(&state.finalize().as_bytes()[..16]);
        KeyDigest(digest)
    }
}

impl fmt::Display for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for KeyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyDigest({self})")
    }
}

/// The text is not 32 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a key digest: 32 hex digits are expected")]
pub struct NotADigest(String);

impl FromStr for KeyDigest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let mut digest = [0; 16];
        hex::decode_to_slice(text, &mut digest).map_err(|_| NotADigest(text.to_owned()))?;
        Ok(KeyDigest(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_the_head_of_blake2b_512() {
        // RFC 7693, appendix A: BLAKE2b-512 of "abc" begins ba80a53f981c4d0d6a2797b69f12f6e9.
        let digest = KeyDigest::of_bytes(b"abc");
        assert_eq!(digest.to_string(), "ba80a53f981c4d0d6a2797b69f12f6e9");
        assert_eq!("ba80a53f981c4d0d6a2797b69f12f6e9".parse(), Ok(digest));
        assert!("ba80".parse::<KeyDigest>().is_err());
        assert!(
            "zz80a53f981c4d0d6a2797b69f12f6e9"
                .parse::<KeyDigest>()
                .is_err()
        );
    }

    #[test]
    fn a_file_and_its_bytes_have_the_same_digest() {
        let bytes: Vec<u8> = (0..(9u32 << 20)).map(|i| (i >> 3) as u8).collect();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, &bytes).unwrap();
        let file = MappedFile::open(&path, "test").unwrap();
        assert_eq!(
            KeyDigest::of_file(&file, &()).unwrap(),
            KeyDigest::of_bytes(&bytes)
        );
    }
}
