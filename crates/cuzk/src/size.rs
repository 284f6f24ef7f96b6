//! Sizes of memory as arguments: `16GiB`.

use std::str::FromStr;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(u64);

impl Size {
    /// The number.
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, u32); 5] =
            [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];
        let unit = UNITS.iter().find_map(|(unit, shift)| {
            let number = text.strip_suffix(unit)?;
            Some((number, *shift))
        });
        let (number, shift) = unit.unwrap_or((text, 0));
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        digits
            .then(|| number.parse::<u64>().ok()?.checked_mul(1 << shift))
            .flatten()
            .filter(|bytes| *bytes > 0)
            .map(Size)
            .ok_or_else(|| "expected a size such as 16GiB, 512MiB, or a number of bytes".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_every_unit() {
        let read = |text: &str| text.parse().map(Size::bytes);
        assert_eq!(read("16GiB"), Ok(16 << 30));
        assert_eq!(read("512MiB"), Ok(512 << 20));
        assert_eq!(read("3KiB"), Ok(3072));
        assert_eq!(read("2TiB"), Ok(2 << 40));
        assert_eq!(read("77B"), Ok(77));
        assert_eq!(read("1000"), Ok(1000));
        for text in [
            "",
            "GiB",
            "0",
            "-1",
            "1.5GiB",
            "16GB",
            "16 GiB",
            "99999999999GiB",
            "+1",
        ] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }
}
