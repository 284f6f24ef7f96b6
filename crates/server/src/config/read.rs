//! From the file's text to values.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use filecoin::CircuitId;
use toml::{Table, Value};

use super::budget::Budget;
use super::keys::{self, Effect, Form, Key};
use super::{DEFAULT_FILE, values};

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be read.
    #[error("the configuration file {} cannot be read: {source}; correct its path or its \
        permissions", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The file is not TOML.
    #[error("the configuration file {} is not valid TOML: {cause}; correct it there", .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and what, in one line.
        cause: String,
    },
    /// A value has the wrong form.
    #[error("{place}: {value} is not allowed for {key}; it takes {expected}")]
    Value {
        /// The file, or the environment variable.
        place: String,
        /// The key's path.
        key: String,
        /// The value, as written.
        value: String,
        /// What is allowed.
        expected: String,
    },
    /// A key that another one needs is not there.
    #[error("{}: {key} is missing; TLS needs tls_cert and tls_key together", .path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The key's path.
        key: String,
    },
}

/// Something in the file that has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A key of the earlier daemon.
    Meaningless {
        /// Its path.
        key: String,
        /// Why it does nothing.
        why: &'static str,
    },
    /// A key or table that nobody knows.
    Unknown {
        /// Its path.
        key: String,
    },
}

impl Warning {
    /// Whether it is about a key that nobody knows, most likely a misspelt one.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Meaningless { key, why } => write!(f, "{key} has no effect: {why}"),
            Self::Unknown { key } => write!(f, "unknown key {key} is ignored"),
        }
    }
}

/// The named file, or the default one where it exists, else nothing.
pub(super) fn file(named: Option<&Path>) -> Result<(PathBuf, String), Error> {
    let path = named.unwrap_or(Path::new(DEFAULT_FILE)).to_owned();
    match fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(source) if named.is_none() && source.kind() == io::ErrorKind::NotFound => {
            Ok((path, String::new()))
        }
        Err(source) => Err(Error::Unreadable { path, source }),
    }
}

/// Where values come from: environment, file, default.
pub(super) struct Values<'a> {
    path: &'a Path,
    table: Table,
    environment: &'a dyn Fn(&str) -> Option<String>,
}

impl<'a> Values<'a> {
    pub(super) fn new(
        path: &'a Path,
        text: &str,
        environment: &'a dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let table = text.parse::<Table>().map_err(|error| Error::Syntax {
            path: path.to_owned(),
            cause: error
                .to_string()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
        })?;
        let values = Self {
            path,
            table,
            environment,
        };
        values.check_unused()?;
        Ok(values)
    }

    /// Keys without effect, too, must have the right form: nobody is misled by a value that
    /// could not have worked anywhere.
    fn check_unused(&self) -> Result<(), Error> {
        for key in keys::KEYS {
            if matches!(key.effect, Effect::Nothing(_)) && self.in_file(key).is_some() {
                self.value(key)?;
            }
        }
        Ok(())
    }

    fn in_file(&self, key: &Key) -> Option<&Value> {
        self.table.get(key.table)?.as_table()?.get(key.name)
    }

    fn key(table: &str, name: &str) -> &'static Key {
        keys::find(table, name).expect("invariant: a test reads every key of the table")
    }

    /// A key's value, of the right form, and where it is from.
    fn value(&self, key: &Key) -> Result<(Value, String), Error> {
        let variable = key.variable();
        let (value, place, written) = match (self.environment)(&variable) {
            Some(text) => {
                let value = from_text(key.form, &text);
                (value, format!("environment variable {variable}"), text)
            }
            None => match self.in_file(key) {
                Some(value) => {
                    let written = value.to_string();
                    (
                        Some(value.clone()),
                        self.path.display().to_string(),
                        written,
                    )
                }
                None => (default(key), "default".to_owned(), key.default.to_owned()),
            },
        };
        match value.filter(|value| has_form(key.form, value)) {
            Some(value) => Ok((value, place)),
            None => Err(wrong(key, place, written, key.form.words())),
        }
    }

    pub(super) fn text(&self, table: &str, name: &str) -> Result<String, Error> {
        let (value, _) = self.value(Self::key(table, name))?;
        Ok(match value {
            Value::String(text) => text,
            other => other.to_string(),
        })
    }

    /// Text with a meaning of its own.
    pub(super) fn parsed<T>(
        &self,
        table: &str,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Error> {
        let key = Self::key(table, name);
        let (_, place) = self.value(key)?;
        let text = self.text(table, name)?;
        parse(&text).ok_or_else(|| {
            let expected = match (table, name) {
                ("daemon", _) => "`unix:///path` or `host:port`",
                ("logging", "format") => "\"text\" or \"json\"",
                _ => key.form.words(),
            };
            wrong(key, place, format!("{text:?}"), expected)
        })
    }

    pub(super) fn size(&self, table: &str, name: &str) -> Result<u64, Error> {
        self.parsed(table, name, values::size)
    }

    pub(super) fn budget(&self, table: &str, name: &str) -> Result<Budget, Error> {
        self.parsed(table, name, |text| match text {
            "auto" => Some(Budget::Auto),
            _ => values::size(text).map(Budget::Bytes),
        })
    }

    pub(super) fn span(&self, table: &str, name: &str) -> Result<Duration, Error> {
        self.parsed(table, name, values::span)
    }

    pub(super) fn number(&self, table: &str, name: &str) -> Result<u64, Error> {
        self.parsed(table, name, |text| text.parse().ok())
    }

    pub(super) fn small(&self, table: &str, name: &str) -> Result<u32, Error> {
        self.parsed(table, name, |text| text.parse().ok())
    }

    pub(super) fn flag(&self, table: &str, name: &str) -> Result<bool, Error> {
        self.parsed(table, name, |text| text.parse().ok())
    }

    pub(super) fn numbers(&self, table: &str, name: &str) -> Result<Vec<u32>, Error> {
        self.list(table, name, |item| {
            item.as_integer().and_then(|n| u32::try_from(n).ok())
        })
    }

    pub(super) fn circuits(&self, table: &str, name: &str) -> Result<Vec<CircuitId>, Error> {
        self.list(table, name, |item| item.as_str()?.parse().ok())
    }

    fn list<T>(
        &self,
        table: &str,
        name: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let key = Self::key(table, name);
        let (value, place) = self.value(key)?;
        let items = value.as_array().cloned().unwrap_or_default();
        let read = |item: &Value| {
            let expected = match key.form {
                Form::Texts => "a list of circuit names; `cuzk circuit list` shows them",
                other => other.words(),
            };
            read(item).ok_or_else(|| wrong(key, place.clone(), item.to_string(), expected))
        };
        items.iter().map(read).collect()
    }

    pub(super) fn missing(&self, table: &str, name: &str) -> Error {
        Error::Missing {
            path: self.path.to_owned(),
            key: Self::key(table, name).path(),
        }
    }

    /// What the file holds without effect, in the file's order.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        unused(&self.table)
    }
}

