//! What stood around the job, in a few lines.

use super::text::{Clean, Painter, count};
use crate::baseline::{Baseline, Gpu, LibraryFile};
use crate::evidence::Bundle;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The block "Host", for a bundle whose job recorded it.
pub(super) fn show(bundle: &Bundle, out: &mut impl Write, paint: &Painter) -> io::Result<()> {
    writeln!(out, "\n{}", paint.head("Host"))?;
    let baseline = match &bundle.baseline {
        Ok(baseline) => baseline,
        Err(why) => return writeln!(out, "  {}", Clean::line(why)),
    };
    let mut row = |name: &str, text: &str| writeln!(out, "  {name:<9} {}", Clean::line(text));
    row("machine", &machine(baseline))?;
    if let Some(limits) = limits(baseline) {
        row("limits", &limits)?;
    }
    if let Some(kind) = &baseline.container.kind {
        row("container", kind)?;
    }
    row("gpu", &gpu(baseline))?;
    if let Some(ci) = &baseline.ci {
        let parts = [&ci.repository, &ci.commit, &ci.run, &ci.job];
        let parts: Vec<&str> = parts.into_iter().filter_map(|part| part.as_deref()).collect();
        row("ci", &format!("{}: {}", ci.host, parts.join(", ")))?;
    }
    for (name, files) in copies(&baseline.tensorrt_files) {
        row("warning", &format!("{} files of {name} on this host: {}", files.len(), files.join(", ")))?;
    }
    Ok(())
}

fn machine(baseline: &Baseline) -> String {
    let machine = &baseline.machine;
    let model = machine.cpu_model.as_deref().unwrap_or("an unnamed CPU");
    let cpus = machine.usable_cpus.map_or_else(|| "CPUs unknown".to_owned(), |cpus| count(cpus, "CPU"));
    let memory = machine.memory_bytes.map_or_else(|| "memory unknown".to_owned(), gib);
    let kernel = machine.kernel.as_deref().unwrap_or("unknown");
    format!("{model} ({}), {cpus}, {memory}, kernel {kernel}", machine.architecture)
}

fn limits(baseline: &Baseline) -> Option<String> {
    let limits = &baseline.limits;
    let parts = [
        limits.memory_bytes.map(gib),
        limits.cpus.map(|cpus| format!("{cpus:.2} CPUs")),
        limits.processes.map(|processes| format!("{processes} processes")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn gpu(baseline: &Baseline) -> String {
    let gpu = &baseline.gpu;
    let names: Vec<&str> = gpu.in_use.iter().map(|device| device.name.as_str()).collect();
    if !names.is_empty() {
        return format!("{}; {}", names.join(", "), driver(gpu));
    }
    let word = if gpu.usable == Some(false) { "none" } else { "unknown" };
    let why = ["gpu.inUse", "gpu.devices", "gpu"].iter().find_map(|field| baseline.nulls.get(*field));
    why.map_or_else(|| word.to_owned(), |why| format!("{word}: {why}"))
}

fn driver(gpu: &Gpu) -> String {
    let known = |version: &Option<String>| version.clone().unwrap_or_else(|| "unknown".to_owned());
    format!("driver {}, CUDA up to {}", known(&gpu.driver_version), known(&gpu.cuda_driver_version))
}

/// Libraries of which there is more than one.
fn copies(files: &[LibraryFile]) -> BTreeMap<&str, Vec<&str>> {
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in files {
        by_name.entry(&file.name).or_default().push(&file.path);
    }
    by_name.retain(|_, files| files.len() > 1);
    by_name
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1_u64 << 30) as f64)
}
