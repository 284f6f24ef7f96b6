//! `cuzk doctor`: what keeps this machine from proving, line by line, each with a remedy.

mod gpu;
mod keys;
mod machine;
mod service;

use serde::Serialize;

use crate::Context;
use crate::cli::DoctorCommand;
use crate::failure::{Exit, Failure};

/// How a look at one thing came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be.
    Good,
    /// It works, but not as well as it could, or not for everything.
    Warning,
    /// Something will not work.
    Bad,
}

/// A line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    subject: String,
    state: State,
    /// What was found.
    finding: String,
    /// What to do about it; only where there is something to do.
    remedy: Option<String>,
}

impl Finding {
    fn good(subject: impl Into<String>, finding: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            state: State::Good,
            finding: finding.into(),
            remedy: None,
        }
    }

    fn other(
        state: State,
        subject: impl Into<String>,
        finding: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            subject: subject.into(),
            state,
            finding: finding.into(),
            remedy: Some(remedy.into()),
        }
    }

    fn failure(state: State, subject: impl Into<String>, failure: &Failure) -> Self {
        let causes: Vec<_> = failure
            .causes
            .iter()
            .map(|cause| format!(": {cause}"))
            .collect();
        let finding = format!("{}{}", failure.message, causes.concat());
        Self::other(state, subject, finding, failure.remedy.clone())
    }

    fn text(&self) -> String {
        let mark = match self.state {
            State::Good => "ok  ",
            State::Warning => "warn",
            State::Bad => "BAD ",
        };
        let mut text = format!("{mark}  {}: {}\n", self.subject, self.finding);
        if let Some(remedy) = &self.remedy {
            text.push_str(&format!("      remedy: {remedy}\n"));
        }
        text
    }
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    state: State,
    findings: &'a [Finding],
}

/// Runs the command.
///
/// # Errors
/// After the report, exit 5 if something will not work.
pub fn run(context: &Context, command: Option<&DoctorCommand>) -> Result<(), Failure> {
    match command {
        Some(DoctorCommand::Gpu) => gpu::run(context),
        None => everything(context),
    }
}

fn everything(context: &Context) -> Result<(), Failure> {
    let mut findings = vec![Finding::good(
        "program",
        format!(
            "cuzk {}, {}",
            env!("CARGO_PKG_VERSION"),
            if cfg!(feature = "cuda") {
                "with code for GPUs"
            } else {
                "for the CPU alone"
            }
        ),
    )];
    let (config, of_config) = service::configuration(context);
    findings.extend(of_config);
    findings.extend(gpu::findings());
    findings.extend(keys::findings(context, &config));
    findings.extend(machine::findings(context, &config));
    findings.extend(service::addresses(&config));
    let worst = findings.iter().map(|finding| finding.state).max();
    let state = worst.unwrap_or(State::Good);
    let mut text: String = findings.iter().map(Finding::text).collect();
    text.push_str(match state {
        State::Good => "nothing to do\n",
        State::Warning => "it works; see the warnings\n",
        State::Bad => "something will not work: see the lines that begin with BAD\n",
    });
    let document = Document {
        schema: "cuzk.doctor/1",
        state,
        findings: &findings,
    };
    context.output.show(&document, &text)?;
    if state == State::Bad {
        return Err(Failure::reported(Exit::Resources));
    }
    Ok(())
}
