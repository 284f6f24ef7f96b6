//! Threads for what takes long: checking and joining proofs, sweeping the store.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::Error;

type Work = Box<dyn FnOnce() + Send>;

/// Runs work in the order in which it comes, on a fixed number of threads.
pub(super) struct Pool {
    queue: Option<Sender<Work>>,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    pub(super) fn new(threads: usize) -> Result<Self, Error> {
        let (queue, work) = channel();
        let work = Arc::new(Mutex::new(work));
        let start = |_| {
            let work = Arc::clone(&work);
            let builder = std::thread::Builder::new().name("cuzk-judge".to_owned());
            builder
                .spawn(move || run(&work))
                .map_err(|source| Error::Thread {
                    name: "cuzk-judge",
                    source,
                })
        };
        let threads = (0..threads.max(1)).map(start).collect::<Result<_, _>>()?;
        Ok(Self {
            queue: Some(queue),
            threads,
        })
    }

    pub(super) fn run(&self, work: impl FnOnce() + Send + 'static) {
        if let Some(queue) = &self.queue {
            // The threads outlive the queue, so this arrives.
            let _ = queue.send(Box::new(work));
        }
    }
}

impl Drop for Pool {
    /// Waits for the work that is queued.
    fn drop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn run(work: &Mutex<Receiver<Work>>) {
    loop {
        let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(next) = next else { return };
        // Work reports its own panics; this only keeps the thread.
        let _ = catch_unwind(AssertUnwindSafe(next));
    }
}

/// Runs `work` and turns a panic into an error.
pub(super) fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(format!("internal error: {text}; please report it"))
    })
}
