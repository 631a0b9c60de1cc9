//! The machine and the container, from sysinfo and /proc.

use super::{Container, Machine, Nulls};
use std::path::Path;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

/// Files that a container's maker leaves in it.
const MARKS: [(&str, &str); 2] = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
/// Variables that tell of a container.
const VARIABLES: [(&str, &str); 3] = [
    ("KUBERNETES_SERVICE_HOST", "kubernetes"),
    ("APPTAINER_CONTAINER", "apptainer"),
    ("SINGULARITY_CONTAINER", "singularity"),
];
/// Parts of the first process's control group.
const GROUPS: [(&str, &str); 5] = [
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("containerd", "containerd"),
    ("lxc", "lxc"),
];

pub(super) fn read(nulls: &mut Nulls) -> Machine {
    let wanted = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing())
        .with_memory(MemoryRefreshKind::everything());
    let system = nulls.keep("machine", System::new_with_specifics(wanted));
    let model = system.as_ref().and_then(|system| Some(system.cpus().first()?.brand().trim().to_owned()));
    let model = model.filter(|model| !model.is_empty()).ok_or("the kernel does not name it");
    Machine {
        os: nulls.keep("machine.os", System::long_os_version()),
        kernel: nulls.keep("machine.kernel", System::kernel_version()),
        architecture: System::cpu_arch(),
        cpu_model: nulls.keep("machine.cpuModel", model),
        cpus: system.as_ref().map(|system| system.cpus().len() as u64),
        usable_cpus: nulls
            .keep("machine.usableCpus", std::thread::available_parallelism())
            .map(|count| count.get() as u64),
        memory_bytes: system.as_ref().map(System::total_memory),
        available_bytes: system.as_ref().map(System::available_memory),
        swap_bytes: system.as_ref().map(System::total_swap),
    }
}

pub(super) fn container(nulls: &mut Nulls) -> Container {
    let first = std::fs::read_to_string("/proc/1/cgroup").unwrap_or_default();
    let found = hints(|path| Path::new(path).exists(), |name| std::env::var(name).ok(), &first);
    if found.kind.is_none() {
        nulls.put("container.kind", "nothing tells of a container");
    }
    found
}

fn hints(exists: impl Fn(&str) -> bool, variable: impl Fn(&str) -> Option<String>, first: &str) -> Container {
    let marks = MARKS.iter().filter(|(path, _)| exists(path));
    let mut found: Vec<(String, String)> =
        marks.map(|&(path, kind)| (kind.to_owned(), format!("{path} exists"))).collect();
    let set = VARIABLES.iter().filter(|(name, _)| variable(name).is_some());
    found.extend(set.map(|&(name, kind)| (kind.to_owned(), format!("{name} is set"))));
    if let Some(kind) = variable("container").filter(|kind| !kind.is_empty()) {
        found.push((kind.clone(), format!("container={kind}")));
    }
    let groups = GROUPS.iter().filter(|(part, _)| first.contains(part));
    found.extend(groups.map(|&(part, kind)| (kind.to_owned(), format!("/proc/1/cgroup names {part}"))));
    Container {
        kind: found.first().map(|(kind, _)| kind.clone()),
        hints: found.into_iter().map(|(_, hint)| hint).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hint_is_kept_and_the_surest_names_the_kind() {
        let found = hints(|path| path == "/.dockerenv", |_| None, "0::/kubepods/pod1/x\n");
        assert_eq!(found.kind.as_deref(), Some("docker"));
        assert_eq!(found.hints, ["/.dockerenv exists", "/proc/1/cgroup names kubepods"]);
        let podman = hints(|_| false, |name| (name == "container").then(|| "podman".to_owned()), "");
        assert_eq!(podman.kind.as_deref(), Some("podman"));
        assert_eq!(hints(|_| false, |_| None, "0::/init.scope\n"), Container::default());
    }

    #[test]
    fn this_machine_is_read() {
        let mut nulls = Nulls::default();
        let machine = read(&mut nulls);
        assert!(machine.memory_bytes.is_some_and(|bytes| bytes > 1 << 20), "{machine:?}");
        assert!(
            machine.cpus.is_some_and(|cpus| cpus >= 1) && machine.usable_cpus.is_some_and(|cpus| cpus >= 1)
        );
        assert!(machine.kernel.is_some() && !machine.architecture.is_empty());
    }
}
