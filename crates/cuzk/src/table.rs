//! Plain text tables: columns padded with spaces, no frames, no colours.

/// How a column is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table with a head line.
#[derive(Debug)]
pub struct Table {
    aligns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table whose columns have these names and alignments.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        Self {
            aligns: columns.iter().map(|c| c.1).collect(),
            rows: vec![columns.iter().map(|c| c.0.to_owned()).collect()],
        }
    }

    /// Adds a row; it must have as many cells as there are columns.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.aligns.len());
        self.rows.push(cells.into());
    }

    /// The lines, each ended by a newline.
    pub fn render(&self) -> String {
        let width = |i: usize| {
            self.rows
                .iter()
                .map(|r| r[i].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.aligns.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let cells = row
                .iter()
                .zip(&widths)
                .zip(&self.aligns)
                .map(|((cell, &w), align)| {
                    let pad = " ".repeat(w - cell.chars().count());
                    match align {
                        Align::Left => format!("{cell}{pad}"),
                        Align::Right => format!("{pad}{cell}"),
                    }
                });
            let line = cells.collect::<Vec<_>>().join("  ");
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Lines `name  value`, the values in one column.
pub fn pairs(items: &[(&str, String)]) -> String {
    let width = items.iter().map(|i| i.0.chars().count()).max().unwrap_or(0);
    items
        .iter()
        .map(|(name, value)| format!("{name:<width$}  {value}\n"))
        .collect()
}

/// A number with spaces between groups of three digits.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A byte count in binary units, three significant digits.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = if value < 10.0 {
        2
    } else {
        usize::from(value < 100.0)
    };
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A duration: milliseconds below ten seconds' interest, then seconds, then minutes.
pub fn duration(d: std::time::Duration) -> String {
    let s = d.as_secs_f64();
    if s < 1.0 {
        format!("{:.0} ms", s * 1e3)
    } else if s < 120.0 {
        format!("{s:.2} s")
    } else {
        format!("{} min {:02} s", d.as_secs() / 60, d.as_secs() % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn columns_line_up_and_lines_have_no_trailing_space() {
        let mut table = Table::new(&[("name", Align::Left), ("n", Align::Right)]);
        table.row(["a".into(), "10".into()]);
        table.row(["longer".into(), "5".into()]);
        assert_eq!(table.render(), "name     n\na       10\nlonger   5\n");
        let mut table = Table::new(&[("x", Align::Left), ("note", Align::Left)]);
        table.row(["1".into(), String::new()]);
        assert_eq!(table.render(), "x  note\n1\n");
    }

    #[test]
    fn numbers() {
        let cases = [
            (0, "0"),
            (999, "999"),
            (1000, "1 000"),
            (130_278_541, "130 278 541"),
        ];
        for (n, text) in cases {
            assert_eq!(grouped(n), text);
        }
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (47_373_928_632, "44.1 GiB"),
        ];
        for (n, text) in cases {
            assert_eq!(bytes(n), text);
        }
        assert_eq!(bytes(1_050_000_000), "0.98 GiB");
        assert!(bytes(u64::MAX).ends_with("TiB"));
    }

    #[test]
    fn durations() {
        let cases = [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1.00 s"),
            (119_000, "119.00 s"),
            (125_000, "2 min 05 s"),
        ];
        for (ms, text) in cases {
            assert_eq!(duration(Duration::from_millis(ms)), text);
        }
    }
}
