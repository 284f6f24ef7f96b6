//! The stable codes of errors on the wire; `docs/daemon.md` is printed from here.

/// A code: where it is seen, and what it means.
pub struct Code {
    /// As in `google.rpc.ErrorInfo.reason`, the trailer `cuzk-error-code`, and
    /// `AwaitProofResponse.error_code`.
    pub name: &'static str,
    /// What a client may do: `later` (the same again), `again` (submit the request again), `no`
    /// (something must be changed first).
    pub retry: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

const fn code(name: &'static str, retry: &'static str, meaning: &'static str) -> Code {
    Code {
        name,
        retry,
        meaning,
    }
}

/// All of them, by what they are about.
pub const CODES: &[Code] = &[
    // The request.
    code("ALL_ZERO", "no", "a value that must not be zero is"),
    code("BAD_COMPRESSION", "no", "the compressed request is damaged"),
    code(
        "BAD_FIELD",
        "no",
        "a field of the request has no valid value",
    ),
    code(
        "BAD_JSON",
        "no",
        "the JSON of the vanilla proof cannot be read",
    ),
    code(
        "BAD_VANILLA_PROOF",
        "no",
        "the binary vanilla proof cannot be read",
    ),
    code(
        "CHECK_FAILED",
        "no",
        "the vanilla proof is wrong: it proves something else, or nothing",
    ),
    code("EMPTY_INPUT", "no", "the request has no content"),
    code("MISMATCH", "no", "two parts of the request disagree"),
    code(
        "MISSING_FIELD",
        "no",
        "a field that the kind needs is missing",
    ),
    code(
        "NI_POREP_UNSUPPORTED",
        "no",
        "a non-interactive PoRep, which cannot be aggregated here",
    ),
    code(
        "NOT_CANONICAL",
        "no",
        "a value is not the canonical form of a field element",
    ),
    code(
        "NO_SUCH_PARTITION",
        "no",
        "the request has no partition of this number",
    ),
    code("PROOF_LENGTH", "no", "proof bytes of a wrong length"),
    code(
        "PROOF_POINT",
        "no",
        "proof bytes that are no point of the curve",
    ),
    code(
        "REQUEST_INVALID",
        "no",
        "the request cannot be proven; found after it was accepted",
    ),
    code("TOO_LARGE", "no", "the request is larger than any can be"),
    code("UNKNOWN_CIRCUIT", "no", "there is no circuit of this name"),
    code("UNKNOWN_FORM", "no", "the request is in no known form"),
    code(
        "UNKNOWN_KIND",
        "no",
        "there is no kind of proof of this number",
    ),
    code(
        "UNKNOWN_PROOF_NUMBER",
        "no",
        "the kind has no registered proof of this number",
    ),
    code(
        "WRONG_COUNT",
        "no",
        "the request has a wrong number of parts",
    ),
    // The upload.
    code(
        "PAYLOAD_TOO_LARGE",
        "no",
        "the request is larger than `limits.max_message_bytes`",
    ),
    code(
        "UPLOAD_DIGEST",
        "again",
        "what came has not the digest of the header",
    ),
    code(
        "UPLOAD_INVALID",
        "no",
        "the parts of an upload are not what the header says",
    ),
    code("UPLOAD_STALLED", "again", "no piece has come for a minute"),
    // Admission.
    code(
        "BUDGET_EXCEEDED",
        "no",
        "one unit needs more memory than `memory.total_budget`",
    ),
    code("DEADLINE_EXCEEDED", "no", "the deadline has passed"),
    code(
        "NO_DEVICE",
        "later",
        "no device in service can prove the circuit",
    ),
    code(
        "QUEUE_BYTES_FULL",
        "later",
        "`limits.max_payload_bytes` is reached",
    ),
    code("QUEUE_FULL", "later", "`limits.max_jobs` is reached"),
    code(
        "SHUTTING_DOWN",
        "later",
        "the daemon ends; open jobs go on at its next start",
    ),
    // The key.
    code(
        "KEY",
        "no",
        "the key cannot be used for another reason, named in the message",
    ),
    code("KEY_NOT_LOADED", "later", "a worker could not load the key"),
    code(
        "PARAMS_CHANGED",
        "no",
        "a parameter file changed while it was in use",
    ),
    code("PARAMS_CORRUPT", "no", "a parameter file is damaged"),
    code(
        "PARAMS_MISSING",
        "no",
        "a parameter file is not in the folders",
    ),
    code(
        "PARAMS_OTHER_CIRCUIT",
        "no",
        "a parameter file is of another circuit",
    ),
    code(
        "PARAMS_PAIR_MISMATCH",
        "no",
        "`.params` and `.vk` do not belong together",
    ),
    code("PARAMS_UNREADABLE", "no", "a parameter file cannot be read"),
    code(
        "PARAMS_UNTRUSTED",
        "no",
        "a parameter file is not the published one",
    ),
    code(
        "PARAMETERS_UNUSABLE",
        "no",
        "a worker could not use the parameter file",
    ),
    code(
        "TEST_KEY_MISMATCH",
        "no",
        "a test key is not what its side file says",
    ),
    code(
        "TEST_KEY_NOT_ALLOWED",
        "no",
        "a test key, and `srs.allow_test_keys` is off",
    ),
    // The work.
    code(
        "ASSEMBLY_FAILED",
        "again",
        "the proofs of a job could not be joined",
    ),
    code(
        "PAYLOAD_DAMAGED",
        "again",
        "the stored request is damaged; submitting it heals it",
    ),
    code(
        "PROOF_WRONG",
        "again",
        "two devices made wrong proofs of the same unit",
    ),
    code(
        "UNIT_FAILED",
        "again",
        "a unit was tried as often as allowed",
    ),
    // The result.
    code(
        "JOB_NOT_FOUND",
        "no",
        "there is no such job, or its result is no longer kept",
    ),
    code(
        "RESULT_EXPIRED",
        "again",
        "the result went while it was asked for",
    ),
    // The store.
    code("DISK_FULL", "later", "no space for the store"),
    code("STORE_BUSY", "later", "another program holds the database"),
    code("STORE_CONFLICT", "later", "another engine was faster"),
    code("STORE_DAMAGED", "no", "the database is damaged"),
    code(
        "STORE_DATABASE",
        "no",
        "an answer of the database that nobody expected",
    ),
    code("STORE_FOREIGN", "no", "the database is another program's"),
    code("STORE_IN_USE", "no", "another daemon has the store"),
    code("STORE_IO", "later", "the file system refuses"),
    code("STORE_SCHEMA", "no", "the database is of a newer version"),
    code("STORE_UNAVAILABLE", "later", "the job could not be stored"),
    // Defects and the machine.
    code("CIRCUIT_DAMAGED", "no", "the program is damaged"),
    code(
        "INTERNAL",
        "later",
        "a defect; the log of the daemon tells more",
    ),
    code("MEMORY", "later", "no memory"),
    code("THREAD", "later", "a thread could not be started"),
    code(
        "UNKNOWN",
        "again",
        "a job failed and the store does not say why",
    ),
];

/// All codes as a table in Markdown, as `docs/daemon.md` has it.
#[cfg(test)]
fn markdown() -> String {
    let mut text = "| code | retry | meaning |\n| --- | --- | --- |\n".to_owned();
    for code in CODES {
        let Code {
            name,
            retry,
            meaning,
        } = code;
        text.push_str(&format!("| `{name}` | {retry} | {meaning} |\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// `docs/daemon.md` has the table that the code prints. After a change, run this test with
    /// `UPDATE_DOCS=1`.
    #[test]
    fn the_documentation_lists_every_code() {
        const BEGIN: &str = "<!-- codes: printed by the code -->\n";
        const END: &str = "<!-- end of codes -->\n";
        let path = root().join("docs/daemon.md");
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, rest) = text.split_once(BEGIN).unwrap();
        let (table, after) = rest.split_once(END).unwrap();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let text = format!("{before}{BEGIN}{}{END}{after}", markdown());
            std::fs::write(&path, text).unwrap();
        } else {
            assert_eq!(table, markdown());
        }
    }

    /// Literals in the form of a code, outside tests.
    fn literals(path: &Path, found: &mut BTreeSet<String>) {
        let text = std::fs::read_to_string(path).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
        {
            let quoted = line.split('"').skip(1).step_by(2);
            let is_code = |text: &&str| {
                let plain = |c: char| c.is_ascii_uppercase() || c == '_';
                text.len() > 2 && text.chars().all(plain)
            };
            found.extend(quoted.filter(is_code).map(str::to_owned));
        }
    }

    fn sources(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                literals(&path, found);
            }
        }
    }

