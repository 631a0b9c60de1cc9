//! The GPUs, asked on a thread of their own: a driver may take seconds to answer, or never answer.

use super::model::GpuUse;
use nvml_wrapper::Nvml;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Between two questions.
const APART: Duration = Duration::from_secs(1);
/// An answer older than this says nothing any more: the driver hangs.
const STALE: Duration = Duration::from_secs(10);
/// Stands for a GPU where NVML cannot say so.
const DEVICE_FILES: [&str; 5] =
    ["/dev/nvidiactl", "/dev/nvidia0", "/dev/nvhost-gpu", "/dev/nvgpu", "/dev/dxg"];

/// The latest answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Gpus {
    answer: Arc<Mutex<Option<Answer>>>,
}

#[derive(Debug, Clone)]
struct Answer {
    at: Instant,
    /// Nothing can change any more: there is no GPU, or it cannot be seen.
    last: bool,
    devices: Option<Vec<Device>>,
}

#[derive(Debug, Clone)]
struct Device {
    percent: Option<u32>,
    used: Option<u64>,
    processes: Vec<(u32, Option<u64>)>,
}

impl Gpus {
    /// Starts to ask; until the first answer nothing is known.
    pub(super) fn watch() -> Self {
        let gpus = Self::default();
        let answer = Arc::downgrade(&gpus.answer);
        // Without the thread the GPUs stay unseen, which every sample says.
        let _ = std::thread::Builder::new().name("stuckproof-gpus".to_owned()).spawn(move || ask(&answer));
        gpus
    }

    /// What they do for the job whose processes are `family`. The highest load since `percent` was cleared is kept in it.
    pub(super) fn now(&self, family: &BTreeSet<u32>, percent: &mut Vec<u32>) -> Option<Vec<GpuUse>> {
        let answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        if !answer.last && answer.at.elapsed() > STALE {
            return None;
        }
        let devices = answer.devices?;
        percent.resize(devices.len(), 0);
        let uses = devices.iter().zip(percent).enumerate().map(|(index, (device, highest))| {
            *highest = device.percent.unwrap_or(0).max(*highest);
            GpuUse { percent: device.percent.map(|_| *highest), ..device.seen_from(index, family) }
        });
        Some(uses.collect())
    }
}

impl Device {
    fn seen_from(&self, index: usize, family: &BTreeSet<u32>) -> GpuUse {
        let mut seen =
            GpuUse { index: index as u32, used_bytes: self.used, own_bytes: Some(0), ..GpuUse::default() };
        for (pid, bytes) in &self.processes {
            if family.contains(pid) {
                seen.own_processes += 1;
                seen.own_bytes = seen.own_bytes.zip(*bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
            } else if Path::new(&format!("/proc/{pid}")).exists() {
                seen.other_processes += 1;
            } else {
                seen.unknown_processes += 1;
            }
        }
        seen
    }
}

fn ask(answer: &Weak<Mutex<Option<Answer>>>) {
    let nvml = match Nvml::init() {
        Ok(nvml) => nvml,
        Err(e) => return tell(answer, true, without(&e)),
    };
    while answer.strong_count() > 0 {
        tell(answer, false, devices(&nvml).ok());
        std::thread::sleep(APART);
    }
}

/// Without a driver there are no GPUs; anything else leaves open what they do.
fn without(error: &NvmlError) -> Option<Vec<Device>> {
    let no_driver = matches!(error, NvmlError::LibloadingError(_) | NvmlError::DriverNotLoaded);
    (no_driver && !DEVICE_FILES.iter().any(|file| Path::new(file).exists())).then(Vec::new)
}

fn tell(answer: &Weak<Mutex<Option<Answer>>>, last: bool, devices: Option<Vec<Device>>) {
    if let Some(answer) = answer.upgrade() {
        let new = Answer { at: Instant::now(), last, devices };
        *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(new);
    }
}

fn devices(nvml: &Nvml) -> Result<Vec<Device>, NvmlError> {
    let bytes = |process: &ProcessInfo| match process.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => Some(bytes),
        UsedGpuMemory::Unavailable => None,
    };
    let device = |index| {
        let device = nvml.device_by_index(index)?;
        let mut processes = device.running_compute_processes().unwrap_or_default();
        processes.extend(device.running_graphics_processes().unwrap_or_default());
        processes.sort_by_key(|process| process.pid);
        processes.dedup_by_key(|process| process.pid);
        Ok(Device {
            percent: device.utilization_rates().ok().map(|rates| rates.gpu),
            used: device.memory_info().ok().map(|memory| memory.used),
            processes: processes.iter().map(|process| (process.pid, bytes(process))).collect(),
        })
    };
    (0..nvml.device_count()?).map(device).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpus(age: Duration, last: bool) -> Gpus {
        let own = std::process::id();
        let processes = vec![(own, Some(7)), (1, None), (u32::MAX, None)];
        let devices = Some(vec![Device { percent: Some(40), used: Some(9), processes }]);
        let at = Instant::now().checked_sub(age).unwrap();
        Gpus { answer: Arc::new(Mutex::new(Some(Answer { at, last, devices }))) }
    }

    #[test]
    fn own_others_and_unknown_processes_are_told_apart_and_the_highest_load_is_kept() {
        let family = BTreeSet::from([std::process::id()]);
        let mut percent = vec![70];
        let seen = gpus(Duration::ZERO, false).now(&family, &mut percent).unwrap();
        let expected = GpuUse {
            index: 0,
            percent: Some(70),
            used_bytes: Some(9),
            own_bytes: Some(7),
            own_processes: 1,
            other_processes: 1,
            unknown_processes: 1,
        };
        assert_eq!(seen, [expected]);
    }

    #[test]
    fn a_driver_that_hangs_is_not_seen() {
        let now = |gpus: Gpus| gpus.now(&BTreeSet::new(), &mut Vec::new());
        let old = STALE + Duration::from_secs(1);
        assert!(now(gpus(old, false)).is_none());
        assert!(now(gpus(old, true)).is_some());
        assert!(now(Gpus::default()).is_none());
    }
}
