//! Whether the kernel's OOM killer struck in our memory cgroup, which is the command's as well.

use std::fs;
use std::path::{Path, PathBuf};

/// Counts from the moment at which it was made.
#[derive(Debug)]
pub struct OomWatch {
    source: Option<(PathBuf, u64)>,
}

impl OomWatch {
    /// Finds the counter; there is none without a memory cgroup.
    #[must_use]
    pub fn new() -> Self {
        let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let found = counters(&membership).into_iter().find_map(|path| count(&path).map(|n| (path, n)));
        Self { source: found }
    }

    /// Processes killed since; nothing where that cannot be known.
    #[must_use]
    pub fn kills(&self) -> Option<u64> {
        let (path, before) = self.source.as_ref()?;
        Some(count(path)?.saturating_sub(*before))
    }
}

/// Where the counter may be: in the one hierarchy of cgroup 2, or in the memory controller's own of cgroup 1. A
/// container may see its own group as the root.
fn counters(membership: &str) -> Vec<PathBuf> {
    let unified = membership.lines().find_map(|l| l.strip_prefix("0::"));
    let memory = membership.lines().find_map(|l| {
        let (controllers, path) = l.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|c| c == "memory").then_some(path)
    });
    let place =
        |root: &str, group: &str, file: &str| Path::new(root).join(group.trim_start_matches('/')).join(file);
    let mut places = Vec::new();
    if let Some(group) = memory {
        places.push(place("/sys/fs/cgroup/memory", group, "memory.oom_control"));
        places.push(place("/sys/fs/cgroup/memory", "", "memory.oom_control"));
    }
    if let Some(group) = unified {
        places.push(place("/sys/fs/cgroup", group, "memory.events"));
        places.push(place("/sys/fs/cgroup", "", "memory.events"));
    }
    places
}

fn count(path: &Path) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|l| l.strip_prefix("oom_kill "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_cgroup_are_looked_at() {
        let two = counters("0::/user.slice/job\n");
        assert_eq!(two[0], Path::new("/sys/fs/cgroup/user.slice/job/memory.events"));
        let one = counters("5:cpu,cpuacct:/a\n4:memory:/docker/x\n0::/\n");
        assert_eq!(one[0], Path::new("/sys/fs/cgroup/memory/docker/x/memory.oom_control"));
    }

    #[test]
    fn the_count_is_found_among_its_neighbours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("memory.events");
        fs::write(&path, "low 0\noom 4\noom_kill 3\noom_group_kill 9\n").unwrap();
        let watch = OomWatch { source: Some((path.clone(), count(&path).unwrap())) };
        assert_eq!(watch.kills(), Some(0));
        fs::write(&path, "oom_kill 5\n").unwrap();
        assert_eq!(watch.kills(), Some(2));
    }
}
