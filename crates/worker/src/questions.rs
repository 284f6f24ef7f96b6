//! What a worker was asked about keys and has not answered.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use engine::service::Callback;

/// Questions to a worker that are not answered yet.
#[derive(Default)]
pub(crate) struct Questions {
    open: Mutex<(u64, HashMap<u64, Question>)>,
}

pub(crate) enum Question {
    Preload(Callback<Result<(bool, u64), String>>),
    Evict(Callback<Result<(bool, u64), String>>),
}

impl Questions {
    fn open(&self) -> MutexGuard<'_, (u64, HashMap<u64, Question>)> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ask(&self, question: Question) -> u64 {
        let mut open = self.open();
        open.0 += 1;
        let number = open.0;
        open.1.insert(number, question);
        number
    }

    fn take(&self, number: u64) -> Option<Question> {
        self.open().1.remove(&number)
    }

    pub(crate) fn preloaded(&self, number: u64, result: Result<(bool, u64), String>) {
        if let Some(Question::Preload(reply)) = self.take(number) {
            reply(result);
        }
    }

    pub(crate) fn evicted(&self, number: u64, result: (bool, u64)) {
        if let Some(Question::Evict(reply)) = self.take(number) {
            reply(Ok(result));
        }
    }

    pub(crate) fn fail(&self, number: u64, cause: &str) {
        if let Some(Question::Preload(reply) | Question::Evict(reply)) = self.take(number) {
            reply(Err(cause.to_owned()));
        }
    }

    pub(crate) fn fail_all(&self, cause: &str) {
        let numbers: Vec<u64> = self.open().1.keys().copied().collect();
        numbers
            .into_iter()
            .for_each(|number| self.fail(number, cause));
    }
}
