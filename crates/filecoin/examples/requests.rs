//! Writes `examples/requests/`: one request file per kind of proof, from the fixtures.

use std::fs;
use std::io;
use std::path::Path;

use filecoin::support::fixtures;

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/requests");
    fs::create_dir_all(&folder)?;
    for (file, name) in fixtures::EXAMPLES {
        let submit = fixtures::fixture(name).submits().remove(0);
        let json: serde_json::Value = serde_json::from_slice(&submit.to_json())?;
        let mut text = serde_json::to_string_pretty(&json)?;
        text.push('\n');
        fs::write(folder.join(file), text)?;
    }
    Ok(())
}
