//! The program links none of the reference proof crates.

#![allow(clippy::unwrap_used, reason = "test code")]

use std::process::Command;

#[test]
fn no_reference_crate_is_linked() {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "-p",
            "cuzk",
            "-e",
            "normal",
        ])
        .args(["--prefix", "none", "--format", "{p}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let tree = String::from_utf8(output.stdout).unwrap();
    let names: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    // Crates of this workspace and what they need are there, so an empty answer does not pass.
    for needed in ["cuzk", "filecoin", "witness", "blst"] {
        assert!(names.contains(&needed), "{needed} is missing from {tree}");
    }
    for name in names {
        let reference = [
            "bellperson",
            "bellpepper",
            "neptune",
            "storage-proofs",
            "fr32",
        ]
        .iter()
        .any(|prefix| name.starts_with(prefix))
            || name.starts_with("filecoin-")
            || name == "filecoin_proofs";
        assert!(!reference, "cuzk links {name}");
    }
}
