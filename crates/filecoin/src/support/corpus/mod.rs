//! Requests that must be refused, each with the error that it must cause.
//!
//! Every case starts from a real fixture and breaks one thing. A command that
//! proves them ends with exit code 3 and the case's code and text.

mod binary;
mod json;
mod phase1;
mod vanilla;

use crate::check::check;
use crate::decode::Hints;
use crate::error::Error;
use crate::request::Request;

/// One malformed request.
#[derive(Debug, Clone)]
pub struct Case {
    /// Unique name, usable as a file name.
    pub name: &'static str,
    /// The request's bytes.
    pub bytes: Vec<u8>,
    /// What the caller gives beside it.
    pub hints: Hints,
    /// Where the request must be refused.
    pub stage: Stage,
    /// [`Error::code`] of the refusal.
    pub code: &'static str,
    /// A part of the error's text: the thing and the cause.
    pub text: &'static str,
}

/// The step of a proof that refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Decoding.
    Decode,
    /// The vanilla check of a request that decodes.
    Check,
}

impl Case {
    /// A case that decoding must refuse.
    fn decode(name: &'static str, bytes: Vec<u8>, code: &'static str, text: &'static str) -> Self {
        Self {
            name,
            bytes,
            hints: Hints::default(),
            stage: Stage::Decode,
            code,
            text,
        }
    }

    /// A case that decodes and that the vanilla check must refuse.
    fn check(name: &'static str, bytes: Vec<u8>, text: &'static str) -> Self {
        Self {
            stage: Stage::Check,
            ..Self::decode(name, bytes, "CHECK_FAILED", text)
        }
    }

    fn with_hints(self, miner_id: Option<u64>, sector_number: Option<u64>) -> Self {
        Self {
            hints: Hints {
                miner_id,
                sector_number,
            },
            ..self
        }
    }

    /// Decodes and checks the request and returns where and why it is refused.
    pub fn refusal(&self) -> Option<(Stage, Error)> {
        let decoded = match Request::decode(&self.bytes, self.hints) {
            Ok(decoded) => decoded,
            Err(error) => return Some((Stage::Decode, error)),
        };
        let error = check(&decoded.request, &()).err()?;
        Some((Stage::Check, error))
    }
}

/// All cases.
pub fn requests() -> Vec<Case> {
    let mut cases = json::cases();
    cases.extend(phase1::cases());
    cases.extend(binary::cases());
    cases.extend(vanilla::cases());
    cases
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_case_is_refused_where_and_why_it_must_be() {
        let cases = requests();
        let names: HashSet<_> = cases.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), cases.len(), "names repeat");
        assert!(cases.len() >= 60, "{}", cases.len());
        let mut wrong = Vec::new();
        for case in &cases {
            let Some((stage, error)) = case.refusal() else {
                wrong.push(format!("{}: accepted", case.name));
                continue;
            };
            let text = error.to_string();
            println!("{}: {} {text}", case.name, error.code());
            if stage != case.stage
                || error.code() != case.code
                || !text.contains(case.text)
                || text.contains('\n')
                || text.len() > 700
                || error.is_internal()
            {
                wrong.push(format!("{}: {stage:?} {} {text}", case.name, error.code()));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
