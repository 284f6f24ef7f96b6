//! Progress on a terminal's stderr, and none elsewhere.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Whether and where progress is shown: lines at the bottom of the terminal.
#[derive(Debug, Clone)]
pub struct Progress {
    lines: Option<MultiProgress>,
}

impl Progress {
    /// Progress on stderr, if that is a terminal that can redraw a line and `quiet` is off.
    pub fn new(quiet: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let shown = !quiet && !dumb && std::io::stderr().is_terminal();
        Self {
            lines: shown
                .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10))),
        }
    }

    /// A line of work of known length, or of unknown length where `total` is 0.
    pub fn stage(&self, label: impl Into<Cow<'static, str>>, total: u64) -> Stage {
        let Some(lines) = &self.lines else {
            return Stage(ProgressBar::hidden());
        };
        let template = if total == 0 {
            "{msg:32} {spinner} {elapsed}"
        } else {
            "{msg:32} [{bar:30}] {percent:>3}% {elapsed}"
        };
        // No colours: a line reads the same with and without NO_COLOR.
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = lines.add(ProgressBar::new(total));
        bar.set_style(style.progress_chars("=> ").tick_chars("|/-\\ "));
        bar.set_message(label);
        bar.enable_steady_tick(Duration::from_millis(200));
        Stage(bar)
    }
}

/// One line of work; the line is wiped when this is dropped.
#[derive(Debug)]
pub struct Stage(ProgressBar);

impl Stage {
    /// Changes the label.
    pub fn rename(&self, label: impl Into<Cow<'static, str>>) {
        self.0.set_message(label);
    }

    /// So much of the total is done.
    pub fn reach(&self, position: u64) {
        self.0.set_position(position);
    }

    /// `amount` more of the total is done.
    pub fn advance(&self, amount: u64) {
        self.0.inc(amount);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Shows the stages that work in the crates below reports.
#[derive(Debug)]
pub struct Meter {
    progress: Progress,
    prefix: String,
    stage: Mutex<Option<Stage>>,
}

impl Meter {
    /// Shows stages as `<prefix>: <stage>`.
    pub fn new(progress: &Progress, prefix: &str) -> Self {
        Self {
            progress: progress.clone(),
            prefix: prefix.to_owned(),
            stage: Mutex::new(None),
        }
    }

    fn stage(&self) -> MutexGuard<'_, Option<Stage>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl groth16::progress::Progress for Meter {
    fn begin(&self, stage: &'static str, total: u64) {
        let mut current = self.stage();
        // The old line is wiped before the new one is drawn.
        drop(current.take());
        *current = Some(
            self.progress
                .stage(format!("{}: {stage}", self.prefix), total),
        );
    }

    fn advance(&self, amount: u64) {
        if let Some(stage) = &*self.stage() {
            stage.advance(amount);
        }
    }
}
