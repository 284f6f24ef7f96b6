//! Times of the stages of a sum on the device.

use crate::device::{Event, Stream};
use crate::error::Result;

/// Marks in a stream between the stages of a run.
#[derive(Debug, Default)]
pub struct Profile {
    marks: Option<Vec<(&'static str, Event)>>,
}

impl Profile {
    /// One that marks nothing.
    pub fn off() -> Self {
        Profile { marks: None }
    }

    /// One that marks.
    pub fn on() -> Self {
        Profile {
            marks: Some(Vec::new()),
        }
    }

    /// The first stage begins here.
    pub(super) fn begin(&mut self, stream: &Stream) -> Result<()> {
        self.end(stream, "")
    }

    /// The stage `name` ends here.
    pub(super) fn end(&mut self, stream: &Stream, name: &'static str) -> Result<()> {
        if let Some(marks) = &mut self.marks {
            marks.push((name, stream.record()?));
        }
        Ok(())
    }

    /// Milliseconds of each stage, all its occurrences together, in the order of the first ones;
    /// waits for the last.
    ///
    /// # Errors
    /// A driver that fails, and failures of the run.
    pub fn stages(&self) -> Result<Vec<(&'static str, f32)>> {
        let mut stages: Vec<(&'static str, f32)> = Vec::new();
        for pair in self.marks.iter().flat_map(|marks| marks.windows(2)) {
            let [(_, earlier), (name, event)] = pair else {
                continue;
            };
            let ms = event.elapsed_ms(earlier)?;
            match stages.iter_mut().find(|(stage, _)| stage == name) {
                Some((_, sum)) => *sum += ms,
                None => stages.push((name, ms)),
            }
        }
        Ok(stages)
    }
}
