//! `cuzk doctor gpu`: driver and GPUs, whether this program has code for them, and a proof on each.

use cuda::{CudaError, Device, GpuBackend, SelfTest, Target};
use serde::Serialize;

use super::{Finding, State};
use crate::Context;
use crate::failure::Failure;
use crate::phases::seconds;
use crate::table;

/// Looks at every GPU.
///
/// # Errors
/// What keeps any GPU from being used at all; after the report, exit 5 or 6 if one of them failed.
pub fn run(context: &Context) -> Result<(), Failure> {
    let count = Device::count()?;
    if count == 0 {
        return Err(CudaError::NoDevice { ordinal: 0, count }.into());
    }
    let mut failures = Vec::new();
    let mut devices = Vec::new();
    for ordinal in 0..count {
        let line = context.progress.stage(format!("GPU {ordinal}"), 0);
        let (device, failure) = examine(ordinal);
        drop(line);
        devices.push(device);
        failures.extend(failure);
    }
    let targets = cuda::built_targets();
    let document = Document {
        schema: "cuzk.doctor-gpu/1",
        targets: targets.iter().map(Target::to_string).collect(),
        devices,
    };
    let text = document.text();
    context.output.show(&document, &text)?;
    match failures.into_iter().next() {
        Some(failure) => Err(Failure::reported(failure.exit)),
        None => Ok(()),
    }
}

fn examine(ordinal: usize) -> (DeviceDocument, Option<Failure>) {
    let mut document = DeviceDocument {
        ordinal,
        ..DeviceDocument::default()
    };
    let tested = Device::open(ordinal).and_then(|device| {
        document.describe(&device)?;
        GpuBackend::open(ordinal)
    });
    let result = match tested {
        Ok(backend) => cuda::self_test(&backend).map_err(Failure::from),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(test) => {
            document.self_test = Some(test.into());
            (document, None)
        }
        Err(failure) => {
            document.failure = Some(FailureDocument::from(&failure));
            (document, Some(failure))
        }
    }
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    targets: Vec<String>,
    devices: Vec<DeviceDocument>,
}

#[derive(Default, Serialize)]
struct DeviceDocument {
    ordinal: usize,
    name: Option<String>,
    uuid: Option<String>,
    driver: Option<String>,
    compute_capability: Option<String>,
    multiprocessors: Option<u32>,
    memory_bytes: Option<u64>,
    free_bytes: Option<u64>,
    code: Option<String>,
    self_test: Option<SelfTestDocument>,
    failure: Option<FailureDocument>,
}

#[derive(Serialize)]
struct SelfTestDocument {
    constraints: usize,
    first_seconds: f64,
    second_seconds: f64,
}

#[derive(Serialize)]
struct FailureDocument {
    code: &'static str,
    message: String,
    remedy: String,
}

impl From<SelfTest> for SelfTestDocument {
    fn from(test: SelfTest) -> Self {
        Self {
            constraints: test.constraints,
            first_seconds: seconds(test.first),
            second_seconds: seconds(test.second),
        }
    }
}

impl From<&Failure> for FailureDocument {
    fn from(failure: &Failure) -> Self {
        Self {
            code: failure.code,
            message: failure.message.clone(),
            remedy: failure.remedy.clone(),
        }
    }
}

impl DeviceDocument {
    fn describe(&mut self, device: &Device) -> Result<(), CudaError> {
        let info = device.info();
        let (major, minor) = info.capability;
        // Machine code before PTX, which the driver translates first.
        let code = cuda::built_targets()
            .into_iter()
            .filter(|target| target.runs_on(info.capability))
            .min_by_key(|target| target.ptx);
        self.name = Some(info.name.clone());
        self.uuid = Some(info.uuid.clone());
        self.driver = Some(info.driver.to_string());
        self.compute_capability = Some(format!("{major}.{minor}"));
        self.multiprocessors = Some(info.multiprocessors);
        self.memory_bytes = Some(info.total_bytes);
        self.code = code.map(|target| target.to_string());
        self.free_bytes = Some(device.free_bytes()?);
        Ok(())
    }

    fn text(&self) -> String {
        let mut lines = vec![("GPU", self.ordinal.to_string())];
        let texts = [
            ("name", self.name.clone()),
            ("uuid", self.uuid.clone()),
            (
                "driver",
                self.driver.as_ref().map(|d| format!("supports CUDA {d}")),
            ),
            ("compute capability", self.compute_capability.clone()),
            (
                "multiprocessors",
                self.multiprocessors.map(|n| n.to_string()),
            ),
            ("memory", self.memory_text()),
            ("code", self.code_text()),
        ];
        lines.extend(
            texts
                .into_iter()
                .filter_map(|(name, text)| Some((name, text?))),
        );
        if let Some(test) = &self.self_test {
            let text = format!(
                "passed: {} constraints, every sum equal to the CPU's, proof verified; first {} s, second {} s",
                test.constraints, test.first_seconds, test.second_seconds
            );
            lines.push(("self-test", text));
        }
        if let Some(failure) = &self.failure {
            lines.push(("failed", format!("{} ({})", failure.message, failure.code)));
            lines.push(("remedy", failure.remedy.clone()));
        }
        table::pairs(&lines)
    }

    fn memory_text(&self) -> Option<String> {
        let (total, free) = (self.memory_bytes?, self.free_bytes?);
        Some(format!(
            "{}, {} free",
            table::bytes(total),
            table::bytes(free)
        ))
    }

    fn code_text(&self) -> Option<String> {
        self.name.as_ref()?;
        Some(match &self.code {
            Some(target) => format!("{target}, in this program"),
            None => "none in this program".to_owned(),
        })
    }
}

impl Document {
    fn text(&self) -> String {
        let devices: Vec<String> = self.devices.iter().map(DeviceDocument::text).collect();
        let targets = table::pairs(&[("targets of this program", self.targets.join(", "))]);
        format!("{targets}\n{}", devices.join("\n"))
    }
}

/// Driver and GPUs, without proving on them: that would take memory from a daemon at work.
pub fn findings() -> Vec<Finding> {
    let subject = "GPUs";
    let count = match Device::count() {
        Ok(0) => {
            let remedy = "install a GPU, or prove on the CPU: slow, but every kind works";
            return vec![Finding::other(State::Warning, subject, "none", remedy)];
        }
        Ok(count) => count,
        Err(error) => {
            // A build without code for GPUs, or a host without a driver, proves on the CPU.
            return vec![Finding::failure(State::Warning, subject, &error.into())];
        }
    };
    (0..count).map(one).collect()
}

fn one(ordinal: usize) -> Finding {
    let subject = format!("GPU {ordinal}");
    let mut document = DeviceDocument {
        ordinal,
        ..DeviceDocument::default()
    };
    let described = Device::open(ordinal).and_then(|device| document.describe(&device));
    if let Err(error) = described {
        return Finding::failure(State::Bad, subject, &error.into());
    }
    let name = document.name.clone().unwrap_or_default();
    let driver = document.driver.clone().unwrap_or_default();
    let memory = document.memory_text().unwrap_or_default();
    let found = format!("{name}, the driver supports CUDA {driver}, memory {memory}");
    match document.code {
        Some(code) => {
            let found =
                format!("{found}, code for {code}; `cuzk doctor gpu` tests it with a proof");
            Finding::good(subject, found)
        }
        None => Finding::other(
            State::Bad,
            subject,
            format!("{found}, and this program has no code for it"),
            "use a build for this GPU (CUZK_CUDA_ARCHS, see docs/gpu.md)",
        ),
    }
}
