//! Bounds-checked reading and writing of the payload's integers.

use crate::Error;

/// Appends LEB128.
pub(crate) fn write_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number: 0, −1, 1, −2, … become 0, 1, 2, 3, …
pub(crate) fn write_signed(out: &mut Vec<u8>, value: i64) {
    write_number(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// A position in the payload.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    section: &'static str,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            section: "start",
        }
    }

    /// Names what follows, for errors.
    pub(crate) fn section(&mut self, name: &'static str) {
        self.section = name;
    }

    pub(crate) fn malformed(&self, cause: impl Into<String>) -> Error {
        Error::malformed(self.section, cause)
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Result<&'a [u8], Error> {
        if n > self.bytes.len() {
            return Err(self.malformed(format!("needs {n} bytes, {} left", self.bytes.len())));
        }
        let (taken, rest) = self.bytes.split_at(n);
        self.bytes = rest;
        Ok(taken)
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Result<u64, Error> {
        match *self.bytes {
            [byte, ref rest @ ..] if byte < 0x80 => {
                self.bytes = rest;
                Ok(u64::from(byte))
            }
            [low, high, ref rest @ ..] if high < 0x80 => {
                self.bytes = rest;
                Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Result<u64, Error> {
        let mut value = 0u64;
        for (k, &byte) in self.bytes.iter().enumerate().take(10) {
            let part = u64::from(byte & 0x7f);
            if k == 9 && part > 1 {
                break;
            }
            value |= part << (7 * k);
            if byte & 0x80 == 0 {
                self.bytes = &self.bytes[k + 1..];
                return Ok(value);
            }
        }
        Err(self.malformed("a number is cut off or longer than 64 bits"))
    }

    #[inline]
    pub(crate) fn signed(&mut self) -> Result<i64, Error> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A number of at most `limit`.
    #[inline]
    pub(crate) fn at_most(&mut self, limit: u64) -> Result<u32, Error> {
        let value = self.number()?;
        if value > limit {
            return Err(self.malformed(format!("{value} is above the limit {limit}")));
        }
        u32::try_from(value).map_err(|_| self.malformed(format!("{value} is above 2^32")))
    }

    /// How many items follow, each at least `bytes_each` long: never more than the
    /// remaining bytes can hold, so the caller may allocate for them.
    pub(crate) fn count(&mut self, bytes_each: usize) -> Result<usize, Error> {
        let limit = self.remaining() / bytes_each;
        Ok(self.at_most(limit as u64)? as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_round_trip(unsigned: u64, signed: i64, shift in 0..64u32) {
            let mut out = Vec::new();
            write_number(&mut out, unsigned >> shift);
            write_signed(&mut out, signed >> shift);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.number(), Ok(unsigned >> shift));
            prop_assert_eq!(reader.signed(), Ok(signed >> shift));
            prop_assert_eq!(reader.remaining(), 0);
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Reader::new(&bytes);
            while reader.remaining() > 0 && reader.number().is_ok() {}
        }
    }

    #[test]
    fn overlong_numbers_are_errors() {
        assert!(Reader::new(&[0x80; 20]).number().is_err());
        assert!(Reader::new(&[0xff; 9]).number().is_err());
        let mut most = [0xff; 10];
        most[9] = 1;
        assert_eq!(Reader::new(&most).number(), Ok(u64::MAX));
        most[9] = 2;
        assert!(Reader::new(&most).number().is_err());
    }
}
