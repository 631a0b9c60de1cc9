//! A file system that does not answer.

use crate::acting;
use crate::common::bundle::Bundle;
use crate::common::job::{Job, Place};
use crate::common::without::goes_without;
use crate::common::{command, wait_for};
use rustix::process::Signal;
use std::path::Path;
use std::process::{Child, Stdio};

/// A mounted file system whose server is our child.
struct Disk {
    server: Child,
    folder: String,
}

impl Disk {
    /// Shows the folder `under` in `folder`; none where this machine has no such thing.
    fn mount(under: &str, folder: &str) -> Option<Self> {
        for folder in [under, folder] {
            std::fs::create_dir(folder).expect("a folder");
        }
        std::fs::write(Path::new(under).join("file"), vec![7; 1 << 20]).expect("a file");
        let mut bindfs = command("bindfs");
        let server = bindfs.args(["-f", under, folder]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut disk = Self { server: server.ok()?, folder: folder.to_owned() };
        let mounted = wait_for("the disk, or the end of its server", || {
            let ended = disk.server.try_wait().expect("it is our child").is_some();
            let there = Path::new(folder).join("file").exists();
            (ended || there).then_some(there)
        });
        mounted.then_some(disk)
    }

    fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_child(&self.server);
        rustix::process::kill_process(pid, signal).expect("it is our child");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // One that does not answer would stay for ever.
        self.signal(Signal::CONT);
        let _ = command("umount").arg(&self.folder).status();
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_build_that_waits_for_a_dead_disk_is_blocked() {
    let place = Place::new();
    let stamp = place.file("stamp");
    let Some(disk) = Disk::mount(&place.file("under"), &format!("{stamp}.disk")) else {
        goes_without("bindfs");
        return;
    };
    let command = acting(&place, "small", "read_dead_disk", "step", 0);
    let run = place.run(&["--stall-after", "2s", "--grace", "1s", "--kill-after", "1s"], &command);
    let job = Job::start(place, run);
    wait_for("the act", || std::fs::exists(&stamp).expect("its folder can be read").then_some(()));
    // The file is opened in no time, but after the stamp.
    let opened = || disk_is_used(&stamp).then_some(());
    wait_for("the file to be open", opened);
    disk.signal(Signal::STOP);
    std::fs::write(format!("{stamp}.dead"), "").expect("a file");
    let bundle = job.place().bundle();
    let facts = wait_for("a stall", || Bundle::lines_so_far(&bundle, &["\"verdict\":\"stalled\""]).pop());
    disk.signal(Signal::CONT);
    assert_eq!(facts["reason"], "blocked", "{facts}");
    assert!(facts["blocked"].as_u64() >= Some(1), "{facts}");
    let ended = job.end();
    drop(disk);
    assert_eq!(ended.code(), 0, "it goes on once the disk answers: {}", ended.stderr);
}

/// Whether any process has the disk's file open.
fn disk_is_used(stamp: &str) -> bool {
    let file = format!("{stamp}.disk/file");
    let processes = std::fs::read_dir("/proc").expect("proc").flatten();
    let open = processes.filter_map(|process| std::fs::read_dir(process.path().join("fd")).ok());
    open.flatten().flatten().any(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == Path::new(&file)))
}
