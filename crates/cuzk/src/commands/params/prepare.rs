//! `cuzk params prepare NAME`: the prepared key of a parameter file.

use std::sync::Arc;

use cuda::GpuGroupTransform;
use groth16::key::KeyStore;
use groth16::key::prepare::{self, CpuGroupTransform, GroupTransform, PrepareRequest, Prepared};
use serde::Serialize;

use crate::Context;
use crate::cli::{Device, MakerArgs, PrepareArgs};
use crate::commands::circuit;
use crate::failure::Failure;
use crate::keys::{self, KeyDocument};
use crate::phases::{Phases, PhasesDocument};
use crate::progress::Meter;
use crate::table;

/// Runs the command.
///
/// # Errors
/// Parameters that are missing or not to be used, a key that exists already, no room, a GPU
/// that is not there or fails, a circuit that is too large for the CPU, a wrong result.
pub fn run(context: &Context, args: &PrepareArgs) -> Result<(), Failure> {
    let id = circuit::parse(&args.name)?;
    let store = keys::store(context, &args.keys);
    let meter = Arc::new(Meter::new(&context.progress, &format!("{id} key")));
    let (transform, device) = transform(&args.maker, &meter)?;
    let mut phases = Phases::start();
    let circuit = phases.run("load circuit", || id.compiled())?;
    let spec = id.key_spec(&circuit);
    let source = phases.run("check source", || store.published_key(&spec, &*meter))?;
    let folder = match (&args.out, args.verify_only) {
        (_, true) => None,
        (Some(folder), false) => Some(folder.clone()),
        (None, false) => Some(KeyStore::prepared_folder(context.config.cache())),
    };
    let request = PrepareRequest {
        circuit: id.name(),
        folder: folder.as_deref(),
        cache: Some(context.config.cache()),
    };
    let made = phases.run("prepare", || {
        prepare::prepare(&circuit, &source, &request, &*transform, &*meter)
    })?;
    let document = Document {
        schema: "cuzk.params-prepare/1",
        circuit: id.name(),
        device,
        source: KeyDocument::new(&source.path, source.trust),
        path: folder.map(|_| made.key.path().display().to_string()),
        bytes: made.key.stamp().size,
        digest: made.digest.to_string(),
        resumed: made.resumed.clone(),
        notice: source.trust.notice(),
        timing: phases.to_json(),
    };
    if context.output.quiet() {
        if let Some(notice) = document.notice {
            context.output.warn(notice);
        }
        return context.output.show(&document, "");
    }
    let text = document.text(&made) + "\n" + &phases.render();
    context.output.show(&document, &text)
}

/// What transforms the points, and its name.
fn transform(
    maker: &MakerArgs,
    meter: &Arc<Meter>,
) -> Result<(Box<dyn GroupTransform>, &'static str), Failure> {
    let cpu = || (Box::new(CpuGroupTransform) as Box<_>, "cpu");
    let gpu = |device| {
        let transform = GpuGroupTransform::on(device).with_progress(Arc::clone(meter) as _);
        (Box::new(transform) as Box<_>, "gpu")
    };
    Ok(match maker.device {
        Device::Cpu => cpu(),
        Device::Gpu => gpu(cuda::Device::open(maker.gpu)?),
        Device::Auto => cuda::Device::open(maker.gpu).map_or_else(|_| cpu(), gpu),
    })
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    circuit: &'static str,
    device: &'static str,
    source: KeyDocument,
    path: Option<String>,
    bytes: u64,
    digest: String,
    resumed: Vec<&'static str>,
    notice: Option<&'static str>,
    timing: PhasesDocument,
}

impl Document {
    fn text(&self, made: &Prepared) -> String {
        let place = match &self.path {
            Some(path) => path.clone(),
            None => "memory; nothing was written".to_owned(),
        };
        let mut rows = vec![
            (
                "source",
                format!("{}: {}", self.source.path, self.source.words),
            ),
            (
                "prepared key",
                format!("{place}, {}", table::bytes(self.bytes)),
            ),
            ("digest", self.digest.clone()),
            ("made by", self.device.to_owned()),
            (
                "checked",
                "every point, and against the source by random linear combinations".to_owned(),
            ),
        ];
        if !made.resumed.is_empty() {
            rows.push(("from an earlier run", made.resumed.join(", ")));
        }
        if let Some(notice) = self.notice {
            rows.push(("notice", notice.to_owned()));
        }
        table::pairs(&rows)
    }
}
