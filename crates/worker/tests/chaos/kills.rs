//! Processes killed at random moments, and a store that cannot be used.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use rustix::process::{Pid, Signal, kill_process};
use store::{Digest, JobState, SqliteStore, Store};

use crate::times;
use crate::world::{World, actor, eventually, payload, processes, right_job_proof, settings};

fn random_ms(rng: &mut ChaCha8Rng, least: u32, most: u32) -> Duration {
    Duration::from_millis((least + rng.next_u32() % (most - least)).into())
}

pub fn workers() {
    let kills = times(30, 8);
    let devices = vec![
        actor("a", &["prepare-ms=5", "prove-ms=10"]),
        actor("b", &["prepare-ms=5", "prove-ms=25"]),
    ];
    let world = World::new(settings(), devices);
    let killing = AtomicBool::new(true);
    let jobs = std::thread::scope(|scope| {
        let (killing, world) = (&killing, &world);
        scope.spawn(move || {
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let mut killed = 0;
            while killed < kills {
                std::thread::sleep(random_ms(&mut rng, 0, 200));
                let device = &world.devices[rng.next_u32() as usize % 2];
                let Some(pid) = device
                    .pid()
                    .and_then(|pid| Pid::from_raw(pid.cast_signed()))
                else {
                    continue;
                };
                if kill_process(pid, Signal::KILL).is_ok() {
                    killed += 1;
                }
            }
            killing.store(false, Ordering::SeqCst);
        });
        let mut jobs = Vec::new();
        while killing.load(Ordering::SeqCst) {
            let number = jobs.len();
            let units = 1 + u32::try_from(number % 5).unwrap();
            jobs.push(world.submit(&format!("job {number}"), units));
            if let Some(earlier) = number.checked_sub(8) {
                world.completes(&jobs[earlier]);
            }
        }
        jobs
    });
    jobs.iter().for_each(|job| world.completes(job));
    let status = world.service().status();
    let totals: u64 = status.totals.values().map(|totals| totals.completed).sum();
    assert_eq!(totals, jobs.len() as u64);
    println!("{kills} workers killed, {} jobs, all right", jobs.len());
}

fn start(mode: &str, folder: &Path, number: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["daemon", mode])
        .arg(folder)
        .arg(number.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn output_of(child: &mut Child) -> BufReader<ChildStdout> {
    BufReader::new(child.stdout.take().unwrap())
}

/// What daemons have said.
#[derive(Default)]
struct Said {
    accepted: BTreeMap<String, String>,
    ended: BTreeMap<String, String>,
    refused: Vec<String>,
    ready: usize,
}

impl Said {
    fn note(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["accepted", name, job] => {
                let before = self.accepted.insert(name.to_owned(), job.to_owned());
                assert!(before.is_none(), "{name} is accepted twice");
            }
            ["ended", name, digest] => {
                let before = self.ended.insert(name.to_owned(), digest.to_owned());
                assert!(
                    before.is_none_or(|before| before == digest),
                    "{name}: other bytes"
                );
            }
            ["refused", ..] => self.refused.push(line.to_owned()),
            ["ready"] => self.ready += 1,
            _ => {}
        }
    }

    /// Notes all that is said until the end, or until a job is accepted.
    fn note_all(&mut self, output: &mut impl BufRead, until_accepted: bool) {
        let before = self.accepted.len();
        // The line that was being written when the process died has no end.
        for line in output.split(b'\n').map_while(Result::ok) {
            self.note(&String::from_utf8_lossy(&line));
            if until_accepted && self.accepted.len() > before {
                return;
            }
        }
        assert!(!until_accepted, "a daemon ended that nobody had killed");
    }
}

/// Lets a daemon without load end what is open.
fn drain(folder: &Path, said: &mut Said) {
    let mut child = start("drain", folder, 0);
    said.note_all(&mut output_of(&mut child), false);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}

/// Every accepted job has ended once, with the right bytes, and those are the reported ones.
fn all_is_well(folder: &Path, said: &Said) {
    let store = SqliteStore::open(folder).unwrap();
    assert!(store.open_jobs().unwrap().is_empty());
    let jobs = store.ended_jobs().unwrap();
    let by_name: BTreeMap<_, _> = jobs.iter().map(|job| (job.name.clone(), job)).collect();
    assert_eq!(by_name.len(), jobs.len());
    for (name, id) in &said.accepted {
        let job = by_name
            .get(name)
            .unwrap_or_else(|| panic!("{name} is lost"));
        assert_eq!(job.id.to_string(), *id, "{name}");
        assert_eq!(job.state, JobState::Completed, "{name}: {:?}", job.failure);
        let proof = store.proof(job.id).unwrap().unwrap();
        assert_eq!(proof, right_job_proof(&job.digest, job.units), "{name}");
        if let Some(reported) = said.ended.get(name) {
            assert_eq!(*reported, Digest::of(&proof).to_string(), "{name}");
        }
    }
}

