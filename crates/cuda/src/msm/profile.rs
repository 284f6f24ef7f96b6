//! Times of the stages of a sum on the device.

use crate::device::{Event, Stream};
use crate::error::Result;

/// Marks in a stream between the stages of a run.
#[derive(Debug, Default)]
pub struct Profile {
    marks: Option<Vec<(String, Event)>>,
    /// Whether the parts of a stage, such as its rounds, are stages of their own.
    parts: bool,
}

impl Profile {
    /// One that marks nothing.
    pub fn off() -> Self {
        Profile::default()
    }

    /// One that marks.
    pub fn on() -> Self {
        Profile {
            marks: Some(Vec::new()),
            parts: false,
        }
    }

    /// One that also marks the parts of the stages, such as rounds; what a stage has left after its
    /// last part is what its own name tells.
    pub fn of_parts() -> Self {
        Profile {
            parts: true,
            ..Profile::on()
        }
    }

    /// The first stage begins here.
    pub(super) fn begin(&mut self, stream: &Stream) -> Result<()> {
        self.end(stream, "")
    }

    /// The stage `name` ends here.
    pub(super) fn end(&mut self, stream: &Stream, name: &str) -> Result<()> {
        if let Some(marks) = &mut self.marks {
            marks.push((name.to_owned(), stream.record()?));
        }
        Ok(())
    }

    /// The part `name` of a stage, or of number `index` of its rounds, ends here.
    pub(super) fn end_part(
        &mut self,
        stream: &Stream,
        name: &str,
        index: Option<u32>,
    ) -> Result<()> {
        match index {
            Some(index) if self.parts => self.end(stream, &format!("{name} {index}")),
            None if self.parts => self.end(stream, name),
            _ => Ok(()),
        }
    }

    /// Milliseconds of each stage, all its occurrences together, in the order of the first ones;
    /// waits for the last.
    ///
    /// # Errors
    /// A driver that fails, and failures of the run.
    pub fn stages(&self) -> Result<Vec<(&str, f32)>> {
        let mut stages: Vec<(&str, f32)> = Vec::new();
        for pair in self.marks.iter().flat_map(|marks| marks.windows(2)) {
            let [(_, earlier), (name, event)] = pair else {
                continue;
            };
            let ms = event.elapsed_ms(earlier)?;
            match stages.iter_mut().find(|(stage, _)| stage == name) {
                Some((_, sum)) => *sum += ms,
                None => stages.push((name.as_str(), ms)),
            }
        }
        Ok(stages)
    }
}
