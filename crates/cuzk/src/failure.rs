//! Everything that can end a command: its exit code, stable code string, and
//! what to do about it. The only place where errors of the crates below get an
//! exit code is `failure/map.rs`.

mod map;

use std::error::Error;
use std::fmt;

use serde::Serialize;

/// Exit codes, as `docs/cli.md` promises them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The proof does not verify.
    Unverified = 1,
    /// Wrong arguments or configuration.
    Usage = 2,
    /// The request or proof cannot be used.
    Input = 3,
    /// Parameters missing, wrong or corrupt.
    Params = 4,
    /// Memory, disk, threads or a device.
    Resources = 5,
    /// A defect here, or of the hardware.
    Internal = 6,
}

/// Why a command ends without its result.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// Stable upper-case code for programs.
    pub code: &'static str,
    /// The thing that failed and how.
    pub message: String,
    /// Causes, outermost first.
    pub causes: Vec<String>,
    /// What the user can do.
    pub remedy: String,
    /// Whether the command's own output has told it already.
    reported: bool,
}

impl Failure {
    /// A failure without causes.
    pub fn new(
        exit: Exit,
        code: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            exit,
            code,
            message: message.into(),
            causes: Vec::new(),
            remedy: remedy.into(),
            reported: false,
        }
    }

    /// The exit code of a command whose output has told the failures already.
    pub fn reported(exit: Exit) -> Self {
        Self {
            reported: true,
            ..Self::new(exit, "REPORTED", "see the output", "see the output")
        }
    }

    /// Whether nothing more is to be printed.
    pub fn is_reported(&self) -> bool {
        self.reported
    }

    /// Adds `error` and its sources as causes.
    pub fn because(mut self, error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            self.cause(error.to_string());
            next = error.source();
        }
        self
    }

    /// Puts `what` first: what was said so far becomes its cause.
    pub fn about(mut self, what: &str) -> Self {
        let said = std::mem::replace(&mut self.message, what.to_owned());
        self.causes.insert(0, said);
        self
    }

    /// Adds one cause, unless the text before it already says it.
    pub fn cause(&mut self, text: String) {
        let said = self.causes.last().unwrap_or(&self.message);
        if !said.contains(&text) {
            self.causes.push(text);
        }
    }

    /// The JSON document.
    pub fn to_json(&self) -> ErrorDocument<'_> {
        ErrorDocument {
            schema: "cuzk.error/1",
            error: self.body(),
        }
    }

    /// The failure inside another document.
    pub fn body(&self) -> ErrorBody<'_> {
        ErrorBody {
            code: self.code,
            exit_code: self.exit as u8,
            message: &self.message,
            causes: &self.causes,
            remedy: &self.remedy,
        }
    }
}

impl fmt::Display for Failure {
    /// `error: …`, one `cause: …` line for each cause, `remedy: …`; further
    /// lines of a text are indented under its first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indented = |text: &str| text.replace('\n', "\n  ");
        write!(f, "error: {}", indented(&self.message))?;
        for cause in &self.causes {
            write!(f, "\ncause: {}", indented(cause))?;
        }
        write!(f, "\nremedy: {}", indented(&self.remedy))
    }
}

/// What `--json` prints for a failure.
#[derive(Debug, Serialize)]
pub struct ErrorDocument<'a> {
    schema: &'static str,
    error: ErrorBody<'a>,
}

/// A failure in `--json`.
#[derive(Debug, Serialize)]
pub struct ErrorBody<'a> {
    code: &'static str,
    exit_code: u8,
    message: &'a str,
    causes: &'a [String],
    remedy: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_error_cause_and_remedy_lines() {
        let io = std::io::Error::other("disk\nfull");
        let failure =
            Failure::new(Exit::Resources, "OUTPUT", "cannot write x", "free space").because(&io);
        assert_eq!(
            failure.to_string(),
            "error: cannot write x\ncause: disk\n  full\nremedy: free space"
        );
    }

    #[test]
    fn a_cause_already_said_is_not_said_again() {
        let io = std::io::Error::other("disk full");
        let failure =
            Failure::new(Exit::Resources, "OUTPUT", "cannot write x: disk full", "-").because(&io);
        assert!(failure.causes.is_empty());
    }
}
