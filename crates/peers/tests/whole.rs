//! Whole proofs against the reference: the same bytes for the same blinding scalars, and every
//! kind of proof taken by the reference's own verifiers.
//!
//! Keys are made once and shared. The other fixtures, the 8 MiB ones and the thirteen partitions
//! of the non-interactive PoRep run in `scripts/verify-full`.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::{
    process::Command,
    sync::{Mutex, PoisonError},
};

/// One at a time: a proof uses all cores, and two would need twice the memory.
static TURN: Mutex<()> = Mutex::new(());

/// Runs `peers verify`, in a process of its own because the reference crates read the folder of
/// their parameters from the environment once.
fn verify(arguments: &[&str]) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let output = Command::new(env!("CARGO_BIN_EXE_peers"))
        .arg("verify")
        .args(arguments)
        .output()
        .unwrap();
    println!("{}", String::from_utf8_lossy(&output.stdout));
    eprintln!("{}", String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success(),
        "peers verify {arguments:?}: {}",
        output.status
    );
}

#[test]
#[ignore = "minutes of bellperson; scripts/verify-full compares all four kinds"]
fn porep_has_the_reference_bytes() {
    verify(&["--bytes", "--only", "2KiB/porep-v1_1-b"]);
}

#[test]
#[ignore = "a minute of bellperson; scripts/verify-full compares all four kinds"]
fn snap_has_the_reference_bytes() {
    verify(&["--bytes", "--only", "2KiB/empty-sector-update-b"]);
}

#[test]
fn winning_has_the_reference_bytes() {
    verify(&["--bytes", "--only", "2KiB/winning-post-b"]);
}

#[test]
fn window_has_the_reference_bytes() {
    verify(&["--bytes", "--only", "2KiB/window-post-1-partition"]);
}

#[test]
fn the_reference_takes_one_proof_of_every_kind() {
    verify(&[
        "--only",
        "2KiB/porep-v1_1-synthetic,2KiB/empty-sector-update-a,2KiB/winning-post-a,\
         2KiB/window-post-v1,2KiB/window-post-1-sector,2KiB/window-post-2-partitions",
    ]);
}
