//! What is wrong with the way in which a job is started, said while it can still be mended.

use super::host::{self, Host, Patience};
use super::limits::Limits;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Clients of container engines. The work is done by processes that are not theirs.
const CONTAINER_CLIENTS: [&str; 3] = ["docker", "podman", "nerdctl"];

/// Everything that should be mended, with the way to do it.
pub fn warnings(argv: &[OsString], host: Host, hurried: Option<Patience>, limits: &Limits) -> Vec<String> {
    let all = [
        host::entry_warning(host),
        container_client(argv),
        limits.warning(host),
        hurried.and_then(|patience| too_patient(host, patience)),
    ];
    all.into_iter().flatten().collect()
}

fn container_client(argv: &[OsString]) -> Option<String> {
    let name = |word: &OsString| Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned());
    let program = argv.iter().filter_map(name).find(|name| name != "sudo")?;
    CONTAINER_CLIENTS.contains(&program.as_str()).then(|| {
        format!(
            "{program} only asks for a container, and what builds in it is no process of this job: it cannot be observed or \
             stopped from here; run stuckproof inside: {program} run -v \"$(command -v stuckproof):/usr/local/bin/stuckproof:ro\" \
             … IMAGE stuckproof run -- COMMAND"
        )
    })
}

fn too_patient(host: Host, patience: Patience) -> Option<String> {
    let complete = host.complete()?;
    let killed = patience.grace.map(|grace| grace.saturating_add(patience.kill_after));
    let shown = |span: Duration| span.as_secs_f64();
    match killed {
        Some(killed) if killed <= complete => None,
        Some(killed) => Some(format!(
            "--grace and --kill-after let the command live for {} s after a signal of {}, and the evidence must be complete after \
             {} s; shorten them, or say with --host-allows that it waits longer",
            shown(killed),
            host.title(),
            shown(complete)
        )),
        None => Some(format!(
            "--grace none lets the command live for ever, and {} ends the job {} s after its first signal; leave it out, or say \
             with --host-allows that it waits longer",
            host.title(),
            shown(host.allows()?)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_container_client_is_recognised() {
        for line in
            ["docker run image trtexec", "/usr/bin/podman exec c x", "sudo docker run i", "nerdctl run i"]
        {
            assert!(container_client(&argv(line)).unwrap().contains("run stuckproof inside"), "{line}");
        }
        for line in ["trtexec --docker", "python docker.py", "dockerd", "sudo make docker"] {
            assert_eq!(container_client(&argv(line)), None, "{line}");
        }
    }

    #[test]
    fn more_patience_than_the_host_has_is_told() {
        let github = Host::find(Some("github"), None);
        let patience = |grace| Patience { grace, kill_after: Duration::from_secs(2) };
        assert_eq!(too_patient(github, patience(Some(Duration::from_secs(7)))), None);
        assert!(
            too_patient(github, patience(Some(Duration::from_secs(8))))
                .unwrap()
                .contains("10 s after a signal")
        );
        assert!(too_patient(github, patience(None)).unwrap().contains("for ever"));
        assert_eq!(too_patient(Host::find(Some("none"), None), patience(None)), None);
    }
}
