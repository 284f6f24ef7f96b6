//! The life of a child process: killing it and reaping it without ever hitting another process
//! that got its number.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Pause between looks at whether the process has ended.
const POLL: Duration = Duration::from_millis(2);

/// Shared by the thread that owns the process and those that may have to kill it.
#[derive(Default)]
pub(crate) struct Life {
    state: Mutex<State>,
    gone: Condvar,
}

#[derive(Default)]
enum State {
    /// Not started yet; `kill` is set if it shall not live.
    #[default]
    Unborn,
    /// To be killed as soon as it is started.
    Doomed,
    Alive(Child),
    Gone,
}

impl Life {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process has been started, as the leader of a process group of its own.
    pub(crate) fn begin(&self, child: Child) {
        let mut state = self.state();
        let doomed = matches!(*state, State::Doomed);
        *state = State::Alive(child);
        drop(state);
        if doomed {
            self.kill();
        }
    }

    /// There is no process, or none any more.
    pub(crate) fn end(&self) {
        *self.state() = State::Gone;
        self.gone.notify_all();
    }

    /// The process's number, while it is there.
    pub(crate) fn pid(&self) -> Option<u32> {
        match &*self.state() {
            State::Alive(child) => Some(child.id()),
            _ => None,
        }
    }

    /// Kills the process and all of its group. While the state is locked and the process is not
    /// reaped, its number belongs to it.
    pub(crate) fn kill(&self) {
        let mut state = self.state();
        match &mut *state {
            State::Unborn => *state = State::Doomed,
            State::Alive(child) => {
                if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    // It fails for a process that has just ended by itself.
                    let _ = kill_process_group(pid, Signal::KILL);
                }
            }
            State::Doomed | State::Gone => {}
        }
    }

    /// Waits for the process to end by itself; kills it after `patience`. Returns how it ended;
    /// `None` if the system does not say, or there never was one.
    pub(crate) fn reap(&self, patience: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        let mut killed = false;
        let status = loop {
            let ended = match &mut *self.state() {
                State::Alive(child) => child.try_wait(),
                _ => return None,
            };
            match ended {
                Ok(Some(status)) => break Some(status),
                Ok(None) => {}
                Err(_) => break None,
            }
            if !killed && began.elapsed() >= patience {
                self.kill();
                killed = true;
            }
            std::thread::sleep(POLL);
        };
        self.end();
        status
    }

    /// Waits until the process is gone; says whether it is.
    pub(crate) fn wait_gone(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.state();
        while !matches!(*state, State::Gone) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.gone.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// How a process ended, in words.
pub(crate) fn words(status: Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return "it ended in an unknown way".to_owned();
    };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(9)) => {
            "it was killed (signal 9): by hand, by its daemon, or for want of memory (`dmesg` says)"
                .to_owned()
        }
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => format!("it ended: {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    fn sleeper() -> Child {
        Command::new("sleep")
            .arg("60")
            .process_group(0)
            .spawn()
            .unwrap()
    }

    #[test]
    fn a_kill_ends_it_and_wakes_who_waits() {
        let life = Life::default();
        life.begin(sleeper());
        assert!(!life.wait_gone(Duration::from_millis(5)));
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(life.wait_gone(Duration::from_secs(20))));
            life.kill();
            let status = life.reap(Duration::from_secs(20));
            assert!(words(status).contains("signal 9"), "{}", words(status));
        });
        life.kill();
        assert_eq!(life.reap(Duration::ZERO), None);
    }

    #[test]
    fn patience_ends_in_a_kill_also_before_birth() {
        let life = Life::default();
        life.begin(sleeper());
        assert_eq!(
            life.reap(Duration::from_millis(10)).unwrap().signal(),
            Some(9)
        );
        let doomed = Life::default();
        doomed.kill();
        doomed.begin(sleeper());
        assert_eq!(
            doomed.reap(Duration::from_secs(20)).unwrap().signal(),
            Some(9)
        );
    }

    #[test]
    fn an_exit_code_is_told() {
        let life = Life::default();
        life.begin(Command::new("false").process_group(0).spawn().unwrap());
        let status = life.reap(Duration::from_secs(20));
        assert_eq!(words(status), "it ended with exit code 1");
    }
}
