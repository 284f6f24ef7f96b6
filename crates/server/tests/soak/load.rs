//! The load: clients that upload, follow and compare; and the judgement of the measurements.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use filecoin::{CircuitId, SubmitProofRequest};
use instances::Instance;
use server::Address;
use server::client::{Client, Followed, Options as ClientOptions};
use server::proto::v1::await_proof_response::Status;
use store::Digest;

use crate::measure::{Taken, taken};
use crate::{Options, right_proof};

/// One job in so many is submitted a second time when it has ended.
const REPEAT: u64 = 20;
/// How much more than in the middle third of the run may be taken in the last.
const GROWTH: f64 = 1.15;
/// What is no growth: a request or two, and what allocators keep.
const NOISE_BYTES: u64 = 192 << 20;
const NOISE: u64 = 16;

struct Plan {
    jobs: u64,
    span: Duration,
    clients: u64,
    units: u32,
    request: SubmitProofRequest,
    address: Address,
}

/// Runs it. See the [program](crate).
pub fn run(options: &Options) -> ExitCode {
    let folder = match options.path("folder") {
        Some(parent) => tempfile::tempdir_in(parent).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let circuit = CircuitId::parse(options.text("circuit", "porep-32g")).unwrap();
    let minutes = options.number("minutes", 30);
    let span = Duration::from_secs(options.number("seconds", 60 * minutes));
    let bytes = usize::try_from(options.number("bytes", 51_000_000)).unwrap();
    let began = Instant::now();
    let request = Instance::new(circuit, 1).request().unwrap();
    let mut request = instances::submit(&request, "soak");
    pad(&mut request, bytes);
    println!("a request of {circuit} in {:.1?}", began.elapsed());
    let mut daemon = start(options, folder.path(), span);
    let plan = Plan {
        jobs: options.number("jobs", 2_400),
        span,
        clients: options.number("clients", 12),
        units: u32::try_from(circuit.partitions()).unwrap(),
        request,
        address: format!("unix://{}", folder.path().join("grpc.sock").display())
            .parse()
            .unwrap(),
    };
    let (samples, failures) = drive(&plan, daemon.id(), folder.path());
    drop(daemon.stdin.take());
    let ended = daemon.wait().unwrap();
    judge(&samples, &failures, ended.success())
}

/// Blanks at the end of a PoRep's JSON change nothing, and bytes after a PoSt's entry neither.
fn pad(request: &mut SubmitProofRequest, bytes: usize) {
    let proof = match request.vanilla_proofs.last_mut() {
        Some(last) => last,
        None => &mut request.vanilla_proof,
    };
    let length = proof.len().max(bytes);
    proof.resize(length, b' ');
}

fn start(options: &Options, folder: &Path, span: Duration) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    // What is kept is gone after a sixth of the run at most, or five minutes.
    let grace = (span / 6).min(Duration::from_secs(300)).as_millis();
    let sweep = (span / 30).min(Duration::from_secs(60)).as_millis();
    command
        .arg("daemon")
        .arg(format!("folder={}", folder.display()))
        .args([format!("grace-ms={grace}"), format!("sweep-ms={sweep}")]);
    for key in ["workers", "unit-ms", "results"] {
        command.args(
            options
                .path(key)
                .map(|value| format!("{key}={}", value.display())),
        );
    }
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

/// Lets the clients work and measures meanwhile. Returns what was measured and what failed.
fn drive(plan: &Plan, daemon: u32, folder: &Path) -> (Vec<Taken>, Vec<String>) {
    let began = Instant::now();
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let over = AtomicBool::new(false);
    let failures = Mutex::new(Vec::new());
    let client = || {
        let mut client = Client::connect(&plan.address, &ClientOptions::default()).unwrap();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= plan.jobs {
                return;
            }
            // Evenly over the time, however quick the daemon is.
            let due = plan.span.mul_f64(number as f64 / plan.jobs as f64);
            std::thread::sleep(due.saturating_sub(began.elapsed()));
            match prove(&mut client, plan, number) {
                Ok(()) => drop(done.fetch_add(1, Ordering::Relaxed)),
                Err(cause) => failures
                    .lock()
                    .unwrap()
                    .push(format!("job {number}: {cause}")),
            }
        }
    };
    let period = (plan.span / 180).clamp(Duration::from_millis(50), Duration::from_secs(10));
    let watch = || {
        let mut samples = Vec::new();
        while !over.load(Ordering::Relaxed) {
            let sample = taken(began.elapsed().as_secs_f64(), daemon, folder);
            // A line for every eighteenth part of the run.
            if samples.len() % 10 == 0 {
                show(&sample, done.load(Ordering::Relaxed));
            }
            samples.push(sample);
            std::thread::sleep(period);
        }
        samples
    };
    let samples = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..plan.clients).map(|_| scope.spawn(client)).collect();
        let watching = scope.spawn(watch);
        for client in clients {
            client.join().unwrap();
        }
        over.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    });
    println!(
        "{} jobs of {} units in {:.1?}",
        done.load(Ordering::Relaxed),
        plan.units,
        began.elapsed()
    );
    (samples, failures.into_inner().unwrap())
}

