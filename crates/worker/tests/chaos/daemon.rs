//! A service under load with two workers, which its parent kills. It says on standard output what
//! it has promised (`accepted NAME JOB`) and what it has reported (`ended NAME DIGEST`).

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use engine::Service;
use engine::service::{Admission, Device, Finished, Waited};
use store::{Digest, JobState, SqliteStore, Store};

use crate::world::{KnowingJudge, LONG, actor, settings, submission};

/// Jobs open at a time.
const OPEN: usize = 12;
const MOMENT: Duration = Duration::from_millis(50);

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}

/// `daemon load FOLDER NUMBER`: submits jobs named after the number until it is killed, or until
/// the store fails. `daemon drain FOLDER`: lets all open jobs end, and reports all jobs.
pub fn run(arguments: &[String]) -> ExitCode {
    let (mode, folder) = (arguments[0].as_str(), &arguments[1]);
    let store = match SqliteStore::open(Path::new(folder)) {
        Ok(store) => Arc::new(store),
        Err(error) => {
            eprintln!("error: {} {error}", error.code());
            return ExitCode::FAILURE;
        }
    };
    // By the folder's name in the command line the parent finds workers that outlive their daemon.
    let mark = format!("mark={folder}");
    let worker = |name, ms| actor(name, &[&mark, ms, "prepare-ms=2"]) as Arc<dyn Device>;
    let devices = vec![worker("a", "prove-ms=5"), worker("b", "prove-ms=15")];
    // Those that had ended, but not said so, when the daemon before was killed, and the open ones.
    let mut jobs = store.ended_jobs().unwrap();
    jobs.extend(store.open_jobs().unwrap().into_iter().map(|open| open.job));
    let service = Service::start(
        settings(),
        Arc::clone(&store) as Arc<dyn Store>,
        Arc::new(KnowingJudge),
        devices,
    )
    .unwrap();
    say("ready");
    match mode {
        "load" => load(&service, &arguments[2]),
        _ => {
            for job in jobs {
                ended(&job.name, &wait(&service, job.id));
            }
            assert!(store.open_jobs().unwrap().is_empty());
            say("drained");
            ExitCode::SUCCESS
        }
    }
}

fn load(service: &Service, number: &str) -> ExitCode {
    let mut open: VecDeque<Admission> = VecDeque::new();
    for i in 0_u32.. {
        let name = format!("job-{number}-{i}");
        // On a full disk storing the payload fails, or the submission.
        let accepted = submission(service, &name, units(i)).and_then(|job| service.submit(job));
        match accepted {
            Ok(admission) => {
                say(&format!("accepted {name} {}", admission.job));
                open.push_back(admission);
            }
            Err(error) => {
                say(&format!("refused {} {error}", error.code()));
                std::thread::sleep(MOMENT);
            }
        }
        while let Some(oldest) = open.front().filter(|_| open.len() >= OPEN) {
            // With a full disk it does not end now.
            let Waited::Ended(finished) = service.wait(oldest.job, Some(MOMENT)).unwrap() else {
                break;
            };
            ended(&oldest.name, &finished);
            open.pop_front();
        }
    }
    ExitCode::SUCCESS
}

/// How many units the i-th job has.
pub fn units(i: u32) -> u32 {
    1 + i % 4
}

fn wait(service: &Service, job: store::JobId) -> Finished {
    match service.wait(job, Some(LONG)).unwrap() {
        Waited::Ended(finished) => *finished,
        Waited::TimedOut => panic!("{job} does not end"),
    }
}

fn ended(name: &str, finished: &Finished) {
    let proof = finished.proof.as_deref().unwrap_or_default();
    let failure = &finished.record.failure;
    assert_eq!(finished.record.state, JobState::Completed, "{failure:?}");
    say(&format!("ended {name} {}", Digest::of(proof)));
}
