//! What a worker writes to its standard error goes to the daemon's log, line by line, under the
//! worker's name.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest line, bytes; the rest of it is dropped.
const LINE_LIMIT: u64 = 4 << 10;

/// The last line that spoke of an error, or else the last one: the likely cause of an early end.
#[derive(Clone, Default)]
pub(crate) struct LastWords(Arc<Mutex<(String, bool)>>);

impl LastWords {
    /// The line, if there was any.
    pub(crate) fn get(&self) -> Option<String> {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(words.0.clone()).filter(|line| !line.is_empty())
    }

    fn note(&self, line: &str, is_error: bool) {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_error || !words.1 {
            *words = (line.to_owned(), is_error);
        }
    }
}

/// Forwards until the stream ends.
pub(crate) fn forward(name: &str, stream: impl Read, last: &LastWords) {
    let mut stream = BufReader::new(stream);
    while let Some(line) = next_line(&mut stream) {
        let line = line.trim_start();
        if line.is_empty() {
            continue;
        }
        // The level that a worker's own log puts in front.
        let (level, text) = line.split_once(' ').unwrap_or((line, ""));
        last.note(line, level.starts_with("ERROR") || level == "error:");
        match level {
            "ERROR" | "error:" => tracing::error!(worker = name, "{text}"),
            "WARN" => tracing::warn!(worker = name, "{text}"),
            "INFO" => tracing::info!(worker = name, "{text}"),
            "DEBUG" => tracing::debug!(worker = name, "{text}"),
            "TRACE" => tracing::trace!(worker = name, "{text}"),
            _ => tracing::warn!(worker = name, "{line}"),
        }
    }
}

/// The next line without its end, cut to the limit; `None` at the end or when reading fails.
fn next_line(stream: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    let count = stream
        .by_ref()
        .take(LINE_LIMIT)
        .read_until(b'\n', &mut line)
        .ok()?;
    if count == 0 {
        return None;
    }
    if line.last() != Some(&b'\n') && count as u64 == LINE_LIMIT {
        skip_line(stream)?;
    }
    let text = String::from_utf8_lossy(&line);
    let plain = text.trim_end().chars().filter(|c| !c.is_control());
    Some(plain.collect())
}

/// Reads up to and with the next line's end, keeping nothing.
fn skip_line(stream: &mut impl BufRead) -> Option<()> {
    loop {
        let buffer = stream.fill_buf().ok()?;
        let (count, done) = match buffer.iter().position(|&byte| byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), buffer.is_empty()),
        };
        stream.consume(count);
        if done {
            return Some(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_and_the_error_is_remembered() {
        let long = "x".repeat(100_000);
        let text = format!("INFO begins\nerror: no device\n{long}\nINFO after\x1b[0m\n");
        let mut stream = BufReader::new(text.as_bytes());
        let lines: Vec<_> = std::iter::from_fn(|| next_line(&mut stream)).collect();
        let lengths: Vec<_> = lines.iter().map(String::len).collect();
        assert_eq!(lengths, [11, 16, LINE_LIMIT as usize, 13]);
        assert_eq!(lines[3], "INFO after[0m");
        let last = LastWords::default();
        assert_eq!(last.get(), None);
        forward("a", text.as_bytes(), &last);
        assert_eq!(last.get().as_deref(), Some("error: no device"));
    }
}