/// What a configuration file holds without effect, in the file's order.
pub fn unused(file: &Table) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (table, content) in file {
        let known = keys::KEYS.iter().any(|key| key.table == table);
        match content.as_table().filter(|_| known) {
            Some(content) => {
                for name in content.keys() {
                    warnings.extend(warning(table, name));
                }
            }
            None => warnings.push(Warning::Unknown { key: table.clone() }),
        }
    }
    warnings
}

fn warning(table: &str, name: &str) -> Option<Warning> {
    let path = format!("{table}.{name}");
    if let Some((_, why)) = keys::OLD_TABLES.iter().find(|(old, _)| *old == path) {
        return Some(Warning::Meaningless { key: path, why });
    }
    match keys::find(table, name).map(|key| key.effect) {
        None => Some(Warning::Unknown { key: path }),
        Some(Effect::Nothing(why)) => Some(Warning::Meaningless { key: path, why }),
        Some(Effect::Does(_)) => None,
    }
}

fn wrong(key: &Key, place: String, value: String, expected: &str) -> Error {
    Error::Value {
        place,
        key: key.path(),
        value,
        expected: expected.to_owned(),
    }
}

fn default(key: &Key) -> Option<Value> {
    let table = format!("v = {}", key.default).parse::<Table>().ok()?;
    table.get("v").cloned()
}

/// What an environment variable says. Lists are separated by commas.
fn from_text(form: Form, text: &str) -> Option<Value> {
    let items = || {
        text.split(',')
            .map(str::trim)
            .filter(|item| !item.is_empty())
    };
    Some(match form {
        Form::Text | Form::Size | Form::Budget | Form::Span => Value::String(text.to_owned()),
        Form::Number => Value::Integer(text.trim().parse().ok()?),
        Form::Flag => Value::Boolean(text.trim().parse().ok()?),
        Form::Numbers => {
            let numbers = items().map(|item| item.parse().map(Value::Integer));
            Value::Array(numbers.collect::<Result<_, _>>().ok()?)
        }
        Form::Texts => Value::Array(items().map(Value::from).collect()),
    })
}

/// Whether a value has the form, as far as TOML's types and the writing of sizes go.
fn has_form(form: Form, value: &Value) -> bool {
    let natural = |value: &Value| value.as_integer().is_some_and(|n| n >= 0);
    match form {
        Form::Text => value.is_str(),
        Form::Number => natural(value),
        Form::Flag => value.is_bool(),
        Form::Size => natural(value) || value.as_str().is_some_and(|t| values::size(t).is_some()),
        Form::Budget => has_form(Form::Size, value) || value.as_str() == Some("auto"),
        Form::Span => natural(value) || value.as_str().is_some_and(|t| values::span(t).is_some()),
        Form::Numbers => value
            .as_array()
            .is_some_and(|items| items.iter().all(natural)),
        Form::Texts => value
            .as_array()
            .is_some_and(|items| items.iter().all(Value::is_str)),
    }
}
