//! The GPUs, from NVML, which comes with the driver. Without one there is nothing to load, and that is said.

use super::visible::{Shown, Visibility};
use super::{Device, Gpu, GpuProcess, InUse, Nulls};
use nvml_wrapper::enum_wrappers::device::Clock;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Nvml, cuda_driver_version_major, cuda_driver_version_minor};
use std::path::Path;

/// Files that stand for a GPU where NVML cannot say so: of the driver, of Jetson, of WSL.
const DEVICE_FILES: [&str; 5] =
    ["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvhost-gpu", "/dev/nvgpu", "/dev/dxg"];

/// Asks NVML. This may take as long as a driver needs to wake up, or for ever.
pub(super) fn read() -> (Gpu, Nulls) {
    let mut nulls = Nulls::default();
    let device_files = DEVICE_FILES.iter().filter(|file| Path::new(file).exists());
    let mut gpu = Gpu { device_files: device_files.map(ToString::to_string).collect(), ..Gpu::default() };
    match Nvml::init() {
        Ok(nvml) => ask(&nvml, &mut gpu, &mut nulls),
        Err(e) => {
            nulls.put("gpu", absence(&e));
            // A file that stands for a GPU may be of use without NVML; without one there is no GPU.
            if gpu.device_files.is_empty() {
                gpu.usable = Some(false);
            }
        }
    }
    (gpu, nulls)
}

fn absence(error: &NvmlError) -> String {
    match error {
        NvmlError::LibloadingError(e) => {
            format!("NVML cannot be loaded, so no NVIDIA driver is installed here: {e}")
        }
        NvmlError::DriverNotLoaded => "NVML is here, but the NVIDIA driver is not loaded".to_owned(),
        NvmlError::LibRmVersionMismatch => {
            "NVML and the loaded driver are of different versions; reboot, or reload the driver".to_owned()
        }
        other => format!("NVML cannot be used: {other}"),
    }
}

fn ask(nvml: &Nvml, gpu: &mut Gpu, nulls: &mut Nulls) {
    gpu.driver_version = nulls.keep("gpu.driverVersion", nvml.sys_driver_version());
    gpu.nvml_version = nulls.keep("gpu.nvmlVersion", nvml.sys_nvml_version());
    gpu.cuda_driver_version = nulls
        .keep("gpu.cudaDriverVersion", nvml.sys_cuda_driver_version())
        .map(|v| format!("{}.{}", cuda_driver_version_major(v), cuda_driver_version_minor(v)));
    let Some(count) = nulls.keep("gpu.devices", nvml.device_count()) else { return };
    gpu.devices = (0..count).map(|index| device(nvml, index, nulls)).collect();
    let variable = std::env::var_os("CUDA_VISIBLE_DEVICES").map(|v| v.to_string_lossy().into_owned());
    let visibility = Visibility {
        variable: variable.as_deref(),
        by_bus: std::env::var_os("CUDA_DEVICE_ORDER").is_some_and(|order| order == "PCI_BUS_ID"),
        devices: &gpu.devices,
    };
    match visibility.resolve(|uuid| slice(nvml, uuid)) {
        Shown::Devices(shown) => (gpu.usable, gpu.in_use) = (Some(true), shown),
        Shown::Nothing(why) => {
            gpu.usable = Some(false);
            nulls.put("gpu.inUse", why);
        }
        Shown::Unknown(why) => {
            nulls.put("gpu.usable", &why);
            nulls.put("gpu.inUse", why);
        }
    }
}

fn slice(nvml: &Nvml, uuid: &str) -> Option<InUse> {
    let device = nvml.device_by_uuid(uuid).ok()?;
    Some(InUse { uuid: device.uuid().ok()?, name: device.name().ok()? })
}

fn device(nvml: &Nvml, index: u32, nulls: &mut Nulls) -> Device {
    let path = |field: &str| format!("gpu.devices.{index}.{field}");
    let mut facts = Device { index, ..Device::default() };
    let Some(device) = nulls.keep(&format!("gpu.devices.{index}"), nvml.device_by_index(index)) else {
        return facts;
    };
    facts.name = nulls.keep(&path("name"), device.name());
    facts.uuid = nulls.keep(&path("uuid"), device.uuid());
    facts.pci_bus_id = nulls.keep(&path("pciBusId"), device.pci_info().map(|pci| pci.bus_id));
    let capability = device.cuda_compute_capability().map(|c| format!("{}.{}", c.major, c.minor));
    facts.compute_capability = nulls.keep(&path("computeCapability"), capability);
    if let Some(memory) = nulls.keep(&path("memoryBytes"), device.memory_info()) {
        (facts.memory_bytes, facts.used_bytes) = (Some(memory.total), Some(memory.used));
    } else {
        nulls.put(&path("usedBytes"), "its memory cannot be read");
    }
    facts.mig = nulls.keep(&path("mig"), device.mig_mode()).map(|mode| mode.current == 1);
    facts.ecc = nulls.keep(&path("ecc"), device.is_ecc_enabled()).map(|ecc| ecc.currently_enabled);
    facts.graphics_mhz = nulls.keep(&path("graphicsMhz"), device.clock_info(Clock::Graphics));
    facts.sm_mhz = nulls.keep(&path("smMhz"), device.clock_info(Clock::SM));
    facts.memory_mhz = nulls.keep(&path("memoryMhz"), device.clock_info(Clock::Memory));
    facts.max_sm_mhz = nulls.keep(&path("maxSmMhz"), device.max_clock_info(Clock::SM));
    facts.processes = processes(&device, &path("processes"), nulls);
    facts
}

fn processes(device: &nvml_wrapper::Device, field: &str, nulls: &mut Nulls) -> Vec<GpuProcess> {
    let mut found = nulls.keep(field, device.running_compute_processes()).unwrap_or_default();
    found.extend(device.running_graphics_processes().unwrap_or_default());
    found.sort_by_key(|process| process.pid);
    found.dedup_by_key(|process| process.pid);
    let fact = |(place, process): (usize, &ProcessInfo)| {
        let name = std::fs::read_to_string(format!("/proc/{}/comm", process.pid));
        let memory = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Ok(bytes),
            UsedGpuMemory::Unavailable => Err("the driver does not tell it"),
        };
        GpuProcess {
            pid: process.pid,
            name: nulls.keep(&format!("{field}.{place}.name"), name).map(|name| name.trim_end().to_owned()),
            memory_bytes: nulls.keep(&format!("{field}.{place}.memoryBytes"), memory),
        }
    };
    found.iter().enumerate().map(fact).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_a_fact_or_a_reason() {
        let (gpu, nulls) = read();
        if gpu.usable == Some(true) {
            assert!(!gpu.in_use.is_empty() && gpu.driver_version.is_some(), "{gpu:?}");
        } else {
            let reasons = ["gpu", "gpu.devices", "gpu.inUse"];
            assert!(reasons.iter().any(|field| nulls.0.contains_key(*field)), "{nulls:?}");
        }
    }
}