/// One job from its upload to the comparison of its bytes.
fn prove(client: &mut Client, plan: &Plan, number: u64) -> Result<(), String> {
    let mut request = plan.request.clone();
    request.request_id = format!("soak-{number}");
    // Each has bytes of its own.
    let bytes = match request.vanilla_proofs.last() {
        Some(last) => last.len(),
        None => request.vanilla_proof.len(),
    };
    pad(&mut request, bytes + usize::try_from(number).unwrap());
    let digest = Digest::of(&request.to_payload());
    let expected: Vec<u8> = (0..plan.units)
        .flat_map(|index| right_proof(&digest, index))
        .collect();
    let times = if number.is_multiple_of(REPEAT) { 2 } else { 1 };
    for _ in 0..times {
        let job = client
            .upload(request.clone(), 0)
            .map_err(|e| e.to_string())?;
        let followed = client.follow(&job.job_id, None, |_| ());
        let Followed::Ended(result) = followed.map_err(|e| e.to_string())? else {
            return Err("no end".to_owned());
        };
        if result.status() != Status::Completed {
            return Err(format!("{:?}: {}", result.status(), result.error_message));
        }
        if result.proof != expected {
            return Err("other bytes".to_owned());
        }
    }
    Ok(())
}

fn megabytes(bytes: u64) -> u64 {
    bytes >> 20
}

fn show(sample: &Taken, done: u64) {
    println!(
        "{:7.1} s  {done:5} jobs  daemon {:5} MiB, {:3} handles, {:3} threads  workers {:5} MiB  disk {:6} MiB",
        sample.at,
        megabytes(sample.memory),
        sample.handles,
        sample.threads,
        megabytes(sample.workers),
        megabytes(sample.disk),
    );
}

/// Its name, where it is, and what is no growth of it.
type Quantity = (&'static str, fn(&Taken) -> u64, u64);

/// Whether anything failed or grew.
fn judge(samples: &[Taken], failures: &[String], ended: bool) -> ExitCode {
    let mut good = failures.is_empty() && ended;
    for failure in failures.iter().take(10) {
        println!("FAILED {failure}");
    }
    if !ended {
        println!("FAILED the daemon did not end in order");
    }
    let third = samples.len() / 3;
    let quantities: [Quantity; 5] = [
        ("memory of the daemon", |taken| taken.memory, NOISE_BYTES),
        ("memory of the workers", |taken| taken.workers, NOISE_BYTES),
        ("file handles", |taken| taken.handles, NOISE),
        ("threads", |taken| taken.threads, NOISE),
        ("disk", |taken| taken.disk, NOISE_BYTES),
    ];
    for (name, pick, noise) in quantities {
        let most = |part: &[Taken]| part.iter().map(pick).max().unwrap_or(0);
        let before = most(&samples[third..2 * third]);
        let after = most(&samples[2 * third..]);
        let flat = after as f64 <= before as f64 * GROWTH + noise as f64;
        let verdict = if flat { "flat" } else { "FAILED: grows" };
        println!("{name}: at most {before} in the middle third, {after} in the last: {verdict}");
        good &= flat;
    }
    if good {
        println!("soak: all right");
        ExitCode::SUCCESS
    } else {
        println!("soak: FAILED");
        ExitCode::FAILURE
    }
}
