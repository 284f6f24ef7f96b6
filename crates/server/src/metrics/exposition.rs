//! From the OpenMetrics text that the library writes to text format 0.0.4, in which the names
//! that older dashboards use are allowed.

/// The formats differ in how a counter's family is called (with `_total`) and in the line at the
/// end.
pub(super) fn plain(open_metrics: &str) -> String {
    let mut counters = Vec::new();
    for line in open_metrics.lines() {
        if let Some(name) = line
            .strip_prefix("# TYPE ")
            .and_then(|rest| rest.strip_suffix(" counter"))
        {
            counters.push(name);
        }
    }
    let mut out = String::with_capacity(open_metrics.len() + 64 * counters.len());
    for line in open_metrics.lines() {
        if line == "# EOF" || line.starts_with("# UNIT ") {
            continue;
        }
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some(what), Some(name), rest) if counters.contains(&name) => {
                let rest = rest.unwrap_or_default();
                out.push_str(&format!("# {what} {name}_total {rest}\n"));
            }
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

/// Writes families whose values are known when they are asked for.
pub(super) struct Writer<'a>(pub(super) &'a mut String);

impl Writer<'_> {
    /// Begins a family.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.0
            .push_str(&format!("# HELP {name} {help}.\n# TYPE {name} {kind}\n"));
    }

    /// One of its series.
    pub(super) fn sample(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        value: impl std::fmt::Display,
    ) {
        self.0.push_str(name);
        for (i, (key, value)) in labels.iter().enumerate() {
            let separator = if i == 0 { '{' } else { ',' };
            let value = escaped(value);
            self.0.push_str(&format!("{separator}{key}=\"{value}\""));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        self.0.push_str(&format!(" {value}\n"));
    }

    /// A family of one series.
    pub(super) fn single(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        value: impl std::fmt::Display,
    ) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
