//! Proofs that are asked for at about the same time, made in one pass.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Jobs of several threads that are done together: the thread that finds enough of them waiting, or
/// has waited long enough for more, does them for all.
pub struct Batch<J, R> {
    state: Mutex<State<J, R>>,
    changed: Condvar,
    /// The most that are done together.
    most: usize,
    /// How long to wait for more than there are.
    gather: Duration,
}

struct State<J, R> {
    waiting: VecDeque<(u64, J)>,
    /// What is done and was not fetched; `None`: it was lost in a panic of who did it.
    done: HashMap<u64, Option<(J, R)>>,
    busy: bool,
    next: u64,
}

/// A job's end without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotDone {
    /// Its turn did not come in time.
    TimedOut,
    /// The thread that did it panicked.
    Lost,
}

impl<J, R> Batch<J, R> {
    pub fn new(most: usize, gather: Duration) -> Self {
        Batch {
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                done: HashMap::new(),
                busy: false,
                next: 0,
            }),
            changed: Condvar::new(),
            most: most.max(1),
            gather,
        }
    }

    /// Has `job` done by `work`, which is called on this thread or on another one, with other jobs
    /// that wait too, and gives a result for each. Waits at most `limit` for its turn.
    ///
    /// # Errors
    /// [`NotDone`].
    pub fn run(
        &self,
        job: J,
        limit: Duration,
        work: impl FnOnce(&mut [J]) -> Vec<R>,
    ) -> Result<(J, R), NotDone> {
        let start = Instant::now();
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        state.waiting.push_back((id, job));
        self.changed.notify_all();
        loop {
            if let Some(done) = state.done.remove(&id) {
                return done.ok_or(NotDone::Lost);
            }
            let place = state.waiting.iter().position(|(waiting, _)| *waiting == id);
            let waited = start.elapsed();
            let enough = state.waiting.len() >= self.most || waited >= self.gather;
            if !state.busy && enough && place.is_some_and(|place| place < self.most) {
                return self.lead(state, id, work);
            }
            if let Some(place) = place.filter(|_| waited >= limit) {
                state.waiting.remove(place);
                return Err(NotDone::TimedOut);
            }
            // Who is being worked for waits for the worker, who wakes it.
            let pause = if waited < self.gather {
                self.gather - waited
            } else {
                limit.saturating_sub(waited).max(Duration::from_secs(1))
            };
            state = self
                .changed
                .wait_timeout(state, pause)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Does the jobs that have waited longest; the one called `id` is among them.
    fn lead(
        &self,
        mut state: MutexGuard<'_, State<J, R>>,
        id: u64,
        work: impl FnOnce(&mut [J]) -> Vec<R>,
    ) -> Result<(J, R), NotDone> {
        state.busy = true;
        let count = state.waiting.len().min(self.most);
        let (ids, mut jobs): (Vec<u64>, Vec<J>) = state.waiting.drain(..count).unzip();
        drop(state);
        let mut turn = Turn {
            batch: self,
            ids,
            done: Vec::new(),
        };
        let results = work(&mut jobs);
        assert_eq!(results.len(), jobs.len(), "a result for each job");
        turn.done = jobs.into_iter().zip(results).collect();
        drop(turn);
        self.lock().done.remove(&id).flatten().ok_or(NotDone::Lost)
    }

    fn lock(&self) -> MutexGuard<'_, State<J, R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to work. Its end, also by a panic, hands out what was done and lets the next one work.
struct Turn<'a, J, R> {
    batch: &'a Batch<J, R>,
    ids: Vec<u64>,
    done: Vec<(J, R)>,
}

impl<J, R> Drop for Turn<'_, J, R> {
    fn drop(&mut self) {
        let mut state = self.batch.lock();
        let mut done = self.done.drain(..);
        for id in &self.ids {
            state.done.insert(*id, done.next());
        }
        state.busy = false;
        drop(state);
        self.batch.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn every_job_gets_its_own_result() {
        let batch = Batch::new(3, Duration::from_millis(5));
        let (largest, calls) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for i in 0..20 {
                let (batch, largest, calls) = (&batch, &largest, &calls);
                scope.spawn(move || {
                    let (job, result) = batch
                        .run(i, LONG, |jobs| {
                            largest.fetch_max(jobs.len(), Ordering::Relaxed);
                            calls.fetch_add(1, Ordering::Relaxed);
                            thread::sleep(Duration::from_millis(2));
                            jobs.iter().map(|job| job * 10).collect()
                        })
                        .expect("done");
                    assert_eq!((job, result), (i, i * 10));
                });
            }
        });
        assert_eq!(largest.into_inner(), 3);
        assert!(calls.into_inner() < 20);
    }

    #[test]
    fn a_job_alone_waits_for_others_no_longer_than_it_should() {
        let batch = Batch::new(2, Duration::from_millis(1));
        let result = batch.run(7, LONG, |jobs| vec![jobs.len()]);
        assert_eq!(result, Ok((7, 1)));
    }

    #[test]
    fn a_panic_ends_its_own_jobs_and_no_others() {
        let batch = Batch::<u32, u32>::new(1, Duration::ZERO);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            batch.run(1, LONG, |_| panic!("while it works"))
        }));
        assert!(panicked.is_err());
        assert_eq!(batch.run(2, LONG, |jobs| jobs.to_vec()), Ok((2, 2)));
    }

    #[test]
    fn who_is_not_served_in_time_is_told() {
        let batch = Batch::new(1, Duration::ZERO);
        thread::scope(|scope| {
            let (started, start) = std::sync::mpsc::channel();
            let (end, ended) = std::sync::mpsc::channel::<()>();
            let first = scope.spawn({
                let batch = &batch;
                move || {
                    batch.run(1, LONG, |_| {
                        started.send(()).expect("the test waits");
                        let _ = ended.recv();
                        vec![()]
                    })
                }
            });
            start.recv().expect("it starts");
            let second = batch.run(2, Duration::from_millis(20), |_| vec![()]);
            assert_eq!(second, Err(NotDone::TimedOut));
            end.send(()).expect("it waits");
            assert_eq!(first.join().expect("no panic"), Ok((1, ())));
        });
    }
}
