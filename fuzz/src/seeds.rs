//! Writes the real fixtures and the malformed requests as seeds: `corpus/<target>/`.

use std::fs;
use std::io;
use std::path::Path;

use filecoin::ProofKind;
use filecoin::support::{corpus, fixtures};

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let (requests, proofs) = (root.join("request"), root.join("vanilla_proof"));
    fs::create_dir_all(&requests)?;
    fs::create_dir_all(&proofs)?;
    for case in corpus::requests() {
        fs::write(requests.join(case.name), &case.bytes)?;
    }
    for fixture in fixtures::all() {
        let name = fixture.name.replace('/', "-");
        let kind = match fixture.kind() {
            ProofKind::Window => 0,
            ProofKind::Winning => 1,
            ProofKind::Snap => 2,
            ProofKind::Porep => 3,
        };
        for (i, submit) in fixture.submits().iter().enumerate() {
            fs::write(requests.join(format!("{name}-{i}")), submit.to_json())?;
            for (k, proof) in submit.vanilla_proofs.iter().enumerate() {
                let mut seed = vec![(submit.registered_proof % 5) as u8, kind];
                seed.extend(proof);
                fs::write(proofs.join(format!("{name}-{i}-{k}")), seed)?;
            }
        }
    }
    Ok(())
}
