//! The requests that a worker has decoded: each is asked for and decoded once, however many units
//! of it are at work, and the last few are kept.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use store::Digest;

use crate::serve::UnitError;

pub(crate) struct Requests<R> {
    /// So many decoded requests are kept. A decoded 32 GiB PoRep takes about 20 MB.
    kept: usize,
    entries: Mutex<Entries<R>>,
    changed: Condvar,
}

struct Entries<R> {
    list: Vec<Entry<R>>,
    clock: u64,
}

struct Entry<R> {
    digest: Digest,
    state: Fetch<R>,
    used: u64,
}

enum Fetch<R> {
    /// The daemon was asked.
    Wanted,
    /// It has come.
    Here(Vec<u8>),
    /// Somebody decodes it.
    Decoding,
    Decoded(Arc<R>),
    Failed(UnitError),
}

impl<R> Requests<R> {
    /// None, and `kept` of those decoded: as many as units may be under way, so that none is decoded twice.
    pub(crate) fn keeping(kept: usize) -> Self {
        let entries = Entries {
            list: Vec::new(),
            clock: 0,
        };
        Self {
            kept,
            entries: Mutex::new(entries),
            changed: Condvar::new(),
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries<R>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request with this digest. If it is not here, calls `want`, which asks the daemon, and
    /// waits; the daemon answers always, or is gone and with it this process.
    pub(crate) fn get(
        &self,
        digest: &Digest,
        want: impl Fn(),
        decode: impl FnOnce(Vec<u8>) -> Result<R, UnitError>,
    ) -> Result<Arc<R>, UnitError> {
        let mut entries = self.entries();
        let payload = loop {
            entries.clock += 1;
            let clock = entries.clock;
            let found = entries
                .list
                .iter()
                .position(|entry| entry.digest == *digest);
            let Some(at) = found else {
                entries.list.push(Entry {
                    digest: *digest,
                    state: Fetch::Wanted,
                    used: clock,
                });
                want();
                continue;
            };
            let entry = &mut entries.list[at];
            entry.used = clock;
            match &mut entry.state {
                Fetch::Decoded(request) => return Ok(Arc::clone(request)),
                Fetch::Here(payload) => {
                    let payload = std::mem::take(payload);
                    entry.state = Fetch::Decoding;
                    break payload;
                }
                Fetch::Failed(error) => {
                    let error = error.clone();
                    entries.list.remove(at);
                    return Err(error);
                }
                Fetch::Wanted | Fetch::Decoding => {
                    let waited = self.changed.wait(entries);
                    entries = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        };
        drop(entries);
        let decoded = decode(payload).map(Arc::new);
        let state = match &decoded {
            Ok(request) => Fetch::Decoded(Arc::clone(request)),
            Err(error) => Fetch::Failed(error.clone()),
        };
        self.set(digest, |now| matches!(now, Fetch::Decoding), state);
        decoded
    }

    /// A payload has come. One that nobody waits for is dropped.
    pub(crate) fn arrived(&self, digest: &Digest, payload: Vec<u8>) {
        let wanted = |now: &Fetch<R>| matches!(now, Fetch::Wanted);
        self.set(digest, wanted, Fetch::Here(payload));
    }

    /// A payload will not come.
    pub(crate) fn missing(&self, digest: &Digest, error: UnitError) {
        let wanted = |now: &Fetch<R>| matches!(now, Fetch::Wanted);
        self.set(digest, wanted, Fetch::Failed(error));
    }

    fn set(&self, digest: &Digest, from: impl Fn(&Fetch<R>) -> bool, state: Fetch<R>) {
        let mut entries = self.entries();
        let entry = entries
            .list
            .iter_mut()
            .find(|entry| entry.digest == *digest);
        if let Some(entry) = entry.filter(|entry| from(&entry.state)) {
            entry.state = state;
        }
        let is_kept = |entry: &Entry<R>| matches!(entry.state, Fetch::Decoded(_));
        while entries.list.iter().filter(|entry| is_kept(entry)).count() > self.kept {
            let kept = (0..).zip(&entries.list).filter(|(_, entry)| is_kept(entry));
            let oldest = kept.min_by_key(|(_, entry)| entry.used).map(|(at, _)| at);
            match oldest {
                Some(at) => drop(entries.list.remove(at)),
                None => break,
            }
        }
        drop(entries);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use engine::scheduler::Fault;

    use super::*;

    fn digest(n: u8) -> Digest {
        Digest::new([n; 32])
    }

    #[test]
    fn many_units_ask_and_decode_once() {
        let requests = Requests::<usize>::keeping(3);
        let (asked, decoded) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let gets: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        requests.get(
                            &digest(1),
                            || {
                                asked.fetch_add(1, Ordering::Relaxed);
                            },
                            |payload| {
                                decoded.fetch_add(1, Ordering::Relaxed);
                                Ok(payload.len())
                            },
                        )
                    })
                })
                .collect();
            while asked.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            requests.arrived(&digest(2), vec![0; 9]);
            requests.arrived(&digest(1), vec![0; 5]);
            for get in gets {
                assert_eq!(*get.join().unwrap().unwrap(), 5);
            }
        });
        assert_eq!(asked.into_inner(), 1);
        assert_eq!(decoded.into_inner(), 1);
    }

    #[test]
    fn the_last_few_are_kept_and_failures_are_not() {
        let requests = Requests::<u8>::keeping(3);
        let asked = AtomicUsize::new(0);
        let get = |n: u8| {
            let want = || {
                asked.fetch_add(1, Ordering::Relaxed);
            };
            // The answer comes from the thread that reads the pipe.
            std::thread::scope(|scope| {
                let before = asked.load(Ordering::Relaxed);
                let get = scope.spawn(|| requests.get(&digest(n), want, |payload| Ok(payload[0])));
                while !get.is_finished() {
                    if asked.load(Ordering::Relaxed) > before {
                        requests.arrived(&digest(n), vec![n]);
                    }
                    std::thread::yield_now();
                }
                assert_eq!(*get.join().unwrap().unwrap(), n);
            });
        };
        for n in [1, 2, 3, 1, 2, 3] {
            get(n);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 3);
        // The fourth takes the place of the one not used for longest.
        for n in [4, 2, 3, 4, 1] {
            get(n);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 5);
        let error = UnitError {
            fault: Fault::Payload,
            cause: "gone".to_owned(),
        };
        let failed = std::thread::scope(|scope| {
            let get = scope.spawn(|| requests.get(&digest(9), || {}, |_| Ok(0)));
            while !get.is_finished() {
                requests.missing(&digest(9), error.clone());
                std::thread::yield_now();
            }
            get.join().unwrap()
        });
        assert_eq!(failed.unwrap_err().cause, "gone");
        get(9);
    }
}
