//! Memory for proofs, lent to one proof at a time.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Things of which each serves one borrower at a time.
pub struct Pool<T> {
    free: Mutex<Vec<T>>,
    returned: Condvar,
}

impl<T> Pool<T> {
    /// All of `items`, free.
    pub fn new(items: Vec<T>) -> Arc<Self> {
        Arc::new(Pool {
            free: Mutex::new(items),
            returned: Condvar::new(),
        })
    }

    /// The next that is free; `None` if there is none within `limit`.
    pub fn take(self: &Arc<Self>, limit: Duration) -> Option<Lent<T>> {
        let start = Instant::now();
        let mut free = lock(&self.free);
        loop {
            if let Some(item) = free.pop() {
                return Some(Lent {
                    pool: Arc::clone(self),
                    item: Some(item),
                });
            }
            let left = limit
                .checked_sub(start.elapsed())
                .filter(|left| !left.is_zero())?;
            free = self
                .returned
                .wait_timeout(free, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

/// One of a pool's things. It goes back when this is dropped, also by a panic: nobody waits for
/// it in vain.
pub struct Lent<T> {
    pool: Arc<Pool<T>>,
    /// `Some` until it is dropped.
    item: Option<T>,
}

impl<T> Deref for Lent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item
            .as_ref()
            .expect("invariant: it goes back on drop alone")
    }
}

impl<T> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.item
            .as_mut()
            .expect("invariant: it goes back on drop alone")
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            lock(&self.pool.free).push(item);
            self.pool.returned.notify_one();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn each_serves_one_borrower_and_comes_back() {
        let pool = Pool::new(vec![1, 2]);
        let [first, mut second] = [(); 2].map(|()| pool.take(LONG).expect("two are free"));
        assert_ne!(*first, *second);
        assert!(pool.take(Duration::from_millis(5)).is_none());
        thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.take(LONG).map(|item| *item));
            thread::sleep(Duration::from_millis(20));
            assert!(!waiting.is_finished());
            *second += 10;
            drop(second);
            assert!(waiting.join().expect("no panic") > Some(10));
        });
    }

    #[test]
    fn a_panic_gives_it_back() {
        let pool = Pool::new(vec![7]);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _lent = pool.take(LONG);
            panic!("while it is lent");
        }));
        assert!(panicked.is_err());
        assert_eq!(pool.take(LONG).map(|item| *item), Some(7));
    }
}
