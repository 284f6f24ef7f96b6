//! When what was done.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::backend::PhaseTimes;

/// Who did a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// The transform, with what leads to it.
    Transform,
    /// All else.
    Cpu,
}

/// A part of preparing a key, in times since its start. Steps of a lane follow each other; the lanes
/// run beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What was done.
    pub name: &'static str,
    /// Who did it.
    pub lane: Lane,
    /// When it began.
    pub start: Duration,
    /// When it ended.
    pub end: Duration,
}

/// Collects steps.
pub(super) struct Timeline {
    began: Instant,
    steps: Mutex<Vec<Step>>,
}

impl Timeline {
    pub fn start() -> Self {
        Timeline {
            began: Instant::now(),
            steps: Mutex::default(),
        }
    }

    /// Does `work` as a step of the CPU's.
    pub fn host<T>(&self, name: &'static str, work: impl FnOnce() -> T) -> T {
        self.run(name, Lane::Cpu, work)
    }

    /// Does `work` as a step of `lane`.
    pub fn run<T>(&self, name: &'static str, lane: Lane, work: impl FnOnce() -> T) -> T {
        let start = self.began.elapsed();
        let result = work();
        let end = self.began.elapsed();
        self.add(Step {
            name,
            lane,
            start,
            end,
        });
        result
    }

    /// Adds the phases of a transform that has just ended, which tells how long each took.
    pub fn phases(&self, times: &PhaseTimes) {
        let mut start = self.began.elapsed().saturating_sub(times.total());
        for (name, time) in times.iter() {
            let end = start + time;
            self.add(Step {
                name,
                lane: Lane::Transform,
                start,
                end,
            });
            start = end;
        }
    }

    fn add(&self, step: Step) {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.push(step);
    }

    pub fn finish(self) -> Vec<Step> {
        self.steps
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
