//! What goes to stdout and stderr, in words or as JSON.
//!
//! Standard output carries results only: with `--json` exactly one document,
//! whether the command succeeds or fails. Everything else goes to stderr.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::{Exit, Failure};

/// How results are printed.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
    quiet: bool,
}

impl Output {
    /// Output in JSON, or in words; `quiet` leaves out all but results.
    pub fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet }
    }

    /// Whether results are JSON documents.
    pub fn json(self) -> bool {
        self.json
    }

    /// Whether tables and remarks are left out.
    pub fn quiet(self) -> bool {
        self.quiet
    }

    /// Prints a result that exists elsewhere too, so that a reader who has gone away does no harm:
    /// the document with `--json`, else the text.
    ///
    /// # Errors
    /// `OUTPUT_UNWRITABLE`, except when the reader has closed the pipe.
    pub fn show(self, document: &impl Serialize, text: &str) -> Result<(), Failure> {
        match self.write(document, text) {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(|e| stdout_failure(&e)),
        }
    }

    /// Prints a result that is nowhere else.
    ///
    /// # Errors
    /// `OUTPUT_UNWRITABLE` when it did not reach the reader.
    pub fn deliver(self, document: &impl Serialize, text: &str) -> Result<(), Failure> {
        self.write(document, text).map_err(|e| stdout_failure(&e))
    }

    fn write(self, document: &impl Serialize, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, document)?;
            out.write_all(b"\n")?;
        } else {
            out.write_all(text.as_bytes())?;
        }
        out.flush()
    }

    /// Prints a remark on stderr, unless `--quiet`.
    pub fn remark(self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// Prints a line on stderr even with `--quiet`. A closed stderr is no error.
    pub fn warn(self, text: &str) {
        let _ = writeln!(io::stderr(), "{text}");
    }

    /// Prints why the command failed.
    pub fn fail(self, failure: &Failure) {
        if failure.is_reported() {
            return;
        }
        if self.json {
            let _ = self.write(&failure.to_json(), "");
        } else {
            self.warn(&failure.to_string());
        }
    }
}

fn stdout_failure(error: &io::Error) -> Failure {
    Failure::new(
        Exit::Resources,
        "OUTPUT_UNWRITABLE",
        "cannot write to standard output",
        "keep its reader open, free disk space, or use --out FILE",
    )
    .because(error)
}
