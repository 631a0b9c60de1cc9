//! What `baseline.json` holds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What stood around a job when it began.
///
/// A field that could not be read is null, and `nulls` says why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "baseline")]
pub struct Baseline {
    /// Version of this file's format: 1.
    pub format: u32,
    /// The job's name.
    pub job: String,
    /// When the last of this was read.
    pub at: String,
    /// When the last of this was read, on the job's clock.
    pub t_ns: u64,
    /// The machine.
    pub machine: Machine,
    /// The container around the job.
    pub container: Container,
    /// What the job's control groups allow it.
    pub limits: Limits,
    /// The GPUs.
    pub gpu: Gpu,
    /// The CI job around this one, or null outside of any.
    pub ci: Option<Ci>,
    /// The variables that can change what a builder does; values that look secret are masked.
    pub environment: BTreeMap<String, String>,
    /// Files of `TensorRT` libraries that a loader may find.
    pub tensorrt_files: Vec<LibraryFile>,
    /// Why a field is null or a list is empty, by the field's path.
    pub nulls: BTreeMap<String, String>,
}

/// The machine, as its kernel tells it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Machine {
    /// The distribution with its version.
    pub os: Option<String>,
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The architecture.
    pub architecture: String,
    /// The CPU's model.
    pub cpu_model: Option<String>,
    /// CPUs that are online.
    pub cpus: Option<u64>,
    /// CPUs that this process may use.
    pub usable_cpus: Option<u64>,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// Memory that was free for use.
    pub available_bytes: Option<u64>,
    /// Swap.
    pub swap_bytes: Option<u64>,
}

/// A container around the job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Container {
    /// Its kind, as far as one is known, or null.
    pub kind: Option<String>,
    /// What tells of it.
    pub hints: Vec<String>,
}

/// Limits of the control groups, the tightest on the way to the root.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// The job's control group, as /proc names it.
    pub cgroup: Option<String>,
    /// Memory; null without a limit.
    pub memory_bytes: Option<u64>,
    /// CPUs' worth of time; null without a limit.
    pub cpus: Option<f64>,
    /// Processes and threads; null without a limit.
    pub processes: Option<u64>,
}

/// The GPUs, as NVML tells them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gpu {
    /// Whether the command can use a GPU; null where that is not known.
    pub usable: Option<bool>,
    /// The driver's version.
    pub driver_version: Option<String>,
    /// The newest CUDA that the driver serves.
    pub cuda_driver_version: Option<String>,
    /// NVML's version.
    pub nvml_version: Option<String>,
    /// Every device.
    pub devices: Vec<Device>,
    /// The devices that CUDA shows to the command, in CUDA's order.
    pub in_use: Vec<InUse>,
    /// Files in /dev that stand for a GPU.
    pub device_files: Vec<String>,
}

/// A device that the command can use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InUse {
    /// Its UUID; of a slice where MIG is on.
    pub uuid: String,
    /// Its SKU.
    pub name: String,
}

/// One GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Device {
    /// Its number in NVML, which counts by PCI bus.
    pub index: u32,
    /// Its SKU.
    pub name: Option<String>,
    /// Its UUID.
    pub uuid: Option<String>,
    /// Its place on the bus.
    pub pci_bus_id: Option<String>,
    /// Its compute capability, `8.9`.
    pub compute_capability: Option<String>,
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// Memory that was in use.
    pub used_bytes: Option<u64>,
    /// Whether MIG is on.
    pub mig: Option<bool>,
    /// Whether ECC is on.
    pub ecc: Option<bool>,
    /// The graphics clock, MHz.
    pub graphics_mhz: Option<u32>,
    /// The multiprocessors' clock, MHz.
    pub sm_mhz: Option<u32>,
    /// The memory's clock, MHz.
    pub memory_mhz: Option<u32>,
    /// The fastest clock of the multiprocessors, MHz.
    pub max_sm_mhz: Option<u32>,
    /// Processes that had the device open when this was read.
    pub processes: Vec<GpuProcess>,
}

/// A process on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GpuProcess {
    /// Its number, as the driver tells it; a container may know it under another.
    pub pid: u32,
    /// Its name, where it can be seen from here.
    pub name: Option<String>,
    /// GPU memory that it used, where the driver tells it.
    pub memory_bytes: Option<u64>,
}

/// A CI job, as its host names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Ci {
    /// The host: `github`, `gitlab`, `buildkite`, `azure`, `circleci`, `jenkins`, `ci`.
    pub host: String,
    /// The repository.
    pub repository: Option<String>,
    /// The commit.
    pub commit: Option<String>,
    /// The branch or tag.
    pub reference: Option<String>,
    /// The run or pipeline.
    pub run: Option<String>,
    /// Which attempt of that run.
    pub attempt: Option<String>,
    /// The job in it.
    pub job: Option<String>,
}

/// A file of a `TensorRT` library.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LibraryFile {
    /// The library's name, without version.
    pub name: String,
    /// The file, links followed.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Where it was found: `LD_LIBRARY_PATH`, `system`, `python`.
    pub found_by: String,
}
