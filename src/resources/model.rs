//! The lines of `resources.jsonl`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A GPU that is used more than this is at work, in percent.
const AT_WORK: u32 = 5;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "resourceHeader")]
pub struct Header {
    /// Version of this file's format: 1.
    pub format: u32,
    /// The job's name.
    pub job: String,
    /// Processors that are online.
    pub cpus: u64,
    /// The processes that are counted descend from this one, which is not counted itself.
    pub root_pid: u32,
}

/// Every other line: what the job's processes used at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "resourceSample")]
pub struct Sample {
    /// When, on the job's clock in nanoseconds.
    pub t: u64,
    /// The job's processes.
    pub processes: u32,
    /// Their threads.
    pub threads: u64,
    /// Time on a processor since the job began, that of ended processes included, milliseconds.
    pub cpu_ms: u64,
    /// Time since the job began that threads were kept from a processor while they had more to do, milliseconds: what they
    /// waited for a turn, in proportion to the turns that were cut short. Null where the kernel does not count it.
    pub starved_ms: Option<u64>,
    /// Their resident memory; shared pages count for each process.
    pub rss_bytes: u64,
    /// Bytes that they have read and written through system calls so far, or null where that may not be seen.
    pub io_bytes: Option<u64>,
    /// Threads that ran or could have run at that moment.
    pub running: u32,
    /// Threads that slept.
    pub sleeping: u32,
    /// Threads that waited for a device and could not be interrupted.
    pub blocked: u32,
    /// Threads that were stopped by a signal or by a debugger.
    pub stopped: u32,
    /// Processes that had ended and were not waited for.
    pub zombies: u32,
    /// What the threads that did not run waited in, by the kernel's name; empty where the kernel hides it.
    pub waits: BTreeMap<String, u32>,
    /// The GPUs; null where they cannot be seen.
    pub gpus: Option<Vec<GpuUse>>,
    /// Threads and processes that could not be looked at, or were too many.
    pub unread: u32,
    /// Processor time that this sample took, microseconds.
    pub cost_us: u64,
}

/// One GPU at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GpuUse {
    /// Its number in NVML.
    pub index: u32,
    /// How much of the time it was at work, percent; the highest since the last line.
    pub percent: Option<u32>,
    /// Memory in use.
    pub used_bytes: Option<u64>,
    /// Of that, the job's.
    pub own_bytes: Option<u64>,
    /// Processes of the job on it.
    pub own_processes: u32,
    /// Other processes on it.
    pub other_processes: u32,
    /// Processes on it of which nothing can be seen from here, as from inside a container; they may be the job's.
    pub unknown_processes: u32,
}

impl Sample {
    /// Whether a GPU worked, for the job as far as can be told; nothing where no GPU can be seen.
    #[must_use]
    pub fn gpu_works(&self) -> Option<bool> {
        self.gpus.as_ref().map(|gpus| gpus.iter().any(GpuUse::works_for_job))
    }
}

impl GpuUse {
    /// A driver that names no process at all leaves open whose work it is.
    fn works_for_job(&self) -> bool {
        let strangers_only =
            self.own_processes == 0 && self.unknown_processes == 0 && self.other_processes > 0;
        self.percent.is_none_or(|percent| percent >= AT_WORK) && !strangers_only
    }
}

/// The highest load of a GPU that may work for the job, percent.
#[must_use]
pub fn gpu_work(sample: &Sample) -> Option<u32> {
    sample.gpus.as_ref()?.iter().filter_map(|gpu| gpu.percent).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn works(percent: Option<u32>, own: u32, other: u32, unknown: u32) -> bool {
        let gpu = GpuUse {
            percent,
            own_processes: own,
            other_processes: other,
            unknown_processes: unknown,
            ..GpuUse::default()
        };
        Sample { gpus: Some(vec![gpu]), ..Sample::default() }.gpu_works().unwrap()
    }

    #[test]
    fn what_may_be_the_jobs_work_counts_as_such() {
        assert!(works(Some(90), 1, 0, 0));
        assert!(works(Some(90), 0, 0, 0), "a driver that names no process");
        assert!(works(Some(90), 0, 1, 1), "a container that sees strange numbers");
        assert!(works(None, 1, 0, 0), "a load that cannot be read");
        assert!(!works(Some(90), 0, 2, 0), "somebody else's");
        assert!(!works(Some(1), 1, 0, 0));
        assert_eq!(Sample::default().gpu_works(), None);
        assert_eq!(Sample { gpus: Some(Vec::new()), ..Sample::default() }.gpu_works(), Some(false));
    }
}
