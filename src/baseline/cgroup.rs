//! What the control groups allow, of both kinds: the tightest limit from the job's own group to the root.

use super::{Limits, Nulls};
use std::fs;
use std::path::{Path, PathBuf};

/// A limit of cgroup 1 from here on stands for none.
const NO_LIMIT: u64 = 1 << 60;

pub(super) fn read(nulls: &mut Nulls) -> Limits {
    let membership = fs::read_to_string("/proc/self/cgroup");
    let membership = nulls.keep("limits", membership).unwrap_or_default();
    let limits = limits(Path::new("/sys/fs/cgroup"), &membership);
    let none = "no limit is set, or none can be seen from here";
    let fields = [
        ("memoryBytes", limits.memory_bytes.is_none()),
        ("cpus", limits.cpus.is_none()),
        ("processes", limits.processes.is_none()),
    ];
    for (field, _) in fields.iter().filter(|(_, null)| *null) {
        nulls.put(&format!("limits.{field}"), none);
    }
    if limits.cgroup.is_none() {
        nulls.put("limits.cgroup", "/proc/self/cgroup names none");
    }
    limits
}

fn limits(root: &Path, membership: &str) -> Limits {
    let unified = membership.lines().find_map(|line| line.strip_prefix("0::"));
    let one = |name: &str| {
        membership.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|controller| controller == name).then_some(path)
        })
    };
    // Each controller stands in the one hierarchy of cgroup 2 or in its own of cgroup 1.
    let groups = |controller: &str| {
        let mut folders = unified.map(|path| way_up(root, path)).unwrap_or_default();
        folders.extend(one(controller).into_iter().flat_map(|path| way_up(&root.join(controller), path)));
        folders
    };
    let smallest = |controller: &str, files: [&str; 2]| {
        let folders = groups(controller);
        let values = folders.iter().flat_map(|folder| files.map(|file| number(&folder.join(file))));
        values.flatten().filter(|&value| value < NO_LIMIT).min()
    };
    let cpus = groups("cpu").iter().filter_map(|folder| cpus(folder)).min_by(f64::total_cmp);
    Limits {
        cgroup: unified.filter(|path| !path.is_empty()).or_else(|| one("memory")).map(str::to_owned),
        memory_bytes: smallest("memory", ["memory.max", "memory.limit_in_bytes"]),
        cpus,
        processes: smallest("pids", ["pids.max", "pids.max"]),
    }
}

/// The folders from a group up to its root. A container may see its own group as the root, and is then told the path
/// that the host knows, which leads nowhere: only the root answers.
fn way_up(root: &Path, group: &str) -> Vec<PathBuf> {
    let group = Path::new(group.trim_start_matches('/'));
    let inside = group.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let group = if inside { group } else { Path::new("") };
    group.ancestors().map(|part| root.join(part)).collect()
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// CPUs' worth of time that one group may use.
fn cpus(folder: &Path) -> Option<f64> {
    let (quota, period) = match fs::read_to_string(folder.join("cpu.max")) {
        Ok(both) => {
            let (quota, period) = both.trim().split_once(' ')?;
            (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?)
        }
        Err(_) => (
            number(&folder.join("cpu.cfs_quota_us"))? as f64,
            number(&folder.join("cpu.cfs_period_us"))? as f64,
        ),
    };
    (period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_tightest_group_on_the_way_up_counts() {
        let root = tree(&[
            ("memory.max", "max\n"),
            ("pod/memory.max", "4096\n"),
            ("pod/job/memory.max", "8192\n"),
            ("pod/job/cpu.max", "150000 100000\n"),
            ("pod/cpu.max", "max 100000\n"),
            ("pod/job/pids.max", "max\n"),
        ]);
        let found = limits(root.path(), "0::/pod/job\n");
        let expected = Limits {
            cgroup: Some("/pod/job".to_owned()),
            memory_bytes: Some(4096),
            cpus: Some(1.5),
            processes: None,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn the_older_kind_is_read_where_it_is_mounted() {
        let root = tree(&[
            ("memory/docker/x/memory.limit_in_bytes", "1073741824\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("cpu/docker/x/cpu.cfs_quota_us", "-1\n"),
            ("cpu/cpu.cfs_quota_us", "50000\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
            ("pids/docker/x/pids.max", "512\n"),
        ]);
        let found = limits(root.path(), "9:pids:/docker/x\n5:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n");
        assert_eq!((found.memory_bytes, found.cpus, found.processes), (Some(1 << 30), Some(0.5), Some(512)));
    }

    #[test]
    fn a_path_that_leads_out_is_not_followed() {
        let root = tree(&[("memory.max", "4096\n")]);
        assert_eq!(limits(root.path(), "0::/../../x\n").memory_bytes, Some(4096));
        assert_eq!(limits(root.path(), ""), Limits::default());
    }
}
