//! What stood around the jobs.

use super::{Section, Sheet};
use crate::artifact::{own_place, placeholders};
use crate::baseline::{Baseline, Device, Limits, Machine};
use crate::event::ArtifactKind;
use crate::evidence::{Bundle, Summary};
use std::path::Path;

/// The GPUs that the commands could use.
pub(super) fn gpu(a: Option<&Baseline>, b: Option<&Baseline>, summaries: [&Summary; 2]) -> Section {
    let mut sheet = Sheet::new("GPU");
    sheet.put("SKU", summaries.map(|summary| summary.gpu_sku.as_ref()));
    let both = [a, b];
    let gpu = |side: Option<&Baseline>| side.map(|baseline| baseline.gpu.clone());
    sheet.put("driver", both.map(|side| gpu(side)?.driver_version));
    sheet.put("CUDA of the driver", both.map(|side| gpu(side)?.cuda_driver_version));
    sheet.put("devices in use", both.map(|side| Some(gpu(side)?.in_use.len())));
    let device = |side: Option<&Baseline>| side.and_then(first_in_use).cloned();
    sheet.put("compute capability", both.map(|side| device(side)?.compute_capability));
    sheet.put("memory, bytes", both.map(|side| device(side)?.memory_bytes));
    sheet.put("MIG", both.map(|side| device(side)?.mig));
    sheet.put("ECC", both.map(|side| device(side)?.ecc));
    sheet.put("fastest clock, MHz", both.map(|side| device(side)?.max_sm_mhz));
    sheet.section()
}

/// The device that CUDA shows first.
fn first_in_use(baseline: &Baseline) -> Option<&Device> {
    let uuid = &baseline.gpu.in_use.first()?.uuid;
    baseline.gpu.devices.iter().find(|device| device.uuid.as_ref() == Some(uuid))
}

/// The command, the machine and the environment.
pub(super) fn surroundings(a: &Bundle, b: &Bundle) -> Section {
    let mut sheet = Sheet::new("surroundings");
    let headers = [a, b].map(|side| &side.evidence.header);
    sheet.put("command", [a, b].map(|side| Some(command(side))));
    sheet.put("stuckproof", headers.map(|header| Some(&header.stuckproof)));
    sheet.put("host", headers.map(|header| Some(&header.host)));
    sheet.put("CI host", headers.map(|header| header.ci_host.as_ref()));
    let (Ok(one), Ok(other)) = (&a.baseline, &b.baseline) else {
        let known = [a, b].map(|side| Some(if side.baseline.is_ok() { "known" } else { "not known" }));
        sheet.put("baseline", known);
        return sheet.section();
    };
    machine(&mut sheet, [&one.machine, &other.machine]);
    limits(&mut sheet, [&one.limits, &other.limits]);
    sheet.put("container", [one, other].map(|side| side.container.kind.as_ref()));
    sheet.put("commit", [one, other].map(|side| side.ci.as_ref()?.commit.as_ref()));
    sheet.put_all("variable ", &one.environment, &other.environment);
    sheet.section()
}

/// The command as the user wrote it: what stands for the job's own places differs from job to job.
fn command(bundle: &Bundle) -> String {
    let header = &bundle.evidence.header;
    let mut command = header.argv.join(" ");
    let mut engines = 0;
    for artifact in &bundle.inventory.artifacts {
        engines += usize::from(artifact.kind == ArtifactKind::Engine);
        let own = own_place(artifact.kind, Path::new(&artifact.target), &header.job);
        let written = placeholders(artifact.kind, engines).swap_remove(0);
        command = command.replace(&*own.to_string_lossy(), &written);
    }
    command
}

fn machine(sheet: &mut Sheet, both: [&Machine; 2]) {
    sheet.put("system", both.map(|machine| machine.os.as_ref()));
    sheet.put("kernel", both.map(|machine| machine.kernel.as_ref()));
    sheet.put("CPU", both.map(|machine| machine.cpu_model.as_ref()));
    sheet.put("usable CPUs", both.map(|machine| machine.usable_cpus));
    sheet.put("memory, bytes", both.map(|machine| machine.memory_bytes));
}

fn limits(sheet: &mut Sheet, both: [&Limits; 2]) {
    sheet.put("limit of memory, bytes", both.map(|limits| limits.memory_bytes));
    sheet.put("limit of CPUs", both.map(|limits| limits.cpus));
    sheet.put("limit of processes", both.map(|limits| limits.processes));
}
