//! Undoing a gzip or zstd wrapper, with a bound on what comes out.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;

use crate::error::Error;

/// Most bytes of a request, as given and when decompressed. The largest real one
/// (a 64 GiB PoRep as a request file) is below 200 MB.
pub const REQUEST_LIMIT: u64 = 1 << 30;

/// How a request was wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip (RFC 1952), any number of members.
    Gzip,
    /// Zstandard frames.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Compression {
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }

    /// The wrapper that the first bytes announce.
    fn detect(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// The request's own bytes, and the wrapper if there was one.
///
/// # Errors
/// [`Error::Compression`] for a damaged wrapper, [`Error::TooLarge`] past `limit`.
pub(crate) fn unwrap(
    bytes: &[u8],
    limit: u64,
) -> Result<(Cow<'_, [u8]>, Option<Compression>), Error> {
    if bytes.len() as u64 > limit {
        return Err(Error::TooLarge {
            limit,
            decompressed: false,
        });
    }
    let Some(compression) = Compression::detect(bytes) else {
        return Ok((Cow::Borrowed(bytes), None));
    };
    let plain = match compression {
        Compression::Gzip => read_all(compression, flate2::read::MultiGzDecoder::new(bytes), limit),
        Compression::Zstd => zstd::stream::read::Decoder::with_buffer(bytes)
            .map_err(|error| broken(compression, &error))
            .and_then(|decoder| read_all(compression, decoder, limit)),
    }?;
    Ok((Cow::Owned(plain), Some(compression)))
}

fn read_all(compression: Compression, reader: impl Read, limit: u64) -> Result<Vec<u8>, Error> {
    let mut plain = Vec::new();
    reader
        .take(limit + 1)
        .read_to_end(&mut plain)
        .map_err(|error| broken(compression, &error))?;
    if plain.len() as u64 > limit {
        return Err(Error::TooLarge {
            limit,
            decompressed: true,
        });
    }
    Ok(plain)
}

fn broken(compression: Compression, error: &std::io::Error) -> Error {
    Error::Compression {
        format: compression.name(),
        cause: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn round_trips_and_bounds() {
        let text = b"{}".repeat(1000);
        for (wrapped, expected) in [
            (text.clone(), None),
            (gzip(&text), Some(Compression::Gzip)),
            (
                zstd::encode_all(&text[..], 3).unwrap(),
                Some(Compression::Zstd),
            ),
        ] {
            let (plain, compression) = unwrap(&wrapped, 2000).unwrap();
            assert_eq!((&*plain, compression), (&text[..], expected));
            let error = unwrap(&wrapped, 1999).unwrap_err();
            assert_eq!(error.code(), "TOO_LARGE", "{error}");
            if expected.is_some() {
                let cut = &wrapped[..wrapped.len() - 3];
                assert_eq!(unwrap(cut, 2000).unwrap_err().code(), "BAD_COMPRESSION");
            }
        }
    }

    #[test]
    fn members_are_joined() {
        let mut two = gzip(b"{\"a\":");
        two.extend(gzip(b"1}"));
        assert_eq!(&*unwrap(&two, 100).unwrap().0, b"{\"a\":1}");
    }
}
