//! Memory for proofs, lent to one proof at a time.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Things of which each serves one borrower at a time.
pub struct Pool<T> {
    free: Mutex<Vec<T>>,
    returned: Condvar,
}

impl<T> Pool<T> {
    /// All of `items`, free.
    pub fn new(items: Vec<T>) -> Self {
        Pool {
            free: Mutex::new(items),
            returned: Condvar::new(),
        }
    }

    /// The next that is free; waits for one, as long as its borrower takes.
    pub fn take(&self) -> Lent<'_, T> {
        let mut free = lock(&self.free);
        loop {
            if let Some(item) = free.pop() {
                return Lent {
                    pool: self,
                    item: Some(item),
                };
            }
            free = self
                .returned
                .wait(free)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// One of a pool's things. It goes back when this is dropped, also by a panic: nobody waits for
/// it in vain.
pub struct Lent<'a, T> {
    pool: &'a Pool<T>,
    /// `Some` until it is dropped.
    item: Option<T>,
}

impl<T> Deref for Lent<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.item
            .as_ref()
            .expect("invariant: it goes back on drop alone")
    }
}

impl<T> DerefMut for Lent<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.item
            .as_mut()
            .expect("invariant: it goes back on drop alone")
    }
}

impl<T> Drop for Lent<'_, T> {
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_serves_one_borrower_and_comes_back() {
        let pool = Pool::new(vec![1, 2]);
        let (first, mut second) = (pool.take(), pool.take());
        assert_ne!(*first, *second);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| *pool.take());
            thread::sleep(Duration::from_millis(20));
            assert!(!waiting.is_finished());
            *second += 10;
            drop(second);
            assert!(waiting.join().expect("no panic") > 10);
        });
    }

    #[test]
    fn a_panic_gives_it_back() {
        let pool = Pool::new(vec![7]);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _lent = pool.take();
            panic!("while it is lent");
        }));
        assert!(panicked.is_err());
        assert_eq!(*pool.take(), 7);
    }
}
