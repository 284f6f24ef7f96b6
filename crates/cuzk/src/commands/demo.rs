//! `cuzk demo`: a real 2 KiB sector, proven and verified with test keys made on the spot.

use filecoin::{CircuitId, Hints, ProofKind, Request, SectorSize};
use groth16::key::{KeyError, KeySpec, KeyStore};

use crate::Context;
use crate::cli::DemoArgs;
use crate::commands::params::generate;
use crate::commands::{prove, verify};
use crate::failure::Failure;
use crate::phases::Phases;

/// The C2 input of a sector that was really sealed.
const C2_INPUT: &[u8] = include_bytes!("../../../../fixtures/2KiB/porep-v1_1-a/c2-input.json");
/// Its miner and sector number, which a C2 input does not hold.
const HINTS: Hints = Hints {
    miner_id: Some(857_192),
    sector_number: Some(83_832),
};
/// Everyone's seed: the demo shows how things work, not whom to trust.
const SEED: u64 = 0;

/// Runs the command.
pub fn run(context: &Context, args: &DemoArgs) -> Result<(), Failure> {
    let mut phases = Phases::start();
    let sink = prove::Sink::file(context, args.out.as_deref())?;
    let folder = context.config.test_keys();
    let store = KeyStore {
        folders: vec![folder.clone()],
        cache: Some(context.config.cache().to_owned()),
        // The one place where they are allowed without being asked for.
        allow_test_keys: true,
    };
    let id = CircuitId::new(ProofKind::Porep, SectorSize::KiB2);
    let circuit = id.compiled()?;
    if is_missing(&store, &id.key_spec(&circuit))? {
        context.output.remark(&format!(
            "making test keys for {id} in {}",
            folder.display()
        ));
        phases.run("make test keys", || {
            generate::generate(context, id, &circuit, SEED, &folder)
        })?;
    }
    drop(circuit);
    let decoded = phases.run("decode", || Request::decode(C2_INPUT, HINTS))?;
    let bytes = prove::prove(
        context,
        &decoded,
        prove::default_device(context)?,
        &store,
        sink,
        phases,
    )?;
    // Once more the way another program would: from the bytes and the .vk file alone.
    verify::verify(&decoded.request, &bytes, &store)?;
    context
        .output
        .remark("the proof verifies against the request's public values and the .vk file");
    Ok(())
}

fn is_missing(store: &KeyStore, spec: &KeySpec) -> Result<bool, Failure> {
    for located in [store.locate_params(spec), store.locate_vk(spec)] {
        match located {
            Ok(_) => {}
            Err(KeyError::Missing(_)) => return Ok(true),
            Err(other) => return Err(other.into()),
        }
    }
    Ok(false)
}
