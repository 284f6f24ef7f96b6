//! Frames: what goes over the pipes, in both directions.
//!
//! | bytes | content |
//! | --- | --- |
//! | 0..4 | `cuzW` |
//! | 4 | version of the protocol |
//! | 5 | kind |
//! | 6..8 | zero |
//! | 8..12 | length of the body, u32 little-endian |
//! | 12..16 | CRC-32 over bytes 0..12 and the body, u32 little-endian |
//! | 16.. | the body |
//!
//! The checksum is against accidents (a library that prints to standard output, a bad DIMM), not
//! against malice: both ends are the same program.

use std::io::{self, Read, Write};

use crate::Error;

/// Version of the protocol: frames and messages. With each change of either it goes up, so that a daemon
/// whose program was replaced under it refuses the new worker at its first frame, before it has a unit.
pub const VERSION: u8 = 2;
/// Most bytes of a message.
pub const MESSAGE_LIMIT: usize = 1 << 20;
/// Most bytes of a payload with its digest; the daemon accepts none larger.
pub const PAYLOAD_LIMIT: usize = 1 << 30;

const MAGIC: [u8; 4] = *b"cuzW";
const HEAD: usize = 16;

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A message as JSON.
    Message = 0,
    /// A payload: its SHA-256, then its bytes.
    Payload = 1,
}

impl Kind {
    fn limit(self) -> usize {
        match self {
            Self::Message => MESSAGE_LIMIT,
            Self::Payload => PAYLOAD_LIMIT,
        }
    }
}

/// A frame that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it holds.
    pub kind: Kind,
    /// Its body.
    pub body: Vec<u8>,
}

/// Writes a frame whose body is `parts` one after another, and flushes.
///
/// # Errors
/// [`Error::Pipe`]; [`Error::Frame`] for a body over its kind's limit, of which nothing is written.
pub fn write(writer: &mut impl Write, kind: Kind, parts: &[&[u8]]) -> Result<(), Error> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let Some(bytes) = u32::try_from(length)
        .ok()
        .filter(|_| length <= kind.limit())
    else {
        return Err(Error::Frame("the body is too long"));
    };
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&MAGIC);
    head[4] = VERSION;
    head[5] = kind as u8;
    head[8..12].copy_from_slice(&bytes.to_le_bytes());
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&head[..12]);
    parts.iter().for_each(|part| checksum.update(part));
    head[12..].copy_from_slice(&checksum.finalize().to_le_bytes());
    writer.write_all(&head)?;
    for part in parts {
        writer.write_all(part)?;
    }
    writer.flush()?;
    Ok(())
}

/// Reads a frame; `None` where the stream ends before one.
///
/// Memory is taken as the body comes, so a length that lies costs nothing.
///
/// # Errors
/// [`Error::Pipe`], also for a stream that ends inside a frame; [`Error::Frame`];
/// [`Error::Version`].
pub fn read(reader: &mut impl Read) -> Result<Option<Frame>, Error> {
    let mut head = [0; HEAD];
    if !fill(reader, &mut head)? {
        return Ok(None);
    }
    let [
        m0,
        m1,
        m2,
        m3,
        version,
        kind,
        z0,
        z1,
        l0,
        l1,
        l2,
        l3,
        c0,
        c1,
        c2,
        c3,
    ] = head;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(Error::Frame("it does not begin as one"));
    }
    if version != VERSION {
        return Err(Error::Version {
            found: version.into(),
            expected: VERSION.into(),
        });
    }
    let kind = match (kind, z0, z1) {
        (0, 0, 0) => Kind::Message,
        (1, 0, 0) => Kind::Payload,
        _ => return Err(Error::Frame("its kind is unknown")),
    };
    let length = u32::from_le_bytes([l0, l1, l2, l3]);
    if length as usize > kind.limit() {
        return Err(Error::Frame("it is longer than any frame of its kind"));
    }
    let mut body = Vec::new();
    reader.take(length.into()).read_to_end(&mut body)?;
    if body.len() != length as usize {
        return Err(cut_short());
    }
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&head[..12]);
    checksum.update(&body);
    if checksum.finalize() != u32::from_le_bytes([c0, c1, c2, c3]) {
        return Err(Error::Frame("its checksum is wrong"));
    }
    Ok(Some(Frame { kind, body }))
}

/// Fills the buffer; `false` if the stream ends before its first byte.
fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> Result<bool, Error> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(cut_short()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

fn cut_short() -> Error {
    Error::Pipe(io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the stream ends inside a frame",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(kind: Kind, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, kind, &[body]).unwrap();
        out
    }

    fn all(mut bytes: &[u8]) -> Vec<Frame> {
        std::iter::from_fn(|| read(&mut bytes).unwrap()).collect()
    }

    #[test]
    fn frames_come_back_in_order() {
        let bodies: [&[u8]; 4] = [b"", b"x", &[7; 100_000], b"\0\0"];
        let mut stream = Vec::new();
        for (i, body) in bodies.into_iter().enumerate() {
            let kind = [Kind::Message, Kind::Payload][i % 2];
            let (left, right) = body.split_at(body.len() / 2);
            write(&mut stream, kind, &[left, right]).unwrap();
        }
        let read: Vec<_> = all(&stream).into_iter().map(|frame| frame.body).collect();
        assert_eq!(read, bodies);
    }

    #[test]
    fn a_body_over_the_limit_is_neither_written_nor_read() {
        let mut out = Vec::new();
        let body = vec![0; MESSAGE_LIMIT + 1];
        assert!(write(&mut out, Kind::Message, &[&body]).is_err());
        assert!(out.is_empty());
        write(&mut out, Kind::Message, &[&body[1..]]).unwrap();
        out[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(read(&mut &out[..]), Err(Error::Frame(_))));
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = written(Kind::Message, b"{}");
        bytes[4] = VERSION + 7;
        let Err(Error::Version { found, expected }) = read(&mut &bytes[..]) else {
            panic!("it is read");
        };
        assert_eq!((found - 7, expected), (VERSION.into(), VERSION.into()));
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_noticed() {
        let bytes = written(Kind::Payload, b"some bytes");
        for end in 1..bytes.len() {
            assert!(read(&mut &bytes[..end]).is_err(), "cut at {end}");
        }
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&mut &flipped[..]).is_err(), "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), valid_head in any::<bool>()) {
            let mut bytes = bytes;
            if valid_head && bytes.len() >= 8 {
                bytes[..8].copy_from_slice(&written(Kind::Message, b"")[..8]);
            }
            let mut stream = &bytes[..];
            while let Ok(Some(frame)) = read(&mut stream) {
                prop_assert!(frame.body.len() <= bytes.len());
            }
        }
    }
}
