//! `cuzk params prepare NAME`: the prepared key of a parameter file.

use std::sync::Arc;

use cuda::GpuGroupTransform;
use groth16::key::KeyStore;
use groth16::key::prepare::{
    self, CpuGroupTransform, GroupTransform, Lane, PrepareRequest, Prepared, Step,
};
use serde::Serialize;

use crate::Context;
use crate::cli::{Device, MakerArgs, PrepareArgs};
use crate::commands::circuit;
use crate::failure::Failure;
use crate::keys::{self, KeyDocument};
use crate::phases::{Phases, PhasesDocument, seconds};
use crate::progress::Meter;
use crate::table::{self, Align, Table};

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
        steps: made.steps.iter().map(StepDocument::from).collect(),
        timing: phases.to_json(),
    };
    if context.output.quiet() {
        if let Some(notice) = document.notice {
            context.output.warn(notice);
        }
        return context.output.show(&document, "");
    }
    let text = document.text(&made) + "\n" + &document.step_table() + "\n" + &phases.render();
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
    steps: Vec<StepDocument>,
    timing: PhasesDocument,
}

/// What was done when, in seconds since the preparation began: transforms and the CPU's work run beside
/// each other.
#[derive(Serialize)]
struct StepDocument {
    lane: &'static str,
    step: &'static str,
    start: f64,
    end: f64,
}

impl From<&Step> for StepDocument {
    fn from(step: &Step) -> Self {
        StepDocument {
            lane: match step.lane {
                Lane::Transform => "transform",
                Lane::Cpu => "cpu",
            },
            step: step.name,
            start: seconds(step.start),
            end: seconds(step.end),
        }
    }
}

impl Document {
    fn step_table(&self) -> String {
        let mut table = Table::new(&[
            ("lane", Align::Left),
            ("step", Align::Left),
            ("from", Align::Right),
            ("to", Align::Right),
            ("time", Align::Right),
        ]);
        for step in &self.steps {
            table.row([
                step.lane.to_owned(),
                step.step.to_owned(),
                format!("{:.3} s", step.start),
                format!("{:.3} s", step.end),
                format!("{:.3} s", step.end - step.start),
            ]);
        }
        table.render()
    }

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
                "every point of h and l, and all of it against the source".to_owned(),
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
