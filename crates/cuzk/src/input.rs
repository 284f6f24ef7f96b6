//! Requests and proofs from files or standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use filecoin::decode::REQUEST_LIMIT;
use filecoin::{Decoded, Hints, Request};

use crate::cli::RequestArgs;
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Reads and decodes a request, and remarks on its oddities.
///
/// # Errors
/// `REQUEST_UNREADABLE`, or what decoding finds wrong, with the file's name.
pub fn request(output: Output, args: &RequestArgs) -> Result<Decoded, Failure> {
    let hints = Hints {
        miner_id: args.miner,
        sector_number: args.sector,
    };
    decode(output, &args.request, hints)
}

/// As [`request`], from any path.
///
/// # Errors
/// As [`request`].
pub fn decode(output: Output, path: &Path, hints: Hints) -> Result<Decoded, Failure> {
    // One byte over the limit is enough for the decoder to refuse it.
    let bytes = read(path, REQUEST_LIMIT + 1)
        .map_err(|e| unreadable("request", "REQUEST_UNREADABLE", path, &e))?;
    let decoded = Request::decode(&bytes, hints)
        .map_err(|e| Failure::from(e).about(&format!("cannot use the request {}", name(path))))?;
    for warning in &decoded.warnings {
        output.remark(&format!("warning: request {}: {warning}", name(path)));
    }
    Ok(decoded)
}

/// Reads at most `limit` bytes of a file, or of standard input for `-`.
///
/// # Errors
/// What the operating system says.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// The file's name for messages.
pub fn name(path: &Path) -> String {
    if path == Path::new("-") {
        "from standard input".into()
    } else {
        path.display().to_string()
    }
}

/// The failure of a file that cannot be read.
pub fn unreadable(what: &str, code: &'static str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        Exit::Input,
        code,
        format!("cannot read the {what} {}", name(path)),
        "check the path, and that this user may read it; `-` is standard input",
    )
    .because(error)
}