    /// Every place where a code of the wire is written has only codes of the list, and the list
    /// has no others.
    #[test]
    fn the_list_is_that_of_the_sources() {
        let crates = root().join("crates");
        let mut found = BTreeSet::new();
        for file in [
            "engine/src/error.rs",
            "engine/src/scheduler/refusal.rs",
            "store/src/error.rs",
            "filecoin/src/error.rs",
            "cuzk/src/daemon/fleet.rs",
        ] {
            literals(&crates.join(file), &mut found);
        }
        sources(&crates.join("server/src/grpc"), &mut found);
        // Of what a command can fail with: what the look at a key can. The others are those of
        // making keys, and of proving, which workers do.
        let mut commands = BTreeSet::new();
        literals(&crates.join("cuzk/src/failure/map.rs"), &mut commands);
        let of_keys = |code: &String| {
            let making = ["PARAMS_EXIST", "PARAMS_MIXED_FOLDER"];
            (code.starts_with("PARAMS_") && !making.contains(&code.as_str()))
                || code.starts_with("TEST_KEY_")
                || ["KEY", "MEMORY"].contains(&code.as_str())
        };
        found.extend(commands.into_iter().filter(of_keys));
        let listed: BTreeSet<String> = CODES.iter().map(|code| code.name.to_owned()).collect();
        assert_eq!(listed.len(), CODES.len(), "a code is there twice");
        let missing: Vec<_> = found.difference(&listed).collect();
        let unknown: Vec<_> = listed.difference(&found).collect();
        assert!(missing.is_empty(), "not in the list: {missing:?}");
        assert!(unknown.is_empty(), "in no source: {unknown:?}");
    }
}