pub fn daemon() {
    let kills = times(30, 6);
    let folder = tempfile::tempdir().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    let mut said = Said::default();
    for number in 0..kills {
        let mut child = start("load", folder.path(), number);
        let mut output = output_of(&mut child);
        // One of three at any moment of its start, the others under load.
        if number % 3 > 0 {
            said.note_all(&mut output, true);
        }
        std::thread::sleep(random_ms(&mut rng, 0, 500));
        child.kill().unwrap();
        child.wait().unwrap();
        said.note_all(&mut output, false);
    }
    drain(folder.path(), &mut said);
    all_is_well(folder.path(), &said);
    // Workers notice that their daemon is gone.
    let mark = folder.path().to_string_lossy().into_owned();
    eventually("workers end with their daemon", || {
        processes(&mark).is_empty()
    });
    println!(
        "{kills} daemons killed ({} ready), {} jobs accepted, {} reported, all right",
        said.ready,
        said.accepted.len(),
        said.ended.len()
    );
}

/// Runs a daemon under load on a small file system of its own, if the system lets us make one, or
/// else under a limit on the size of files; then makes room, and drains.
fn on_a_small_disk(folder: &Path) -> Command {
    let folder = folder.display();
    let mount = format!("mount -t tmpfs -o size=3m tmpfs '{folder}'");
    let can_mount = Command::new("unshare")
        .args(["-rm", "sh", "-c", &mount])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    println!("a file system of its own: {can_mount}");
    let load = format!("\"$@\" load '{folder}/store' 0");
    let drain = format!("\"$@\" drain '{folder}/store'");
    let ballast = format!("'{folder}/ballast'");
    let (program, script) = if can_mount {
        let script = format!(
            "{mount} && head -c 1000000 /dev/zero > {ballast} && {{ {load}; rm {ballast}; {drain}; }}"
        );
        ("unshare", script)
    } else {
        let limited = format!("(trap '' XFSZ; ulimit -f 600; {load})");
        ("sh", format!("{limited}; {drain}"))
    };
    let mut command = Command::new(program);
    if can_mount {
        command.args(["-rm", "sh"]);
    }
    command.args(["-c", &script, "sh"]);
    command
}

/// The store fills up under load: what was accepted before is proven once there is room, nothing
/// is accepted that could not be stored, and the refusal says why.
pub fn full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = on_a_small_disk(folder.path())
        .arg(std::env::current_exe().unwrap())
        .arg("daemon")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = Said::default();
    let output = BufReader::new(child.stdout.take().unwrap());
    let began = Instant::now();
    let mut drained = false;
    for line in output.lines().map_while(Result::ok) {
        assert!(began.elapsed() < Duration::from_secs(120), "it hangs");
        drained |= line == "drained";
        said.note(&line);
        if said.refused.len() == 5 && said.ready == 1 {
            // Enough of it: the daemon is killed while the disk is full.
            for pid in processes(&format!("load\0{}", folder.path().display())) {
                let pid = Pid::from_raw(pid.cast_signed()).unwrap();
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
    assert!(child.wait().unwrap().success() && drained);
    assert!(!said.accepted.is_empty() && !said.refused.is_empty());
    let names_it = |line: &String| {
        let known = ["DISK_FULL", "STORE_UNAVAILABLE", "STORE_IO"];
        known.iter().any(|code| line.contains(code))
    };
    assert!(said.refused.iter().all(names_it), "{:?}", said.refused);
    for name in said.accepted.keys() {
        let digest = Digest::of(&payload(name));
        let number = name.rsplit('-').next().unwrap().parse().unwrap();
        let proof = right_job_proof(&digest, crate::daemon::units(number));
        let reported = said
            .ended
            .get(name)
            .unwrap_or_else(|| panic!("{name} is lost"));
        assert_eq!(*reported, Digest::of(&proof).to_string(), "{name}");
    }
    let first = &said.refused[0];
    println!(
        "{} jobs accepted and ended, then: {first}",
        said.accepted.len()
    );
}

pub fn store_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let _holder = SqliteStore::open(folder.path()).unwrap();
    let began = Instant::now();
    let second = start("load", folder.path(), 0).wait_with_output().unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "it says so at once"
    );
    assert!(!second.status.success());
    let errors = String::from_utf8_lossy(&second.stderr);
    assert!(errors.contains("STORE_IN_USE"), "{errors}");
}
