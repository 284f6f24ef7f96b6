//! `cuzk daemon` with its real CPU worker: proofs through the wire, ends in order and out of order.
//!
//! With `CUZK_CHAOS=full` it is killed as often as a release asks for; the ignored test takes a
//! PoRep, minutes on a small machine.

#![allow(clippy::unwrap_used, reason = "test code")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use common::{cuzk, run, test_keys, write_json};
use filecoin::registered::PostVersion;
use filecoin::support::fixtures::fixture;
use filecoin::{CircuitId, SubmitProofRequest};
use instances::Instance;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use server::Address;
use server::client::{Client, ClientError, Options};
use server::proto::v1::{AwaitProofResponse, await_proof_response::Status};

/// No single step here may take longer; a PoRep on two cores takes about a minute.
const LONG: Duration = Duration::from_secs(600);

/// A folder with a configuration, and the keys of a circuit.
struct Desk {
    dir: tempfile::TempDir,
    keys: PathBuf,
}

impl Desk {
    fn new(circuit: &str) -> Self {
        Self::with(test_keys(circuit))
    }

    fn with(keys: PathBuf) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = format!(
            "[daemon]\nlisten = \"unix://{0}/grpc.sock\"\nstatus_listen = \"127.0.0.1:0\"\n\
             [store]\npath = \"{0}/store\"\n[memory]\nsafety_margin = \"100MiB\"\n\
             [srs]\nparam_cache = \"{1}\"\nallow_test_keys = true\n",
            dir.path().display(),
            keys.display()
        );
        fs::write(dir.path().join("cuzk.toml"), config).unwrap();
        Self { dir, keys }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, first: &[&str]) -> Command {
        let mut command = cuzk();
        command.env("NOTIFY_SOCKET", self.path("notify"));
        command.args(first).arg("-c").arg(self.path("cuzk.toml"));
        let log = self.path("log");
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        command.stdout(Stdio::null()).stderr(log);
        command
    }

    fn start(&self) -> Daemon {
        let mut command = self.command(&["daemon", "--device", "cpu"]);
        Daemon(command.spawn().unwrap())
    }

    /// Connects as soon as the daemon listens.
    fn client(&self) -> Client {
        let address: Address = format!("unix://{}", self.path("grpc.sock").display())
            .parse()
            .unwrap();
        let began = Instant::now();
        loop {
            let client = Client::connect(&address, &Options::default());
            match client.and_then(|mut client| client.status().map(|_| client)) {
                Ok(client) => return client,
                Err(error) if began.elapsed() > LONG => panic!("{error}\n{}", self.log()),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// The proof bytes of a completed job.
    fn proof(&self, answer: &AwaitProofResponse) -> Vec<u8> {
        assert_eq!(
            answer.status(),
            Status::Completed,
            "{answer:?}\n{}",
            self.log()
        );
        assert!(answer.total_ms >= answer.gpu_compute_ms / 2, "{answer:?}");
        answer.proof.clone()
    }

    /// Verifies a proof by the command, apart from the daemon.
    fn verify(&self, submit: &SubmitProofRequest, proof: &[u8]) {
        let request: serde_json::Value = serde_json::from_slice(&submit.to_json()).unwrap();
        let request = write_json(self.dir.path(), "request.json", &request);
        let file = self.path("proof");
        fs::write(&file, proof).unwrap();
        let arguments = [
            "verify".as_ref(),
            request.as_os_str(),
            "--proof".as_ref(),
            file.as_os_str(),
            "--params".as_ref(),
            self.keys.as_os_str(),
            "--allow-test-keys".as_ref(),
        ];
        run(arguments).ok();
    }
}

/// A daemon that is killed when the test ends, however it does.
struct Daemon(Child);

impl Daemon {
    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.0.id().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn ends(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < LONG, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn submit(folder: &str, id: &str) -> SubmitProofRequest {
    let mut submit = fixture(folder).submits().remove(0);
    id.clone_into(&mut submit.request_id);
    submit
}

#[test]
fn a_prepared_key_alone_serves_its_circuit() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().to_str().unwrap();
    let arguments = [
        "params", "generate", "wpost-2k", "--test", "--device", "cpu",
    ];
    let form = ["--form", "prepared", "--params", keys];
    run([&arguments[..], &form].concat()).ok();
    let is_params = |entry: fs::DirEntry| entry.path().extension().is_some_and(|e| e == "params");
    let mut files = fs::read_dir(keys).unwrap().map(Result::unwrap);
    assert!(!files.any(is_params), "the prepared key is the only one");
    let desk = Desk::with(folder.path().to_owned());
    let submit = submit("2KiB/window-post-1-sector", "prepared");
    let _daemon = desk.start();
    let answer = desk.client().prove(submit.clone(), 0).unwrap();
    desk.verify(&submit, &desk.proof(&answer));
}

/// As Curio may send them: without a sector size, of a later partition, with fewer sectors than the
/// circuit takes, with both versions of challenges. The older ones depend on the partition's number.
#[test]
fn every_form_of_a_window_request() {
    let desk = Desk::new("wpost-2k");
    let mut submits = fixture("2KiB/window-post-2-partitions").submits();
    submits.remove(0);
    submits[0].partition_index = 1;
    let older = |seed| {
        let mut instance = Instance::new(CircuitId::parse("wpost-2k").unwrap(), seed);
        instance.window = PostVersion::WindowV1;
        instances::submit(&instance.request().unwrap(), "older")
    };
    let later = (1..20).map(older).find(|submit| submit.partition_index > 0);
    submits.push(later.unwrap());
    submits.push(submit("2KiB/window-post-1-sector", ""));
    let _daemon = desk.start();
    let mut client = desk.client();
    for mut submit in submits {
        submit.sector_size = 0;
        let answer = client.prove(submit.clone(), 0).unwrap();
        desk.verify(&submit, &desk.proof(&answer));
        if submit.registered_proof < 10 {
            // Another partition's vanilla proof is another one.
            submit.partition_index += 1;
            let answer = client.prove(submit, 0).unwrap();
            assert_eq!(answer.status(), Status::Failed, "{answer:?}");
        }
    }
}

/// Of both calls that ask for a key, each is the first to do so once.
#[test]
fn a_key_that_comes_after_the_start_is_found() {
    for proves_first in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let desk = Desk::with(folder.path().to_owned());
        let _daemon = desk.start();
        let mut client = desk.client();
        let submit = submit("2KiB/window-post-1-sector", "late");
        let refused = client.preload("wpost-2k").unwrap_err();
        let ClientError::Refused { code, .. } = refused else {
            panic!("{refused}");
        };
        assert_eq!(code.as_deref(), Some("PARAMS_MISSING"));
        let failed = client.prove(submit.clone(), 0).unwrap();
        assert_eq!(failed.error_code, "PARAMS_MISSING", "{failed:?}");
        for file in fs::read_dir(test_keys("wpost-2k")).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
        if proves_first {
            let answer = client.prove(submit, 0).unwrap();
            desk.proof(&answer);
        } else {
            assert!(!client.preload("wpost-2k").unwrap().already_loaded);
        }
    }
}

/// Workers that belong to this desk's folder.
fn workers(desk: &Desk) -> usize {
    let mark = desk.path("cuzk.toml").to_string_lossy().into_owned();
    let lines = fs::read_dir("/proc").unwrap().flatten().map(|entry| {
        let mut line = Vec::new();
        let file = fs::File::open(entry.path().join("cmdline"));
        let _ = file.map(|mut file| file.read_to_end(&mut line));
        String::from_utf8_lossy(&line).into_owned()
    });
    lines
        .filter(|line| line.contains("\0worker\0") && line.contains(&mark))
        .count()
}

fn proves(folder: &str, circuit: &str) {
    let desk = Desk::new(circuit);
    let submit = submit(folder, "job [1 2 3]");
    let mut daemon = desk.start();
    let mut client = desk.client();
    let answer = client.prove(submit.clone(), 0).unwrap();
    let proof = desk.proof(&answer);
    desk.verify(&submit, &proof);
    // The same question has the same answer, from the store.
    assert_eq!(client.prove(submit.clone(), 0).unwrap().proof, proof);
    let status = client.status().unwrap();
    assert_eq!(
        (status.gpus.len(), status.total_proofs_completed),
        (1, 1),
        "{status:?}"
    );
    assert_eq!(status.loaded_srs[0].circuit_id, circuit);
    let evicted = client.evict(circuit).unwrap();
    assert!(evicted.was_loaded && evicted.freed_bytes > 0, "{evicted:?}");
    assert!(!client.preload(circuit).unwrap().already_loaded);
    assert!(client.preload(circuit).unwrap().already_loaded);
    assert_eq!(workers(&desk), 1);

    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends().code(), Some(0), "{}", desk.log());
    assert_eq!(workers(&desk), 0, "{}", desk.log());

    // The result outlives the daemon.
    let mut daemon = desk.start();
    let mut client = desk.client();
    let answer = client.wait("job [1 2 3]", 60_000).unwrap();
    assert_eq!(desk.proof(&answer), proof);
    daemon.signal(Signal::INT);
    assert_eq!(daemon.ends().code(), Some(0), "{}", desk.log());
}

#[test]
fn a_window_proof_through_the_daemon() {
    proves("2KiB/window-post-1-sector", "wpost-2k");
}

#[test]
#[ignore = "minutes; scripts/verify-full runs it"]
fn a_porep_through_the_daemon() {
    proves("2KiB/porep-v1_1-a", "porep-2k");
}

#[test]
fn killed_at_random_moments_it_loses_no_job() {
    let kills: u64 = match std::env::var("CUZK_CHAOS").as_deref() {
        Ok("full") => 30,
        _ => 3,
    };
    let desk = Desk::new("wpost-2k");
    let mut accepted = Vec::new();
    let mut reported = BTreeMap::new();
    for round in 0..kills {
        let mut daemon = desk.start();
        let mut client = desk.client();
        for i in 0..3 {
            let id = format!("job {round} {i}");
            client
                .submit(submit("2KiB/window-post-1-sector", &id), 0)
                .unwrap();
            accepted.push(id);
        }
        // The moments differ by what the daemon does in them, and by the machine's load.
        std::thread::sleep(Duration::from_millis(round * 37 % 400));
        for id in &accepted {
            if let Ok(answer) = client.wait(id, 1)
                && answer.status() == Status::Completed
            {
                let before = reported.insert(id.clone(), answer.proof.clone());
                assert!(
                    before.is_none_or(|before| before == answer.proof),
                    "{id}: other bytes"
                );
            }
        }
        daemon.signal(Signal::KILL);
        daemon.ends();
    }
    let mut daemon = desk.start();
    let mut client = desk.client();
    let submit = submit("2KiB/window-post-1-sector", "");
    for id in &accepted {
        let answer = client
            .wait(id, u64::try_from(LONG.as_millis()).unwrap())
            .unwrap();
        let proof = desk.proof(&answer);
        let before = reported.insert(id.clone(), proof.clone());
        assert!(
            before.is_none_or(|before| before == proof),
            "{id}: other bytes"
        );
    }
    desk.verify(&submit, &reported[&accepted[0]]);
    println!("{kills} kills, {} jobs", accepted.len());
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends().code(), Some(0), "{}", desk.log());
    // Also the workers of the killed daemons have gone.
    assert_eq!(workers(&desk), 0);
}

