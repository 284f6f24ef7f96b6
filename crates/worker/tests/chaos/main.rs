//! What must not happen, whatever fails: a job lost, a job with other bytes, a hang.
//!
//! The program is also the processes that it kills: `chaos worker …` speaks the worker's protocol
//! and makes up proofs (or replays stored ones), `chaos daemon …` is a service with two such
//! workers under load. With `CUZK_CHAOS=full` everything is done as often as a release asks for;
//! without, in seconds.

#![allow(clippy::unwrap_used, reason = "test code")]

mod daemon;
mod kills;
mod proofs;
mod units;
mod worker;
mod world;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("worker") => return worker::run(&arguments[1..]),
        Some("daemon") => return daemon::run(&arguments[1..]),
        _ => {}
    }
    let tests: [(&str, fn()); 14] = [
        ("workers_killed_at_random_moments", kills::workers),
        ("the_daemon_killed_at_random_moments", kills::daemon),
        ("a_full_disk", kills::full_disk),
        ("a_store_in_use", kills::store_in_use),
        ("a_wrong_proof_is_made_again_elsewhere", units::wrong_proof),
        ("a_unit_that_hangs", units::hanging),
        ("a_process_that_is_frozen", units::frozen),
        ("a_prover_that_stands_still", units::stalled),
        ("garbage_on_the_pipe", units::garbage),
        ("a_worker_that_cannot_start", units::cannot_start),
        ("a_damaged_payload", units::damaged_payload),
        ("stopping_lets_units_end", units::stopping),
        ("winning_goes_first", units::lane),
        ("real_proofs_are_judged", proofs::judged),
    ];
    let trials = tests.into_iter().map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    let mut arguments = Arguments::from_args();
    // Each has processes of its own; side by side they would fight for two cores.
    arguments.test_threads.get_or_insert(1);
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// How often something is done: a release's number, or that of every change.
fn times(full: usize, quick: usize) -> usize {
    match std::env::var("CUZK_CHAOS").as_deref() {
        Ok("full") => full,
        _ => quick,
    }
}
