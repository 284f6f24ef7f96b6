//! Threads for witnesses, apart from those that queue work on a device and verify.
//!
//! A Window PoSt's witness is 17 core-seconds in two thousand pieces. In the pool in which sums are combined and
//! proofs verified, whatever comes later would wait for all of them: rayon's threads look at new
//! work last.

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

/// How much nicer threads for witnesses that are wanted at once are than the process.
const URGENT_NICE: i32 = 5;
/// And those for witnesses that are made ahead.
const AHEAD_NICE: i32 = 10;
/// The nicest that there is.
const NICEST: i32 = 19;

/// Pools of threads with less right to a core than any other thread of the process.
pub struct Pools {
    urgent: ThreadPool,
    ahead: ThreadPool,
}

impl Pools {
    /// Two pools of `threads` each.
    ///
    /// # Errors
    /// The system has no more threads to give.
    pub fn new(threads: usize) -> Result<Self, ThreadPoolBuildError> {
        let pool = |name: &'static str, nice: i32| {
            ThreadPoolBuilder::new()
                .num_threads(threads.max(1))
                .thread_name(move |k| format!("{name}-{k}"))
                // A system that refuses makes the threads equal to the others.
                .start_handler(move |_| {
                    let own = rustix::process::getpriority_process(None).unwrap_or_default();
                    let nicer = (own + nice).min(NICEST);
                    let _ = rustix::process::setpriority_process(None, nicer);
                })
                .build()
        };
        Ok(Self {
            urgent: pool("witness", URGENT_NICE)?,
            ahead: pool("ahead", AHEAD_NICE)?,
        })
    }

    /// The pool for a unit that has been ordered, or for one that is only prepared.
    pub(crate) fn of(&self, urgent: bool) -> &ThreadPool {
        if urgent { &self.urgent } else { &self.ahead }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_threads_give_way_to_others() {
        let pools = Pools::new(2).expect("two threads can be had");
        let nice = || rustix::process::getpriority_process(None).expect("Linux tells");
        let own = nice();
        let nicer = |by: i32| (own + by).min(NICEST);
        assert_eq!(pools.of(true).install(nice), nicer(URGENT_NICE));
        assert_eq!(pools.of(false).install(nice), nicer(AHEAD_NICE));
        assert_eq!(nice(), own);
    }
}