#[test]
fn what_keeps_it_from_starting_is_said() {
    let desk = Desk::new("wpost-2k");
    let daemon = desk.start();
    let _ = desk.client();
    // The earlier daemon's command line. The store is in use.
    let mut second = Daemon(desk.command(&[]).arg("--log-level=warn").spawn().unwrap());
    assert_eq!(second.ends().code(), Some(5));
    let log = desk.log();
    assert!(log.contains("error: ") && log.contains("in use"), "{log}");
    drop(daemon);

    fs::write(desk.path("cuzk.toml"), "[daemon]\nlisten = 7\n").unwrap();
    let mut wrong = desk.start();
    assert_eq!(wrong.ends().code(), Some(2));
    assert!(desk.log().contains("daemon.listen"), "{}", desk.log());
}

/// As on a full disk: submissions are refused with the cause, nothing ends, and when there is room
/// again it goes on.
#[test]
fn a_limit_of_file_sizes_is_a_full_disk() {
    let desk = Desk::new("wpost-2k");
    let mut daemon = desk.start();
    let mut client = desk.client();
    let submit = |number: u32| submit("2KiB/window-post-1-sector", &format!("job {number}"));
    let answer = client.prove(submit(0), 0).unwrap();
    let proof = desk.proof(&answer);
    let limit = |bytes: Option<u64>| {
        let pid = Pid::from_raw(daemon.0.id().cast_signed());
        let limit = Rlimit {
            current: bytes,
            maximum: None,
        };
        prlimit(pid, Resource::Fsize, limit).unwrap();
    };
    limit(Some(1024));
    for number in 1..4 {
        let error = client.submit(submit(number), 0).unwrap_err();
        let ClientError::Refused { code, message, .. } = error else {
            panic!("{error}");
        };
        let code = code.unwrap();
        assert!(
            ["DISK_FULL", "STORE_UNAVAILABLE"].contains(&code.as_str()),
            "{message}"
        );
        assert!(message.contains("no space left"), "{message}");
    }
    client.status().unwrap();
    assert_eq!(client.wait("job 0", 0).unwrap().proof, proof);
    limit(None);
    let began = Instant::now();
    let answer = loop {
        match client.prove(submit(9), 0) {
            Ok(answer) => break answer,
            Err(error) => assert!(began.elapsed() < LONG, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    desk.proof(&answer);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends().code(), Some(0), "{}", desk.log());
}

#[test]
fn a_unit_that_runs_ends_before_the_daemon_does() {
    let desk = Desk::new("wpost-2k");
    let manager = UnixDatagram::bind(desk.path("notify")).unwrap();
    let mut daemon = desk.start();
    let told = std::thread::spawn(move || {
        let mut told = Vec::new();
        let mut buffer = [0; 64];
        while told.last().is_none_or(|state| state != "STOPPING=1") {
            let count = manager.recv(&mut buffer).unwrap();
            told.push(String::from_utf8_lossy(&buffer[..count]).into_owned());
        }
        told
    });
    let mut client = desk.client();
    let began = Instant::now();
    for i in 0..20 {
        let id = format!("job {i}");
        client
            .submit(submit("2KiB/window-post-1-sector", &id), 0)
            .unwrap();
    }
    while client.status().unwrap().total_proofs_completed == 0 {
        assert!(began.elapsed() < LONG, "{}", desk.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends().code(), Some(0), "{}", desk.log());
    assert!(desk.log().contains("drained=true"), "{}", desk.log());
    let told = told.join().unwrap();
    for state in ["READY=1", "WATCHDOG=1"] {
        assert!(told.iter().any(|said| said == state), "{told:?}");
    }
}
