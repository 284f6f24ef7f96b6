//! How sizes and durations are written.

use std::time::Duration;

/// Bytes: a whole number followed by `GiB`, `MiB`, `GB`, `MB` or nothing.
pub fn size(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 4] = [
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
    ];
    let text = text.trim();
    let unit = UNITS
        .into_iter()
        .find_map(|(name, bytes)| Some((text.strip_suffix(name)?, bytes)));
    let (number, bytes) = unit.unwrap_or((text, 1));
    whole(number)?.checked_mul(bytes)
}

/// A duration: a whole number followed by `h`, `m`, `s` or, for seconds, nothing.
pub fn span(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit = [("h", 3600), ("m", 60), ("s", 1)]
        .into_iter()
        .find_map(|(name, seconds)| Some((text.strip_suffix(name)?, seconds)));
    let (number, seconds) = unit.unwrap_or((text, 1));
    let seconds = whole(number)?.checked_mul(seconds)?;
    // A thousand years; longer ones overflow clocks.
    (seconds <= 1000 * 366 * 86_400).then(|| Duration::from_secs(seconds))
}

/// Decimal digits and nothing else, blanks around them apart.
fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("17", 17),
            ("5GiB", 5 << 30),
            (" 64 MiB ", 64 << 20),
            ("2GB", 2_000_000_000),
            ("3MB", 3_000_000),
        ] {
            assert_eq!(size(text), Some(bytes), "{text:?}");
        }
        for text in [
            "",
            "GiB",
            "-1",
            "+1",
            "1.5GiB",
            "5gib",
            "5KiB",
            "50G",
            "99999999999GiB",
            "18446744073709551616",
        ] {
            assert_eq!(size(text), None, "{text:?}");
        }
    }

    #[test]
    fn spans() {
        for (text, seconds) in [
            ("0", 0),
            ("45", 45),
            ("5m", 300),
            ("7 s", 7),
            ("24h", 86_400),
        ] {
            assert_eq!(span(text), Some(Duration::from_secs(seconds)), "{text:?}");
        }
        for text in ["", "m", "-5m", "5 min", "1d", "5ms", "99999999999h", "0x5s"] {
            assert_eq!(span(text), None, "{text:?}");
        }
    }
}
